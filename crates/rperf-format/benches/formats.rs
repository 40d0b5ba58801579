//! How long the formats take for 100,000 stacks of depth 60:
//! `cargo bench -p rperf-format`.

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use rperf_format::{Format, TextOptions, pprof, write};
use rperf_model::Profile;
use rperf_model::test_support::RandomWalk;
use std::io;

const STACKS: usize = 100_000;
const DEPTH: usize = 60;
const THREADS: [u32; 2] = [1, 8];
const NO_LINES: TextOptions = TextOptions {
    lines: false,
    whole: None,
};

fn main() {
    divan::main();
}

fn profile(threads: u32) -> Profile {
    RandomWalk {
        weights: STACKS,
        depth: DEPTH,
        threads,
        requests: 0,
    }
    .profile()
}

fn bench_write(bencher: Bencher<'_, '_>, threads: u32, format: Format) {
    let profile = profile(threads);
    bencher
        .counter(ItemsCount::new(STACKS))
        .bench_local(|| write(black_box(&profile), format, NO_LINES, &mut io::sink()));
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn pprof_encode(bencher: Bencher<'_, '_>, threads: u32) {
    bench_write(bencher, threads, Format::Pprof);
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn pprof_decode(bencher: Bencher<'_, '_>, threads: u32) {
    let mut file = Vec::new();
    write(&profile(threads), Format::Pprof, NO_LINES, &mut file).expect("memory takes everything");
    bencher
        .counter(ItemsCount::new(STACKS))
        .counter(BytesCount::of_slice(&file))
        .bench_local(|| pprof::read(&mut black_box(file.as_slice())));
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn collapsed(bencher: Bencher<'_, '_>, threads: u32) {
    bench_write(bencher, threads, Format::Collapsed);
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn text(bencher: Bencher<'_, '_>, threads: u32) {
    bench_write(bencher, threads, Format::Text);
}
