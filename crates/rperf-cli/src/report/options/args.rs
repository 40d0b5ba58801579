//! The options of `rperf report` as clap sees them. Used as they are checked.

use crate::Refusal;
use crate::report::filter_args::FilterArgs;
use crate::report::graph_args::GraphArgs;
use crate::report::view_args::ViewArgs;
use rperf_format::Parts;
use std::ffi::OsString;
use std::time::Duration;

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
    /// Print what the tests of a suite took: the slowest ones, their files, factories, gems and ops
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
    /// spans [default with -o: by the file's extension]; text, markdown and json also of --boot, --tests, --ops and
    /// --gc, text and json of --callers
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
    /// What is asked for beside the stacks.
    pub fn parts(&self) -> Parts {
        Parts {
            boot: self.boot,
            tests: self.tests,
            ops: self.ops,
            gc: self.gc,
        }
    }

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
