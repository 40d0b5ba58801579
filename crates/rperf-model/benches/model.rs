//! How long the parts of a profile take to build: `cargo bench -p rperf-model`.
//! The stacks are those of a program with 3,000 methods, 60 deep.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rperf_model::test_support::RandomWalk;
use rperf_model::{CallTree, Frame, Frames, Node, Profile, Strings, WeightTable};

const WEIGHTS: usize = 100_000;

fn main() {
    divan::main();
}

fn profile(threads: u32) -> Profile {
    RandomWalk {
        weights: WEIGHTS,
        depth: 60,
        threads,
        requests: 0,
    }
    .profile()
}

/// Each text is new once and met again nine times.
#[divan::bench]
fn strings_intern(bencher: Bencher<'_, '_>) {
    let profile = profile(1);
    let texts: Vec<&str> = profile.strings.iter().collect();
    bencher
        .counter(ItemsCount::new(10 * texts.len()))
        .bench_local(|| {
            let mut strings = Strings::default();
            for _ in 0..10 {
                for text in &texts {
                    black_box(strings.intern(text));
                }
            }
            strings
        });
}

/// Each frame is new once and met again nine times.
#[divan::bench]
fn frames_intern(bencher: Bencher<'_, '_>) {
    let profile = profile(1);
    let rows: Vec<Frame> = profile.frames.iter().map(|(_, frame)| *frame).collect();
    bencher
        .counter(ItemsCount::new(10 * rows.len()))
        .bench_local(|| {
            let mut frames = Frames::default();
            for _ in 0..10 {
                for frame in &rows {
                    black_box(frames.intern(*frame));
                }
            }
            frames
        });
}

/// All nodes are new.
#[divan::bench(sample_count = 20)]
fn call_tree_grow(bencher: Bencher<'_, '_>) {
    let profile = profile(1);
    let nodes = nodes(&profile);
    bencher
        .counter(ItemsCount::new(nodes.len()))
        .bench_local(|| {
            let mut tree = CallTree::default();
            for node in &nodes {
                black_box(tree.intern(*node));
            }
            tree
        });
}

/// All nodes are known.
#[divan::bench(sample_count = 20)]
fn call_tree_look_up(bencher: Bencher<'_, '_>) {
    let mut profile = profile(1);
    let nodes = nodes(&profile);
    bencher
        .counter(ItemsCount::new(nodes.len()))
        .bench_local(|| {
            for node in &nodes {
                black_box(profile.tree.intern(*node));
            }
        });
}

/// Ten samples for each row.
#[divan::bench(args = [1, 8], sample_count = 20)]
fn weights_aggregate(bencher: Bencher<'_, '_>, threads: u32) {
    let profile = profile(threads);
    let width = profile.schema.len();
    bencher
        .counter(ItemsCount::new(10 * profile.weights.len()))
        .bench_local(|| {
            let mut table = WeightTable::new(width);
            for _ in 0..10 {
                for weight in profile.weights.iter() {
                    table.add(weight.key, weight.values);
                }
            }
            table
        });
}

/// Merges a profile into another of the same program.
#[divan::bench(args = [1, 8], sample_count = 10)]
fn merge(bencher: Bencher<'_, '_>, threads: u32) {
    let other = profile(threads);
    bencher
        .counter(ItemsCount::new(WEIGHTS))
        .with_inputs(|| other.clone())
        .bench_local_values(|mut ours| {
            ours.merge(&other).expect("the same schema");
            ours
        });
}

#[divan::bench(args = [1, 8], sample_count = 10)]
fn check(bencher: Bencher<'_, '_>, threads: u32) {
    let profile = profile(threads);
    bencher
        .counter(ItemsCount::new(WEIGHTS))
        .bench_local(|| black_box(&profile).check());
}

fn nodes(profile: &Profile) -> Vec<Node> {
    profile.tree.iter().map(|(_, node)| *node).collect()
}
