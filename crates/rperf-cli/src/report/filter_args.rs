//! The options that choose what of a profile is looked at, as clap sees them, and the
//! filter that they make. Used by `rperf report` and `rperf diff`.

use crate::Refusal;
use rperf_report::{Filter, PatternError, TagFilter, ThreadFilter, regex};

/// Options of `rperf report` and `rperf diff`.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Only stacks with a method or path that matches
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub focus: Option<String>,
    /// No stack with a method or path that matches
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub ignore: Option<String>,
    /// Leave matching frames out of the stacks
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub hide: Option<String>,
    /// Leave the frames of ops out of the stacks: their time is that of the methods that wait
    #[arg(long)]
    pub hide_ops: bool,
    /// Leave all but matching frames out of the stacks
    #[arg(long, value_name = "REGEX", allow_hyphen_values = true)]
    pub show: Option<String>,
    /// Begin stacks at the outermost matching frame
    #[arg(
        long,
        visible_alias = "show_from",
        value_name = "REGEX",
        allow_hyphen_values = true
    )]
    pub show_from: Option<String>,
    /// Only samples with a label that matches: KEY=REGEX, KEY=LOW:HIGH or REGEX; given several
    /// times, all must
    #[arg(long, value_name = "TAG", allow_hyphen_values = true)]
    pub tagfocus: Vec<String>,
    /// No sample with a label that matches; given several times, one is enough
    #[arg(long, value_name = "TAG", allow_hyphen_values = true)]
    pub tagignore: Vec<String>,
    /// Put the values of labels above the stacks: KEY or KEY,KEY
    #[arg(long, value_name = "KEYS", allow_hyphen_values = true)]
    pub tagroot: Option<String>,
    /// Put the values of labels below the stacks
    #[arg(long, value_name = "KEYS", allow_hyphen_values = true)]
    pub tagleaf: Option<String>,
    /// Only threads with this number, or a name that matches
    #[arg(long, value_name = "N|REGEX", allow_hyphen_values = true)]
    pub thread: Option<String>,
    /// Only the process with this number
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub pid: Option<String>,
    /// Also the time of idle threads, which wait for work
    #[arg(long)]
    pub idle: bool,
}

impl FilterArgs {
    /// The filter that the options make. What is made for programs `keeps_idle` time anyway.
    pub fn filter(&self, keeps_idle: bool) -> Result<Filter, Refusal> {
        Ok(Filter {
            focus: parse("--focus", &self.focus, regex)?,
            ignore: parse("--ignore", &self.ignore, regex)?,
            hide: parse("--hide", &self.hide, regex)?,
            hides_ops: self.hide_ops,
            show: parse("--show", &self.show, regex)?,
            show_from: parse("--show-from", &self.show_from, regex)?,
            tag_focus: tags("--tagfocus", &self.tagfocus)?,
            tag_ignore: tags("--tagignore", &self.tagignore)?,
            tag_root: keys(&self.tagroot),
            tag_leaf: keys(&self.tagleaf),
            thread: parse("--thread", &self.thread, ThreadFilter::new)?,
            pid: self.pid.as_deref().map(pid).transpose()?,
            hides_idle: !self.idle && !keeps_idle,
        })
    }
}

/// The filters that these options are.
pub fn tags(name: &str, texts: &[String]) -> Result<Vec<TagFilter>, Refusal> {
    let parsed = texts.iter().map(|text| TagFilter::new(text));
    let parsed: Result<_, PatternError> = parsed.collect();
    parsed.map_err(|error| Refusal::usage(format!("{name}: {error}")))
}

fn parse<T>(
    name: &str,
    text: &Option<String>,
    parse: impl Fn(&str) -> Result<T, PatternError>,
) -> Result<Option<T>, Refusal> {
    let parsed = text.as_deref().map(parse).transpose();
    parsed.map_err(|error| Refusal::usage(format!("{name}: {error}")))
}

fn keys(text: &Option<String>) -> Vec<String> {
    let keys = text.as_deref().unwrap_or_default().split(',');
    keys.filter(|key| !key.is_empty())
        .map(String::from)
        .collect()
}

fn pid(text: &str) -> Result<u32, Refusal> {
    text.parse().map_err(|_| {
        Refusal::usage(format!(
            "--pid must be the number of a process, not '{text}'"
        ))
    })
}
