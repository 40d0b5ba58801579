//! `rperf diff`: compares two profiles, or two groups of them. Called by `run`, on
//! Ruby's main thread.

mod markdown;
mod options;
mod pages;

pub use options::DiffArgs;

use crate::report::load;
use crate::report::screen::Screen;
use crate::report::write_text;
use crate::{Refusal, viewer};
use options::{Options, View};
use rperf_format::answers;
use rperf_format::viewer::{Comparison, TitledProfile};
use rperf_model::Profile;
use rperf_report::{Change, Diff, Normalize, Run};
use std::io::{self, IsTerminal};
use std::path::PathBuf;

/// Exit status if something got slower by more than `--fail-above` allows.
const SLOWER: i32 = 3;

/// Shows what has changed, and returns the exit status.
pub fn run(args: DiffArgs) -> Result<i32, Refusal> {
    let options = Options::new(args, io::stdout().is_terminal())?;
    let mut unmatched: Option<Vec<&'static str>> = None;
    let is_page = matches!(options.view, View::Web { .. } | View::Html(_));
    let mut side = |files: &[PathBuf]| -> Result<Side, Refusal> {
        let mut runs = Vec::new();
        let mut together: Option<Profile> = None;
        for file in files {
            let mut profile = load::profile(file)?;
            load::choose_column(&mut profile, options.value.as_deref())?;
            let filtered = options.filter.apply(profile);
            // What matches in one of the profiles has done its work.
            let others = unmatched.take();
            unmatched = Some(match others {
                Some(others) => others
                    .into_iter()
                    .filter(|option| filtered.unmatched.contains(option))
                    .collect(),
                None => filtered.unmatched,
            });
            runs.push(Run::of(&filtered.profile, options.label.as_deref()));
            match &mut together {
                _ if !is_page => {}
                None => together = Some(filtered.profile),
                Some(together) => together
                    .merge(&filtered.profile)
                    .map_err(|error| Refusal::usage(format!("{}: {error}", file.display())))?,
            }
        }
        Ok(Side { runs, together })
    };
    let sides = [side(&options.base)?, side(&options.target)?];
    for option in unmatched.unwrap_or_default() {
        crate::say(&format!("{option} matches nothing in the profiles"));
    }
    let [base, target] = [&sides[0].runs, &sides[1].runs];
    let diff = Diff::of(base, target, options.sort, options.normalize)
        .map_err(|error| Refusal::usage(error.to_string()))?;
    match &options.view {
        View::Web { opens_browser } => {
            return viewer::serve(html(&sides, &options)?, *opens_browser);
        }
        View::Html(path) => {
            viewer::save(&html(&sides, &options)?, path)?;
            return Ok(verdict(&diff, &options));
        }
        View::Top | View::Text | View::Markdown { .. } | View::Json { .. } => {}
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
    Ok(verdict(&diff, &options))
}

/// The runs of one side, one by one, and merged for the viewer.
struct Side {
    runs: Vec<Run>,
    together: Option<Profile>,
}

/// The web viewer with both sides in it.
fn html([base, target]: &[Side; 2], options: &Options) -> Result<Vec<u8>, Refusal> {
    let scale = options.normalize.scale_of_sums(&base.runs, &target.runs);
    let scale = scale.map_err(|error| Refusal::usage(error.to_string()))?;
    let titles = [&options.base, &options.target].map(|files| {
        let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
        names.join(" + ")
    });
    let profiles = [&base.together, &target.together].into_iter().flatten();
    let profiles = titles.iter().zip(profiles);
    viewer::page(&rperf_format::viewer::View {
        profiles: profiles
            .map(|(title, profile)| TitledProfile { title, profile })
            .collect(),
        comparison: Some(Comparison {
            scale,
            normalised: match (options.normalize, &options.label) {
                (Normalize::No, _) => "none".into(),
                (Normalize::Total, _) => "total".into(),
                (Normalize::Duration, _) => "duration".into(),
                (Normalize::Label, key) => format!("label:{}", key.as_deref().unwrap_or("")),
            },
        }),
        sources: Vec::new(),
    })
}

/// The exit status, with a line that says why if it is not 0.
fn verdict(diff: &Diff, options: &Options) -> i32 {
    let Some(percent) = options.fail_above else {
        return 0;
    };
    let above = diff.above(percent / 100.0);
    if above.is_empty() && diff.total.change == Change::Unknown {
        crate::say(
            "--fail-above can't tell: the profiles don't count their samples, so several runs of each \
             side are needed",
        );
        return crate::USAGE;
    }
    if above.is_empty() {
        return 0;
    }
    let names: Vec<String> = above.iter().take(5).map(|row| pages::name(row)).collect();
    let more = match above.len().saturating_sub(names.len()) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    crate::say(&format!(
        "more than {percent}% slower, beyond the noise: {}{more}",
        names.join(", ")
    ));
    SLOWER
}
