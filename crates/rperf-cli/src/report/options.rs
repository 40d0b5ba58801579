//! The options of `rperf report`: as clap sees them, and checked.

mod view;
mod views;

pub use view::View;

use super::filter_args::FilterArgs;
use super::graph_args::{GraphArgs, SVG_FILE, node_kind};
use super::pages::TreeOptions;
use super::view_args::{Belongs, HTML_FILE, ViewArgs, only_one, refuse_strangers};
use crate::Refusal;
use crate::shared_args::checked::{self, parse_format};
use rperf_format::answers::{LEAST_PERCENT, ROWS};
use rperf_format::markdown::METHODS;
use rperf_format::{Format, GraphOptions};
use rperf_model::PathView;
use rperf_report::{By, CoreMethods, Direction, Filter, Sort, TreeLimits};
use rperf_session::settings::DEFAULT_FILE;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use views::{WITH_PATHS, WITH_ROWS, WITH_SHARES};

/// How often `--live` takes a snapshot.
const INTERVAL: Duration = Duration::from_secs(10);

/// Options of `rperf report`.
#[derive(Debug, Default, PartialEq, clap::Args)]
pub struct ReportArgs {
    /// Profiles to look at; several are merged; - is stdin [default: rperf.data]
    #[arg(value_name = "FILE")]
    pub files: Vec<OsString>,
    /// Options that `diff` has too.
    #[command(flatten)]
    pub view: ViewArgs,
    /// Look at a running program with a port: the web viewer on snapshots of it
    #[arg(long, value_name = "PID", value_parser = crate::shared_args::checked::pid)]
    pub live: Option<i32>,
    /// With --live: seconds between two snapshots, 1 to 3600 [default: 10]
    #[arg(long, value_name = "S", value_parser = interval, requires = "live")]
    pub interval: Option<Duration>,
    /// Let the viewer's file have the source files, which are on this machine
    #[arg(long)]
    pub source: bool,
    /// Print all that is known of each method: calls, own time and that of callees, waits, objects
    #[arg(long)]
    pub methods: bool,
    /// Print the call tree
    #[arg(long)]
    pub tree: bool,
    /// Print what the loading of the program's files took: each file, gem and initializer, and which
    /// file loads which
    #[arg(long)]
    pub boot: bool,
    /// Print what the tests of a suite took: the slowest ones, their files, factories and gems
    #[arg(long)]
    pub tests: bool,
    /// Print what ops took (queries, requests to other servers and the like), and those that a request
    /// calls again and again
    #[arg(long)]
    pub ops: bool,
    /// Print why collections of garbage ran, and what they took: the time and the pauses of each cause
    #[arg(long)]
    pub gc: bool,
    /// Print the callers and callees of the methods with this name, with the calling lines
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub callers: Option<String>,
    /// Print the source of a file or method with what each line costs
    #[arg(long, value_name = "FILE|METHOD", allow_hyphen_values = true)]
    pub annotate: Option<String>,
    /// Convert to pprof, collapsed, text, markdown, json, html, dot, callgrind or
    /// spans [default with -o: by the file's extension]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<String>,
    /// Rows of --top and --methods, and nodes of call graphs: method, class, file, dir, gem, gem:c
    /// (C methods apart), thread; of tables also label:KEY, op, state
    #[arg(long, value_name = "WHAT", allow_hyphen_values = true)]
    pub by: Option<String>,
    /// With --top: also the calls of each method, from this profile of rperf trace
    #[arg(long, value_name = "TRACE")]
    pub counts: Option<OsString>,
    /// Begin the tree with the methods that have time of their own, callers below
    #[arg(long)]
    pub bottom_up: bool,
    /// Leave branches of the tree out that have less of all, in percent [default: 0.5]
    #[arg(long, value_name = "PERCENT", allow_hyphen_values = true)]
    pub least: Option<String>,
    /// Add a table of the hottest lines to the text report
    #[arg(long)]
    pub lines: bool,
    /// Give shares of what the filters leave, and not of all
    #[arg(long, visible_alias = "relative-percentages")]
    pub relative: bool,
    /// The call graph.
    #[command(flatten)]
    pub graph: GraphArgs,
    /// What of the profile is looked at.
    #[command(flatten)]
    pub filter: FilterArgs,
}

impl ReportArgs {
    /// How often the viewer of a running program takes snapshots, and whether it opens a browser.
    /// Nothing else may be asked of it.
    pub fn for_live(mut self) -> Result<(Duration, bool), Refusal> {
        let interval = self.interval.take().unwrap_or(INTERVAL);
        let no_browser = self.view.viewer.no_browser;
        (self.live, self.view.viewer.no_browser, self.view.viewer.web) = (None, false, false);
        match self == Self::default() {
            true => Ok((interval, !no_browser)),
            false => {
                let message = "--live takes --interval and --no-browser only";
                Err(Refusal::usage(message))
            }
        }
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|it| (1.0..=3600.0).contains(it));
    let seconds = seconds.ok_or("1 to 3600 seconds are possible");
    seconds.map(Duration::from_secs_f64).map_err(String::from)
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
    /// The form of paths.
    pub path_view: PathView,
    /// Rows to show.
    pub limit: Option<usize>,
    /// What rows are ranked by.
    pub sort: Sort,
    /// What the rows are.
    pub by: By,
    /// A trace whose counts are shown beside.
    pub counts: Option<PathBuf>,
    /// Whether the text report has a table of lines.
    pub lines: bool,
    /// Whether long pages go through a pager.
    pub pager: bool,
    /// Whether the viewer has the text of source files.
    pub source: bool,
    /// Whether shares are of what the filters leave.
    pub relative: bool,
    /// Whether the viewer shows the time of idle threads as all other.
    pub shows_idle: bool,
    /// What of the profile is looked at.
    pub filter: Filter,
}

impl Options {
    /// Checks the options. `on_terminal`: stdout is one.
    pub fn new(args: ReportArgs, on_terminal: bool) -> Result<Self, Refusal> {
        let view = view(&args, on_terminal)?;
        let rows = match view {
            View::Top
            | View::Methods
            | View::Boot
            | View::Tests
            | View::Ops
            | View::Json { .. } => Some(ROWS),
            View::Markdown { .. } => Some(METHODS),
            View::Tree(_) => Some(TreeLimits::default().branches),
            _ => None,
        };
        let keeps_idle = view.is_complete();
        let files: Vec<PathBuf> = args.files.iter().map(PathBuf::from).collect();
        Ok(Self {
            files: match files.is_empty() {
                true => vec![DEFAULT_FILE.into()],
                false => files,
            },
            view,
            limit: args.view.limit(rows)?,
            sort: args.view.sort()?,
            path_view: args.view.paths.view(),
            value: args.view.value(),
            by: args.by.as_deref().map_or(Ok(By::Function), parse_by)?,
            counts: args.counts.map(PathBuf::from),
            lines: args.lines,
            pager: !args.view.no_pager,
            source: args.source,
            relative: args.relative,
            shows_idle: args.filter.idle,
            filter: args.filter.filter(keeps_idle)?,
        })
    }
}

/// The one view that the options ask for, which gives all of them a meaning.
fn view(args: &ReportArgs, on_terminal: bool) -> Result<View, Refusal> {
    // JSON can have callers and callees, the loading of files, tests, ops, and collections.
    let is_json = args.format.as_deref() == Some(Format::Json.name());
    let asked = only_one(&[
        ("--web", args.view.viewer.web),
        ("--html", args.view.viewer.html),
        ("--top", args.view.top),
        ("--text", args.view.text),
        ("--methods", args.methods),
        ("--tree", args.tree),
        ("--boot", args.boot && !is_json),
        ("--tests", args.tests && !is_json),
        ("--ops", args.ops && !is_json),
        ("--gc", args.gc && !is_json),
        ("--callers", args.callers.is_some() && !is_json),
        ("--annotate", args.annotate.is_some()),
        ("--dot", args.graph.dot),
        ("--svg", args.graph.svg),
        ("--format", args.format.is_some()),
    ])?;
    let view = match asked {
        Some("--web") => web(args),
        Some("--html") => html(args)?,
        Some("--text") => in_format(args, Format::Text)?,
        Some("--methods") => View::Methods,
        Some("--tree") => View::Tree(tree_options(args)?),
        Some("--boot") => View::Boot,
        Some("--tests") => View::Tests,
        Some("--ops") => View::Ops,
        Some("--gc") => View::Gc,
        Some("--callers") => View::Callers(args.callers.clone().unwrap_or_default()),
        Some("--annotate") => View::Annotate(args.annotate.clone().unwrap_or_default()),
        Some("--dot") => in_format(args, Format::Dot)?,
        Some("--svg") => svg(args)?,
        Some("--format") => {
            let name = args.format.as_deref().unwrap_or_default();
            in_format(args, parse_format(name)?)?
        }
        Some(_) => View::Top,
        None => by_extension(args)?.unwrap_or_else(|| default(args, on_terminal)),
    };
    refuse_strangers(view.option(), asked.is_none(), &belongings(args))?;
    Ok(view)
}

/// The views that each option belongs to. Filters, --value and --no-pager are right everywhere.
fn belongings(args: &ReportArgs) -> [Belongs; 17] {
    let rows = args.view.limit.is_some();
    let [count, node_fraction, edge_fraction, clusters] = args.graph.belongings();
    [
        (
            "-o",
            args.view.output.is_some(),
            &["--html", "--text", "--format", "--dot", "--svg"],
        ),
        ("--no-browser", args.view.viewer.no_browser, &["--web"]),
        ("--counts", args.counts.is_some(), &["--top"]),
        ("--source", args.source, &["--html", "--web"]),
        (
            "--by",
            args.by.is_some(),
            &["--top", "--methods", "--dot", "--svg"],
        ),
        (
            "--sort",
            args.view.sort.is_some(),
            &[
                "--top",
                "--methods",
                "--boot",
                "--tests",
                "--ops",
                "--format json",
            ],
        ),
        ("-n", rows, WITH_ROWS),
        (
            "--trim-path",
            !args.view.paths.trim_path.is_empty(),
            WITH_PATHS,
        ),
        ("--full-path", args.view.paths.full_path, WITH_PATHS),
        ("--bottom-up", args.bottom_up, &["--tree"]),
        ("--least", args.least.is_some(), &["--tree"]),
        ("--lines", args.lines, &["--text"]),
        ("--relative", args.relative, WITH_SHARES),
        count,
        node_fraction,
        edge_fraction,
        clusters,
    ]
}

/// The view where none is asked for by name.
fn default(args: &ReportArgs, on_terminal: bool) -> View {
    // Options of a table ask for one.
    let for_table = args.by.is_some()
        || args.view.sort.is_some()
        || args.view.limit.is_some()
        || args.counts.is_some();
    match on_terminal && !for_table || args.view.viewer.no_browser {
        true => web(args),
        false => View::Top,
    }
}

fn web(args: &ReportArgs) -> View {
    View::Web {
        opens_browser: !args.view.viewer.no_browser,
    }
}

fn html(args: &ReportArgs) -> Result<View, Refusal> {
    let output = args.view.output()?;
    Ok(View::Html(output.unwrap_or_else(|| HTML_FILE.into())))
}

fn svg(args: &ReportArgs) -> Result<View, Refusal> {
    let output = args.view.output()?;
    Ok(View::Svg {
        graph: graph(args)?,
        output: output.unwrap_or_else(|| SVG_FILE.into()),
    })
}

fn graph(args: &ReportArgs) -> Result<GraphOptions, Refusal> {
    let by = args.by.as_deref().map_or(Ok(By::Function), parse_by)?;
    args.graph.options(node_kind(&by)?)
}

fn in_format(args: &ReportArgs, format: Format) -> Result<View, Refusal> {
    let output = args.view.output()?;
    Ok(match format {
        Format::Dot => View::Dot {
            graph: graph(args)?,
            output,
        },
        Format::Html => html(args)?,
        Format::Json => View::Json {
            output,
            callers: args.callers.clone(),
            boot: args.boot,
            tests: args.tests,
            ops: args.ops,
            gc: args.gc,
        },
        Format::Markdown => View::Markdown { output },
        format => View::Format { format, output },
    })
}

/// The view that is written to a file with this extension, if one is to be written.
fn by_extension(args: &ReportArgs) -> Result<Option<View>, Refusal> {
    let Some(path) = args.view.output.as_ref().map(Path::new) else {
        return Ok(None);
    };
    match checked::kind_of_file(path)?.as_str() {
        "svg" => svg(args).map(Some),
        _ => in_format(args, Format::of_report(path)).map(Some),
    }
}

fn tree_options(args: &ReportArgs) -> Result<TreeOptions, Refusal> {
    let least = args.least.as_deref();
    Ok(TreeOptions {
        direction: match args.bottom_up {
            true => Direction::BottomUp,
            false => Direction::TopDown,
        },
        least_percent: least.map_or(Ok(LEAST_PERCENT), parse_percent)?,
    })
}

/// What the rows are.
fn parse_by(text: &str) -> Result<By, Refusal> {
    Ok(match text {
        "function" | "method" => By::Function,
        "class" => By::Class,
        "file" => By::File,
        "dir" => By::Directory,
        "gem" => By::Gem(CoreMethods::Caller),
        "gem:c" => By::Gem(CoreMethods::Apart),
        "op" => By::Op,
        "thread" => By::Thread,
        "state" => By::State,
        _ => match text.strip_prefix("label:") {
            Some(key) if !key.is_empty() => By::Label(key.to_string()),
            _ => {
                return Err(Refusal::usage(format!(
                    "--by must be method, class, file, dir, gem, gem:c, label:KEY, op, thread or state, not '{text}'"
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
