//! A target's process of its own: an input that ends it, or takes all memory or time, is known afterwards.

use crate::inputs::{PATIENCE, processor_time, run};
use crate::targets::{PLANTED, TARGETS, Target};
use nix::libc::SIGXCPU;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::fs::{File, OpenOptions};
use std::io::{self, Error};
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// The first argument of such a process.
pub const ARGUMENT: &str = "--apart";
/// Its status if an input does harm, and it can say which.
const FOUND: i32 = 10;
/// The bytes that it may ask the system for.
const MEMORY: u64 = 2 << 30;

/// What a process of its own is to do.
#[derive(Clone, Debug)]
pub struct Task {
    /// The target's name, which may be that of a planted one.
    pub target: String,
    /// For so long.
    pub duration: Duration,
    /// What decides on the inputs.
    pub seed: u64,
    /// The file that has the last input afterwards.
    pub input: PathBuf,
}

impl Task {
    /// Runs it in a process of `program`, which is this crate's. Returns how many inputs there were, or
    /// what harm the last of them does.
    pub fn run_apart(&self, program: &Path) -> io::Result<Result<u64, String>> {
        let output = Command::new(program)
            .args([ARGUMENT, &self.target])
            .args([self.duration.as_secs().to_string(), self.seed.to_string()])
            .arg(&self.input)
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout);
        match output.status.code() {
            Some(0) => said.trim().parse().map(Ok).map_err(Error::other),
            Some(FOUND) => Ok(Err(said.trim().to_string())),
            _ => {
                let errors = String::from_utf8_lossy(&output.stderr);
                Ok(Err(format!("{}: {}", ended(output.status), errors.trim())))
            }
        }
    }

    /// What the process's arguments say, behind the first one.
    pub fn of_arguments(arguments: &[String]) -> Option<Self> {
        let [target, seconds, seed, input] = arguments else {
            return None;
        };
        Some(Self {
            target: target.clone(),
            duration: Duration::from_secs(seconds.parse().ok()?),
            seed: seed.parse().ok()?,
            input: input.into(),
        })
    }

    /// Does it in this process, which may not survive that. Returns its status, and what it is to say.
    pub fn run_here(&self) -> io::Result<(i32, String)> {
        let mut all = TARGETS.iter().chain(&PLANTED);
        let target = all.find(|it| it.name == self.target);
        let target: &Target = target.ok_or_else(|| Error::other("no such target"))?;
        setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY)?;
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .open(&self.input)?;
        let mut failure = Ok(());
        let found = run(target, self.duration, self.seed, |input| {
            let outcome = keep(&file, input).and_then(|()| Ok(limit_processor_time()?));
            if outcome.is_err() {
                failure = outcome;
            }
        });
        failure?;
        Ok(match found {
            Ok(count) => (0, count.to_string()),
            Err(harm) => (FOUND, harm),
        })
    }
}

/// What the file had before is gone.
fn keep(file: &File, input: &[u8]) -> io::Result<()> {
    file.write_all_at(input, 0)?;
    file.set_len(input.len() as u64)
}

/// The system ends the process (SIGXCPU) if the next input takes far longer than it may.
fn limit_processor_time() -> nix::Result<()> {
    let end = (processor_time() + PATIENCE).as_secs() + 1;
    // The hard limit stays: only root may raise one again.
    let (_, hard) = getrlimit(Resource::RLIMIT_CPU)?;
    setrlimit(Resource::RLIMIT_CPU, end.min(hard), hard)
}

fn ended(status: ExitStatus) -> String {
    match status.signal() {
        Some(SIGXCPU) => "doesn't end".to_string(),
        _ => format!("ends the process ({status})"),
    }
}
