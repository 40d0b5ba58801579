//! The page of `rperf stat`: a pure function from figures to text. Called by the command, or through
//! the extension on the thread that ends the profiled program.

use crate::process_stats::{MemoryStats, ProcessStats, RubyStats};
use rperf_format::shorten::LEAST;
use rperf_format::table::{Surface, wrapped};
use rperf_format::{TextOptions, Whole, gc_head, gc_table};
use rperf_model::{OwnColumn, Profile, State};
use rperf_report::memory::parts::divided;
use rperf_report::numbers::{counted, grouped, milliseconds, percent};
use rperf_report::{GcTimes, Totals, losses, without_idle};
use std::borrow::Cow;

const MEGABYTE: u64 = 1 << 20;

/// What the page shows beside the profile.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// The command as the user typed it.
    pub command: String,
    /// Whether the tables of methods are wanted.
    pub report: bool,
    /// Whether they are to be followed by the one of lines.
    pub lines: bool,
    /// Whether the time of idle threads counts as all other.
    pub shows_idle: bool,
    /// How many processes the figures are of.
    pub processes: usize,
    /// What the command took, if there was one.
    pub times: Option<CommandTimes>,
    /// What Ruby and the system have counted.
    pub process: ProcessStats,
}

/// What a command took as a whole, with its processes that are no Rubies.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommandTimes {
    /// Its time on the clock.
    pub real_ns: u64,
    /// CPU time in user mode.
    pub user_ns: u64,
    /// CPU time in the kernel.
    pub sys_ns: u64,
    /// From its start to the start of profiling.
    pub before_ns: u64,
}

/// The whole page.
pub fn render(profile: &Profile, figures: &Figures) -> String {
    for_terminal(profile, figures, None)
}

/// The page in lines that fit a terminal of this width. `None`: nothing is cut.
pub fn for_terminal(profile: &Profile, figures: &Figures, width: Option<usize>) -> String {
    let (profile, idle) = match figures.shows_idle {
        true => (Cow::Borrowed(profile), 0),
        false => without_idle(profile),
    };
    let profile = &*profile;
    let totals = Totals::of(profile, profile.schema.default_column());
    let mut page = Page {
        width,
        text: String::new(),
    };
    page.line(&format!(
        "\n Performance stats for '{}':\n",
        figures.command
    ));
    times(&mut page, profile, figures);
    page.line("");
    breakdown(&mut page, profile, figures, &totals, idle);
    if figures.processes > 1 {
        let text = "[Ruby] processes; the figures are their sums";
        page.count(figures.processes as u64, text);
    }
    ruby(&mut page, profile, &figures.process.ruby);
    os(&mut page, &figures.process, figures.processes);
    page.line("");
    collections(&mut page, profile);
    sampling(&mut page, profile, figures);
    if figures.report {
        page.line("");
        let options = TextOptions {
            lines: figures.lines,
            whole: Some(Whole {
                value: totals.value,
                idle,
            }),
        };
        page.text += &rperf_format::for_terminal(profile, options, width);
        page.line("");
    }
    page.text
}

fn times(page: &mut Page, profile: &Profile, figures: &Figures) {
    let times = figures.times.unwrap_or(CommandTimes {
        real_ns: profile.meta.duration_ns,
        user_ns: figures.process.os.user_ns,
        sys_ns: figures.process.os.sys_ns,
        before_ns: 0,
    });
    page.time(times.user_ns, None, "user");
    page.time(times.sys_ns, None, "sys");
    page.time(times.real_ns, None, "real");
}

/// Where the threads' time went. Shares are of the profiled time; the time before
/// and after it is shown so that one thread's rows add up to the real time. The `idle` time of
/// threads that wait for work has no share.
fn breakdown(page: &mut Page, profile: &Profile, figures: &Figures, totals: &Totals, idle: i64) {
    let is_wall = profile.schema.default_own() == Some(OwnColumn::Wall);
    let times = figures.times.filter(|_| is_wall);
    if let Some(times) = times {
        page.time(
            times.before_ns,
            None,
            "before profiling (until Ruby had started)",
        );
    }
    for state in State::ALL {
        let ns = totals.state(state);
        if ns > 0 {
            page.time(ns, Some(percent(ns, totals.value)), description(state));
        }
    }
    if idle > 0 {
        let text = "[Ruby] idle threads (wait for work; --idle: GVL blocked)";
        page.time(idle, None, text);
    }
    if let Some(times) = times {
        let until_end_ns = times.before_ns + profile.meta.duration_ns;
        let after_ns = times.real_ns.saturating_sub(until_end_ns);
        page.time(
            after_ns,
            None,
            "after profiling (the profile's writing included)",
        );
    }
}

fn description(state: State) -> &'static str {
    match state {
        State::Running => "CPU execution",
        State::GvlBlocked => "[Ruby] GVL blocked (I/O, sleep)",
        State::GvlWait => "[Ruby] GVL wait (contention)",
        State::GcMarking => "[Ruby] GC marking",
        State::GcSweeping => "[Ruby] GC sweeping",
    }
}

fn ruby(page: &mut Page, profile: &Profile, ruby: &RubyStats) {
    let gc = format!(
        "[Ruby] GC time ({}: {} minor, {} major)",
        counted(ruby.gc_count, "collection"),
        grouped(ruby.gc_minor),
        grouped(ruby.gc_major)
    );
    page.time(ruby.gc_time_ms.saturating_mul(1_000_000), None, &gc);
    page.count(ruby.allocated_objects, "[Ruby] allocated objects");
    page.count(ruby.freed_objects, "[Ruby] freed objects");
    if let Some(ratio) = ruby.yjit_ratio {
        page.row(&format!("{ratio:.1}"), "%", None, "[Ruby] executed by YJIT");
    } else if let Some(methods) = ruby.yjit_methods {
        let text = "[Ruby] methods and blocks compiled by YJIT (share of time: --yjit-stats)";
        page.count(methods, text);
    }
    let threads = profile.meta.counters.detected_thread_count;
    if threads > 1 {
        page.count(threads, "[Ruby] detected threads");
    }
}

/// Why collections ran, and what they took.
fn collections(page: &mut Page, profile: &Profile) {
    if let Some(times) = GcTimes::of(profile) {
        page.line(&format!("  {}\n", gc_head(&times)));
        page.text += &gc_table(&times).render(Surface {
            width: page.width,
            ..Surface::PLAIN
        });
        page.line("");
    }
}

fn os(page: &mut Page, process: &ProcessStats, processes: usize) {
    let os = &process.os;
    let memory = match processes {
        0 | 1 => "[OS] peak memory (maxrss)",
        _ => "[OS] peak memory of the largest process (maxrss)",
    };
    page.megabytes(os.max_rss_bytes, memory);
    if let Some(memory) = &process.memory {
        let of = match processes {
            0 | 1 => "",
            _ => " of the largest process",
        };
        let text = format!("[OS] memory{of} at its end (RSS) = {}", parts(memory));
        page.megabytes(memory.rss, &text);
    }
    let switches = format!(
        "[OS] context switches ({} voluntary, {} involuntary)",
        grouped(os.voluntary_switches),
        grouped(os.involuntary_switches)
    );
    page.count(
        os.voluntary_switches
            .saturating_add(os.involuntary_switches),
        &switches,
    );
    if let Some(disk) = os.disk {
        let text = format!(
            "[OS] disk I/O ({} MB read, {} MB write)",
            grouped(disk.read_bytes / MEGABYTE),
            grouped(disk.write_bytes / MEGABYTE)
        );
        page.megabytes(disk.read_bytes.saturating_add(disk.write_bytes), &text);
    }
}

/// What the memory was made of, in whole MB that add up to those of the RSS.
fn parts(memory: &MemoryStats) -> String {
    let named = [
        ("Ruby heap", memory.heap),
        ("free slots", memory.heap_free),
        ("malloc", memory.malloc),
        ("free in malloc", memory.malloc_free),
        ("JIT code", memory.code),
        ("stacks", memory.stacks),
        ("files", memory.files),
        ("other", memory.other),
    ];
    let bytes = named.map(|it| it.1);
    let megabytes = divided(memory.rss / MEGABYTE, &bytes);
    let parts = named
        .iter()
        .zip(megabytes)
        .filter(|(_, megabytes)| *megabytes > 0);
    let parts = parts.map(|((name, _), megabytes)| format!("{name} {}", grouped(megabytes)));
    parts.collect::<Vec<_>>().join(" + ")
}

fn sampling(page: &mut Page, profile: &Profile, figures: &Figures) {
    let counters = &profile.meta.counters;
    // Of several processes each has its own time.
    let profiled_ns = figures.process.profiled_ns.max(profile.meta.duration_ns);
    page.line(&format!(
        "  {} / {}, {:.1}% profiler overhead",
        counted(profile.sample_count().unwrap_or(0), "sample"),
        counted(counters.trigger_count, "trigger"),
        percent(counters.sampling_time_ns, profiled_ns)
    ));
    let losses: Vec<_> = losses(counters).into_iter().map(|loss| loss.text).collect();
    if !losses.is_empty() {
        page.line(&format!("  {}", losses.join(", ")));
    }
}

/// Terminals that are narrower get narrow columns.
const NARROW: usize = 60;

/// Rows in columns: value, unit, share, text.
struct Page {
    /// Columns of the terminal; `None`: nothing is cut.
    width: Option<usize>,
    text: String,
}

impl Page {
    fn row(&mut self, value: &str, unit: &str, share: Option<f64>, text: &str) {
        let share = share
            .map(|share| format!("{share:.1}%"))
            .unwrap_or_default();
        let is_narrow = self.width.is_some_and(|width| width < NARROW);
        let (value, share) = match is_narrow {
            true => (format!("{value:>9}"), format!("{share:>6} ")),
            false => (format!("{value:>14}"), format!("{share:>7}  ")),
        };
        let before = format!("{value} {unit:<2} {share}");
        let Some(width) = self.width else {
            return self.line(&(before + text));
        };
        let room = width.saturating_sub(before.len()).max(LEAST);
        let indent = " ".repeat(before.len());
        for (number, line) in wrapped(text, room, "").lines().enumerate() {
            self.text += if number == 0 { &before } else { &indent };
            self.text += line;
            self.text.push('\n');
        }
    }

    fn time(&mut self, ns: impl Into<i128>, share: Option<f64>, text: &str) {
        self.row(&milliseconds(ns), "ms", share, text);
    }

    fn count(&mut self, count: u64, text: &str) {
        self.row(&grouped(count), "", None, text);
    }

    fn megabytes(&mut self, bytes: u64, text: &str) {
        self.row(&grouped(bytes / MEGABYTE), "MB", None, text);
    }

    fn line(&mut self, line: &str) {
        match self.width {
            Some(width) => self.text += &wrapped(&format!("{line}\n"), width, "  "),
            None => self.text += &format!("{line}\n"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
