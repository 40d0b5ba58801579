//! The options that `rperf report` and `rperf diff` share, and what belongs to which view.

use crate::Refusal;
use crate::shared_args::checked::writable;
use crate::shared_args::path_args::PathArgs;
use crate::shared_args::viewer_args::ViewerArgs;
use rperf_model::OwnColumn;
use rperf_report::Sort;
use std::ffi::OsString;
use std::path::PathBuf;

/// The file of the web viewer unless asked for otherwise.
pub const HTML_FILE: &str = "rperf.html";

/// Options of `rperf report` and `rperf diff`.
#[derive(Debug, Default, PartialEq, clap::Args)]
#[command(mut_arg("web", |it| it.help("Open the web viewer (the default on a terminal)")))]
pub struct ViewArgs {
    /// The web viewer.
    #[command(flatten)]
    pub viewer: ViewerArgs,
    /// File to write instead of stdout, which '-' is
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Print the rows with the most (the default if stdout isn't a terminal)
    #[arg(long)]
    pub top: bool,
    /// Print the text report: totals, then methods by their own and by their total values
    #[arg(long)]
    pub text: bool,
    /// The values to show, by name or number, where a profile has several
    #[arg(
        long,
        visible_alias = "sample-index",
        value_name = "TYPE",
        allow_hyphen_values = true
    )]
    pub value: Option<String>,
    /// Show who had the GVL while others waited for it, as --value gvl_blame
    #[arg(long, conflicts_with = "value")]
    pub blame: bool,
    /// Rows to show; 0: all [default: 50 in --top and json, 15 in markdown, else all]
    #[arg(short = 'n', long, value_name = "N", allow_hyphen_values = true)]
    pub limit: Option<String>,
    /// self: by what is spent in a method itself; total: with what it calls
    #[arg(long, value_name = "self|total", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// The form of paths.
    #[command(flatten)]
    pub paths: PathArgs,
    /// Print long pages as they are
    #[arg(long)]
    pub no_pager: bool,
}

impl ViewArgs {
    /// The file to write, if one can be written there; stdout for `-`.
    pub fn output(&self) -> Result<Option<PathBuf>, Refusal> {
        match &self.output {
            Some(path) if path == "-" => Ok(Some("/dev/stdout".into())),
            output => output.as_ref().map(writable).transpose(),
        }
    }

    /// The values to show, if any are chosen.
    pub fn value(&self) -> Option<String> {
        let blame = self.blame.then(|| OwnColumn::GvlBlame.name().to_string());
        blame.or_else(|| self.value.clone())
    }

    /// How many rows are shown; `None`: all.
    pub fn limit(&self, default: Option<usize>) -> Result<Option<usize>, Refusal> {
        let Some(text) = self.limit.as_deref() else {
            return Ok(default);
        };
        match text.parse() {
            Ok(0) => Ok(None),
            Ok(limit) => Ok(Some(limit)),
            Err(_) => Err(Refusal::usage(format!(
                "-n must be a number of rows, 0 for all, not '{text}'"
            ))),
        }
    }

    /// What rows are ranked, or compared, by.
    pub fn sort(&self) -> Result<Sort, Refusal> {
        match self.sort.as_deref() {
            None | Some("self" | "flat") => Ok(Sort::SelfValue),
            Some("total" | "cum") => Ok(Sort::TotalValue),
            Some(text) => Err(Refusal::usage(format!(
                "--sort must be self or total, not '{text}'"
            ))),
        }
    }
}

/// The one view that is asked for, if any is. `views` are options, each with whether it was
/// given.
pub fn only_one(views: &[(&'static str, bool)]) -> Result<Option<&'static str>, Refusal> {
    let mut asked = views.iter().filter(|(_, is_asked)| *is_asked);
    match (asked.next(), asked.next()) {
        (Some((first, _)), Some((second, _))) => Err(Refusal::usage(format!(
            "{first} and {second} can't be combined: give one of them"
        ))),
        (first, _) => Ok(first.map(|(name, _)| *name)),
    }
}

/// An option, whether it was given, and the views in which it has a meaning: `--format` is all
/// formats, `--format json` one of them.
pub type Belongs = (&'static str, bool, &'static [&'static str]);

/// Refuses the first option that was given and has no meaning in any of the `shown` views. `is_default`:
/// nobody has asked for the view by name. `format`: the option of the format that they are written in, which
/// helps nobody who has given it.
pub fn refuse_strangers(
    shown: &[&str],
    format: Option<&str>,
    is_default: bool,
    options: &[Belongs],
) -> Result<(), Refusal> {
    let mut given = options.iter().filter(|(_, is_given, _)| *is_given);
    let is_shown = |other: &&str| shown.iter().any(|view| is_in(view, other));
    let Some((option, _, views)) = given.find(|(.., views)| !views.iter().any(is_shown)) else {
        return Ok(());
    };
    let views: Vec<&str> = views
        .iter()
        .copied()
        .filter(|view| Some(*view) != format)
        .collect();
    let views = match &views[..] {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        views => views.concat(),
    };
    Err(Refusal::usage(match is_default {
        true => format!("{option} goes with {views}"),
        false => format!(
            "{option} goes with {views}, not with {}",
            shown.join(" and ")
        ),
    }))
}

fn is_in(view: &str, other: &str) -> bool {
    let rest = view.strip_prefix(other);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_view_can_be_asked_for() {
        assert_eq!(only_one(&[("--a", false)]).expect("none"), None);
        let one = only_one(&[("--a", false), ("--b", true)]);
        assert_eq!(one.expect("one"), Some("--b"));
        let two = only_one(&[("--a", true), ("--b", false), ("--c", true)]);
        assert_eq!(
            two.expect_err("two").message,
            "--a and --c can't be combined: give one of them"
        );
    }

    #[test]
    fn options_belong_to_views() {
        let options: [Belongs; 4] = [
            ("-w", true, &["--a", "--b", "--d", "--f"]),
            ("-x", false, &["--a"]),
            ("-y", true, &["--a", "--b", "--f"]),
            ("-z", true, &["--b", "--f two"]),
        ];
        let message_of = |views: &[&str], is_default| {
            let refusal = refuse_strangers(views, None, is_default, &options);
            refusal.err().map(|it| (it.message, it.status))
        };
        let message = |view, is_default| message_of(&[view], is_default);
        assert_eq!(message("--b", false), None);
        assert_eq!(message("--f two", false), None);
        assert!(message("--f one", false).is_some());
        let refusal = message("--a", false).expect("-z is of no use there");
        assert_eq!(
            refusal,
            ("-z goes with --b or --f two, not with --a".into(), 2)
        );
        assert_eq!(message_of(&["--a", "--b"], false), None);
        let refusal = message_of(&["--a", "--d"], false).expect("-y or -z");
        assert_eq!(
            refusal.0,
            "-z goes with --b or --f two, not with --a and --d"
        );
        let refusal = message("--d", true).expect("-y is of no use there");
        assert_eq!(refusal, ("-y goes with --a, --b or --f".into(), 2));
        let refusal = refuse_strangers(&["--a"], Some("--f two"), false, &options);
        assert_eq!(
            refusal.expect_err("-z is of no use there").message,
            "-z goes with --b, not with --a",
            "the format is given already"
        );
    }
}
