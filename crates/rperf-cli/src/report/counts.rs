//! `rperf report --counts`: the calls of a traced run beside the times of a sampled one. Used by
//! `report` and its table, on the main thread.

use super::load;
use crate::Refusal;
use rperf_model::Profile;
use rperf_report::numbers::grouped;
use rperf_report::one_line::one_line;
use rperf_report::{By, Filter, JoinedCalls, call_count};
use std::path::{Path, PathBuf};

/// The calls of a trace, by the rows of the profile that is shown.
#[derive(Debug)]
pub struct Counts {
    /// The calls, and how well the two profiles fit together.
    pub joined: JoinedCalls,
    path: PathBuf,
    all: i64,
}

impl Counts {
    /// Reads the trace at `path`, of which `filter` leaves the same as of `profile`, for rows of a
    /// kind.
    pub fn of(path: &Path, profile: &Profile, by: &By, filter: &Filter) -> Result<Self, Refusal> {
        let refuse = |message: String| Err(Refusal::usage(message));
        if matches!(by, By::Label(_) | By::Op | By::Thread | By::State) {
            let message = "--counts goes with --by method, class, file, dir or gem";
            return refuse(message.into());
        }
        if profile.schema.calls().is_some() {
            let message = "--counts is for a sampled profile, and this one has calls of its own: \
                           give the trace to --counts, and the profile of 'rperf record' as FILE";
            return refuse(message.into());
        }
        let mut trace = load::profile(path)?;
        trace.path_view = profile.path_view.clone();
        if trace.schema.calls().is_none() {
            let path = path.display();
            return refuse(format!(
                "--counts: {path} has no calls: 'rperf trace' counts them"
            ));
        }
        let trace = filter.apply(trace).profile;
        let joined = JoinedCalls::of(&trace, profile, by);
        let Some(joined) = joined else {
            return refuse("--counts: the trace has no calls".into());
        };
        Ok(Self {
            joined,
            path: path.to_path_buf(),
            all: call_count(&trace).unwrap_or(0),
        })
    }

    /// Lines for the head of the table.
    pub fn head(&self, noun: &str, whole: i64) -> String {
        let path = self.path.display().to_string();
        let mut head = format!(
            "Calls: {} in {}; what a call takes is right if both runs did the same work\n",
            grouped(self.all),
            one_line(&path)
        );
        for line in self.joined.lines(noun, whole) {
            head += &line;
            head.push('\n');
        }
        head
    }
}
