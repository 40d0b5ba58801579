//! The options for the web viewer. Used by all commands that open it.

/// Whether the web viewer is opened, or written to a file.
#[derive(Debug, Default, Clone, PartialEq, Eq, clap::Args)]
pub struct ViewerArgs {
    /// Open the web viewer
    #[arg(long)]
    pub web: bool,
    /// With --web: only print the viewer's address
    #[arg(long)]
    pub no_browser: bool,
    /// Write the web viewer with the profile in it as one file [default: rperf.html]
    #[arg(long)]
    pub html: bool,
}
