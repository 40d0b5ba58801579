//! `rperf diff`: compares two profiles, or two groups of them. Called by `run`, on
//! Ruby's main thread.

mod options;
mod pages;

pub use options::DiffArgs;

use crate::Refusal;
use crate::report::load;
use crate::report::screen::Screen;
use options::{Options, View};
use rperf_report::{Diff, Run};
use std::path::PathBuf;

/// Exit status if something got slower by more than `--fail-above` allows.
const SLOWER: i32 = 3;

/// Shows what has changed, and returns the exit status.
pub fn run(args: DiffArgs) -> Result<i32, Refusal> {
    let options = Options::new(args)?;
    let mut unmatched: Option<Vec<&'static str>> = None;
    let mut side = |files: &[PathBuf]| -> Result<Vec<Run>, Refusal> {
        let mut runs = Vec::new();
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
        }
        Ok(runs)
    };
    let (base, target) = (side(&options.base)?, side(&options.target)?);
    for option in unmatched.unwrap_or_default() {
        crate::say(&format!("{option} matches nothing in the profiles"));
    }
    let diff = Diff::of(&base, &target, options.sort, options.normalize)
        .map_err(|error| Refusal::usage(error.to_string()))?;
    let screen = Screen::stdout(options.pager);
    let page = pages::Page {
        diff: &diff,
        screen,
        limit: options.limit,
        sides: [&base, &target],
        options: &options,
    };
    let text = match options.view {
        View::Top => pages::top(&page),
        View::Text => pages::text(&page),
    };
    screen.print(&text).map_err(|error| Refusal {
        message: format!("can't write to stdout: {error}"),
        status: crate::FAILURE,
    })?;
    Ok(verdict(&diff, &options))
}

/// The exit status, with a line that says why if it is not 0.
fn verdict(diff: &Diff, options: &Options) -> i32 {
    let Some(percent) = options.fail_above else {
        return 0;
    };
    let above = diff.above(percent / 100.0);
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
