//! How long questions take: `cargo bench -p rperf-report`. The stacks are those of a
//! program with 3,000 methods, 60 deep.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use rperf_model::Profile;
use rperf_model::test_support::RandomWalk;
use rperf_report::{By, Direction, Filter, Lines, Top, Tree, TreeLimits, regex};

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

/// Asks the same of one profile again and again.
fn ask<T>(bencher: Bencher<'_, '_>, threads: u32, question: impl Fn(&Profile) -> T + Sync) {
    let profile = profile(threads);
    bencher
        .counter(ItemsCount::new(WEIGHTS))
        .bench_local(|| question(black_box(&profile)));
}

#[divan::bench(args = [1, 8], sample_count = 10)]
fn top(bencher: Bencher<'_, '_>, threads: u32) {
    ask(bencher, threads, |profile| {
        Top::of(profile, profile.schema.default_column(), &By::Function)
    });
}

#[divan::bench(args = [1, 8], sample_count = 10)]
fn lines(bencher: Bencher<'_, '_>, threads: u32) {
    ask(bencher, threads, |profile| {
        Lines::of(profile, profile.schema.default_column())
    });
}

#[divan::bench(args = [Direction::TopDown, Direction::BottomUp], sample_count = 10)]
fn tree(bencher: Bencher<'_, '_>, direction: Direction) {
    ask(bencher, 8, move |profile| {
        let column = profile.schema.default_column();
        let limits = TreeLimits {
            least: profile.sum(column).unsigned_abs() / 200,
            ..TreeLimits::default()
        };
        Tree::of(profile, column, direction, limits)
    });
}

/// A filter for frames, on a copy of the profile.
#[divan::bench(sample_count = 10)]
fn focus(bencher: Bencher<'_, '_>) {
    let profile = profile(8);
    let filter = Filter {
        focus: regex("method_77").ok(),
        ..Filter::default()
    };
    bencher
        .counter(ItemsCount::new(WEIGHTS))
        .with_inputs(|| profile.clone())
        .bench_local_values(|profile| filter.apply(profile));
}
