//! The options of `rperf diff`: as clap sees them, and checked.

use super::call_limit::CallLimit;
use crate::Refusal;
use crate::report::filter_args::{self, FilterArgs};
use crate::report::view_args::{Belongs, HTML_FILE, ViewArgs, only_one, refuse_strangers};
use rperf_format::Format;
use rperf_model::PathView;
use rperf_report::{Filter, Normalize, Sort, TestValue};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Rows of each table unless asked for otherwise.
const ROWS: usize = 30;

/// Views of `--format`.
const MARKDOWN: &str = "--format markdown";
const JSON: &str = "--format json";

/// The views that end with a status that says what has changed.
const GATED: &[&str] = &["--top", "--text", "--format", "--html"];

/// All views but that of calls.
const TIMES: &[&str] = &["--web", "--html", "--top", "--text", "--format"];

const TOP: &str = "Print one table of all that differs, the largest differences first (the default if \
                   stdout isn't a terminal)";

/// Options of `rperf diff`.
#[derive(Debug, Default, clap::Args)]
#[command(
    mut_arg("web", |it| it.help("Open the web viewer (the default on a terminal, but for --fail-above and --fail-on)")),
    mut_arg("html", |it| {
        it.help("Write the web viewer with the comparison in it as one file [default: rperf.html]")
    }),
    mut_arg("output", |it| it.help("File to write [default: rperf.html for html, else stdout]")),
    mut_arg("top", |it| it.help(TOP)),
    mut_arg("text", |it| it.help("Print a text report: what got slower, what got faster")),
    mut_arg("value", |it| {
        it.help("The values to compare, by name or number, where a profile has several")
    }),
    mut_arg("limit", |it| it.help("Rows of each table; 0: all [default: 30]")),
    mut_arg("sort", |it| {
        it.help("Compare what is spent in methods themselves (self), or with what they call (total)")
    })
)]
pub struct DiffArgs {
    /// The profile to compare with, and the one that is compared; - is stdin
    #[arg(value_name = "BASE TARGET", num_args = 0..)]
    pub files: Vec<OsString>,
    /// Profiles of several runs to compare with
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub base: Vec<OsString>,
    /// Profiles of several runs that are compared
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub target: Vec<OsString>,
    /// Options that `report` has too.
    #[command(flatten)]
    pub view: ViewArgs,
    /// Write the comparison as markdown, json or html [default with -o: by the file's
    /// extension]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<String>,
    /// Make the profiles comparable: by total, duration, requests, label:KEY or
    /// none
    #[arg(long, value_name = "WHAT", allow_hyphen_values = true)]
    pub normalize: Option<String>,
    /// Exit with 3 if all, or a method, got slower by more than this, beyond the noise
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub fail_above: Option<String>,
    /// Compare how often methods were called, in two profiles of rperf trace (the default
    /// for these)
    #[arg(long)]
    pub calls: bool,
    /// Compare what the tests of a suite took, by their accounts (rperf help tests); --value is
    /// wall_without_gc, wall, running, gvl_wait, blocked, gc or objects
    #[arg(long)]
    pub tests: bool,
    /// Exit with 3 if a method has more calls by more than this: 5%, 'Order#total>5%' for
    /// the methods that match, 'total>5%' for all calls together; or if there is more of a value
    /// beyond the noise: 'inuse_space>5%'; may be given several times
    #[arg(long, value_name = "LIMIT", allow_hyphen_values = true)]
    pub fail_on: Vec<String>,
    /// Only samples of the base with a label that matches, as for --tagfocus: so two parts of
    /// one profile can be compared
    #[arg(long, value_name = "TAG", allow_hyphen_values = true)]
    pub base_tagfocus: Vec<String>,
    /// Only samples of the target with a label that matches
    #[arg(long, value_name = "TAG", allow_hyphen_values = true)]
    pub target_tagfocus: Vec<String>,
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
    /// A single table of all that differs.
    Top,
    /// A page with one table for each direction.
    Text,
    /// The page of [`View::Text`], in Markdown.
    Markdown {
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
    /// The differences as JSON.
    Json {
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
    /// How often methods were called.
    Calls,
}

/// Checked options.
#[derive(Debug)]
pub struct Options {
    /// The profiles to compare with; never empty.
    pub base: Vec<PathBuf>,
    /// The profiles that are compared with the base; never empty.
    pub target: Vec<PathBuf>,
    /// What is shown.
    pub view: View,
    /// The value of tests that is compared, if tests are.
    pub tests: Option<TestValue>,
    /// Whether nobody has asked for a view, nor for anything that only values have which aren't exact.
    pub is_plain: bool,
    /// How they are made comparable.
    pub normalize: Normalize,
    /// The key of the label whose values are counted for that.
    pub label: Option<String>,
    /// How many percent slower is a failure.
    pub fail_above: Option<f64>,
    /// How many more calls are a failure, or how much more of a value: all are for one of these.
    pub fail_on: Vec<CallLimit>,
    /// The values that are compared, if not the profiles' own choice.
    pub value: Option<String>,
    /// The form of paths.
    pub path_view: PathView,
    /// Rows of each table.
    pub limit: Option<usize>,
    /// What is compared.
    pub sort: Sort,
    /// Whether long pages go through a pager.
    pub pager: bool,
    /// What of the profiles is compared.
    pub filter: Filter,
    /// What of each side's, before that.
    pub of_sides: [Filter; 2],
}

impl Options {
    /// Checks the options. `on_terminal`: stdout is one.
    pub fn new(args: DiffArgs, on_terminal: bool) -> Result<Self, Refusal> {
        let fail_on = limits(&args.fail_on)?;
        let limits_values = fail_on.iter().filter(|it| it.value().is_some()).count();
        if limits_values > 0 && limits_values < fail_on.len() {
            return Err(Refusal::usage(
                "--fail-on is either for calls or for values: compare twice for both",
            ));
        }
        let of_value = fail_on.first().and_then(CallLimit::value);
        let view = view(&args, on_terminal, of_value.is_some())?;
        let is_plain = is_plain(&args) && of_value.is_none();
        let is_of_calls = view == View::Calls;
        let tests = args.tests.then(|| test_value(&args)).transpose()?;
        let (base, target) = sides(args.files, args.base, args.target)?;
        let (normalize, label) = match args.normalize.as_deref() {
            Some(text) => parse_normalize(text)?,
            None => (Normalize::No, None),
        };
        if of_value.is_some() && matches!(normalize, Normalize::Total) {
            return Err(Refusal::usage(
                "--fail-on of a value has no meaning with --normalize total: all totals are equal then",
            ));
        }
        // --fail-above is for the values of the table, so a limit of others doesn't choose these.
        let is_of_table = args.fail_above.is_none();
        let of_table = of_value.filter(|_| is_of_table).map(String::from);
        Ok(Self {
            base,
            target,
            view,
            tests,
            is_plain,
            normalize,
            label,
            fail_above: args.fail_above.as_deref().map(parse_percent).transpose()?,
            fail_on,
            limit: args.view.limit(Some(ROWS))?,
            sort: args.view.sort()?,
            path_view: args.view.paths.view(),
            value: args.view.value().or(of_table),
            pager: !args.view.no_pager,
            filter: args.filter.filter(is_of_calls)?,
            of_sides: [
                of_side("--base-tagfocus", &args.base_tagfocus)?,
                of_side("--target-tagfocus", &args.target_tagfocus)?,
            ],
        })
    }
}

/// What is compared of a side.
fn of_side(name: &str, tag_focus: &[String]) -> Result<Filter, Refusal> {
    Ok(Filter {
        tag_focus: filter_args::tags(name, tag_focus)?,
        ..Filter::default()
    })
}

fn is_plain(args: &DiffArgs) -> bool {
    let DiffArgs { view, .. } = args;
    let asks_for_sides = !args.base_tagfocus.is_empty() || !args.target_tagfocus.is_empty();
    let asks_for_view =
        view.viewer.web || view.viewer.html || view.top || view.text || args.calls || args.tests;
    let asks_for_file = args.format.is_some() || view.output.is_some() || view.viewer.no_browser;
    let asks_for_values = view.value().is_some() || view.sort.is_some();
    let asks_for_noise = args.normalize.is_some() || args.fail_above.is_some();
    !(asks_for_sides || asks_for_view || asks_for_file || asks_for_values || asks_for_noise)
}

/// The one view that the options ask for, which gives all of them a meaning.
fn view(args: &DiffArgs, on_terminal: bool, limits_values: bool) -> Result<View, Refusal> {
    let asked = only_one(&[
        ("--web", args.view.viewer.web),
        ("--html", args.view.viewer.html),
        ("--top", args.view.top),
        ("--text", args.view.text),
        ("--format", args.format.is_some()),
        ("--calls", args.calls),
    ])?;
    let output = args.view.output.as_ref().map(Path::new);
    let view = match asked {
        Some("--format") => by_name(args.format.as_deref().unwrap_or_default())?,
        Some(asked) => asked,
        None => match output {
            Some(path) => by_extension(path).ok_or_else(|| {
                Refusal::usage(format!(
                    "-o {}: rperf diff writes .md, .json and .html, unless --format says which of them it is",
                    path.display()
                ))
            })?,
            None => default(args, on_terminal, limits_values),
        },
    };
    // Filters, --trim-path, --full-path and --no-pager are right everywhere.
    let belongings: [Belongs; 12] = [
        ("--tests", args.tests, &["--top", "--text", MARKDOWN, JSON]),
        ("-o", args.view.output.is_some(), &["--html", "--format"]),
        ("--no-browser", args.view.viewer.no_browser, &["--web"]),
        (
            "-n",
            args.view.limit.is_some(),
            &["--top", "--text", "--format", "--calls"],
        ),
        (
            "--fail-on",
            !args.fail_on.is_empty(),
            if limits_values { GATED } else { &["--calls"] },
        ),
        ("--base-tagfocus", !args.base_tagfocus.is_empty(), TIMES),
        ("--target-tagfocus", !args.target_tagfocus.is_empty(), TIMES),
        ("--value", args.view.value.is_some(), TIMES),
        ("--blame", args.view.blame, TIMES),
        ("--sort", args.view.sort.is_some(), TIMES),
        ("--normalize", args.normalize.is_some(), TIMES),
        ("--fail-above", args.fail_above.is_some(), GATED),
    ];
    refuse_strangers(&[view], None, asked.is_none(), &belongings)?;
    let output = args.view.output()?;
    Ok(match view {
        "--web" => View::Web {
            opens_browser: !args.view.viewer.no_browser,
        },
        "--html" => View::Html(output.unwrap_or_else(|| HTML_FILE.into())),
        "--text" => View::Text,
        MARKDOWN => View::Markdown { output },
        JSON => View::Json { output },
        "--calls" => View::Calls,
        _ => View::Top,
    })
}

fn by_name(name: &str) -> Result<&'static str, Refusal> {
    match name {
        "markdown" => Ok(MARKDOWN),
        "json" => Ok(JSON),
        "html" => Ok("--html"),
        _ => Err(Refusal::usage(format!(
            "--format must be markdown, json or html, not '{name}'"
        ))),
    }
}

fn by_extension(path: &Path) -> Option<&'static str> {
    match Format::of_report(path) {
        Format::Markdown => Some(MARKDOWN),
        Format::Json => Some(JSON),
        Format::Html => Some("--html"),
        _ => None,
    }
}

/// The view where none is asked for by name.
fn default(args: &DiffArgs, on_terminal: bool, limits_values: bool) -> &'static str {
    if !args.fail_on.is_empty() {
        return if limits_values { "--top" } else { "--calls" };
    }
    // Options of a table ask for one.
    let for_table = args.view.limit.is_some() || args.view.sort.is_some();
    let wants_page = on_terminal && !for_table && !args.tests && args.fail_above.is_none();
    match wants_page || args.view.viewer.no_browser {
        true => "--web",
        false => "--top",
    }
}

/// The value of tests that is compared. What else is chosen of samples means nothing for them.
fn test_value(args: &DiffArgs) -> Result<TestValue, Refusal> {
    let of_samples = [
        ("--normalize", args.normalize.is_some()),
        ("--sort", args.view.sort.is_some()),
        ("--blame", args.view.blame),
        ("--base-tagfocus", !args.base_tagfocus.is_empty()),
        ("--target-tagfocus", !args.target_tagfocus.is_empty()),
        ("--fail-on", !args.fail_on.is_empty()),
        ("a filter", args.filter != FilterArgs::default()),
    ];
    if let Some((name, _)) = of_samples.iter().find(|(_, is_given)| *is_given) {
        return Err(Refusal::usage(format!(
            "{name} has no meaning for --tests, which compares the exact values of whole tests"
        )));
    }
    let Some(name) = &args.view.value else {
        return Ok(TestValue::default());
    };
    let found = TestValue::ALL.into_iter().find(|it| it.name() == name);
    found.ok_or_else(|| {
        let names = TestValue::ALL.map(TestValue::name).join(", ");
        Refusal::usage(format!(
            "--value of --tests must be one of {names}, not '{name}'"
        ))
    })
}

fn limits(texts: &[String]) -> Result<Vec<CallLimit>, Refusal> {
    texts.iter().map(|text| CallLimit::parse(text)).collect()
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
        "requests" => (Normalize::Requests, None),
        _ => match text.strip_prefix("label:") {
            Some(key) if !key.is_empty() => (Normalize::Label, Some(key.to_string())),
            _ => {
                return Err(Refusal::usage(format!(
                    "--normalize must be total, duration, requests, label:KEY or none, not '{text}'"
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
    use crate::args::{Args, Subcommand};
    use clap::Parser;

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
    fn a_file_is_named_as_what_can_be_written() {
        let view = |line: &[&str]| {
            let line = ["rperf", "diff", "a", "b"].iter().chain(line);
            match Args::try_parse_from(line)
                .expect("clap takes it")
                .subcommand
            {
                Subcommand::Diff(args) => view(&args, false, false).map_err(|it| it.message),
                _ => panic!("it is a diff"),
            }
        };
        for path in ["x.csv", "/tmp/x.txt", "x"] {
            let told = view(&["-o", path]).expect_err(path);
            let start = format!("-o {path}: rperf diff writes .md, .json and .html, unless ");
            assert!(told.starts_with(&start), "{told}");
        }
        assert!(matches!(
            view(&["-o", "/tmp/x.MD"]),
            Ok(View::Markdown { .. })
        ));
        assert!(matches!(
            view(&["-o", "/dev/null", "--format", "json"]),
            Ok(View::Json { .. })
        ));
    }

    #[test]
    fn percentages_may_have_their_sign() {
        assert_eq!(parse_percent("5%").expect("a percentage"), 5.0);
        for text in ["-1", "x", "", "inf", "NaN"] {
            assert!(parse_percent(text).is_err(), "{text}");
        }
    }
}
