//! The views of `rperf report` that each option goes with, by the options that ask for them. Used as the
//! options are checked.

use super::args::ReportArgs;
use crate::report::view_args::Belongs;

/// The views that show paths of files: the formats that aren't here have those that were recorded.
const WITH_PATHS: &[&str] = &[
    "--web",
    "--html",
    "--top",
    "--text",
    "--methods",
    "--tree",
    "--boot",
    "--ops",
    "--gc",
    "--callers",
    "--annotate",
    "--dot",
    "--svg",
    "--format json",
    "--format markdown",
];

/// The views with a number of rows.
const WITH_ROWS: &[&str] = &[
    "--top",
    "--methods",
    "--tree",
    "--boot",
    "--tests",
    "--ops",
    "--gc",
    "--callers",
    "--annotate",
    "--format json",
    "--format markdown",
];

/// The views with shares of all.
const WITH_SHARES: &[&str] = &[
    "--top",
    "--methods",
    "--tree",
    "--boot",
    "--callers",
    "--annotate",
    "--text",
    "--format markdown",
    "--dot",
    "--svg",
];

/// The views with an order of rows.
const WITH_ORDER: &[&str] = &[
    "--top",
    "--methods",
    "--boot",
    "--tests",
    "--ops",
    "--format json",
];

/// The views of the values that are chosen, and of samples, which idle threads have: ops, collections and time lines
/// have sums and times of their own.
const WITH_VALUES: &[&str] = &[
    "--web",
    "--html",
    "--top",
    "--text",
    "--methods",
    "--tree",
    "--boot",
    "--tests",
    "--callers",
    "--annotate",
    "--dot",
    "--svg",
    "--format json",
    "--format markdown",
    "--format pprof",
    "--format collapsed",
    "--format callgrind",
];

/// The views that can be a file. Which ones can be which file is checked before.
const IN_FILES: &[&str] = &[
    "--html",
    "--top",
    "--text",
    "--methods",
    "--tree",
    "--annotate",
    "--format",
    "--dot",
    "--svg",
    "--boot",
    "--tests",
    "--ops",
    "--gc",
    "--callers",
];

/// The views that each option belongs to. Filters are checked with the profile, and --no-pager is right everywhere.
pub fn belongings(args: &ReportArgs) -> [Belongs; 20] {
    let rows = args.view.limit.is_some();
    let [count, node_fraction, edge_fraction, clusters] = args.graph.belongings();
    [
        ("-o", args.view.output.is_some(), IN_FILES),
        ("--no-browser", args.view.viewer.no_browser, &["--web"]),
        ("--counts", args.counts.is_some(), &["--top"]),
        ("--source", args.source, &["--html", "--web"]),
        (
            "--by",
            args.by.is_some(),
            &["--top", "--methods", "--dot", "--svg"],
        ),
        ("--sort", args.view.sort.is_some(), WITH_ORDER),
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
        ("--value", args.view.value.is_some(), WITH_VALUES),
        ("--blame", args.view.blame, WITH_VALUES),
        ("--idle", args.filter.idle, WITH_VALUES),
        count,
        node_fraction,
        edge_fraction,
        clusters,
    ]
}
