//! Totals of a profile: over all, by state, and by function; `lines`: by line.
//! Used by the text report and by `rperf stat`. Any thread, no I/O.

mod lines;

pub use lines::{LineTotals, Lines};

use crate::{DisplayFrame, Profile, State, Values, Weight};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// What the weights of a profile add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// All weights, in ns of the profile's mode.
    pub weight_ns: u64,
    /// All samples.
    pub count: u64,
    /// One entry for each state, in the order of [`State::ALL`].
    pub states: [StateTotals; State::ALL.len()],
    /// One entry for each function that is shown in any stack, in no order that
    /// means anything: see [`Totals::flat`] and [`Totals::cumulative`].
    pub functions: Vec<FunctionTotals>,
}

/// What the weights in one state add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateTotals {
    /// The state.
    pub state: State,
    /// The weights, in ns of the profile's mode.
    pub weight_ns: u64,
    /// All values, whatever the mode.
    pub values: Values,
}

/// What the weights of one function add up to.
///
/// A function is told by name and path, as it is printed: methods of the same name
/// defined twice in one file are one function. The synthetic leaves
/// (`[GVL blocked]` and so on) are functions too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Qualified name.
    pub name: String,
    /// Path, or a marker such as `<C method>`.
    pub path: String,
    /// Weight of the stacks that have it as their leaf, in ns.
    pub self_ns: u64,
    /// Weight of the stacks that have it anywhere, each stack once, in ns.
    pub total_ns: u64,
    /// Samples whose stack has it as the leaf.
    pub self_count: u64,
    /// Samples whose stack has it anywhere, each once.
    pub count: u64,
}

impl Totals {
    /// The totals of `profile`.
    pub fn of(profile: &Profile) -> Self {
        let mode = profile.meta.mode;
        let mut states = State::ALL.map(|state| StateTotals {
            state,
            weight_ns: 0,
            values: Values::default(),
        });
        let mut all = Values::default();
        let mut functions = Functions::default();
        for weight in &profile.weights {
            all.add(weight.values);
            states[weight.state as usize].values.add(weight.values);
            functions.add(profile, weight);
        }
        for state in &mut states {
            state.weight_ns = state.values.weight_ns(mode);
        }
        Self {
            weight_ns: all.weight_ns(mode),
            count: all.count,
            states,
            functions: functions.totals,
        }
    }

    /// The totals of one state.
    pub fn state(&self, state: State) -> &StateTotals {
        &self.states[state as usize]
    }

    /// Functions with self time, most first.
    pub fn flat(&self) -> Vec<&FunctionTotals> {
        self.sorted_by(|function| function.self_ns)
    }

    /// Functions with time of their own or of their callees, most first.
    pub fn cumulative(&self) -> Vec<&FunctionTotals> {
        self.sorted_by(|function| function.total_ns)
    }

    /// Equal times are in order of self time, then of the names, so that reports
    /// of equal profiles are equal.
    fn sorted_by(&self, ns: impl Fn(&FunctionTotals) -> u64) -> Vec<&FunctionTotals> {
        let with_time = self.functions.iter().filter(|function| ns(function) > 0);
        let mut functions: Vec<_> = with_time.collect();
        functions.sort_by_key(|function| {
            (
                Reverse((ns(function), function.self_ns)),
                &function.name,
                &function.path,
            )
        });
        functions
    }
}

/// Functions in the making.
#[derive(Default)]
struct Functions<'a> {
    totals: Vec<FunctionTotals>,
    rows: FxHashMap<DisplayFrame, usize>,
    rows_by_text: FxHashMap<(&'a str, &'a str), usize>,
    /// For each function the number of the last stack that had it.
    seen_in: Vec<u64>,
    stacks: u64,
}

impl<'a> Functions<'a> {
    fn add(&mut self, profile: &'a Profile, weight: &Weight) {
        let ns = weight.values.weight_ns(profile.meta.mode);
        let count = weight.values.count;
        self.stacks += 1;
        for (depth, frame) in profile.display_stack(weight).enumerate() {
            let row = self.row(profile, frame);
            let function = &mut self.totals[row];
            if depth == 0 {
                function.self_ns = function.self_ns.saturating_add(ns);
                function.self_count = function.self_count.saturating_add(count);
            }
            // A recursive function is in the stack again, but the time passed once.
            if self.seen_in[row] != self.stacks {
                self.seen_in[row] = self.stacks;
                function.total_ns = function.total_ns.saturating_add(ns);
                function.count = function.count.saturating_add(count);
            }
        }
    }

    fn row(&mut self, profile: &'a Profile, frame: DisplayFrame) -> usize {
        if let Some(&row) = self.rows.get(&frame) {
            return row;
        }
        let text = profile.frame_text(frame);
        let row = *self
            .rows_by_text
            .entry((text.name, text.path))
            .or_insert_with(|| {
                self.seen_in.push(0);
                self.totals.push(FunctionTotals {
                    name: text.name.to_string(),
                    path: text.path.to_string(),
                    self_ns: 0,
                    total_ns: 0,
                    self_count: 0,
                    count: 0,
                });
                self.totals.len() - 1
            });
        self.rows.insert(frame, row);
        row
    }
}

#[cfg(test)]
mod tests;
