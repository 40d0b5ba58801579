//! The views of `rperf report` that several options go with, by the options that ask for them. Used as the
//! options are checked.

/// The views that show paths of files: the formats that aren't here have those that were recorded.
pub const WITH_PATHS: &[&str] = &[
    "--web",
    "--html",
    "--top",
    "--text",
    "--methods",
    "--tree",
    "--boot",
    "--gc",
    "--callers",
    "--annotate",
    "--dot",
    "--svg",
    "--format json",
    "--format markdown",
];

/// The views with a number of rows.
pub const WITH_ROWS: &[&str] = &[
    "--top",
    "--methods",
    "--tree",
    "--boot",
    "--tests",
    "--ops",
    "--callers",
    "--annotate",
    "--format json",
    "--format markdown",
];

/// The views with shares of all.
pub const WITH_SHARES: &[&str] = &[
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
