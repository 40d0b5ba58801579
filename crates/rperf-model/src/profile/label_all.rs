//! Labels for all samples of a profile: how those of several processes are told apart. Any
//! thread, no I/O.

use crate::label_keys::set_apart;
use crate::{LabelSet, LabelSetId, LabelSets, Profile, WeightKey};
use std::borrow::Cow;

impl Profile {
    /// Puts these labels on every sample. Labels of the program with the same keys are kept,
    /// under other keys ([`set_apart`]).
    pub fn label_all(&mut self, pairs: &[(&str, &str)]) {
        let is_ours = |key: &str| pairs.iter().any(|pair| pair.0 == key);
        let mut strings = std::mem::take(&mut self.strings);
        let mut sets = LabelSets::default();
        let ids: Vec<LabelSetId> = self
            .label_sets
            .iter()
            .map(|set| {
                let mut all = LabelSet::with_capacity(set.len() + pairs.len());
                for &(key, value) in set {
                    let apart = match set_apart(strings.get(key), is_ours) {
                        Cow::Owned(text) => strings.intern(&text),
                        Cow::Borrowed(_) => key,
                    };
                    all.push((apart, value));
                }
                for (key, value) in pairs {
                    all.push((strings.intern(key), strings.intern(value)));
                }
                sets.intern(all)
            })
            .collect();
        self.strings = strings;
        let label = |key: &mut WeightKey| key.labels = ids[key.labels.0 as usize];
        self.weights.change_keys(label);
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
    fn a_label_for_all_joins_the_labels_of_the_program() {
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
                (
                    vec![pair("job", "a"), pair("label.%pid", "1"), pair("%pid", "9")],
                    10
                ),
                (
                    vec![pair("job", "a"), pair("label.%pid", "2"), pair("%pid", "9")],
                    10
                ),
            ]
        );
        assert_eq!(profile.raw_samples.map(|raw| raw.len()), Some(3));
    }
}
