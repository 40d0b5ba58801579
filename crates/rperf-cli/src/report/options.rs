//! The options of `rperf report`: as clap sees them, and checked.

use super::filter_args::FilterArgs;
use super::load::DEFAULT_FILE;
use super::pages::TreeOptions;
use crate::Refusal;
use crate::options::{parse_format, writable};
use rperf_format::Format;
use rperf_format::answers::{LEAST_PERCENT, ROWS};
use rperf_format::markdown::METHODS;
use rperf_report::{By, Direction, Filter, Sort};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file of the web viewer unless asked for otherwise.
pub const HTML_FILE: &str = "rperf.html";

/// Options of `rperf report`.
#[derive(Debug, Default, clap::Args)]
pub struct ReportArgs {
    /// Profiles to look at; several are merged [default: rperf.data]
    #[arg(value_name = "FILE")]
    pub files: Vec<OsString>,
    /// Open the web viewer (the default on a terminal)
    #[arg(long)]
    pub web: bool,
    /// With --web: only print the viewer's address
    #[arg(long)]
    pub no_browser: bool,
    /// Write the web viewer with the profile in it as one file [default: rperf.html]
    #[arg(long)]
    pub html: bool,
    /// Let the viewer's file have the source files, which are on this machine
    #[arg(long)]
    pub source: bool,
    /// Print the rows with the most (the default if stdout is no terminal)
    #[arg(long)]
    pub top: bool,
    /// Print the text report: totals, then methods by their own and by their total values
    #[arg(long)]
    pub text: bool,
    /// Print the call tree
    #[arg(long)]
    pub tree: bool,
    /// Print the callers and callees of the methods with this name, with the calling lines
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub callers: Option<String>,
    /// Print the source of a file or method with what each line costs
    #[arg(long, value_name = "FILE|METHOD", allow_hyphen_values = true)]
    pub annotate: Option<String>,
    /// Convert to pprof, collapsed, text, markdown, json or html [default with -o: by the
    /// file's extension]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<String>,
    /// File to write instead of stdout
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// The values to show, by name or number, where a profile has several
    #[arg(
        long,
        visible_alias = "sample-index",
        value_name = "TYPE",
        allow_hyphen_values = true
    )]
    pub value: Option<String>,
    /// Rows to show; 0: all [default: 50 in --top and json, 15 in markdown, else all]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub limit: Option<String>,
    /// flat: by what is spent in a method itself; cum: with what it calls
    #[arg(long, value_name = "flat|cum", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Rows of --top: function, file, dir, gem, label:KEY, thread or state
    #[arg(long, value_name = "WHAT", allow_hyphen_values = true)]
    pub by: Option<String>,
    /// Begin the tree with the methods that have time of their own, callers below
    #[arg(long)]
    pub bottom_up: bool,
    /// Leave branches of the tree out that have less of all, in percent [default: 0.5]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub least: Option<String>,
    /// Add a table of the hottest lines to the text report
    #[arg(long)]
    pub lines: bool,
    /// Print long pages as they are
    #[arg(long)]
    pub no_pager: bool,
    /// What of the profile is looked at.
    #[command(flatten)]
    pub filter: FilterArgs,
}

/// What is shown.
#[derive(Debug, Clone, PartialEq)]
pub enum View {
    /// The web viewer.
    Web {
        /// Whether a browser is opened.
        opens_browser: bool,
    },
    /// The web viewer as this file.
    Html(PathBuf),
    /// The rows with the most.
    Top,
    /// The call tree.
    Tree(TreeOptions),
    /// Callers and callees of the methods with this name.
    Callers(String),
    /// The lines of this file or method.
    Annotate(String),
    /// The answers as JSON.
    Json {
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
        /// With callers and callees of the methods with this name.
        callers: Option<String>,
    },
    /// The report in Markdown.
    Markdown {
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
    /// The profile in a format.
    Format {
        /// Which one.
        format: Format,
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
}

/// Checked options.
#[derive(Debug)]
pub struct Options {
    /// The profiles; never empty.
    pub files: Vec<PathBuf>,
    /// What is shown.
    pub view: View,
    /// The values that are shown, if not the profile's own choice.
    pub value: Option<String>,
    /// Rows to show.
    pub limit: Option<usize>,
    /// What rows are ranked by.
    pub sort: Sort,
    /// What the rows are.
    pub by: By,
    /// Whether the text report has a table of lines.
    pub lines: bool,
    /// Whether long pages go through a pager.
    pub pager: bool,
    /// Whether the viewer has the text of source files.
    pub source: bool,
    /// What of the profile is looked at.
    pub filter: Filter,
}

impl Options {
    /// Checks the options. `on_terminal`: stdout is one.
    pub fn new(args: ReportArgs, on_terminal: bool) -> Result<Self, Refusal> {
        let view = view(&args, on_terminal)?;
        let default_limit = match view {
            View::Top | View::Json { .. } => Some(ROWS),
            View::Markdown { .. } => Some(METHODS),
            _ => None,
        };
        let limit = match args.limit.as_deref() {
            Some(text) => parse_limit(text)?,
            None => default_limit,
        };
        let files: Vec<PathBuf> = args.files.iter().map(PathBuf::from).collect();
        Ok(Self {
            files: match files.is_empty() {
                true => vec![DEFAULT_FILE.into()],
                false => files,
            },
            view,
            value: args.value,
            limit,
            sort: args.sort.as_deref().map_or(Ok(Sort::Flat), parse_sort)?,
            by: args.by.as_deref().map_or(Ok(By::Function), parse_by)?,
            lines: args.lines,
            pager: !args.no_pager,
            source: args.source,
            filter: args.filter.filter()?,
        })
    }
}

/// The one view that the options ask for.
fn view(args: &ReportArgs, on_terminal: bool) -> Result<View, Refusal> {
    let format = match (args.format.as_deref(), &args.output) {
        (Some(name), _) => Some(parse_format(name)?),
        (None, Some(path)) if !args.html && !args.text => Some(Format::of_report(Path::new(path))),
        _ => None,
    };
    let is_html = args.html || format == Some(Format::Html);
    let converts = format.is_some() && !is_html;
    // JSON can have callers and callees.
    let is_json_of_callers = args.callers.is_some() && format == Some(Format::Json);
    let asked: Vec<&str> = [
        ("--web", args.web),
        ("--html", args.html),
        ("--top", args.top),
        ("--text", args.text),
        ("--tree", args.tree),
        ("--callers", args.callers.is_some() && !is_json_of_callers),
        ("--annotate", args.annotate.is_some()),
        ("--format", args.format.is_some()),
    ]
    .iter()
    .filter(|(_, is_asked)| *is_asked)
    .map(|(name, _)| *name)
    .collect();
    if let [first, second, ..] = asked[..] {
        let message = format!("{first} and {second} can't be combined: give one of them");
        return Err(Refusal::usage(message));
    }
    let is_page = args.web
        || args.top
        || args.tree
        || (args.callers.is_some() && !is_json_of_callers)
        || args.annotate.is_some();
    if is_page && args.output.is_some() {
        let message = format!(
            "-o goes with --html, --text or --format, not with {}",
            asked[0]
        );
        return Err(Refusal::usage(message));
    }
    for (option, needs, is_given, is_fine) in [
        (
            "--by",
            "--top",
            args.by.is_some(),
            !converts && !args.text && !args.tree && !args.web && !is_html,
        ),
        (
            "--no-browser",
            "--web",
            args.no_browser,
            args.web || asked.is_empty(),
        ),
        (
            "--source",
            "--html or --web",
            args.source,
            is_html || args.web || asked.is_empty(),
        ),
        ("--bottom-up", "--tree", args.bottom_up, args.tree),
        ("--least", "--tree", args.least.is_some(), args.tree),
        (
            "--lines",
            "--text or --format text",
            args.lines,
            args.text || converts,
        ),
    ] {
        if is_given && !is_fine {
            return Err(Refusal::usage(format!("{option} goes with {needs}")));
        }
    }
    // Options of a table ask for one.
    let asks_for_rows = args.by.is_some() || args.sort.is_some() || args.limit.is_some();
    let output = args.output.as_ref().map(writable).transpose()?;
    Ok(match args {
        _ if format == Some(Format::Json) => View::Json {
            output,
            callers: args.callers.clone(),
        },
        _ if format == Some(Format::Markdown) => View::Markdown { output },
        ReportArgs {
            callers: Some(name),
            ..
        } => View::Callers(name.clone()),
        ReportArgs {
            annotate: Some(subject),
            ..
        } => View::Annotate(subject.clone()),
        ReportArgs { tree: true, .. } => View::Tree(TreeOptions {
            direction: match args.bottom_up {
                true => Direction::BottomUp,
                false => Direction::TopDown,
            },
            least_percent: args
                .least
                .as_deref()
                .map_or(Ok(LEAST_PERCENT), parse_percent)?,
        }),
        ReportArgs { text: true, .. } => View::Format {
            format: Format::Text,
            output,
        },
        _ if converts => View::Format {
            format: format.unwrap_or_default(),
            output,
        },
        _ if is_html => View::Html(output.unwrap_or_else(|| HTML_FILE.into())),
        _ if args.web || (on_terminal && asked.is_empty() && !asks_for_rows) => View::Web {
            opens_browser: !args.no_browser,
        },
        _ => View::Top,
    })
}

/// `None`: no limit.
pub fn parse_limit(text: &str) -> Result<Option<usize>, Refusal> {
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(limit) => Ok(Some(limit)),
        Err(_) => Err(Refusal::usage(format!(
            "-n must be a number of rows, 0 for all, not '{text}'"
        ))),
    }
}

/// What rows are ranked by.
pub fn parse_sort(text: &str) -> Result<Sort, Refusal> {
    match text {
        "flat" | "self" => Ok(Sort::Flat),
        "cum" | "total" => Ok(Sort::Cumulative),
        _ => Err(Refusal::usage(format!(
            "--sort must be flat or cum, not '{text}'"
        ))),
    }
}

/// What the rows are.
pub fn parse_by(text: &str) -> Result<By, Refusal> {
    Ok(match text {
        "function" | "method" => By::Function,
        "file" => By::File,
        "dir" => By::Directory,
        "gem" => By::Gem,
        "thread" => By::Thread,
        "state" => By::State,
        _ => match text.strip_prefix("label:") {
            Some(key) if !key.is_empty() => By::Label(key.to_string()),
            _ => {
                return Err(Refusal::usage(format!(
                    "--by must be function, file, dir, gem, label:KEY, thread or state, not '{text}'"
                )));
            }
        },
    })
}

fn parse_percent(text: &str) -> Result<f64, Refusal> {
    match text.trim_end_matches('%').parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err(Refusal::usage(format!(
            "--least must be a percentage from 0 to 100, not '{text}'"
        ))),
    }
}
