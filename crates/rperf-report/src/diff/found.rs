//! The methods of all runs of a comparison, and where each run has them. Called by `diff`; any
//! thread.

use super::run::Run;
use crate::matching::{Matched, MethodTable};
use crate::stack::groups::Function;
use rperf_model::Order;

/// The methods of the runs. The sides have the numbers 0 (base) and 1 (target).
pub(super) struct FoundMethods {
    table: MethodTable,
    /// The methods in the order of their names.
    pub(super) order: Vec<usize>,
    /// For each side and run the row of each method.
    rows: [Vec<Vec<Option<usize>>>; 2],
    /// How each was found, if both sides have it.
    matched: Vec<Option<Matched>>,
    base_paths: Vec<Option<String>>,
}

impl FoundMethods {
    /// The methods of both sides, the target's first: a method has the path that it has there.
    pub(super) fn of(base: &[Run], target: &[Run]) -> Self {
        let mut table = MethodTable::default();
        let mut add = |run: &Run| {
            let methods = run.rows.iter().map(|row| (&row.key, &row.function));
            table.add(methods)
        };
        let targets: Vec<_> = target.iter().map(&mut add).collect();
        let bases: Vec<_> = base.iter().map(&mut add).collect();
        let count = table.functions().len();
        let rows = [&bases, &targets].map(|runs| {
            let places = |run: &Vec<(usize, Option<Matched>)>| {
                let mut rows = vec![None; count];
                for (row, &(place, _)) in run.iter().enumerate() {
                    rows[place] = Some(row);
                }
                rows
            };
            runs.iter().map(places).collect::<Vec<_>>()
        });
        let mut has_target = vec![false; count];
        for &(place, _) in targets.iter().flatten() {
            has_target[place] = true;
        }
        let mut matched = vec![None; count];
        let mut base_paths = vec![None; count];
        for (run, places) in base.iter().zip(&bases) {
            for (row, &(place, how)) in run.rows.iter().zip(places) {
                base_paths[place].get_or_insert_with(|| row.function.path.clone());
                if has_target[place] {
                    matched[place] = matched[place].max(how);
                }
            }
        }
        let mut order: Vec<usize> = (0..count).collect();
        order.order_by_key(|&method| &table.functions()[method]);
        Self {
            order,
            rows,
            matched,
            base_paths,
            table,
        }
    }

    pub(super) fn function(&self, method: usize) -> &Function {
        &self.table.functions()[method]
    }

    /// The row of a method in a run of a side.
    pub(super) fn row(&self, side: usize, run: usize, method: usize) -> Option<usize> {
        self.rows[side][run][method]
    }

    pub(super) fn matched(&self, method: usize) -> Option<Matched> {
        self.matched[method]
    }

    pub(super) fn base_path(&self, method: usize) -> Option<String> {
        self.base_paths[method].clone()
    }
}
