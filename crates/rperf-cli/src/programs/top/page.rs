//! An interval of `rperf top` as a table and as JSON.

use super::rates::Interval;
use crate::programs::words::KEPT;
use crate::report::screen::{Screen, Style};
use rperf_model::Mode;
use rperf_model::shared_sums::SumsFacts;
use rperf_report::terminal_text::shown;
use rperf_watch::condition::Stuck;
use rperf_watch::sums::Times;
use serde_json::{Value, json};

/// Rows of a table where there is no terminal.
const ROWS: usize = 20;

/// Columns of a number, with the gap behind it.
const NUMBER: usize = 10;

/// The widest that the column of methods gets.
const METHOD: usize = 48;

/// Columns that a file needs at least to have a column of its own.
const FILE: usize = 16;

/// What is shown of an interval of one program.
pub struct Page<'a> {
    /// The process.
    pub pid: i32,
    /// What it calls itself.
    pub program: &'a str,
    /// Facts about its session.
    pub facts: &'a SumsFacts,
    /// The interval.
    pub interval: &'a Interval,
    /// The time of idle threads is shown.
    pub shows_idle: bool,
    /// Why nothing is known of it, if a thread keeps the GVL.
    pub stuck: Option<&'a Stuck>,
}

/// The table of several programs: a line for each, and their methods together. With an empty line in
/// front if it `follows` another one.
pub fn table_of_several(
    pages: &[Page<'_>],
    all: &Interval,
    screen: &Screen,
    follows: bool,
) -> String {
    let gap = if follows { "\n" } else { "" };
    let head = format!("{} programs", pages.len());
    let mut text = format!("{gap}{}\n", screen.fitted(&head, 0));
    for page in pages {
        let line = format!("{}: {}", page.head(), page.summary());
        text += &format!("  {}\n", screen.fitted(&line, 2));
    }
    let shows_idle = pages.iter().all(|page| page.shows_idle);
    let idle = idle_line(all, shows_idle).map(|line| format!("{}\n", screen.fitted(&line, 0)));
    let used = pages.len() + 1 + idle.iter().len();
    text += idle.as_deref().unwrap_or_default();
    let has_blame = pages.iter().any(|page| page.facts.blames);
    text + &methods(all, screen, used, has_blame)
}

/// For people: how many threads were idle on average, if they aren't shown.
fn idle_line(interval: &Interval, shows_idle: bool) -> Option<String> {
    let threads = share(interval, interval.idle_ns) / 100.0;
    let is_hidden = !shows_idle && interval.elapsed_ns > 0 && interval.idle_ns > 0;
    is_hidden.then(|| format!("Idle threads: {threads:.1} hidden, --idle shows them"))
}

/// The rows of the methods, where `used` lines are above them.
fn methods(interval: &Interval, screen: &Screen, used: usize, has_blame: bool) -> String {
    let rows = screen
        .height()
        .map_or(ROWS, |height| height.saturating_sub(used + 3).max(3));
    let methods = &interval.methods;
    let ran = methods
        .iter()
        .filter(|it| it.own.run + it.total.run + it.own.wait > 0);
    let rows: Vec<_> = ran.take(rows).collect();
    if rows.is_empty() {
        return String::new();
    }
    let columns = ["self/s", "self %", "total %", "wait/s", "blame/s"].map(String::from);
    let count = columns.len() - usize::from(!has_blame);
    let header = screen.fitted(&row(screen, &columns[..count], "method", "file"), 0);
    let mut text = format!("\n{}\n", screen.styled(Some(Style::Bold), &header));
    for it in rows {
        let (name, path) = (shown(&it.method.name), shown(&it.method.short_path));
        let cells = cells(interval, &it.own, &it.total);
        let line = row(screen, &cells[..count], &name, &path);
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// In percent of the interval.
fn share(interval: &Interval, time: u64) -> f64 {
    match interval.elapsed_ns {
        0 => 0.0,
        elapsed => time as f64 / elapsed as f64 * 100.0,
    }
}

fn cells(interval: &Interval, own: &Times, total: &Times) -> [String; 5] {
    let all = interval.all.run.max(1) as f64;
    let percent = |time: u64| format!("{:.1} %", time as f64 / all * 100.0);
    let per_second = |time: u64| format!("{:.0} ms", share(interval, time) * 10.0);
    [
        per_second(own.run),
        percent(own.run),
        percent(total.run),
        per_second(own.wait),
        per_second(total.blame),
    ]
}

impl Page<'_> {
    /// The page as one JSON object, without a line break.
    pub fn to_json(&self) -> Value {
        let (facts, interval) = (self.facts, self.interval);
        let all = &interval.all;
        // Null where it isn't measured.
        let blame = |times: &Times| facts.blames.then_some(times.blame);
        let methods = interval.methods.iter().map(|it| {
            json!({
                "name": shown(&it.method.name),
                "path": shown(&it.method.path),
                "short_path": shown(&it.method.short_path),
                "self_ns": it.own.run,
                "total_ns": it.total.run,
                "waiting_ns": it.own.wait,
                "blocked_ns": it.own.blocked,
                "gc_ns": it.own.gc,
                "gvl_blame_ns": blame(&it.own),
                "total_gvl_blame_ns": blame(&it.total),
            })
        });
        let labels = interval.labels.iter().map(|((key, value), times)| {
            json!({
                "key": shown(key),
                "value": shown(value),
                "self_ns": times.run,
                "waiting_ns": times.wait,
                "blocked_ns": times.blocked,
                "gc_ns": times.gc,
                "gvl_blame_ns": blame(times),
            })
        });
        json!({
            "version": 1,
            "pid": self.pid,
            "program": shown(self.program),
            "mode": facts.mode.name(),
            "frequency": facts.frequency,
            "since_ns": self.since_ns(),
            "elapsed_ns": interval.elapsed_ns,
            "fresh": interval.is_fresh,
            "running_ns": all.run,
            "waiting_ns": all.wait,
            "blocked_ns": all.blocked,
            "gc_ns": all.gc,
            "idle_ns": interval.idle_ns,
            "sampling_ns": interval.sampling_ns,
            "dropped_ns": interval.dropped_ns,
            "stuck": self.stuck.map(|stuck| json!({
                "tid": stuck.holder.as_ref().map(|it| it.tid),
                "state": stuck.holder.as_ref().map(|it| &*it.state),
                "silent_ns": u64::try_from(stuck.silence.as_nanos()).unwrap_or(u64::MAX),
            })),
            "methods": methods.collect::<Vec<_>>(),
            "labels": labels.collect::<Vec<_>>(),
        })
    }

    /// For people. With an empty line in front if it `follows` another one.
    pub fn table(&self, screen: &Screen, follows: bool) -> String {
        let gap = if follows { "\n" } else { "" };
        let head = screen.fitted(&self.head(), 0);
        let summary = screen.fitted(&self.summary(), 0);
        let idle = idle_line(self.interval, self.shows_idle)
            .map(|line| format!("{}\n", screen.fitted(&line, 0)));
        let used = 2 + idle.iter().len();
        let idle = idle.unwrap_or_default();
        format!("{gap}{head}\n{summary}\n{idle}")
            + &methods(self.interval, screen, used, self.facts.blames)
    }

    fn since_ns(&self) -> u64 {
        self.facts.as_of_ns.saturating_sub(self.facts.start_ns)
    }

    fn head(&self) -> String {
        let SumsFacts {
            mode, frequency, ..
        } = self.facts;
        let overhead = self.share(self.interval.sampling_ns);
        let since = self.since_ns() as f64 / 1e9;
        let (pid, program) = (self.pid, shown(self.program));
        format!(
            "{pid} {program}   {mode}, {frequency} Hz, for {since:.1} s, overhead {overhead:.1} %"
        )
    }

    fn summary(&self) -> String {
        let interval = self.interval;
        if interval.elapsed_ns == 0 {
            let why = self.stuck.map_or("no Ruby code runs just now", |_| KEPT);
            return format!("{why}: nothing is known of this interval");
        }
        let all = &interval.all;
        let gc = self.share(all.gc);
        let busy = self.share(all.run.saturating_add(all.gc));
        let threads = |time: u64| self.share(time) / 100.0;
        let hidden = if self.shows_idle { 0 } else { interval.idle_ns };
        let blocked = threads(all.blocked.saturating_sub(hidden));
        let waiting = threads(all.wait);
        match self.facts.mode {
            Mode::Wall => format!(
                "GVL busy {busy:.1} %   waiting for it {waiting:.1} threads   GC {gc:.1} %   blocked \
                 {blocked:.1} threads"
            ),
            Mode::Cpu => format!("CPU {busy:.1} %   GC {gc:.1} %"),
        }
    }

    fn share(&self, time: u64) -> f64 {
        share(self.interval, time)
    }
}

fn row(screen: &Screen, cells: &[String], method: &str, file: &str) -> String {
    let numbers: String = cells.iter().map(|it| format!("{it:>9} ")).collect();
    let before_method = cells.len() * NUMBER + 2;
    let gap = " ".repeat(before_method.saturating_sub(numbers.len()));
    let width = crate::report::screen::columns(method);
    let before_file = before_method + METHOD.max(width) + 2;
    if screen
        .width()
        .is_some_and(|width| width < before_file + FILE)
    {
        return format!(
            "{numbers}{gap}{}",
            screen.named(method, file, before_method)
        );
    }
    let rest = " ".repeat(METHOD.saturating_sub(width));
    format!(
        "{numbers}{gap}{method}{rest}  {}",
        screen.fitted_name(file, before_file)
    )
}

#[cfg(test)]
mod tests {
    use super::super::rates::MethodRate;
    use super::*;
    use rperf_watch::sums::Method;
    use std::time::Duration;

    fn page(mode: Mode, elapsed_ns: u64) -> (SumsFacts, Interval) {
        let facts = SumsFacts {
            mode,
            frequency: 1000,
            start_ns: 1_000_000_000,
            as_of_ns: 3_500_000_000,
            ..SumsFacts::default()
        };
        let own = Times {
            run: 400_000_000,
            wait: 50_000_000,
            blocked: 1_000_000_000,
            gc: 100_000_000,
            ..Times::default()
        };
        let method = Method {
            name: "JSON.dump\u{1b}[2J".into(),
            path: "/app/json.rb".into(),
            short_path: "json.rb".into(),
        };
        let methods = vec![MethodRate {
            method,
            own,
            total: Times {
                run: 500_000_000,
                ..Times::default()
            },
        }];
        let interval = Interval {
            elapsed_ns,
            is_fresh: elapsed_ns > 0,
            sampling_ns: 1_000_000,
            dropped_ns: 0,
            idle_ns: elapsed_ns.min(250_000_000),
            all: own,
            methods: if elapsed_ns > 0 { methods } else { Vec::new() },
            labels: Vec::new(),
        };
        (facts, interval)
    }

    fn lines(mode: Mode, elapsed_ns: u64) -> Vec<String> {
        lines_with(mode, elapsed_ns, true)
    }

    fn lines_with(mode: Mode, elapsed_ns: u64, shows_idle: bool) -> Vec<String> {
        let (facts, interval) = page(mode, elapsed_ns);
        let page = Page {
            pid: 7,
            program: "puma\n",
            facts: &facts,
            interval: &interval,
            shows_idle,
            stuck: None,
        };
        let text = page.table(&Screen::default(), false);
        text.lines().map(String::from).collect()
    }

    #[test]
    fn a_table_has_rates_and_shares() {
        let expected = format!(
            "   800 ms   100.0 %   125.0 %    100 ms   {:48}  json.rb",
            "JSON.dump [2J"
        );
        assert_eq!(
            lines(Mode::Wall, 500_000_000),
            [
                "7 puma    wall, 1000 Hz, for 2.5 s, overhead 0.2 %",
                "GVL busy 100.0 %   waiting for it 0.1 threads   GC 20.0 %   blocked 2.0 threads",
                "",
                &format!(
                    "   self/s    self %   total %    wait/s   {:48}  file",
                    "method"
                ),
                &expected,
            ]
        );
        assert_eq!(lines(Mode::Cpu, 500_000_000)[1], "CPU 100.0 %   GC 20.0 %");
        assert_eq!(lines(Mode::Wall, 0).len(), 2);
        assert!(lines(Mode::Wall, 0)[1].starts_with("no Ruby code runs just now"));
    }

    #[test]
    fn blame_is_told_where_it_is_measured() {
        let (mut facts, mut interval) = page(Mode::Wall, 500_000_000);
        interval.methods[0].total.blame = 20_000_000;
        let shown = |facts: &SumsFacts| {
            let page = Page {
                pid: 7,
                program: "puma",
                facts,
                interval: &interval,
                shows_idle: true,
                stuck: None,
            };
            let text = page.table(&Screen::default(), false);
            let blame = &page.to_json()["methods"][0]["total_gvl_blame_ns"];
            (
                text.contains("blame/s"),
                text.contains(" 40 ms"),
                blame.clone(),
            )
        };
        assert_eq!(shown(&facts), (false, false, Value::Null));
        facts.blames = true;
        assert_eq!(shown(&facts), (true, true, json!(20_000_000)));
    }

    #[test]
    fn idle_threads_are_hidden_with_a_line_that_says_so() {
        let lines = lines_with(Mode::Wall, 500_000_000, false);
        assert!(lines[1].ends_with("blocked 1.5 threads"), "{}", lines[1]);
        assert_eq!(lines[2], "Idle threads: 0.5 hidden, --idle shows them");
        assert_eq!(lines_with(Mode::Wall, 0, false).len(), 2);
    }

    #[test]
    fn json_has_the_times_and_no_harmful_text() {
        let (facts, interval) = page(Mode::Wall, 500_000_000);
        let page = Page {
            pid: 7,
            program: "puma",
            facts: &facts,
            interval: &interval,
            shows_idle: false,
            stuck: Some(&Stuck {
                holder: None,
                silence: Duration::from_nanos(5),
            }),
        };
        let found = page.to_json();
        assert_eq!(
            (&found["elapsed_ns"], &found["since_ns"]),
            (&json!(500_000_000), &json!(2_500_000_000_u64))
        );
        assert_eq!(found["methods"][0]["name"], "JSON.dump [2J");
        assert_eq!(found["methods"][0]["self_ns"], 400_000_000);
        assert_eq!(found["stuck"]["silent_ns"], 5);
        assert_eq!(found["idle_ns"], 250_000_000);
        assert_eq!(found["methods"][0]["short_path"], "json.rb");
    }
}
