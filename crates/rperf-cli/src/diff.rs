//! `rperf diff`: compares two profiles, or two groups of them. Called by `run`, on
//! the main thread.

mod call_limit;
mod calls;
mod markdown;
mod options;
mod pages;
mod percent;
mod reader;

pub use options::DiffArgs;

use crate::report::screen::Screen;
use crate::report::write_text;
use crate::{Refusal, viewer};
use options::{Options, View};
use reader::{Reader, Side};
use rperf_format::answers;
use rperf_format::viewer::{self as viewer_data, Comparison, TitledProfile};
use rperf_report::one_line::one_line;
use rperf_report::{Change, Diff, DiffRow, Normalize, Run, align};
use std::io::{self, IsTerminal};

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  rperf diff before.pb.gz after.pb.gz
  rperf diff --text --normalize label:request before.pb.gz after.pb.gz
  rperf record --runs 5 -o before.pb.gz ruby bench.rb
  rperf diff --base before.*.pb.gz --target after.*.pb.gz --fail-above 5
  rperf diff --calls --fail-on 'Order#total>5%' calls.pb.gz new-calls.pb.gz
  rperf diff --fail-on 'inuse_space>5%' before.pb.gz after.pb.gz

A difference is called slower or faster only if it is unlikely to be noise. With one
run on each side, the samples tell; with several runs (one file each), the differences
between the runs tell. Give five or more to find small changes. 'rperf help comparing'
has the rule.

Exit status: 0; 1 if the output can't be written; 2 for wrong options and files that
can't be read; 3 if something got slower by more than --fail-above, or there are more
calls, or more of a value, than --fail-on allows.

Run 'rperf help' for full documentation.";

/// Shows what has changed, and returns the exit status.
pub fn run(args: DiffArgs) -> Result<i32, Refusal> {
    let options = Options::new(args, io::stdout().is_terminal())?;
    let mut reader = Reader::new(&options);
    if options.view == View::Calls {
        return calls::run(&mut reader);
    }
    let mut sides = match (&options.base[..], &options.target[..]) {
        ([base], [target]) if options.is_plain => {
            let read = [reader.read(base)?, reader.read(target)?];
            if let Some((profiles, diff)) = calls::exact(&mut reader, &read) {
                return calls::show(&mut reader, [base, target], &profiles, &diff);
            }
            let [first, second] = read;
            [
                reader.side_of(0, base, first)?,
                reader.side_of(1, target, second)?,
            ]
        }
        _ => [
            reader.side(0, &options.base)?,
            reader.side(1, &options.target)?,
        ],
    };
    let [base, target] = &mut sides;
    if let (Some(base), Some(target)) = (&mut base.together, &target.together) {
        align(base, target);
    }
    let are_some_unmatched = reader.say_unmatched();
    let [base, target] = [&sides[0].runs, &sides[1].runs];
    let diff = Diff::of(base, target, options.sort, options.normalize)
        .map_err(|error| Refusal::usage(error.to_string()))?;
    if !are_some_unmatched {
        say_if_empty(&diff, &options);
    }
    match &options.view {
        View::Web { opens_browser } => {
            return viewer::serve(html(&sides, &options)?, *opens_browser);
        }
        View::Html(path) => {
            viewer::save(&html(&sides, &options)?, path)?;
            let of_values = verdict_of_values(&sides, &options)?;
            return Ok(verdict(&diff, &options).max(of_values));
        }
        View::Top | View::Text | View::Markdown { .. } | View::Json { .. } | View::Calls => {}
    }
    let screen = Screen::stdout(options.pager);
    let page = pages::Page {
        diff: &diff,
        screen,
        limit: options.limit,
        sides: [base, target],
        options: &options,
    };
    let (text, output) = match &options.view {
        View::Markdown { output } => (markdown::markdown(&page), output.as_deref()),
        View::Json { output } => {
            let data = answers::diff(&diff, options.limit);
            (format!("{data}\n"), output.as_deref())
        }
        View::Text => (pages::text(&page), None),
        _ => (pages::top(&page), None),
    };
    write_text(&text, output, screen)?;
    if options.tests.is_none() {
        let of_values = verdict_of_values(&sides, &options)?;
        return Ok(verdict(&diff, &options).max(of_values));
    }
    let [base, target] = Run::tests_of_both([base, target]);
    let of_both = Diff::of(&base, &target, options.sort, options.normalize);
    let of_both = of_both.map_err(|error| Refusal::usage(error.to_string()))?;
    Ok(verdict_of_tests(&diff, &of_both, &options))
}

/// Names the sides of which filters leave nothing, though each filter matches something, perhaps of another value.
fn say_if_empty(diff: &Diff, options: &Options) {
    let totals = [diff.total.base, diff.total.target];
    let sides = ["base", "target"].iter().zip(&options.of_sides).zip(totals);
    for ((side, filter), total) in sides {
        if total == 0 && !(options.filter.is_empty() && filter.is_empty()) {
            let value = one_line(&diff.value_type.name);
            crate::say(&format!(
                "nothing of {value} in the {side} passes the filters"
            ));
        }
    }
}

/// What has changed in each value type, where that can be told.
fn changes([base, target]: &[Side; 2], options: &Options) -> Vec<Option<Diff>> {
    let pairs = base.runs_by_type.iter().zip(&target.runs_by_type);
    let diff = |(base, target): (&Option<Vec<Run>>, &Option<Vec<Run>>)| {
        let (base, target) = (base.as_ref()?, target.as_ref()?);
        Diff::of(base, target, options.sort, options.normalize).ok()
    };
    pairs.map(diff).collect()
}

/// The web viewer with both sides in it.
fn html(sides: &[Side; 2], options: &Options) -> Result<Vec<u8>, Refusal> {
    let [base, target] = sides;
    let scale = options.normalize.scale_of_sums(&base.runs, &target.runs);
    let scale = scale.map_err(|error| Refusal::usage(error.to_string()))?;
    let titles = [&options.base, &options.target].map(|files| viewer::title(files));
    let profiles = [&base.together, &target.together].into_iter().flatten();
    let profiles = titles.iter().zip(profiles);
    viewer::page(&viewer_data::View {
        profiles: profiles
            .map(|(title, profile)| TitledProfile { title, profile })
            .collect(),
        comparison: Some(Comparison {
            scale,
            normalised: match (options.normalize, &options.label) {
                (Normalize::No, _) => "none".into(),
                (Normalize::Total, _) => "total".into(),
                (Normalize::Duration, _) => "duration".into(),
                (Normalize::Requests, _) => "requests".into(),
                (Normalize::Label, key) => format!("label:{}", key.as_deref().unwrap_or("")),
            },
        }),
        changes: changes(sides, options),
        changes_by: options.sort,
        shows_idle: !options.filter.hides_idle,
        ..viewer_data::View::default()
    })
}

/// The exit status by the limits of values, with a line that says why if it is not 0.
fn verdict_of_values([base, target]: &[Side; 2], options: &Options) -> Result<i32, Refusal> {
    let limits = options.fail_on.iter().filter(|it| it.value().is_some());
    let runs = base.runs_of_limits.iter().zip(&target.runs_of_limits);
    let mut above = Vec::new();
    for (limit, (base, target)) in limits.zip(runs) {
        let diff = Diff::of(base, target, options.sort, options.normalize)
            .map_err(|error| Refusal::usage(error.to_string()))?;
        above.extend(limit.exceeded_by(&diff)?);
    }
    if above.is_empty() {
        return Ok(0);
    }
    let named = above.join(", ");
    crate::say(&format!(
        "more than --fail-on allows, beyond the noise: {named}"
    ));
    Ok(crate::EXCEEDED)
}

/// The exit status, with a line that says why if it is not 0.
fn verdict(diff: &Diff, options: &Options) -> i32 {
    let Some(percent) = options.fail_above else {
        return 0;
    };
    let above = diff.above(percent / 100.0);
    let names = above.iter().map(|row| pages::name(row)).collect();
    verdict_of(
        diff,
        names,
        percent,
        "the profiles don't count their samples",
    )
}

/// The exit status for the tests that both sides have: each as the page has it, and all of these together, without what
/// else is in the page's total.
fn verdict_of_tests(diff: &Diff, of_both: &Diff, options: &Options) -> i32 {
    let (Some(percent), Some(value)) = (options.fail_above, options.tests) else {
        return 0;
    };
    let share = percent / 100.0;
    let is_enough = |row: &DiffRow| row.delta() >= value.least_difference();
    let total = Some(&of_both.total).filter(|it| of_both.is_total_above(share) && is_enough(it));
    let total = total.map(|it| pages::named("the tests of both sides together", it));
    let rows = diff.rows_above(share).into_iter();
    let rows = rows.filter(|it| it.change == Change::More && is_enough(it));
    let names = total.into_iter().chain(rows.map(pages::name)).collect();
    verdict_of(
        of_both,
        names,
        percent,
        "a test takes more or less in each run",
    )
}

/// The exit status where these are above the limit, and otherwise what `diff` can tell; with a line that says why if
/// it is not 0.
fn verdict_of(diff: &Diff, above: Vec<String>, percent: f64, unknown: &str) -> i32 {
    if diff.total.base == 0 && diff.total.target == 0 {
        crate::say("--fail-above can't tell: there is nothing to compare");
        return crate::USAGE;
    }
    if above.is_empty() && diff.total.change == Change::Unknown {
        crate::say(&format!(
            "--fail-above can't tell: {unknown}, so several runs of each side are needed"
        ));
        return crate::USAGE;
    }
    if above.is_empty() {
        return 0;
    }
    let names = &above[..above.len().min(5)];
    let more = match above.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let word = Change::More.word(&diff.value_type.unit);
    let noise = match diff.is_exact {
        true => "",
        false => ", beyond the noise",
    };
    crate::say(&format!(
        "more than {percent}% {word}{noise}: {}{more}",
        names.join(", ")
    ));
    if diff.runs == [1, 1] && !diff.is_exact {
        crate::say(
            "each side is one run: only several (rperf record --runs) tell what differs from run to run",
        );
    }
    crate::EXCEEDED
}
