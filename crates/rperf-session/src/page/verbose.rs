//! The lines of `-v`, and the few words about a profile that was written. Pure; called by the
//! command, or through the extension on the thread that ends the profiled program.

use rperf_format::table::{Column, Row, Surface, Table, wrapped};
use rperf_model::{Profile, SamplingStats};
use rperf_report::numbers::{counted, grouped, percent, seconds};
use rperf_report::{By, Scale, Sort, Top, call_count, calls_text, losses};
use std::fmt::Write;

const TOP: usize = 10;

/// In front of each line.
const MARK: &str = "[rperf] ";

/// Stacks taken at safepoints that need no word, if nearly all are taken at ticks.
const FEW: u64 = 20;

/// Sampling statistics and the hottest methods, each line marked as ours.
pub fn statistics(profile: &Profile) -> String {
    for_terminal(profile, None)
}

/// The statistics in lines that fit a terminal of this width. `None`: nothing is cut.
pub fn for_terminal(profile: &Profile, width: Option<usize>) -> String {
    let width = width.map(|width| width.saturating_sub(MARK.len()));
    let meta = &profile.meta;
    let counters = &meta.counters;
    let column = profile.schema.default_column();
    let top = Top::of(profile, column, &By::Function);
    let mode = &profile.schema.default_type().name;
    let average_us =
        counters.sampling_time_ns as f64 / 1000.0 / counters.sampling_count.max(1) as f64;
    let mut lines = match call_count(profile) {
        Some(_) => meta.tracing().map(ToString::to_string).collect(),
        None => vec![
            format!("mode={mode} frequency={}Hz", meta.frequency),
            format!(
                "sampling: {} calls, {:.2}ms total, {average_us:.1}us/call avg",
                grouped(counters.sampling_count),
                counters.sampling_time_ns as f64 / 1e6,
            ),
            format!("samples recorded: {}", samples(profile)),
        ],
    };
    lines.extend(intervals(counters, meta.frequency));
    lines.extend(losses(counters).into_iter().map(|loss| loss.text));
    lines.extend(meta.missing_lines());
    lines.extend(capture(counters));
    lines.push(format!("top {TOP} by flat:"));
    let scale = Scale::new(profile.schema.default_type(), top.total);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut text = match width {
        Some(width) => wrapped(&text, width, "  "),
        None => text,
    };
    let mut table = Table::new([Column::new("")]);
    for row in top.sorted(Sort::SelfValue).into_iter().take(TOP) {
        let cell = format!(
            "{:>12} {} {:>5.1}%",
            scale.number(row.self_value),
            scale.unit(),
            percent(row.self_value, top.total)
        );
        table.push(Row::of(&row.function, vec![cell], 0.0));
    }
    text += &table.render(Surface {
        width,
        ..Surface::PLAIN
    });
    text.lines().map(|line| format!("{MARK}{line}\n")).collect()
}

/// How long the intervals became, if they did.
fn intervals(counters: &SamplingStats, frequency: u32) -> Option<String> {
    let asked = 1_000_000_000 / u64::from(frequency.max(1));
    let (tick, off_gvl) = (counters.interval_ns, counters.off_gvl_interval_ns);
    (tick.max(off_gvl) > asked).then(|| {
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
        format!(
            "longest intervals: {} between ticks, {} of a thread's time blocked or waiting",
            ms(tick),
            ms(off_gvl)
        )
    })
}

/// Where the stacks were taken, unless it was at the tick as usual.
fn capture(counters: &SamplingStats) -> Option<String> {
    let [tick, safepoint, unreadable, hidden] = [
        counters.tick_stacks,
        counters.safepoint_stacks,
        counters.unreadable_stacks,
        counters.hidden_frames,
    ]
    .map(grouped);
    if counters.tick_stacks == 0 {
        return (counters.safepoint_stacks > 0).then(|| {
            format!(
                "stacks: {safepoint} at a safepoint: methods that reach one soon get the time of \
                 others, and each tick interrupts compiled code"
            )
        });
    }
    let all = counters
        .tick_stacks
        .saturating_add(counters.safepoint_stacks);
    if counters.safepoint_stacks <= FEW.max(all / 100) {
        return None;
    }
    let mut line = format!(
        "stacks: {tick} at the tick, {safepoint} at a safepoint, which interrupts compiled code"
    );
    if counters.unreadable_stacks > 0 {
        let _ = write!(line, ", {unreadable} unreadable");
    }
    if counters.hidden_frames > 0 {
        let _ = write!(line, ", {hidden} hidden methods learned");
    }
    Some(line)
}

/// How much there is in a profile of so many processes: `1,234 samples, 5.678 s`, or calls.
pub fn summary(profile: &Profile, processes: usize) -> String {
    let of = match processes {
        0 | 1 => String::new(),
        processes => format!(" of {} processes", grouped(processes as u64)),
    };
    let number = profile.sample_count().unwrap_or(0);
    let sampled = format!("{}{of}", counted(number, "sample"));
    let text = match profile.schema.samples() {
        // Beside samples, those of chosen methods.
        Some(_) => calls_text(profile, "").map_or(sampled.clone(), |it| format!("{sampled}, {it}")),
        None => calls_text(profile, &of).unwrap_or(sampled),
    };
    format!("{text}, {} s", seconds(profile.meta.duration_ns))
}

/// A line for each chosen method that wasn't there, or whose calls can't be counted.
pub fn not_counted(profile: &Profile) -> Vec<String> {
    let never_found = profile.meta.never_found().into_iter().map(|name| {
        let check = match name.contains('/') || name.ends_with(".rb") {
            true => "check that the program loads it; a path is absolute, or from the working directory on",
            false => "check the name, and that the program loads its file",
        };
        format!("only: {name} was never found; {check}")
    });
    let not_traceable = profile.meta.not_traceable().into_iter().map(|name| {
        format!("only: {name} is not written in Ruby: its calls can't be counted alone")
    });
    never_found.chain(not_traceable).collect()
}

/// How many samples there are: profiles of our sessions count them.
fn samples(profile: &Profile) -> String {
    grouped(profile.sample_count().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::stat::tests::profile;

    #[test]
    fn the_lines_tell_how_sampling_went() {
        let expected = "\
[rperf] mode=wall frequency=1000Hz
[rperf] sampling: 1,000 calls, 2.60ms total, 2.6us/call avg
[rperf] samples recorded: 1,000
[rperf] 3 samples dropped (2.9 ms)
[rperf] top 10 by flat:
[rperf]        750.0 ms  75.0%  [GVL blocked] (<GVL>)
[rperf]        250.0 ms  25.0%  Object#work (app.rb)
";
        assert_eq!(statistics(&profile()), expected);
    }

    #[test]
    fn intervals_are_told_that_became_longer() {
        let mut counters = SamplingStats::default();
        assert_eq!(intervals(&counters, 1000), None, "not known");
        (counters.interval_ns, counters.off_gvl_interval_ns) = (1_000_000, 1_000_000);
        assert_eq!(intervals(&counters, 1000), None);
        counters.off_gvl_interval_ns = 53_120_000;
        let expected = "longest intervals: 1.0 ms between ticks, 53.1 ms of a thread's time blocked or waiting";
        assert_eq!(intervals(&counters, 1000).as_deref(), Some(expected));
        assert_eq!(intervals(&counters, 0), None, "of another tool");
    }

    #[test]
    fn the_stacks_say_where_they_were_taken() {
        let mut counters = SamplingStats::default();
        assert_eq!(capture(&counters), None);
        counters.safepoint_stacks = 1_200;
        let line = capture(&counters).expect("a line");
        assert!(line.starts_with("stacks: 1,200 at a safepoint: methods"));
        counters.tick_stacks = 5_000;
        let line = capture(&counters).expect("a line");
        let expected =
            "stacks: 5,000 at the tick, 1,200 at a safepoint, which interrupts compiled code";
        assert_eq!(line, expected);
        (counters.unreadable_stacks, counters.hidden_frames) = (3, 4);
        let line = capture(&counters).expect("a line");
        assert!(line.ends_with(", 3 unreadable, 4 hidden methods learned"));
        (counters.tick_stacks, counters.safepoint_stacks) = (5_000, 50);
        assert_eq!(capture(&counters), None);
    }

    #[test]
    fn lost_time_without_a_sample_is_told() {
        let mut profile = profile();
        profile.meta.counters.dropped_samples = 0;
        assert!(statistics(&profile).contains("0 samples dropped (2.9 ms)"));
        profile.meta.counters.dropped_ns = 0;
        assert!(!statistics(&profile).contains("dropped"));
    }

    #[test]
    fn what_all_samples_lack_is_told() {
        let mut profile = profile();
        assert!(!statistics(&profile).contains("missing"));
        profile.meta.notes = vec!["mode: wall".into()];
        profile.meta.missing = vec!["lines, because they are".into()];
        let statistics = statistics(&profile);
        assert!(statistics.contains("\n[rperf] missing: lines, because they are\n"));
        assert!(!statistics.contains("mode: wall"));
    }

    #[test]
    fn the_summary_is_samples_and_time() {
        assert_eq!(summary(&profile(), 1), "1,000 samples, 1.000 s");
        let expected = "1,000 samples of 3 processes, 1.000 s";
        assert_eq!(summary(&profile(), 3), expected);
    }
}
