//! `rperf diff`: compares two profiles, or two groups of them. Called by `run`, on
//! Ruby's main thread.

mod call_limit;
mod calls;
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
use rperf_format::viewer::{self as viewer_data, Comparison, TitledProfile};
use rperf_model::{Profile, Schema, ValueType};
use rperf_report::{Change, Diff, Normalize, Run};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Exit status if something got slower, or has more calls, by more than `--fail-above` or
/// `--fail-on` allows.
const EXCEEDED: i32 = 3;

/// Shows what has changed, and returns the exit status.
pub fn run(args: DiffArgs) -> Result<i32, Refusal> {
    let options = Options::new(args, io::stdout().is_terminal())?;
    let mut reader = Reader {
        options: &options,
        types: Vec::new(),
        unmatched: None,
    };
    if options.view == View::Calls {
        return calls::run(&mut reader);
    }
    let sides = [reader.side(&options.base)?, reader.side(&options.target)?];
    reader.say_unmatched();
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
    Ok(verdict(&diff, &options))
}

/// The runs of one side, one by one, and for the viewer merged.
struct Side {
    runs: Vec<Run>,
    /// Of each value type of the first profile; `None` where a file has no such values.
    runs_by_type: Vec<Option<Vec<Run>>>,
    together: Option<Profile>,
}

/// Reads profiles, and remembers what all of them have in common.
struct Reader<'a> {
    options: &'a Options,
    /// The value types of the first profile.
    types: Vec<ValueType>,
    /// Filters that have matched nothing so far.
    unmatched: Option<Vec<&'static str>>,
}

impl Reader<'_> {
    fn side(&mut self, files: &[PathBuf]) -> Result<Side, Refusal> {
        let is_page = matches!(self.options.view, View::Web { .. } | View::Html(_));
        let mut side = Side {
            runs: Vec::new(),
            runs_by_type: Vec::new(),
            together: None,
        };
        for file in files {
            let mut profile = self.profile(file)?;
            side.runs.push(self.run(&profile));
            if is_page {
                self.add_by_type(&mut side, &mut profile);
                match &mut side.together {
                    None => side.together = Some(profile),
                    Some(together) => together
                        .merge(&profile)
                        .map_err(|error| Refusal::usage(format!("{}: {error}", file.display())))?,
                }
            }
        }
        Ok(side)
    }

    /// What the filters leave of a file.
    fn profile(&mut self, file: &Path) -> Result<Profile, Refusal> {
        let mut profile = load::profile(file)?;
        load::choose_column(&mut profile, self.options.value.as_deref())?;
        let filtered = self.options.filter.apply(profile);
        // What matches in one of the profiles has done its work.
        let others = self.unmatched.take();
        self.unmatched = Some(match others {
            Some(others) => others
                .into_iter()
                .filter(|option| filtered.unmatched.contains(option))
                .collect(),
            None => filtered.unmatched,
        });
        Ok(filtered.profile)
    }

    fn say_unmatched(&mut self) {
        for option in self.unmatched.take().unwrap_or_default() {
            crate::say(&format!("{option} matches nothing in the profiles"));
        }
    }

    fn run(&self, profile: &Profile) -> Run {
        Run::of(profile, self.options.label.as_deref())
    }

    fn add_by_type(&mut self, side: &mut Side, profile: &mut Profile) {
        if self.types.is_empty() {
            self.types = profile.schema.types().to_vec();
        }
        side.runs_by_type
            .resize_with(self.types.len(), || Some(Vec::new()));
        let chosen = profile.schema.clone();
        let columns = viewer_data::columns_for(&self.types, &chosen);
        for (column, runs) in columns.into_iter().zip(&mut side.runs_by_type) {
            let schema = column.and_then(|column| Schema::new(chosen.types().to_vec(), column));
            match (schema, &mut *runs) {
                (Some(schema), Some(runs)) => {
                    profile.schema = schema;
                    runs.push(self.run(profile));
                }
                _ => *runs = None,
            }
        }
        profile.schema = chosen;
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
                (Normalize::Label, key) => format!("label:{}", key.as_deref().unwrap_or("")),
            },
        }),
        changes: changes(sides, options),
        changes_by: options.sort,
        ..viewer_data::View::default()
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
    EXCEEDED
}
