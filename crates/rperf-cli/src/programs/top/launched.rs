//! The program that `rperf top` has started, with ports for its Rubies. It gets the signals that are
//! sent to us, and we end as it does. On the main thread.

use crate::process::{self, End};
use crate::process::{command, forward};
use crate::{FAILURE, NOT_EXECUTABLE, NOT_FOUND, Refusal, say};
use rperf_session::environment;
use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, IsTerminal, stderr, stdin};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A program that runs, or has ended and waits for us.
pub struct Launched {
    /// Its process.
    pub pid: i32,
    name: String,
    child: Child,
    /// What it prints, if the screens have the terminal.
    output: Option<PathBuf>,
}

impl Launched {
    /// Starts the command. Where the screens have the terminal, what it prints there goes into a file,
    /// and it has no input from there; else its output goes where its errors go: ours are tables.
    pub fn start(words: &[OsString], library: &Path, has_screens: bool) -> Result<Self, Refusal> {
        let failed = |error: io::Error| failure(format!("can't run the command: {error}"));
        let program = command::find(&words[0], env::var_os("PATH").as_deref());
        let program = program.map_err(|mut refusal| {
            let file = Path::new(&words[0]);
            #[expect(clippy::disallowed_methods, reason = "for the message only")]
            let is_there = file.exists();
            if !is_there {
                refusal.message += " (there is no such file either)";
            } else if refusal.status == NOT_FOUND && file.extension().is_none_or(|it| it != "rb") {
                refusal.message +=
                    " (this file is executable, so it isn't taken for a profile: chmod -x it)";
            }
            refusal
        })?;
        let variables = environment::with_ports(library);
        let mut command = Command::new(program);
        command
            .arg0(&words[0])
            .args(&words[1..])
            .envs(variables.map_err(|error| failure(error.to_string()))?);
        let mut output = None;
        if has_screens {
            let (path, file) = new_file().map_err(failed)?;
            if stdin().is_terminal() {
                command.stdin(Stdio::null());
            }
            if stderr().is_terminal() {
                command.stderr(file.try_clone().map_err(failed)?);
            }
            command.stdout(file);
            output = Some(path);
        } else {
            let stderr = stderr().as_fd().try_clone_to_owned().map_err(failed)?;
            command.stdout(stderr);
        }
        let name = words[0].to_string_lossy().into_owned();
        forward::install(&mut command).map_err(failed)?;
        let child = command.spawn().map_err(|error| {
            remove_empty(output.as_deref());
            Refusal {
                message: format!("can't run {name}: {error}"),
                status: NOT_EXECUTABLE,
            }
        })?;
        let pid = child.id() as i32;
        forward::to_program(pid);
        Ok(Launched {
            pid,
            name,
            child,
            output,
        })
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        process::has_ended(self.pid)
    }

    /// Waits for its end, and returns its status; if a signal has ended it, that ends us. `was_seen`:
    /// it had a port, or nobody has looked until its end.
    pub fn finish(mut self, was_seen: bool) -> Result<i32, Refusal> {
        let output = self.output.take();
        if let Some(output) = output.as_deref().filter(|_| !self.has_ended()) {
            let output = output.display();
            say(&format!(
                "the program runs on, and Ctrl-C ends it; what it prints is in {output}"
            ));
        }
        let end = process::end_of(&mut self.child);
        let end = end.map_err(|error| failure(format!("can't wait for the command: {error}")))?;
        if !was_seen {
            let name = rperf_report::terminal_text::shown(&self.name);
            say(&format!(
                "'{name}' ran no Ruby program that rperf could watch"
            ));
        }
        if let Some(output) = output.as_deref()
            && !remove_empty(Some(output))
        {
            say(&format!(
                "what the program has printed is in {}",
                output.display()
            ));
        }
        Ok(match end {
            End::Signal(signal) => process::end_by_signal(signal),
            End::Status(status) => status,
        })
    }
}

/// A file of ours that nobody else reads.
fn new_file() -> io::Result<(PathBuf, File)> {
    let prefix = format!("rperf-top-{}-", std::process::id());
    let file = tempfile::Builder::new()
        .prefix(&prefix)
        .suffix(".log")
        .append(true)
        .tempfile()?;
    let (file, path) = file.keep().map_err(|error| error.error)?;
    Ok((path, file))
}

/// Returns whether there is no such file any more: nothing was printed.
#[expect(clippy::disallowed_methods, reason = "a file of our own")]
fn remove_empty(path: Option<&Path>) -> bool {
    let Some(path) = path else { return true };
    let is_empty = fs::metadata(path).is_ok_and(|found| found.len() == 0);
    is_empty && fs::remove_file(path).is_ok()
}

fn failure(message: String) -> Refusal {
    Refusal {
        message,
        status: FAILURE,
    }
}
