//! The options of `rperf report`: as clap sees them, and checked.

mod args;
mod view;
mod views;

pub use args::ReportArgs;
pub use view::View;
use view::options_of;

use super::graph_args::{SVG_FILE, node_kind};
use super::pages::TreeOptions;
use super::view_args::{HTML_FILE, ViewArgs, only_one, refuse_strangers};
use crate::Refusal;
use crate::shared_args::checked::{self, parse_format};
use rperf_format::answers::{LEAST_PERCENT, ROWS};
use rperf_format::markdown::METHODS;
use rperf_format::{Format, GraphOptions};
use rperf_model::PathView;
use rperf_report::{By, Direction, Filter, Sort, TreeLimits};
use rperf_session::settings::DEFAULT_FILE;
use std::path::{Path, PathBuf};
use views::belongings;

/// Checked options.
#[derive(Debug)]
pub struct Options {
    /// The profiles; never empty.
    pub files: Vec<PathBuf>,
    /// What is shown.
    pub view: View,
    /// The file for the page of a view that has no file of its own; `None`: stdout.
    pub page: Option<PathBuf>,
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
            | View::Gc
            | View::Json { .. } => Some(ROWS),
            View::Markdown { .. } => Some(METHODS),
            View::Tree(_) => Some(TreeLimits::default().branches),
            _ => None,
        };
        let keeps_idle = view.is_complete();
        let page = match view {
            View::Top
            | View::Methods
            | View::Tree(_)
            | View::Boot
            | View::Tests
            | View::Ops
            | View::Gc
            | View::Callers(_)
            | View::Annotate(_) => args.view.output()?,
            _ => None,
        };
        let files: Vec<PathBuf> = args.files.iter().map(PathBuf::from).collect();
        Ok(Self {
            files: match files.is_empty() {
                true => vec![DEFAULT_FILE.into()],
                false => files,
            },
            view,
            page,
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
    // JSON can have callers and callees, and with Markdown the loading of files, tests, ops, and collections.
    // Text has one of them.
    let format = format_of(args);
    let is_json = format == Some(Format::Json);
    let has_parts = is_json || format == Some(Format::Markdown);
    let is_page = format == Some(Format::Text) && has_page(args);
    refuse_other_notations(args, format)?;
    if args.callers.as_deref() == Some("") {
        let message = "--callers must be the name of a method, or an expression for names, not ''";
        return Err(Refusal::usage(message));
    }
    let asked = only_one(&[
        ("--web", args.view.viewer.web),
        ("--html", args.view.viewer.html),
        ("--top", args.view.top),
        ("--text", args.view.text),
        ("--methods", args.methods),
        ("--tree", args.tree),
        ("--boot", args.boot && !has_parts),
        ("--tests", args.tests && !has_parts),
        ("--ops", args.ops && !has_parts),
        ("--gc", args.gc && !has_parts),
        ("--callers", args.callers.is_some() && !is_json),
        ("--annotate", args.annotate.is_some()),
        ("--dot", args.graph.dot),
        ("--svg", args.graph.svg),
        ("--format", args.format.is_some() && !is_page),
    ])?;
    refuse_other_files(asked, args)?;
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
    let (shown, format) = (view.options(), view.option());
    refuse_strangers(&shown, Some(format), asked.is_none(), &belongings(args))?;
    Ok(view)
}

/// The format that is asked for by name or, where no other view is, by the file's extension.
fn format_of(args: &ReportArgs) -> Option<Format> {
    if let Some(name) = &args.format {
        return Format::from_name(name);
    }
    let path = args
        .view
        .output
        .as_ref()
        .filter(|_| !has_own_notation(args));
    path.map(|path| match path == "-" && has_page(args) {
        true => Format::Text,
        false => Format::of_report(Path::new(path)),
    })
}

/// Whether callers, or what isn't about stacks, are asked for: as text each of them is a page.
fn has_page(args: &ReportArgs) -> bool {
    args.callers.is_some() || args.parts().any()
}

/// Whether a view is asked for that is written in one way only.
fn has_own_notation(args: &ReportArgs) -> bool {
    let ViewArgs {
        viewer, top, text, ..
    } = &args.view;
    let has_view = viewer.web || viewer.html || *top || *text || args.methods || args.tree;
    has_view || args.annotate.is_some() || args.graph.dot || args.graph.svg
}

/// Refuses a file or a format in which callers, or what isn't about stacks, can't be written.
fn refuse_other_notations(args: &ReportArgs, format: Option<Format>) -> Result<(), Refusal> {
    let is_written = match args.callers {
        Some(_) => matches!(format, Some(Format::Json | Format::Text)),
        None => matches!(format, Some(Format::Json | Format::Markdown | Format::Text)),
    };
    if is_written || has_own_notation(args) {
        return Ok(());
    }
    let (view, extensions, formats) = match (&args.callers, options_of(args.parts()).first()) {
        (Some(_), None) => ("--callers", ".txt and .json", "text or json"),
        (Some(_), Some(part)) => (&*format!("--callers beside {part}"), ".json", "json"),
        (None, Some(part)) => (*part, ".txt, .md and .json", "text, markdown or json"),
        (None, None) => return Ok(()),
    };
    Err(Refusal::usage(match (&args.format, &args.view.output) {
        (Some(name), _) => format!("--format {name}: {view} is written as {formats} only"),
        (None, Some(path)) => format!(
            "-o {}: {view} writes {extensions}, unless --format {formats} is given",
            Path::new(path).display()
        ),
        (None, None) => return Ok(()),
    }))
}

/// Refuses a file that is named as another format, for a page about stacks, which is text alone.
fn refuse_other_files(asked: Option<&str>, args: &ReportArgs) -> Result<(), Refusal> {
    let page = asked.filter(|view| ["--top", "--methods", "--tree", "--annotate"].contains(view));
    let path = args.view.output.as_ref().map(Path::new);
    match (page, path) {
        (Some(view), Some(path))
            if path.as_os_str() != "-" && Format::of_report(path) != Format::Text =>
        {
            let path = path.display();
            Err(Refusal::usage(format!("-o {path}: {view} writes .txt")))
        }
        _ => Ok(()),
    }
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
            parts: args.parts(),
        },
        Format::Markdown => View::Markdown {
            parts: args.parts(),
            output,
        },
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

/// The rows that `--by` names.
fn parse_by(text: &str) -> Result<By, Refusal> {
    By::named(text).ok_or_else(|| {
        Refusal::usage(format!(
            "--by must be method, class, file, dir, gem, gem:c, label:KEY, op, thread or state, not '{text}'"
        ))
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
