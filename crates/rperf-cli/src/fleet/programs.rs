//! The programs that are there now. On threads of the command's.

use crate::Refusal;
use crate::programs::choose::Selection;
use crate::programs::users::UserArgs;
use crate::programs::words::{NO_ANSWER, STOPPED, of_too_many};
use rperf_session::process_id::ProcessId;
use rperf_watch::failure::Failure;

/// Which are meant.
pub struct Programs(Selection);

/// A program that is running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// Its process.
    pub process: ProcessId,
    /// Its user.
    pub uid: u32,
    /// What it calls itself.
    pub name: String,
}

/// The programs that are running, and those that don't answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// Programs that answer.
    pub programs: Vec<Running>,
    /// A line about each that doesn't answer.
    pub silent: Vec<String>,
    /// A line about those of other users, if nobody has asked for them.
    pub hint: Option<String>,
}

impl Programs {
    /// Programs of these users whose name matches the expression; all if there is none.
    pub fn of(expression: Option<&str>, users: &UserArgs) -> Result<Self, Refusal> {
        Selection::of(expression, users).map(Programs)
    }

    /// The programs that are running now, without this one.
    pub fn now(&self) -> Present {
        let own = std::process::id() as i32;
        let listing = self.0.listing(|pid| pid != own);
        let mut present = Present {
            hint: self.0.hint(&listing),
            ..Present::default()
        };
        for found in listing.programs {
            let name = found.name();
            let (process, uid) = (found.process, found.uid);
            let why = match found.program {
                Ok(_) => {
                    present.programs.push(Running { process, uid, name });
                    continue;
                }
                Err(Failure::Stopped) => STOPPED.into(),
                Err(Failure::TooMany(most)) => format!("its user has {}", of_too_many(most)),
                Err(_) => NO_ANSWER.into(),
            };
            present
                .silent
                .push(format!("{} ({name}): {why}", process.pid));
        }
        present
    }
}

impl Present {
    /// What is said where there is none of those that are meant.
    pub fn says_nobody(&self) -> Option<String> {
        if !self.programs.is_empty() || !self.silent.is_empty() {
            return None;
        }
        let hint = self.hint.iter().map(|hint| format!("; {hint}"));
        Some(format!(
            "no such program with a port runs{}",
            hint.collect::<String>()
        ))
    }
}
