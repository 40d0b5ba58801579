//! Whatever is folded, what methods have themselves stays, and so do the totals of what is there.

use super::*;
use crate::test_support::test_profile::TestProfile;
use crate::{LabelSetId, Profile, State};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A sample: a stack of frames, root first, a thread, a label set, a state, and a time.
type Sampled = (Vec<u8>, u32, u8, bool, i64);

fn samples() -> impl Strategy<Value = Vec<Sampled>> {
    let stack = prop::collection::vec(0u8..6, 0..12);
    let sample = (stack, 1u32..3, 0u8..3, any::<bool>(), 1i64..1_000_000);
    prop::collection::vec(sample, 1..60)
}

fn add(profile: &mut TestProfile, samples: &[Sampled]) {
    for (stack, thread, label, is_running, ns) in samples {
        let names: Vec<String> = stack.iter().map(|frame| format!("m{frame}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let labels = match label {
            0 => LabelSetId(0),
            number => profile.labels(&[("of", &number.to_string())]),
        };
        let state = match is_running {
            true => State::Running,
            false => State::GvlWait,
        };
        profile.add(&names, *thread, labels, state, *ns);
    }
}

fn profile_of(samples: &[Sampled]) -> Profile {
    let mut profile = TestProfile::wall();
    add(&mut profile, samples);
    profile.profile
}

fn limits(nodes: usize) -> FoldLimits {
    FoldLimits {
        nodes,
        rows: usize::MAX,
    }
}

/// Frame and line of the leaf, thread, labels, state.
type LeafKey = (Option<(FrameId, u32)>, u32, LabelSetId, State);

/// What each leaf has, in all columns.
fn self_values(profile: &Profile) -> BTreeMap<LeafKey, Vec<i64>> {
    let mut sums: BTreeMap<LeafKey, Vec<i64>> = BTreeMap::new();
    for row in profile.weights.iter() {
        let leaf = profile.tree.get(row.key.node);
        let leaf = leaf.map(|node| (node.frame, node.line));
        let key = (leaf, row.key.thread, row.key.labels, row.key.state);
        let sum = sums.entry(key).or_insert_with(|| vec![0; row.values.len()]);
        sum.iter_mut()
            .zip(row.values)
            .for_each(|(sum, it)| *sum += it);
    }
    sums
}

/// The totals of all stacks, by their frames.
fn totals(profile: &Profile) -> BTreeMap<Vec<FrameId>, i64> {
    let mut totals = BTreeMap::new();
    for row in profile.weights.iter() {
        let stack = profile.tree.stack(row.key.node).map(|node| node.frame);
        let mut stack: Vec<FrameId> = stack.collect();
        stack.reverse();
        for depth in 0..=stack.len() {
            *totals.entry(stack[..depth].to_vec()).or_default() +=
                row.value(profile.schema.default_column());
        }
    }
    totals
}

fn folded(profile: &mut Profile) -> FrameId {
    folded_frame(&mut profile.strings, &mut profile.frames)
}

fn leaves(profile: &Profile) -> usize {
    let mut leaves: Vec<_> = self_values(profile).into_keys().map(|key| key.0).collect();
    leaves.dedup();
    leaves.len()
}

proptest! {
    #[test]
    fn self_values_stay_and_so_do_totals_of_what_is_there(samples in samples(), nodes in 0usize..80) {
        let mut profile = profile_of(&samples);
        let (self_before, totals_before) = (self_values(&profile), totals(&profile));
        profile.fold(limits(nodes));
        prop_assert!(profile.check().is_ok(), "{:?}", profile.check());
        prop_assert_eq!(&self_values(&profile), &self_before);
        let frame = folded(&mut profile);
        for (stack, total) in totals(&profile) {
            if !stack.contains(&frame) {
                prop_assert_eq!(total, totals_before[&stack]);
            }
        }
        // One leaf may be there twice: with its callers folded, and right below the root.
        prop_assert!(profile.tree.len() <= nodes.max(2 * leaves(&profile) + 1));
        let sum = profile.folded();
        let counters = profile.meta.counters;
        prop_assert_eq!((counters.folded_samples, counters.folded_ns), (sum.samples, sum.ns));
        let under = totals(&profile).into_iter().filter(|(stack, _)| stack.last() == Some(&frame));
        prop_assert_eq!(under.map(|it| it.1).sum::<i64>(), sum.ns as i64);
    }

    #[test]
    fn again_and_again_nothing_is_lost(parts in prop::collection::vec(samples(), 1..4), nodes in 0usize..60) {
        let mut whole = TestProfile::wall();
        let mut limited = TestProfile::wall();
        for part in &parts {
            add(&mut whole, part);
            add(&mut limited, part);
            limited.profile.fold(limits(nodes));
        }
        let (whole, mut limited) = (whole.profile, limited.profile);
        // Ids differ, as frames came in another order.
        let (by_name, folded_by_name) = (named(&whole), named(&limited));
        prop_assert_eq!(by_name, folded_by_name);
        let sum = limited.folded();
        prop_assert_eq!(limited.meta.counters.folded_ns, sum.ns);
        limited.fold(limits(0));
        prop_assert_eq!(named(&limited), named(&whole));
    }

    #[test]
    fn rows_are_folded_as_far_as_they_can_be(samples in samples(), rows in 0usize..60) {
        let mut profile = profile_of(&samples);
        let before = self_values(&profile);
        profile.fold(FoldLimits { nodes: usize::MAX, rows });
        prop_assert_eq!(&self_values(&profile), &before);
        let fewest = self_values(&profile).len();
        // As for nodes, a leaf right below the root may be there twice.
        prop_assert!(profile.weights.len() <= rows || rows < 2 * fewest);
    }

    #[test]
    fn of_two_snapshots_each_may_have_folded_other_stacks(
        samples in samples(),
        more in samples(),
        nodes in (0usize..60, 0usize..60),
    ) {
        let mut profile = TestProfile::wall();
        profile.profile.meta.start_time_ns = 1;
        add(&mut profile, &samples);
        let mut earlier = profile.profile.clone();
        earlier.fold(limits(nodes.0));
        add(&mut profile, &more);
        let mut later = profile.profile;
        later.fold(limits(nodes.1));
        later.subtract(&earlier).expect("an earlier one");
        prop_assert!(later.check().is_ok());
        prop_assert_eq!(named(&later), named(&profile_of(&more)));
    }

    #[test]
    fn a_later_snapshot_has_no_less_where_stacks_were_folded_meanwhile(
        first in samples(),
        second in samples(),
        nodes in (0usize..60, 0usize..60),
    ) {
        let mut profile = TestProfile::wall();
        profile.profile.meta.start_time_ns = 1;
        add(&mut profile, &first);
        profile.profile.fold(limits(nodes.0));
        let earlier = profile.profile.clone();
        add(&mut profile, &second);
        let mut later = profile.profile;
        later.fold(limits(nodes.1));
        later.subtract(&earlier).expect("an earlier one");
        prop_assert!(later.check().is_ok());
        prop_assert_eq!(named(&later), named(&profile_of(&second)));
        prop_assert_eq!(later.meta.counters.folded_ns, later.folded().ns);
    }
}

/// The self values by text.
fn named(profile: &Profile) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for row in profile.weights.iter() {
        let leaf = profile.tree.get(row.key.node);
        let leaf = leaf.and_then(|node| profile.frames.get(node.frame));
        let leaf = leaf.map(|frame| profile.strings.get(frame.name));
        let labels = profile.label_sets.get(row.key.labels).iter();
        let labels = labels.map(|&(_, value)| profile.strings.get(value));
        let labels: String = labels.collect();
        let key = format!("{leaf:?} {} {labels} {:?}", row.key.thread, row.key.state);
        *sums.entry(key).or_default() += row.value(profile.schema.default_column());
    }
    sums
}

#[test]
fn the_heaviest_stacks_stay_and_the_others_keep_their_leaf() {
    let profile = TestProfile::wall()
        .with(&["main", "a", "b", "heavy"], 1, State::Running, 1_000)
        .with(&["main", "a", "c", "d", "light"], 1, State::Running, 3)
        .with(&["main", "a", "e", "f", "light"], 2, State::Running, 2)
        .with(&["main", "a", "near"], 1, State::Running, 1);
    let mut profile = profile.profile;
    profile.fold(limits(7));
    let text = |stack: &[FrameId]| {
        let names = stack.iter().filter_map(|frame| profile.frames.get(*frame));
        let names: Vec<&str> = names.map(|it| profile.strings.get(it.name)).collect();
        names.join(" ")
    };
    let totals = totals(&profile);
    let totals: Vec<_> = totals.iter().map(|it| (text(it.0), *it.1)).collect();
    let mut expected = [
        ("", 1006),
        ("main", 1006),
        ("main a", 1006),
        ("main a b", 1000),
        ("main a b heavy", 1000),
        ("main a near", 1),
        ("main a [folded]", 5),
        ("main a [folded] light", 5),
    ]
    .map(|(stack, ns)| (stack.to_string(), ns));
    expected.sort();
    let mut totals = totals;
    totals.sort();
    assert_eq!(totals, expected);
    assert_eq!(profile.weights.len(), 4, "threads stay apart");
    let counters = profile.meta.counters;
    assert_eq!((counters.folded_samples, counters.folded_ns), (2, 5));
}

#[test]
fn what_has_room_stays_as_it_is() {
    let mut profile = TestProfile::wall()
        .with(&["main", "a"], 1, State::Running, 10)
        .profile;
    profile.fold(limits(2));
    assert_eq!(
        (profile.tree.len(), profile.folded()),
        (2, FoldedSum::default())
    );
    assert_eq!(profile.find_folded_frame(), None);
}

#[test]
fn nodes_without_rows_have_a_caller_to_be_found_below() {
    let mut profile = TestProfile::wall()
        .with(&["main", "a", "b", "c"], 1, State::Running, 10)
        .with(&["main", "x", "y", "z"], 1, State::Running, 1)
        .profile;
    let (x, y) = {
        let mut nodes = profile.tree.iter().map(|(id, _)| id);
        (nodes.nth(4).expect("x"), nodes.next().expect("y"))
    };
    let frame = folded(&mut profile);
    let rows: Vec<FoldRow> = profile
        .weights
        .iter()
        .map(|row| (row.key, row.values[1].unsigned_abs()))
        .collect();
    let tree = profile.tree.fold(frame, &rows, limits(6));
    assert_eq!(tree.tree.len(), 6);
    assert_eq!(tree.places[x.0 as usize], Place::Below(NodeId(1)));
    assert_eq!(tree.places[y.0 as usize], Place::Below(NodeId(1)));
    let last = NodeId(7);
    assert_eq!(tree.places[last.0 as usize], Place::At(NodeId(6)));
    assert_eq!(tree.of(last), NodeId(6));
}

#[test]
fn raw_samples_are_where_their_sums_are() {
    let profile = TestProfile::wall().raw();
    let mut profile = profile
        .with(&["main", "a", "b", "c"], 1, State::Running, 10)
        .with(&["main", "x", "y", "c"], 1, State::Running, 1)
        .with(&["main", "x", "z", "c"], 1, State::Running, 2)
        .profile;
    profile.fold(limits(6));
    assert!(profile.check().is_ok(), "{:?}", profile.check());
    assert_eq!(profile.weights.len(), 2);
    assert_eq!(profile.raw_samples.map(|raw| raw.len()), Some(3));
}
