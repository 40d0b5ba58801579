//! What the command says where it can't go on, and the exit statuses for that. Used by all
//! parts of the command, on its threads.

use rperf_push::InvalidDestination;
use rperf_report::one_line::one_line;
use rperf_session::output::without_write_signals;
use rperf_session::settings::InvalidSetting;
use std::borrow::Cow;
use std::io::Write;

/// Exit status for arguments that make no sense, as clap's own.
pub const USAGE: i32 = 2;
/// Exit status where a command was found and can't be run; shells use the same.
pub const NOT_EXECUTABLE: i32 = 126;
/// Exit status where no command was found; shells use the same.
pub const NOT_FOUND: i32 = 127;
/// Exit status if there is more of something than the user allows: in `rperf diff`, or of memory.
pub const EXCEEDED: i32 = 3;
/// Exit status for whatever else goes wrong on our side.
pub const FAILURE: i32 = 1;

/// Why a command can't be run: one line, and the exit status that goes with it.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// What is said.
    pub message: String,
    /// What the command ends with.
    pub status: i32,
}

impl Refusal {
    /// The refusal of arguments that make no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Refusal {
            message: message.into(),
            status: USAGE,
        }
    }
}

impl From<InvalidDestination> for Refusal {
    fn from(invalid: InvalidDestination) -> Self {
        Refusal::usage(invalid.to_string())
    }
}

impl From<InvalidSetting> for Refusal {
    fn from(invalid: InvalidSetting) -> Self {
        Refusal::usage(invalid.to_string())
    }
}

/// Tells the user a message as one line, whatever names from files are in it.
pub fn say(message: &str) {
    let message = without_numbers(message);
    tell(&format!("rperf: {}\n", one_line(&message)));
}

/// Writes a text to stderr. That it is closed, or a file that may not get larger, is no reason to fail.
pub fn tell(text: &str) {
    let _ = without_write_signals(|| std::io::stderr().write_all(text.as_bytes()));
}

/// The message without the numbers that Rust writes behind the system's own words for an error: those
/// of other sources have none.
fn without_numbers(message: &str) -> Cow<'_, str> {
    const START: &str = " (os error ";
    let Some((before, rest)) = message.split_once(START) else {
        return message.into();
    };
    match rest.split_once(')') {
        Some((number, after)) if number.bytes().all(|it| it.is_ascii_digit()) => {
            (before.to_string() + &without_numbers(after)).into()
        }
        _ => (before.to_string() + START + &without_numbers(rest)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_system_have_no_numbers() {
        let error = std::io::Error::from_raw_os_error(libc::ENOENT).to_string();
        assert_eq!(
            without_numbers(&format!("x ({error}); y: {error}")),
            "x (No such file or directory); y: No such file or directory"
        );
        for kept in ["can't write", "a (os error x) b", "a (os error 2"] {
            assert_eq!(without_numbers(kept), kept);
        }
    }
}
