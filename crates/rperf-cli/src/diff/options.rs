//! The options of `rperf diff`: as clap sees them, and checked.

use crate::Refusal;
use crate::options::writable;
use crate::report::filter_args::FilterArgs;
use crate::report::options::{HTML_FILE, parse_limit, parse_sort};
use rperf_format::Format;
use rperf_report::{Filter, Normalize, Sort};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Rows of each table unless asked for otherwise.
const ROWS: usize = 30;

/// Options of `rperf diff`.
#[derive(Debug, Default, clap::Args)]
pub struct DiffArgs {
    /// The profile to compare with, and the one that is compared
    #[arg(value_name = "BASE TARGET", num_args = 0..)]
    pub files: Vec<OsString>,
    /// Profiles of several runs to compare with
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub base: Vec<OsString>,
    /// Profiles of several runs that are compared
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub target: Vec<OsString>,
    /// Open the web viewer (the default on a terminal, but for --fail-above)
    #[arg(long)]
    pub web: bool,
    /// With --web: only print the viewer's address
    #[arg(long)]
    pub no_browser: bool,
    /// Write the web viewer with the comparison in it as one file
    #[arg(long)]
    pub html: bool,
    /// Write the comparison as markdown, json or html [default with -o: by the file's
    /// extension, else html]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<String>,
    /// The file to write [default: rperf.html for html, else stdout]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Print one table of all that differs, the largest differences first (the default if
    /// stdout is no terminal)
    #[arg(long)]
    pub top: bool,
    /// Print a text report: what got slower, what got faster
    #[arg(long)]
    pub text: bool,
    /// Make the profiles comparable: by total, duration, label:KEY or none
    #[arg(long, value_name = "WHAT", allow_hyphen_values = true)]
    pub normalize: Option<String>,
    /// Exit with 3 if all, or a method, got slower by more than this, beyond the noise
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub fail_above: Option<String>,
    /// The values to compare, by name or number, where a profile has several
    #[arg(
        long,
        visible_alias = "sample-index",
        value_name = "TYPE",
        allow_hyphen_values = true
    )]
    pub value: Option<String>,
    /// Rows of each table; 0: all [default: 30]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub limit: Option<String>,
    /// Compare what is spent in methods themselves (flat), or with what they call (cum)
    #[arg(long, value_name = "flat|cum", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Print long pages as they are
    #[arg(long)]
    pub no_pager: bool,
    /// What of the profiles is compared.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// The web viewer.
    Web {
        /// Whether a browser is opened.
        opens_browser: bool,
    },
    /// The web viewer as this file.
    Html(PathBuf),
    /// One table.
    Top,
    /// A page with one table for each direction.
    Text,
    /// The same in Markdown.
    Markdown {
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
    /// The differences as JSON.
    Json {
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
}

/// Checked options.
#[derive(Debug)]
pub struct Options {
    /// The profiles to compare with; never empty.
    pub base: Vec<PathBuf>,
    /// Those that are compared; never empty.
    pub target: Vec<PathBuf>,
    /// What is shown.
    pub view: View,
    /// How they are made comparable.
    pub normalize: Normalize,
    /// The key of the label whose values are counted for that.
    pub label: Option<String>,
    /// How many percent slower is a failure.
    pub fail_above: Option<f64>,
    /// The values that are compared, if not the profiles' own choice.
    pub value: Option<String>,
    /// Rows of each table.
    pub limit: Option<usize>,
    /// What is compared.
    pub sort: Sort,
    /// Whether long pages go through a pager.
    pub pager: bool,
    /// What of the profiles is compared.
    pub filter: Filter,
}

impl Options {
    /// Checks the options. `on_terminal`: stdout is one.
    pub fn new(args: DiffArgs, on_terminal: bool) -> Result<Self, Refusal> {
        let view = view(&args, on_terminal)?;
        let (base, target) = sides(args.files, args.base, args.target)?;
        let (normalize, label) = match args.normalize.as_deref() {
            Some(text) => parse_normalize(text)?,
            None => (Normalize::No, None),
        };
        Ok(Self {
            base,
            target,
            view,
            normalize,
            label,
            fail_above: args.fail_above.as_deref().map(parse_percent).transpose()?,
            value: args.value,
            limit: match args.limit.as_deref() {
                Some(text) => parse_limit(text)?,
                None => Some(ROWS),
            },
            sort: args.sort.as_deref().map_or(Ok(Sort::Flat), parse_sort)?,
            pager: !args.no_pager,
            filter: args.filter.filter()?,
        })
    }
}

/// The one view that the options ask for.
fn view(args: &DiffArgs, on_terminal: bool) -> Result<View, Refusal> {
    let asked = [
        ("--web", args.web),
        ("--html", args.html),
        ("--top", args.top),
        ("--text", args.text),
        ("--format", args.format.is_some()),
    ];
    let asked = asked.iter().filter(|(_, is_asked)| *is_asked);
    let asked: Vec<&str> = asked.map(|(name, _)| *name).collect();
    if let [first, second, ..] = asked[..] {
        let message = format!("{first} and {second} can't be combined: give one of them");
        return Err(Refusal::usage(message));
    }
    if args.output.is_some() && (args.web || args.top || args.text) {
        return Err(Refusal::usage("-o goes with --html or --format"));
    }
    let format = format(args)?;
    if args.web && args.fail_above.is_some() {
        let message = "--fail-above goes with all but --web";
        return Err(Refusal::usage(message));
    }
    let asks_for_rows = args.limit.is_some() || args.sort.is_some();
    let is_web = args.web
        || (on_terminal
            && asked.is_empty()
            && format.is_none()
            && args.fail_above.is_none()
            && !asks_for_rows);
    if args.no_browser && !is_web {
        return Err(Refusal::usage("--no-browser goes with --web"));
    }
    let output = args.output.as_ref().map(writable).transpose()?;
    Ok(match format {
        Some(Format::Markdown) => View::Markdown { output },
        Some(Format::Json) => View::Json { output },
        Some(_) => View::Html(output.unwrap_or_else(|| HTML_FILE.into())),
        None if args.text => View::Text,
        None if is_web => View::Web {
            opens_browser: !args.no_browser,
        },
        None => View::Top,
    })
}

/// The format that is asked for, if one is.
fn format(args: &DiffArgs) -> Result<Option<Format>, Refusal> {
    Ok(match (args.format.as_deref(), &args.output) {
        (Some("markdown"), _) => Some(Format::Markdown),
        (Some("json"), _) => Some(Format::Json),
        (Some("html"), _) => Some(Format::Html),
        (Some(other), _) => {
            let message = format!("--format must be markdown, json or html, not '{other}'");
            return Err(Refusal::usage(message));
        }
        (None, _) if args.html => Some(Format::Html),
        (None, Some(path)) => Some(match Format::of_report(Path::new(path)) {
            format @ (Format::Markdown | Format::Json) => format,
            _ => Format::Html,
        }),
        (None, None) => None,
    })
}

type Sides = (Vec<PathBuf>, Vec<PathBuf>);

/// The two sides: two files, or two groups by their options.
fn sides(
    files: Vec<OsString>,
    base: Vec<OsString>,
    target: Vec<OsString>,
) -> Result<Sides, Refusal> {
    let paths = |files: Vec<OsString>| files.into_iter().map(PathBuf::from).collect();
    let usage = |message: &str| Err(Refusal::usage(message));
    match (&files[..], base.is_empty(), target.is_empty()) {
        ([base, target], true, true) => Ok((vec![base.into()], vec![target.into()])),
        ([], false, false) => Ok((paths(base), paths(target))),
        ([], true, true) => usage("two profiles are needed: rperf diff BASE TARGET"),
        ([_], true, true) => usage("a second profile is needed: rperf diff BASE TARGET"),
        (_, true, true) => usage(
            "for more than two profiles, say which side each is on: \
             rperf diff --base FILES --target FILES",
        ),
        ([], ..) => usage("--base and --target go together"),
        _ => usage("give two profiles, or --base FILES --target FILES, not both"),
    }
}

fn parse_normalize(text: &str) -> Result<(Normalize, Option<String>), Refusal> {
    Ok(match text {
        "none" => (Normalize::No, None),
        "total" => (Normalize::Total, None),
        "duration" => (Normalize::Duration, None),
        _ => match text.strip_prefix("label:") {
            Some(key) if !key.is_empty() => (Normalize::Label, Some(key.to_string())),
            _ => {
                return Err(Refusal::usage(format!(
                    "--normalize must be total, duration, label:KEY or none, not '{text}'"
                )));
            }
        },
    })
}

fn parse_percent(text: &str) -> Result<f64, Refusal> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err(Refusal::usage(format!(
            "--fail-above must be a percentage, as 5, not '{text}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    fn message(files: &[&str], base: &[&str], target: &[&str]) -> String {
        let refusal = sides(words(files), words(base), words(target)).expect_err("refused");
        assert_eq!(refusal.status, 2);
        refusal.message
    }

    #[test]
    fn sides_are_two_files_or_two_groups() {
        let two = sides(words(&["a", "b"]), Vec::new(), Vec::new()).expect("two files");
        assert_eq!(two, (vec!["a".into()], vec!["b".into()]));
        let groups = sides(Vec::new(), words(&["a", "b"]), words(&["c"])).expect("groups");
        assert_eq!((groups.0.len(), groups.1.len()), (2, 1));
        assert!(message(&[], &[], &[]).starts_with("two profiles are needed"));
        assert!(message(&["a"], &[], &[]).starts_with("a second profile"));
        assert!(message(&["a", "b", "c"], &[], &[]).contains("--base FILES"));
        assert!(message(&[], &["a"], &[]).contains("go together"));
        assert!(message(&["a"], &["b"], &["c"]).contains("not both"));
    }

    #[test]
    fn percentages_may_have_their_sign() {
        assert_eq!(parse_percent("5%").expect("a percentage"), 5.0);
        for text in ["-1", "x", "", "inf", "NaN"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
