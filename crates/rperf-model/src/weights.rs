//! Rows of values, one for each stack, thread, label set and state, and the table that sums rows
//! with the same key into one. Used by all who build a profile: the engine, traces, the readers,
//! and merging. Any thread, no I/O.

use crate::{Column, LabelSetId, NodeId, State};
use rustc_hash::FxHashMap;

/// The key of a row of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WeightKey {
    /// The stack.
    pub node: NodeId,
    /// The thread's seq (from 1); a row of [`Profile::threads`](crate::Profile::threads).
    pub thread: u32,
    /// The labels.
    pub labels: LabelSetId,
    /// The state.
    pub state: State,
}

/// A row: a key with one value for each column of the profile's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Weight<'a> {
    /// Where the values belong.
    pub key: WeightKey,
    /// The values.
    pub values: &'a [i64],
}

impl Weight<'_> {
    /// The value in `column`; 0 if there is no such column.
    pub fn value(&self, column: Column) -> i64 {
        self.values.get(column.0).copied().unwrap_or(0)
    }
}

/// Rows in a fixed number of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weights {
    keys: Vec<WeightKey>,
    /// Row by row.
    values: Vec<i64>,
    width: usize,
}

impl Weights {
    /// No rows yet, of `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            keys: Vec::new(),
            values: Vec::new(),
            width,
        }
    }

    /// Adds a row. `values` are as many as there are columns; if not, they are cut or
    /// filled up with zeros.
    pub fn push(&mut self, key: WeightKey, values: &[i64]) {
        debug_assert_eq!(values.len(), self.width, "one value for each column");
        self.keys.push(key);
        self.values.extend(values.iter().take(self.width));
        self.values.resize(self.keys.len() * self.width, 0);
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Weight<'_>> {
        (0..self.keys.len()).map(|row| Weight {
            key: self.keys[row],
            values: self.row(row),
        })
    }

    /// The row at this index.
    pub fn get(&self, row: usize) -> Option<Weight<'_>> {
        let key = *self.keys.get(row)?;
        let values = self.row(row);
        Some(Weight { key, values })
    }

    /// Changes every key. Rows with one key are not summed.
    pub(crate) fn change_keys(&mut self, change: impl FnMut(&mut WeightKey)) {
        self.keys.iter_mut().for_each(change);
    }

    fn row(&self, row: usize) -> &[i64] {
        &self.values[row * self.width..][..self.width]
    }

    fn add_to_row(&mut self, row: usize, values: &[i64]) {
        let sums = &mut self.values[row * self.width..][..self.width];
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum = sum.saturating_add(*value);
        }
    }
}

/// Rows for [`Profile::weights`](crate::Profile::weights) in the making: one for
/// each key, in the order in which the keys came. Sums saturate, and rows of zeros
/// only are left out.
#[derive(Debug, Clone)]
pub struct WeightTable {
    rows: Weights,
    index: FxHashMap<WeightKey, u32>,
}

impl WeightTable {
    /// A table without rows, of `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            rows: Weights::new(width),
            index: FxHashMap::default(),
        }
    }

    /// Adds `values` to the row with this key.
    pub fn add(&mut self, key: WeightKey, values: &[i64]) {
        if is_zero(values) {
            return;
        }
        let rows = &mut self.rows;
        match self.index.get(&key) {
            Some(&row) => rows.add_to_row(row as usize, values),
            None => {
                self.index.insert(key, rows.len() as u32);
                rows.push(key, values);
            }
        }
    }

    /// The sums under `key`, unless all are 0.
    pub fn get(&self, key: &WeightKey) -> Option<&[i64]> {
        let values = self.rows.row(*self.index.get(key)? as usize);
        (!is_zero(values)).then_some(values)
    }

    /// The rows so far, those included whose values have cancelled out.
    pub(crate) fn rows(&self) -> &Weights {
        &self.rows
    }

    /// How many keys had values, those included whose values have cancelled out.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether no key had values.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Bytes held, or nearly so.
    pub fn memory(&self) -> usize {
        let each = size_of::<WeightKey>() + self.rows.width * size_of::<i64>();
        self.len() * each + crate::memory::of_map(&self.index)
    }

    /// The rows.
    pub fn into_weights(self) -> Weights {
        if !self.rows.iter().any(|row| is_zero(row.values)) {
            return self.rows;
        }
        let mut rows = Weights::new(self.rows.width);
        for row in self.rows.iter().filter(|row| !is_zero(row.values)) {
            rows.push(row.key, row.values);
        }
        rows
    }
}

impl From<&Weights> for WeightTable {
    fn from(weights: &Weights) -> Self {
        let mut table = Self::new(weights.width);
        for weight in weights.iter() {
            table.add(weight.key, weight.values);
        }
        table
    }
}

fn is_zero(values: &[i64]) -> bool {
    values.iter().all(|value| *value == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(node: u32, state: State) -> WeightKey {
        WeightKey {
            node: NodeId(node),
            thread: 1,
            labels: LabelSetId(0),
            state,
        }
    }

    fn rows(weights: &Weights) -> Vec<(WeightKey, Vec<i64>)> {
        let rows = weights.iter();
        rows.map(|row| (row.key, row.values.to_vec())).collect()
    }

    #[test]
    fn equal_keys_are_summed_and_others_kept_apart_in_order() {
        let mut table = WeightTable::new(2);
        table.add(key(2, State::Running), &[1, 10]);
        table.add(key(1, State::Running), &[2, 0]);
        table.add(key(2, State::Running), &[3, i64::MAX]);
        table.add(key(2, State::GvlWait), &[4, -1]);
        assert_eq!(table.get(&key(1, State::Running)), Some(&[2, 0][..]));
        assert_eq!(
            rows(&table.into_weights()),
            [
                (key(2, State::Running), vec![4, i64::MAX]),
                (key(1, State::Running), vec![2, 0]),
                (key(2, State::GvlWait), vec![4, -1]),
            ]
        );
    }

    #[test]
    fn zeros_make_no_row_even_as_a_sum() {
        let mut table = WeightTable::new(2);
        table.add(key(1, State::Running), &[0, 0]);
        assert!(table.is_empty());
        table.add(key(1, State::Running), &[3, -2]);
        table.add(key(2, State::Running), &[1, 0]);
        table.add(key(1, State::Running), &[-3, 2]);
        assert_eq!((table.len(), table.get(&key(1, State::Running))), (2, None));
        let weights = table.into_weights();
        assert_eq!(rows(&weights), [(key(2, State::Running), vec![1, 0])]);
    }

    #[test]
    fn values_are_found_by_row_and_column() {
        let mut weights = Weights::new(2);
        weights.push(key(1, State::Running), &[5, 6]);
        let row = weights.get(0).expect("a row");
        assert_eq!((row.value(Column(1)), row.value(Column(2))), (6, 0));
        assert_eq!(weights.get(1), None);
        assert_eq!((weights.width(), weights.iter().len()), (2, 1));
    }
}
