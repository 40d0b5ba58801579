//! Profiles of several epochs, within their limits.

use super::*;
use crate::Times;
use crate::collect::packed_labels::{with_class, with_op};
use crate::collect::sample::SumLimits;
use proptest::prelude::*;
use rperf_model::frame_kind::OP;
use rperf_model::{GcCause, LabelSetId, LatencyClass};
use rperf_vm::{CapturedTree, LabelTexts, LastStack, OpNumber};
use std::collections::{BTreeMap, HashSet};

mod kept;

fn epoch(stacks: &[&[usize]]) -> (CapturedTree, Vec<Arc<ResolvedFrame>>, SampleSums) {
    let mut tree = CapturedTree::new(100);
    let mut collected = SampleSums::default();
    for stack in stacks {
        let node = tree.intern(stack, &[], &mut LastStack::default()).node;
        let key = SampleKey {
            node,
            thread: 1,
            labels: LabelSetId(0),
            state: rperf_model::State::Running,
            gc: None,
        };
        let values = Values {
            count: 1,
            times: Times::of(Mode::Wall, 10),
        };
        collected.sums.entry(key).or_default().add(values);
    }
    let name = |&frame: &usize| {
        Arc::new(ResolvedFrame {
            name: format!("method{frame}"),
            path: "app.rb".into(),
            first_line: 1,
        })
    };
    let names = tree.frames().iter().map(name).collect();
    (tree, names, collected)
}

#[test]
fn stacks_of_different_epochs_with_the_same_names_are_one() {
    let mut builder = ProfileBuilder::default();
    for _ in 0..3 {
        let (tree, names, collected) = epoch(&[&[2, 1], &[3, 1]]);
        builder.add(tree.nodes(), &names, collected);
    }
    assert_eq!(
        builder.size(),
        TreeSize {
            nodes: 3,
            frames: 3
        }
    );
    assert_eq!(builder.sums.len(), 2);
    assert!(builder.sums.values().all(|it| it.times.wall_ns == 30));
}

fn limits(nodes: usize) -> ProfileLimits {
    let mode = Mode::Wall;
    let rows = 1 << 12;
    ProfileLimits { nodes, rows, mode }
}

/// Each sample: a thread, a stack with its leaf first, and a time.
type Sampled = (u32, Vec<(usize, u32)>, u64);

fn sampled() -> impl Strategy<Value = Vec<Sampled>> {
    let stack = prop::collection::vec((1usize..7, 0u32..2), 0..14);
    prop::collection::vec((1u32..4, stack, 1u64..1_000), 1..60)
}

/// An epoch with a tree of so many nodes.
fn epoch_of(
    samples: &[Sampled],
    tree_nodes: usize,
    aggregate: bool,
) -> (CapturedTree, Vec<Arc<ResolvedFrame>>, SampleSums) {
    let mut tree = CapturedTree::new(tree_nodes);
    let mut last = LastStack::default();
    let limits = SumLimits {
        aggregate,
        rows: 1 << 20,
    };
    let mut sums = SampleSums::default();
    for (thread, stack, wall_ns) in samples {
        let (frames, lines): (Vec<_>, Vec<_>) = stack.iter().copied().unzip();
        let interned = tree.intern(&frames, &lines, &mut last);
        assert!(!interned.truncated);
        let sample = Sample {
            time_ns: 1,
            times: Times {
                cpu_ns: *wall_ns / 2,
                ..Times::of(Mode::Wall, *wall_ns)
            },
            node: interned.node,
            thread: *thread,
            labels: LabelSetId(0),
            request: rperf_vm::RequestNumber::NONE,
            state: rperf_model::State::Running,
            gc: None,
            count: 1,
        };
        sums.add(&[sample], limits);
    }
    let name = |&frame: &usize| {
        Arc::new(ResolvedFrame {
            name: format!("method{frame}"),
            path: "app.rb".into(),
            first_line: 1,
        })
    };
    let names = tree.frames().iter().map(name).collect();
    (tree, names, sums)
}

fn profile_of(epochs: &[Vec<Sampled>], limits: ProfileLimits, tree: usize, raw: bool) -> Profile {
    let mut builder = ProfileBuilder::new(limits);
    for samples in epochs {
        let (tree, names, sums) = epoch_of(samples, tree, !raw);
        builder.add(tree.nodes(), &names, sums);
        assert!(builder.tables.tree.len() <= builder.fold_at.nodes);
    }
    assert_eq!(builder.counts(), BuilderCounts::default());
    let measured = Measured {
        mode: Mode::Wall,
        blames: false,
        pairs: false,
    };
    builder.finish(measured, SessionNames::default(), raw.then_some(0))
}

/// What each leaf has: by name, line and thread.
fn self_values(profile: &Profile) -> BTreeMap<(String, u32, u32), Vec<i64>> {
    let mut sums = BTreeMap::<_, Vec<i64>>::new();
    for row in profile.weights.iter() {
        let leaf = profile.tree.get(row.key.node);
        let name = leaf.and_then(|node| profile.frames.get(node.frame));
        let name = name.map_or("", |frame| profile.strings.get(frame.name));
        let line = leaf.map_or(0, |node| node.line);
        let sum = sums.entry((name.into(), line, row.key.thread));
        let sum = sum.or_insert_with(|| vec![0; row.values.len()]);
        sum.iter_mut()
            .zip(row.values)
            .for_each(|(sum, value)| *sum += value);
    }
    sums
}

proptest! {
    #[test]
    fn self_times_are_equal_with_and_without_limits(
        epochs in prop::collection::vec(sampled(), 1..6),
        nodes in 0usize..120,
        tree_nodes in 200usize..2_000,
        raw: bool,
    ) {
        let whole = profile_of(&epochs, limits(usize::MAX), 1 << 20, raw);
        let limited = profile_of(&epochs, limits(nodes), tree_nodes, raw);
        prop_assert!(limited.check().is_ok(), "{:?}", limited.check());
        prop_assert_eq!(self_values(&limited), self_values(&whole));
        prop_assert_eq!(whole.folded().ns, 0);
        let samples: usize = epochs.iter().map(Vec::len).sum();
        let kept = limited.raw_samples.as_ref().map(RawSamples::len);
        prop_assert_eq!(kept, raw.then_some(samples));
        let leaves: HashSet<_> = self_values(&limited).into_keys().map(|it| (it.0, it.1)).collect();
        prop_assert!(limited.tree.len() <= (nodes.max(2 * leaves.len() + 2)) * 5 / 4);
    }
}

#[test]
fn the_lightest_stacks_are_folded_and_heavy_ones_stay() {
    let heavy = (1, vec![(3, 0), (2, 0), (1, 0)], 1_000);
    let light = |number: usize| (1, vec![(20, 0), (4 + number, 0), (1, 0)], 1);
    let epochs: Vec<Vec<Sampled>> = (0..10).map(|it| vec![heavy.clone(), light(it)]).collect();
    let profile = profile_of(&epochs, limits(12), 1 << 20, false);
    assert!(profile.tree.len() <= 12, "{}", profile.tree.len());
    let column = profile.schema.default_column();
    let largest = profile.weights.iter().max_by_key(|row| row.value(column));
    let largest = largest.expect("a row");
    assert_eq!(largest.value(column), 10_000);
    assert_eq!(profile.tree.stack(largest.key.node).count(), 3);
    let folded = profile.folded();
    assert!(
        (5..=10).contains(&folded.ns) && folded.samples == folded.ns,
        "{folded:?}"
    );
}

#[test]
fn rows_of_many_labels_are_folded_and_no_time_is_lost() {
    let mut builder = ProfileBuilder::new(limits(1_000));
    let (tree, names, _) = epoch_of(
        &(0..8)
            .map(|it| (1, vec![(1, 0), (2 + it, 0)], 1))
            .collect::<Vec<_>>(),
        1 << 10,
        true,
    );
    let most = builder.limits.rows;
    let rows = most as u32 / 4;
    for part in 0..6 {
        let mut sums = SampleSums::default();
        for label in 0..rows {
            // Two stacks with one leaf.
            let node = NodeId(2 * (part % 2) + 2);
            let key = SampleKey {
                node,
                thread: 1,
                labels: LabelSetId(part / 2 * rows + label),
                state: rperf_model::State::Running,
                gc: None,
            };
            let values = Values {
                count: 1,
                times: Times::of(Mode::Wall, 1),
            };
            sums.sums.insert(key, values);
        }
        builder.add(tree.nodes(), &names, sums);
        assert!(builder.sums.len() <= most);
    }
    assert_eq!(builder.counts().lost, Values::default());
    let time: u64 = builder.sums.values().map(|it| it.times.wall_ns).sum();
    assert_eq!(time, 6 * u64::from(rows));
}

#[test]
fn an_op_is_the_leaf_of_its_samples_and_its_time_is_kept() {
    let (tree, names, mut sums) = epoch(&[&[1], &[1, 2], &[3]]);
    let before: u64 = sums.sums.values().map(|it| it.times.wall_ns).sum();
    let named: Vec<_> = sums.sums.drain().collect();
    for (place, (mut key, values)) in named.into_iter().enumerate() {
        // The last one has no name.
        let op = [OpNumber(1), OpNumber(2), OpNumber(9)][place];
        key.labels = with_op(key.labels, op);
        sums.sums.insert(key, values);
    }
    let mut builder = ProfileBuilder::default();
    builder.add(tree.nodes(), &names, sums);
    let measured = Measured {
        mode: Mode::Wall,
        blames: false,
        pairs: false,
    };
    let ops: [Arc<str>; 2] = ["[SQL] a".into(), "[SQL] b".into()];
    let names = SessionNames {
        ops: &ops,
        ..SessionNames::default()
    };
    let profile = builder.finish(measured, names, None);
    assert_eq!(profile.check(), Ok(()));
    let after: i64 = profile.weights.iter().map(|it| it.values[1]).sum();
    assert_eq!(u64::try_from(after), Ok(before));
    let leaf = |node| {
        let frame = profile.frames.get(profile.tree.get(node)?.frame)?;
        Some((
            profile.strings.get(frame.name),
            profile.strings.get(frame.path),
        ))
    };
    let leaves: HashSet<_> = profile
        .weights
        .iter()
        .filter_map(|it| leaf(it.key.node))
        .collect();
    assert!(leaves.contains(&("[SQL] a", OP)) && leaves.contains(&("[SQL] b", OP)));
    assert_eq!(leaves.iter().filter(|it| it.1 == "app.rb").count(), 1);
}

#[test]
fn why_a_collection_ran_is_a_label_beside_all_others_and_no_time_is_lost() {
    let (tree, names, mut sums) = epoch(&[&[1], &[1, 2], &[3]]);
    let before: u64 = sums.sums.values().map(|it| it.times.wall_ns).sum();
    let named: Vec<_> = sums.sums.drain().collect();
    let causes = [Some(GcCause::MajorStart), Some(GcCause::MinorMalloc), None];
    for (key, values) in named {
        for (place, gc) in causes.into_iter().enumerate() {
            let labels = match gc {
                Some(GcCause::MinorMalloc) => with_class(LabelSetId(1), LatencyClass::Tail),
                _ => LabelSetId(0),
            };
            let values = Values {
                times: Times::of(Mode::Wall, place as u64 + 1),
                ..values
            };
            sums.sums.insert(SampleKey { gc, labels, ..key }, values);
        }
    }
    let mut builder = ProfileBuilder::default();
    builder.add(tree.nodes(), &names, sums);
    let measured = Measured {
        mode: Mode::Wall,
        blames: false,
        pairs: false,
    };
    let set: LabelTexts = [("job".into(), "Mail".into())].into();
    let names = SessionNames {
        label_sets: &[set],
        ..SessionNames::default()
    };
    let profile = builder.finish(measured, names, None);
    assert_eq!(profile.check(), Ok(()));
    let mut walls: BTreeMap<Vec<(&str, &str)>, i64> = BTreeMap::new();
    for weight in profile.weights.iter() {
        let text = |&(key, value): &(StringId, StringId)| {
            (profile.strings.get(key), profile.strings.get(value))
        };
        let set = profile.label_sets.get(weight.key.labels);
        *walls.entry(set.iter().map(text).collect()).or_default() += weight.values[1];
    }
    assert_eq!(walls.values().sum::<i64>(), 18);
    assert_eq!(before, 30);
    assert_eq!(walls[&vec![]], 9);
    assert_eq!(walls[&vec![("%gc", "major GC.start")]], 3);
    let all = vec![
        ("%gc", "minor malloc"),
        ("%latency", "tail"),
        ("job", "Mail"),
    ];
    let found = walls.iter().find(|it| it.0.len() == 3);
    let (mut labels, wall) = found.map(|it| (it.0.clone(), *it.1)).expect("all labels");
    labels.sort_unstable();
    assert_eq!((labels, wall), (all, 6));
}
