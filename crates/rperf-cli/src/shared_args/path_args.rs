//! The options for the form in which paths are shown. Used by all commands that show methods.

use rperf_model::PathView;

/// The form of paths.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args)]
pub struct PathArgs {
    /// Take this directory off the paths of files below it; several are separated by colons
    #[arg(
        long,
        visible_alias = "trim_path",
        value_name = "PREFIX",
        value_delimiter = ':',
        allow_hyphen_values = true
    )]
    pub trim_path: Vec<String>,
    /// Show the paths of files as they were recorded
    #[arg(long)]
    pub full_path: bool,
}

impl PathArgs {
    /// The form of paths, as profiles have it.
    pub fn view(&self) -> PathView {
        let trim = self.trim_path.iter().filter(|it| !it.is_empty());
        PathView {
            trim: trim.cloned().collect(),
            is_full: self.full_path,
        }
    }
}
