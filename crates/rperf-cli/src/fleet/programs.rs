//! The programs that are there now. On threads of the command's.

use crate::Refusal;
use crate::live::choose::Pattern;
use crate::live::words::{NO_ANSWER, STOPPED};
use rperf_watch::failure::Failure;
use rperf_watch::programs::all;

/// Which are meant.
pub struct Programs {
    pattern: Option<Pattern>,
}

/// The programs that are running, and those that don't answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// Their processes, and what they call themselves.
    pub programs: Vec<(i32, String)>,
    /// A line about each that doesn't answer.
    pub silent: Vec<String>,
}

impl Programs {
    /// Programs whose name matches the expression; all if there is none.
    pub fn matching(expression: Option<&str>) -> Result<Self, Refusal> {
        let pattern = expression.map(Pattern::new).transpose()?;
        Ok(Programs { pattern })
    }

    /// The programs that are running now, without this one.
    pub fn now(&self) -> Present {
        let own = std::process::id() as i32;
        let mut present = Present::default();
        for found in all(|pid| pid != own) {
            let (pid, name) = (found.pid, found.name());
            if !self.are_matched_by(&name) {
                continue;
            }
            let why = match found.program {
                Ok(_) => {
                    present.programs.push((pid, name));
                    continue;
                }
                Err(Failure::Stopped) => STOPPED,
                Err(_) => NO_ANSWER,
            };
            present.silent.push(format!("{pid} ({name}): {why}"));
        }
        present
    }

    fn are_matched_by(&self, program: &str) -> bool {
        let pattern = self.pattern.as_ref();
        pattern.is_none_or(|pattern| pattern.matches(program))
    }
}
