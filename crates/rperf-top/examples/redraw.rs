//! How long one picture of each screen takes where there are many stacks: `cargo run --release
//! --example redraw -p rperf-top -- 100000`. Prints the median and the worst time.

use ratatui::layout::Rect;
use rperf_model::shared_sums::SumsValues;
use rperf_model::{Mode, State};
use rperf_top::app::{App, Screen};
use rperf_top::draw::picture;
use rperf_top::look::Look;
use rperf_watch::sums::{RowKey, Sums};
use std::io::{self, Write};
use std::time::Instant;

/// Pictures of each screen.
const ROUNDS: usize = 21;

fn main() {
    let nodes: u32 = std::env::args()
        .nth(1)
        .and_then(|it| it.parse().ok())
        .unwrap_or(100_000);
    let sums = sums(nodes);
    let area = Rect::new(0, 0, 200, 60);
    for screen in Screen::ALL {
        let mut app = App::of(&sums);
        app.screen = screen;
        let mut times: Vec<_> = (0..ROUNDS)
            .map(|_| {
                app.renew();
                let began = Instant::now();
                let _ = picture(&mut app, &sums, Look::of_environment(), area);
                began.elapsed().as_secs_f64() * 1e3
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
        let _ = writeln!(
            io::stdout(),
            "{:8} {nodes} nodes: {median:.2} ms, worst {worst:.2} ms",
            screen.name()
        );
    }
}

/// Stacks of 4,000 methods, 30 deep, of which each has had time in the last interval.
fn sums(nodes: u32) -> Sums {
    let mut sums = Sums::default();
    let process = sums.add_process(1, "app");
    sums.processes[process as usize].facts.mode = Mode::Wall;
    sums.begin_interval(process);
    let frames: Vec<_> = (0..4_000)
        .filter_map(|it| sums.frame(&format!("Class{}#method{it}", it % 400), "app/file.rb", it))
        .collect();
    let labels: Vec<_> = (0..50)
        .filter_map(|it| {
            let value = format!("GET /{it}");
            sums.label_set([("endpoint", &*value)].into_iter())
        })
        .collect();
    let mut random = 1_u64;
    let mut last = 0;
    for number in 0..nodes {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let pick = (random >> 33) as usize;
        let parent = if number % 30 == 0 { 0 } else { last };
        let frame = frames[pick % frames.len()];
        last = sums.stack(parent, frame, 0).unwrap_or(parent);
        let key = RowKey {
            stack: last,
            thread: sums.thread(process, number % 50 + 1),
            labels: labels[pick % labels.len()],
            state: State::Running,
        };
        let values = SumsValues {
            count: 1,
            wall_ns: 1_000 + pick as u64 % 1_000,
            cpu_ns: 0,
            blame_ns: 0,
        };
        sums.add(key, values);
    }
    sums.end_interval(process, 1_000_000_000, 1_000_000);
    sums.end_round();
    sums
}
