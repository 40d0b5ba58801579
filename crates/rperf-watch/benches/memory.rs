//! Memory of a client that watches a program with a million rows, each of a stack of its own:
//! `cargo bench -p rperf-watch --bench memory`; with `--smoke`, ten thousand rows.

#![allow(clippy::print_stdout, reason = "a benchmark prints its results")]

use rperf_model::shared_sums::{Changes, SumsFacts, SumsRow, SumsValues};
use rperf_model::{Frame, FrameId, LabelSetId, Mode, Node, NodeId, State, StringId, WeightKey};
use rperf_protocol::delta::{Delta, Freshness};
use rperf_watch::sums::{Extent, Scope, Sums};

const FRAMES: u32 = 20_000;
const THREADS: u32 = 16;
/// Rows of a page.
const PAGE: u32 = 8192;

fn main() {
    let smoke = std::env::args().any(|argument| argument == "--smoke");
    let rows = if smoke { 10_000 } else { 1_000_000 };
    let empty = resident_kb("VmRSS:");
    let mut sums = Sums::default();
    sums.add_process(1, "large");
    let say = |what: &str| {
        let [now, most] = ["VmRSS:", "VmHWM:"].map(|it| (resident_kb(it) - empty) / 1024);
        println!("{what:<24} {now:>6} MB, at most {most:>6} MB");
    };
    println!("{rows} rows");
    pull(&mut sums, rows, 1);
    say("after the first pull");
    sums.begin(0);
    pull(&mut sums, rows, 2);
    say("after all rows have grown");
    sums.set_mark();
    pull(&mut sums, rows, 3);
    let shown = sums.method_times(Scope::SinceMark, None, None).0.len();
    say("after a look at methods");
    let profile = sums.profile(Extent::Watched, None);
    say("with a profile of it");
    let written = profile.map_or(0, |it| it.weights.len());
    println!("{shown} methods, {written} rows in the profile");
}

/// All rows, with `times` times their values; stacks come with the first pull.
fn pull(sums: &mut Sums, rows: u32, times: u64) {
    for first in (0..rows).step_by(PAGE as usize) {
        let numbers = first..(first + PAGE).min(rows);
        let is_first = times == 1 && first == 0;
        let mut changes = Changes {
            facts: SumsFacts {
                mode: Mode::Wall,
                frequency: 1000,
                start_ns: 1,
                as_of_ns: times * 1_000_000_000,
                ..SumsFacts::default()
            },
            reset: is_first,
            more: numbers.end < rows,
            rows: numbers.clone().map(|number| row(number, times)).collect(),
            ..Changes::default()
        };
        if is_first {
            changes.strings = (0..FRAMES)
                .map(|it| format!("Module::Class#m{it}"))
                .collect();
            changes.frames = (0..FRAMES).map(frame).collect();
        }
        if times == 1 {
            changes.nodes = numbers.map(node).collect();
        }
        let freshness = Freshness {
            is_fresh: true,
            clock_ns: 0,
        };
        let taken = sums.take(0, Delta { changes, freshness });
        assert!(taken.is_ok(), "the page is good");
    }
}

fn frame(number: u32) -> Frame {
    Frame {
        name: StringId(number),
        path: StringId(number / 20),
        first_line: number,
    }
}

/// Every stack has three callees.
fn node(number: u32) -> Node {
    Node {
        parent: NodeId(number.div_ceil(3)),
        frame: FrameId(number % FRAMES),
        line: number % 50,
    }
}

fn row(number: u32, times: u64) -> SumsRow {
    let key = WeightKey {
        node: NodeId(number + 1),
        thread: 1 + number % THREADS,
        labels: LabelSetId::default(),
        state: State::Running,
    };
    let values = SumsValues {
        count: times,
        wall_ns: 1_000_000 * times,
        cpu_ns: 900_000 * times,
        blame_ns: 0,
    };
    SumsRow { key, values }
}

/// Memory of this process, or 0 where it can't be told.
fn resident_kb(what: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}
