//! Summing weights: rows with the same stack, thread, labels and state become one.
//!
//! For whoever builds a profile: the engine, the readers, and merging. Any thread.

use crate::{LabelSetId, NodeId, State, Values, Weight};
use rustc_hash::FxHashMap;

/// What sets one weight apart from another: the row's place without its values.
pub type WeightKey = (NodeId, u32, LabelSetId, State);

impl Weight {
    /// What sets this row apart from others.
    pub fn key(&self) -> WeightKey {
        (self.node, self.thread, self.labels, self.state)
    }
}

/// Rows for [`Profile::weights`](crate::Profile::weights) in the making: one for
/// each key, in the order in which the keys came, none of them all zero.
#[derive(Debug, Clone, Default)]
pub struct WeightTable {
    rows: Vec<Weight>,
    index: FxHashMap<WeightKey, usize>,
}

impl WeightTable {
    /// Adds `weight` to the row with its key. All-zero weights are left out.
    pub fn add(&mut self, weight: Weight) {
        if weight.values.is_zero() {
            return;
        }
        let row = *self.index.entry(weight.key()).or_insert_with(|| {
            self.rows.push(Weight {
                values: Values::default(),
                ..weight
            });
            self.rows.len() - 1
        });
        self.rows[row].values.add(weight.values);
    }

    /// The sums under `key`.
    pub fn get(&self, key: WeightKey) -> Option<Values> {
        self.index.get(&key).map(|&row| self.rows[row].values)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The rows.
    pub fn into_rows(self) -> Vec<Weight> {
        self.rows
    }
}

impl Extend<Weight> for WeightTable {
    fn extend<I: IntoIterator<Item = Weight>>(&mut self, weights: I) {
        weights.into_iter().for_each(|weight| self.add(weight));
    }
}

impl FromIterator<Weight> for WeightTable {
    fn from_iter<I: IntoIterator<Item = Weight>>(weights: I) -> Self {
        let mut table = Self::default();
        table.extend(weights);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(node: u32, state: State, count: u64) -> Weight {
        Weight {
            node: NodeId(node),
            thread: 1,
            labels: LabelSetId(0),
            state,
            values: Values {
                count,
                wall_ns: count * 10,
                cpu_ns: 0,
            },
        }
    }

    #[test]
    fn equal_keys_are_summed_and_others_kept_apart_in_order() {
        let table = WeightTable::from_iter([
            weight(2, State::Running, 1),
            weight(1, State::Running, 2),
            weight(2, State::Running, 3),
            weight(2, State::GvlWait, 4),
        ]);
        assert_eq!(
            table.into_rows(),
            [
                weight(2, State::Running, 4),
                weight(1, State::Running, 2),
                weight(2, State::GvlWait, 4),
            ]
        );
    }

    #[test]
    fn weights_without_values_make_no_row() {
        let table = WeightTable::from_iter([weight(1, State::Running, 0)]);
        assert!(table.is_empty());
        assert_eq!(table.get(weight(1, State::Running, 0).key()), None);
    }
}
