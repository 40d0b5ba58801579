//! Label sets: the key-value pairs that a program puts on its samples. Filled by the engine and the
//! readers, read by filters and formats. Any thread, no I/O.

use crate::{Profile, StringId, WeightKey, WeightTable};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Index of a label set in [`LabelSets`]. Id 0 is always the empty set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LabelSetId(pub u32);

/// Pairs of key and value, each key once, in the order in which they were set.
pub type LabelSet = Vec<(StringId, StringId)>;

/// A table of unique label sets; id 0 is the empty one.
#[derive(Debug, Clone)]
pub struct LabelSets {
    table: Vec<Arc<[(StringId, StringId)]>>,
    index: FxHashMap<Arc<[(StringId, StringId)]>, LabelSetId>,
    /// Labels of all sets together.
    labels: usize,
}

impl Default for LabelSets {
    fn default() -> Self {
        let mut sets = Self {
            table: Vec::new(),
            index: FxHashMap::default(),
            labels: 0,
        };
        sets.intern(LabelSet::new());
        sets
    }
}

impl LabelSets {
    /// The id of `set`, which is added if it is new.
    pub fn intern(&mut self, set: LabelSet) -> LabelSetId {
        if let Some(&id) = self.index.get(set.as_slice()) {
            return id;
        }
        let id = LabelSetId(self.table.len() as u32);
        self.labels += set.len();
        let set: Arc<[_]> = set.into();
        self.table.push(Arc::clone(&set));
        self.index.insert(set, id);
        id
    }

    /// The set with this id; empty for an id that is not in the table.
    pub fn get(&self, id: LabelSetId) -> &[(StringId, StringId)] {
        self.table.get(id.0 as usize).map_or(&[], |set| set)
    }

    /// How many sets there are, the empty one included.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes held, or nearly so.
    pub fn memory(&self) -> usize {
        let each = size_of::<Arc<[(StringId, StringId)]>>() + crate::memory::COUNTS;
        let labels = self.labels * size_of::<(StringId, StringId)>();
        labels + self.len() * each + crate::memory::of_map(&self.index)
    }

    /// All sets in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &[(StringId, StringId)]> {
        self.table.iter().map(|set| &**set)
    }
}

impl Profile {
    /// Puts these labels on every sample, in place of those with the same keys.
    pub fn label_all(&mut self, pairs: &[(&str, &str)]) {
        let pairs = self.interned(pairs);
        self.change_label_sets(|set| joined(set, &pairs));
    }

    /// Puts these labels on every sample that has none with the same keys.
    pub fn label_rest(&mut self, pairs: &[(&str, &str)]) {
        let pairs = self.interned(pairs);
        self.change_label_sets(|set| joined(&pairs, set));
    }

    fn interned(&mut self, pairs: &[(&str, &str)]) -> LabelSet {
        let mut intern = |text| self.strings.intern(text);
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| (intern(key), intern(value)))
            .collect()
    }

    fn change_label_sets(&mut self, change: impl Fn(&[(StringId, StringId)]) -> LabelSet) {
        let mut sets = LabelSets::default();
        let ids: Vec<LabelSetId> = self
            .label_sets
            .iter()
            .map(|set| sets.intern(change(set)))
            .collect();
        let label = |key: &mut WeightKey| key.labels = ids[key.labels.0 as usize];
        self.weights.change_keys(label);
        // Sets that differed only in the replaced labels are now one.
        self.weights = WeightTable::from(&self.weights).into_weights();
        if let Some(samples) = &mut self.raw_samples {
            samples.weights.change_keys(label);
        }
        self.label_sets = sets;
    }
}

/// All labels of `least` but those with keys of `most`, and all of `most`.
fn joined(least: &[(StringId, StringId)], most: &[(StringId, StringId)]) -> LabelSet {
    let replaced = |key: StringId| most.iter().any(|pair| pair.0 == key);
    let kept = least.iter().filter(|(key, _)| !replaced(*key));
    kept.chain(most).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;
    use crate::{Column, State};

    #[test]
    fn a_label_for_all_joins_or_replaces_what_is_there() {
        let mut test = TestProfile::wall().raw();
        let (one, two) = (
            test.labels(&[("job", "a"), ("%pid", "1")]),
            test.labels(&[("job", "a"), ("%pid", "2")]),
        );
        for labels in [LabelSetId(0), one, two] {
            test.add(&["main"], 1, labels, State::Running, 10);
        }
        let mut profile = test.profile;
        profile.label_all(&[("%pid", "9")]);
        assert_eq!(profile.check(), Ok(()));
        let set = |labels| {
            let text = |id| profile.strings.get(id).to_string();
            let set = profile.label_sets.get(labels).iter();
            set.map(|&(key, value)| (text(key), text(value)))
                .collect::<Vec<_>>()
        };
        let rows: Vec<_> = profile
            .weights
            .iter()
            .map(|row| (set(row.key.labels), row.value(Column(1))))
            .collect();
        let pair = |key: &str, value: &str| (key.to_string(), value.to_string());
        assert_eq!(
            rows,
            [
                (vec![pair("%pid", "9")], 10),
                (vec![pair("job", "a"), pair("%pid", "9")], 20)
            ]
        );
        assert_eq!(profile.raw_samples.map(|raw| raw.len()), Some(3));
    }

    #[test]
    fn a_label_for_the_rest_leaves_what_is_there() {
        let mut test = TestProfile::wall();
        let labels = test.labels(&[("job", "a")]);
        for labels in [LabelSetId(0), labels] {
            test.add(&["main"], 1, labels, State::Running, 10);
        }
        let mut profile = test.profile;
        profile.label_rest(&[("job", "b"), ("release", "c")]);
        assert_eq!(profile.check(), Ok(()));
        let text = |id| profile.strings.get(id);
        let sets = profile.weights.iter().map(|row| {
            let set = profile.label_sets.get(row.key.labels).iter();
            set.map(|&(key, value)| (text(key), text(value)))
                .collect::<Vec<_>>()
        });
        assert_eq!(
            sets.collect::<Vec<_>>(),
            [
                [("job", "b"), ("release", "c")],
                [("release", "c"), ("job", "a")]
            ]
        );
    }
}
