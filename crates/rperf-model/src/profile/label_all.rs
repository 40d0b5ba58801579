//! Labels for all samples of a profile: how those of several processes are told apart. Any
//! thread, no I/O.

use crate::labels::label_keys::{REQUEST, set_apart};
use crate::{LabelSet, LabelSetId, LabelSets, Profile, StringId, Strings, WeightKey, WeightTable};
use rustc_hash::FxHashSet;
use std::borrow::Cow;

impl Profile {
    /// Puts these labels on every sample. Labels of the program with the same keys are kept,
    /// under other keys ([`set_apart`]).
    pub fn label_all(&mut self, pairs: &[(&str, &str)]) {
        let is_ours = |key: &str| pairs.iter().any(|pair| pair.0 == key);
        let ours = self.interned(pairs);
        self.change_label_sets(|set, strings| {
            let kept = set.iter().map(|&(key, value)| {
                let apart = match set_apart(strings.get(key), is_ours) {
                    Cow::Owned(text) => strings.intern(&text),
                    Cow::Borrowed(_) => key,
                };
                (apart, value)
            });
            kept.chain(ours.iter().copied()).collect()
        });
    }

    /// Puts these labels on every sample that has none with the same keys.
    pub fn label_rest(&mut self, pairs: &[(&str, &str)]) {
        let ours = self.interned(pairs);
        self.change_label_sets(|set, _| {
            let is_there = |key: StringId| set.iter().any(|pair| pair.0 == key);
            let missing = ours.iter().filter(|(key, _)| !is_there(*key));
            missing.chain(set).copied().collect()
        });
    }

    /// Takes the label off all samples.
    pub fn remove_label(&mut self, key: &str) {
        self.change_label_sets(|set, strings| {
            let others = set.iter().filter(|pair| strings.get(pair.0) != key);
            others.copied().collect()
        });
    }

    /// Takes the label `%request` off samples of requests that aren't among the slowest of their endpoints:
    /// those of a part of a session, or of one process, may be so no more beside those of others.
    pub fn label_slowest_alone(&mut self) {
        let Some(key) = self.strings.find(REQUEST) else {
            return;
        };
        let slowest = self.requests.iter().flat_map(|it| &it.slowest);
        let slowest: FxHashSet<String> = slowest.map(|it| it.id.to_string()).collect();
        self.change_label_sets(|set, strings| {
            let stays = |pair: &&(StringId, StringId)| {
                pair.0 != key || slowest.contains(strings.get(pair.1))
            };
            set.iter().filter(stays).copied().collect()
        });
    }

    fn interned(&mut self, pairs: &[(&str, &str)]) -> LabelSet {
        let mut intern = |text| self.strings.intern(text);
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| (intern(key), intern(value)))
            .collect()
    }

    fn change_label_sets(
        &mut self,
        change: impl Fn(&[(StringId, StringId)], &mut Strings) -> LabelSet,
    ) {
        let mut sets = LabelSets::default();
        let ids: Vec<LabelSetId> = self
            .label_sets
            .iter()
            .map(|set| sets.intern(change(set, &mut self.strings)))
            .collect();
        let label = |key: &mut WeightKey| key.labels = ids[key.labels.0 as usize];
        self.weights.change_keys(label);
        // Sets that differed only in the new labels are now one.
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
    use crate::test_support::test_profile::TestProfile;
    use crate::{Column, LatencyClass, RequestId, RequestValues, Requests, Slowest, State};
    use std::collections::BTreeMap;

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

    #[test]
    fn only_the_slowest_requests_of_all_have_their_label() {
        let request = |number| RequestId { session: 1, number };
        let part = |requests: std::ops::Range<u32>| {
            let mut test = TestProfile::wall();
            let mut of_endpoint = Requests::new("endpoint", "/");
            for number in requests {
                let label = request(number).to_string();
                let labels = test.labels(&[("endpoint", "/"), (REQUEST, &label)]);
                test.add(&["call"], 1, labels, State::Running, number.into());
                let took = RequestValues {
                    wall: number.into(),
                    ..RequestValues::default()
                };
                let slow = Slowest {
                    id: request(number),
                    ..took.ended_at(1)
                };
                of_endpoint.add(LatencyClass::Tail, slow, true);
            }
            test.profile.requests = vec![of_endpoint];
            test.profile.label_slowest_alone();
            test.profile
        };
        let sums = |profile: &Profile| {
            let mut sums = BTreeMap::<String, i64>::new();
            for row in profile.weights.iter() {
                let mut pairs = profile.label_sets.get(row.key.labels).iter();
                let label = pairs.find(|pair| profile.strings.get(pair.0) == REQUEST);
                let label = label.map_or("", |pair| profile.strings.get(pair.1));
                *sums.entry(label.to_string()).or_default() += row.value(Column(1));
            }
            sums
        };
        let mut merged = part(1..8);
        assert_eq!(sums(&merged).get(""), Some(&3), "1 and 2 are none of five");
        assert_eq!(sums(&merged).len(), 6);
        merged.merge(&part(8..11)).expect("of one kind");
        let labels = (6..11).map(|it| (request(it).to_string(), it.into()));
        let rest = (String::new(), 1 + 2 + 3 + 4 + 5);
        assert_eq!(sums(&merged), labels.chain([rest]).collect());
    }
}
