//! Labels for all samples of a profile: how those of several processes are told apart. Any
//! thread, no I/O.

use crate::{LabelSet, LabelSetId, LabelSets, Profile, StringId, WeightKey, WeightTable};

impl Profile {
    /// Puts these labels on every sample, in place of those with the same keys.
    pub fn label_all(&mut self, pairs: &[(&str, &str)]) {
        let pairs: LabelSet = pairs
            .iter()
            .map(|(key, value)| (self.strings.intern(key), self.strings.intern(value)))
            .collect();
        let mut sets = LabelSets::default();
        let ids: Vec<LabelSetId> = self
            .label_sets
            .iter()
            .map(|set| {
                let ours = |key: StringId| pairs.iter().any(|pair| pair.0 == key);
                let kept = set.iter().copied().filter(|(key, _)| !ours(*key));
                sets.intern(kept.chain(pairs.iter().copied()).collect())
            })
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
}
