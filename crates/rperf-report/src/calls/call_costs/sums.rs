//! Rows of values by a key, as many values in each as there are columns. Used by `call_costs`; any
//! thread.

use rustc_hash::FxHashMap;
use std::hash::Hash;

/// The rows.
pub(super) struct Sums<K> {
    places: FxHashMap<K, usize>,
    keys: Vec<K>,
    /// Row by row.
    values: Vec<i64>,
    width: usize,
}

impl<K: Copy + Eq + Hash> Sums<K> {
    pub(super) fn new(width: usize) -> Self {
        Self {
            places: FxHashMap::default(),
            keys: Vec::new(),
            values: Vec::new(),
            width,
        }
    }

    /// The place of the row with this key, which is added if it is new.
    pub(super) fn place(&mut self, key: K) -> usize {
        *self.places.entry(key).or_insert_with(|| {
            self.keys.push(key);
            self.values.resize(self.keys.len() * self.width, 0);
            self.keys.len() - 1
        })
    }

    /// The values of the row at this place.
    pub(super) fn values(&mut self, place: usize) -> &mut [i64] {
        &mut self.values[place * self.width..][..self.width]
    }

    /// All rows, by their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &K, &[i64])> {
        let rows = self.keys.iter().enumerate();
        rows.map(|(place, key)| (place, key, &self.values[place * self.width..][..self.width]))
    }
}

/// Adds `values` to `sums`, saturating.
pub(super) fn add(sums: &mut [i64], values: &[i64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(*value);
    }
}
