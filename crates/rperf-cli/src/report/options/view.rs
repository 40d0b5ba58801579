//! What `rperf report` shows: one of its views. Chosen as the options are checked.

use crate::report::pages::TreeOptions;
use rperf_format::{Format, GraphOptions, Parts};
use std::path::PathBuf;

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
    /// All that is known of each method.
    Methods,
    /// The call tree.
    Tree(TreeOptions),
    /// The loading of files.
    Boot,
    /// The tests of a suite.
    Tests,
    /// The ops.
    Ops,
    /// The collections.
    Gc,
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
        /// With these beside.
        parts: Parts,
    },
    /// The report in Markdown.
    Markdown {
        /// About these, if there are any, and else about the stacks.
        parts: Parts,
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
    /// The call graph in DOT.
    Dot {
        /// Which one.
        graph: GraphOptions,
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
    /// The call graph as a picture.
    Svg {
        /// Which one.
        graph: GraphOptions,
        /// The file to write.
        output: PathBuf,
    },
    /// The profile in a format.
    Format {
        /// Which one.
        format: Format,
        /// The file to write; `None`: stdout.
        output: Option<PathBuf>,
    },
}

impl View {
    /// What is asked of the profile beside its stacks.
    pub fn parts(&self) -> Parts {
        let none = Parts::default();
        match self {
            View::Boot => Parts { boot: true, ..none },
            View::Tests => Parts {
                tests: true,
                ..none
            },
            View::Ops => Parts { ops: true, ..none },
            View::Gc => Parts { gc: true, ..none },
            View::Json { parts, .. } | View::Markdown { parts, .. } => *parts,
            _ => none,
        }
    }

    /// Whether it has all time, with that of idle threads: it is for programs, or can hide that
    /// itself.
    pub fn is_complete(&self) -> bool {
        match self {
            View::Web { .. } | View::Html(_) | View::Json { .. } => true,
            View::Format { format, .. } => *format != Format::Text,
            _ => false,
        }
    }

    /// The options that ask for what it shows: Markdown can be about several things that have views of their own.
    pub fn options(&self) -> Vec<&'static str> {
        match self {
            View::Markdown { parts, .. } if parts.any() => options_of(*parts),
            _ => vec![self.option()],
        }
    }

    /// The option that asks for it, or for its format.
    pub fn option(&self) -> &'static str {
        match self {
            View::Web { .. } => "--web",
            View::Html(_) => "--html",
            View::Top => "--top",
            View::Methods => "--methods",
            View::Tree(_) => "--tree",
            View::Boot => "--boot",
            View::Tests => "--tests",
            View::Ops => "--ops",
            View::Gc => "--gc",
            View::Callers(_) => "--callers",
            View::Annotate(_) => "--annotate",
            View::Json { .. } => "--format json",
            View::Markdown { .. } => "--format markdown",
            View::Dot { .. } => "--dot",
            View::Svg { .. } => "--svg",
            View::Format { format, .. } => match format {
                Format::Text => "--text",
                Format::Collapsed => "--format collapsed",
                Format::Callgrind => "--format callgrind",
                Format::Spans => "--format spans",
                _ => "--format pprof",
            },
        }
    }
}

/// The options that ask for these.
pub fn options_of(parts: Parts) -> Vec<&'static str> {
    let all = [
        ("--boot", parts.boot),
        ("--tests", parts.tests),
        ("--ops", parts.ops),
        ("--gc", parts.gc),
    ];
    let asked = all.into_iter().filter(|(_, is_asked)| *is_asked);
    asked.map(|(option, _)| option).collect()
}
