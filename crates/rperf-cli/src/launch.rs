//! Runs the command with the environment that makes its Ruby profile itself, and
//! says what became of the profile. Called by `run`, on Ruby's main thread.
//!
//! The variables are the contract with `lib/rperf/launch.rb`.

use crate::options::Options;
use crate::process::{self, End};
use crate::status::Status;
use crate::{FAILURE, NOT_EXECUTABLE, Refusal, command, say};
use nix::time::{ClockId, clock_gettime};
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

const LOADER: &str = "-rrperf";
/// Variables for which there is no option yet: the user may set them.
const KEPT: [&str; 2] = ["RPERF_SIGNAL", "RPERF_AGGREGATE"];

/// Runs the command to its end and returns the exit status. Doesn't return where
/// the command was ended by a signal: it ends this process in the same way.
pub fn launch(options: &Options, library: &Path) -> Result<i32, Refusal> {
    if library.as_os_str().as_bytes().contains(&b':') {
        return Err(Refusal {
            message: format!(
                "is installed in {}, and Ruby can't load from a folder with a ':' in its path",
                library.display()
            ),
            status: FAILURE,
        });
    }
    let name = &options.command[0];
    let program = command::find(name, std::env::var_os("PATH").as_deref())?;
    let folder = tempfile::tempdir().map_err(|error| Refusal {
        message: format!("can't make a temporary folder ({error}); set TMPDIR to one that works"),
        status: FAILURE,
    })?;
    let status_file = folder.path().join("status");
    let mut command = Command::new(program);
    set_arguments(&mut command, options);
    set_environment(&mut command, options, library, &status_file);
    let end = process::run(&mut command).map_err(|error| cannot_run(name, &error))?;
    let status = Status::read(&status_file);
    drop(folder);
    if let Some(line) = remark(&status, end, name) {
        say(&line);
    }
    Ok(match end {
        End::Signal(signal) => process::end_by_signal(signal),
        End::Status(0) if !status.started => FAILURE,
        End::Status(status) => status,
    })
}

fn cannot_run(name: &OsStr, error: &io::Error) -> Refusal {
    Refusal {
        message: format!("can't run {}: {error}", name.to_string_lossy()),
        status: NOT_EXECUTABLE,
    }
}

/// The program sees the name by which it was called, not the path found for it.
fn set_arguments(command: &mut Command, options: &Options) {
    use std::os::unix::process::CommandExt;
    command
        .arg0(&options.command[0])
        .args(&options.command[1..]);
}

fn set_environment(command: &mut Command, options: &Options, library: &Path, status: &Path) {
    for (name, _) in std::env::vars_os() {
        // Nothing of an outer rperf may mix with ours.
        if name.as_bytes().starts_with(b"RPERF_") && !KEPT.iter().any(|kept| name == *kept) {
            command.env_remove(name);
        }
    }
    prepend(command, "RUBYLIB", library.as_os_str(), ":");
    prepend(command, "RUBYOPT", OsStr::new(LOADER), " ");
    command
        .env("RPERF_ENABLED", "1")
        .env("RPERF_STATUS_FILE", status)
        .env("RPERF_FREQUENCY", options.frequency.to_string())
        .env("RPERF_MODE", options.mode.name())
        .env("RPERF_LAUNCHED_NS", monotonic_ns().to_string());
    if let Some(output) = &options.output {
        command.env("RPERF_OUTPUT", output);
    }
    if let Some(format) = options.format {
        command.env("RPERF_FORMAT", format.name());
    }
    for (name, switch) in [("RPERF_LINES", options.lines), ("RPERF_LEAF", options.leaf)] {
        if let Some(on) = switch {
            command.env(name, if on { "1" } else { "0" });
        }
    }
    if options.verbose {
        command.env("RPERF_VERBOSE", "1");
    }
    if let Some(stat) = options.stat {
        let words: Vec<_> = options
            .command
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        command
            .env("RPERF_STAT", "1")
            .env("RPERF_STAT_COMMAND", words.join(" "));
        if stat.report {
            command.env("RPERF_STAT_REPORT", "1");
        }
    }
}

/// Puts `value` in front of what the variable holds, and keeps that for the
/// profiled Ruby to put back.
fn prepend(command: &mut Command, name: &str, value: &OsStr, separator: &str) {
    let mut joined = OsString::from(value);
    if let Some(original) = std::env::var_os(name) {
        joined.push(separator);
        joined.push(&original);
        command.env(format!("RPERF_ORIGINAL_{name}"), original);
    }
    command.env(name, joined);
}

fn monotonic_ns() -> i128 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| {
        i128::from(now.tv_sec()) * 1_000_000_000 + i128::from(now.tv_nsec())
    })
}

/// What the user should know about the profile, if its Ruby couldn't say it.
fn remark(status: &Status, end: End, name: &OsStr) -> Option<String> {
    let name = name.to_string_lossy();
    if !status.started {
        return (!status.refused).then(|| {
            format!("'{name}' ran no Ruby program that rperf could profile; nothing was recorded")
        });
    }
    if !status.delivered {
        let how = match end {
            End::Signal(signal) => format!("was ended by {}", process::signal_name(signal)),
            End::Status(_) => "ended".to_string(),
        };
        return Some(format!(
            "'{name}' {how} before its profile could be written"
        ));
    }
    if status.replaced {
        return Some(format!(
            "'{name}' became another program by exec; only the part before that was profiled"
        ));
    }
    match status.others {
        0 => None,
        1 => Some("one more Ruby ran; only the first was profiled".to_string()),
        others => Some(format!(
            "{others} more Rubies ran; only the first was profiled"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark_on(status: Status, end: End) -> Option<String> {
        remark(&status, end, OsStr::new("tool"))
    }

    #[test]
    fn a_delivered_profile_needs_no_words() {
        let status = Status {
            started: true,
            delivered: true,
            ..Status::default()
        };
        assert_eq!(remark_on(status, End::Status(3)), None);
    }

    #[test]
    fn what_went_wrong_is_said_once() {
        let nothing = remark_on(Status::default(), End::Status(0)).expect("a line");
        assert!(nothing.contains("'tool' ran no Ruby program"));
        let refused = Status {
            refused: true,
            ..Status::default()
        };
        assert_eq!(remark_on(refused, End::Status(0)), None);
        let started = Status {
            started: true,
            ..Status::default()
        };
        let killed = remark_on(started, End::Signal(libc::SIGKILL)).expect("a line");
        assert_eq!(
            killed,
            "'tool' was ended by SIGKILL before its profile could be written"
        );
    }

    #[test]
    fn a_profile_that_ends_with_an_exec_is_called_a_part() {
        let status = Status {
            started: true,
            delivered: true,
            replaced: true,
            ..Status::default()
        };
        let line = remark_on(status, End::Status(0)).expect("a line");
        assert!(line.contains("another program by exec"));
    }

    #[test]
    fn further_rubies_are_counted() {
        let status = Status {
            started: true,
            delivered: true,
            others: 2,
            ..Status::default()
        };
        let line = remark_on(status, End::Status(0)).expect("a line");
        assert!(line.starts_with("2 more Rubies"));
    }
}
