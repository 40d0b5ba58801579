//! What is done for each sample: interning of a captured stack, and summing up.
//! `cargo bench -p rperf-sampling --bench sampling`.

use divan::{Bencher, black_box};
use rperf_model::{LabelSetId, NodeId, State};
use rperf_sampling::{Sample, SampleSums, SumLimits, Times};
use rperf_vm::{CapturedTree, FrameWord, LastStack};

const DEPTHS: [usize; 4] = [10, 50, 100, 300];
const STACKS: u32 = 2_000;
const SAMPLES: u32 = 100_000;

fn main() {
    divan::main();
}

fn stack(depth: usize) -> Vec<FrameWord> {
    (1..=depth).map(|level| level * 0x98).collect()
}

/// A stack that is the same as the last one: nothing is looked up.
#[divan::bench(args = DEPTHS)]
fn intern_stable(bencher: Bencher, depth: usize) {
    let stack = stack(depth);
    let mut tree = CapturedTree::new(1 << 20);
    let mut last = LastStack::default();
    bencher.bench_local(|| tree.intern(black_box(&stack), &[], &mut last));
}

/// A known stack that shares only the lower half with the last one.
#[divan::bench(args = DEPTHS)]
fn intern_half_changed(bencher: Bencher, depth: usize) {
    let stack = stack(depth);
    let mut tree = CapturedTree::new(1 << 20);
    let mut last = LastStack::default();
    bencher.bench_local(|| {
        last.keep(depth / 2);
        tree.intern(black_box(&stack), &[], &mut last)
    });
}

/// A stack that was never seen.
#[divan::bench(args = DEPTHS)]
fn intern_new(bencher: Bencher, depth: usize) {
    let stack = stack(depth);
    bencher
        .with_inputs(|| (CapturedTree::new(1 << 20), LastStack::default()))
        .bench_local_refs(|(tree, last)| tree.intern(black_box(&stack), &[], last));
}

/// The worker's part: samples of 2,000 stacks and 8 threads.
#[divan::bench]
fn sum_up(bencher: Bencher) {
    let limits = SumLimits {
        aggregate: true,
        rows: 1 << 20,
    };
    let sample = |number: u32| Sample {
        time_ns: u64::from(number),
        times: Times {
            wall_ns: 1_000_000,
            cpu_ns: 900_000,
            ..Times::default()
        },
        node: NodeId(1 + number * 7 % STACKS),
        thread: 1 + number % 8,
        labels: LabelSetId(0),
        request: rperf_vm::RequestNumber::NONE,
        state: State::Running,
        gc: None,
        count: 1,
    };
    let samples: Vec<Sample> = (0..SAMPLES).map(sample).collect();
    bencher
        .counter(divan::counter::ItemsCount::new(samples.len()))
        .with_inputs(SampleSums::default)
        .bench_local_refs(|collected| collected.add(black_box(&samples), limits));
}
