//! Runs the command with the environment that makes its Rubies profile themselves,
//! merges what they leave, and says what became of it. Called by `run` and `runs`, on the main
//! thread.

pub(crate) mod delivery;
pub(crate) mod runs;

use crate::options::Options;
use crate::process::{self, End};
use crate::process::{command, forward};
use crate::{EXCEEDED, FAILURE, NOT_EXECUTABLE, Refusal, USAGE, say};
use rperf_format::bytes_text;
use rperf_session::directory;
use rperf_session::environment::{self, Environment};
use rperf_session::merge::{self, Merged};
use rperf_session::os;
use rperf_session::page::stat::CommandTimes;
use rperf_session::status::{Outcome, Status};
use std::ffi::OsStr;
use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// For how long those may be silent that ended with the program, by themselves or by
/// a signal that came to all: a daemon takes a moment to begin, at_exit blocks to run.
const PATIENCE: Duration = Duration::from_millis(100);
const PATIENCE_AFTER_SIGNAL: Duration = Duration::from_secs(2);
/// For how long one may write its profile.
const PATIENCE_WITH_WRITERS: Duration = Duration::from_secs(30);

/// How the command has ended, and whether its profile is whole.
#[derive(Debug, Clone, Copy)]
pub struct Launched {
    end: End,
    is_whole: bool,
    /// Its memory, by the limit.
    memory: Memory,
}

/// The peak of a command's memory, by the limit of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Memory {
    /// No process had more, or there is no limit.
    Allowed,
    /// A process had more.
    Above,
    /// The command's peak can't be told: rperf itself had about as much, or more.
    Unknown,
}

/// By how much the counts of the kernel can be off: it counts pages for each CPU, and adds these later.
const INEXACT: u64 = 1 << 20;

impl Memory {
    /// `most`: the limit, `inherited`: the peak that the system may have taken over from rperf.
    fn of(most: Option<u64>, peak: u64, inherited: u64) -> Self {
        match most {
            Some(most) if peak <= most => Memory::Allowed,
            Some(_) if peak > inherited + INEXACT => Memory::Above,
            Some(_) => Memory::Unknown,
            None => Memory::Allowed,
        }
    }
}

impl Launched {
    /// The exit status that is ours, too. Doesn't return where the command was ended by a signal: it
    /// ends this process in the same way.
    pub fn status(self) -> i32 {
        match self.end {
            End::Signal(signal) => process::end_by_signal(signal),
            End::Status(0) if !self.is_whole => FAILURE,
            End::Status(0) => match self.memory {
                Memory::Allowed => 0,
                Memory::Above => EXCEEDED,
                Memory::Unknown => USAGE,
            },
            End::Status(status) => status,
        }
    }

    /// The reason why no other run should follow, as the end of a sentence.
    pub fn fault(self) -> Option<String> {
        match self.end {
            End::Signal(it) => Some(format!("the program {}", process::ended_by(it))),
            End::Status(0) if self.is_whole => match self.memory {
                Memory::Allowed => None,
                Memory::Above => Some("its peak RSS was above --max-rss".to_string()),
                Memory::Unknown => Some("its peak RSS isn't known".to_string()),
            },
            End::Status(0) => Some("its profile is missing or incomplete".to_string()),
            End::Status(status) => Some(format!("the program exited with status {status}")),
        }
    }
}

/// Runs the command to its end.
pub fn launch(options: &Options, library: &Path) -> Result<Launched, Refusal> {
    let environment = Environment::new(&options.settings, initiator(options), library)
        .map_err(|error| failure(&error))?;
    let name = &options.command[0];
    let program = command::find(name, std::env::var_os("PATH").as_deref())?;
    let directory = Directory(directory::create().map_err(|error| failure(&error))?);
    environment.write_settings(&directory.0).map_err(|error| {
        let directory = directory.0.display();
        failure(&format!("can't write to {directory}: {error}"))
    })?;
    let mut command = Command::new(program);
    set_arguments(&mut command, options);
    // Nothing of an outer rperf may mix with ours.
    for name in environment::foreign_variables() {
        command.env_remove(name);
    }
    command.envs(environment.variables(&directory.0));
    let (end, times) = process::run(&mut command).map_err(|error| cannot_run(name, &error))?;
    let status = final_status(&directory.0, end);
    let merged = merge::merge(&directory.0, &status, None);
    let first = status.members.first();
    // The processes that profiled themselves know theirs, too.
    let peak = times.max_rss_bytes.max(merged.stats.os.max_rss_bytes);
    let memory = Memory::of(options.max_rss, peak, times.inherited_rss_bytes);
    let times = CommandTimes {
        real_ns: times.real_ns,
        user_ns: times.user_ns,
        sys_ns: times.sys_ns,
        before_ns: first.map_or(0, |first| first.begun_ns.saturating_sub(times.began_ns)),
    };
    let is_delivered = delivery::deliver(options, &merged, times);
    let unmerged = merged.unmerged.iter().map(ToString::to_string);
    for line in unmerged.chain(remarks_on(&status, end, name)) {
        say(&line);
    }
    drop(directory);
    if let Some(most) = options.max_rss {
        say_above(memory, bytes_text(most), bytes_text(peak));
    }
    Ok(Launched {
        end,
        memory,
        is_whole: is_delivered && !is_incomplete(&status, &merged),
    })
}

/// Says that the largest process had more memory than `most`, or that this can't be told.
fn say_above(memory: Memory, most: String, peak: String) {
    match memory {
        Memory::Allowed => {}
        Memory::Above => say(&format!(
            "the peak RSS of the largest process was {peak}, more than --max-rss allows ({most})"
        )),
        Memory::Unknown => say(&format!(
            "--max-rss can't tell: the peak RSS was {peak} at most, which can be that of rperf itself, and {most} \
             is less: raise it"
        )),
    }
}

/// Whether there is less than there could be by some fault of ours.
fn is_incomplete(status: &Status, merged: &Merged) -> bool {
    let mut members = status.members.iter();
    !merged.unmerged.is_empty() || members.any(|member| member.outcome == Outcome::Failed)
}

/// What is there when the program has ended, and those that end with it.
fn final_status(directory: &Path, end: End) -> Status {
    let patience = match end {
        End::Status(_) if !forward::came_to_end_us() => PATIENCE,
        _ => PATIENCE_AFTER_SIGNAL,
    };
    let ended = Instant::now();
    loop {
        let status = Status::read(directory);
        let patience = if status.is_one_ending() {
            PATIENCE_WITH_WRITERS
        } else {
            patience
        };
        if status.silent().0 == 0 || ended.elapsed() >= patience {
            return status;
        }
        os::sleep(Duration::from_millis(5));
    }
}

/// The session's directory, which goes with this.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        directory::remove(&self.0);
    }
}

fn failure(error: &dyn Display) -> Refusal {
    Refusal {
        message: error.to_string(),
        status: FAILURE,
    }
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

fn initiator(options: &Options) -> &'static str {
    match options.stat {
        None if options.settings.is_traced() => "rperf trace",
        None => "rperf record",
        Some(stat) if stat.report => "rperf exec",
        Some(_) => "rperf stat",
    }
}

/// What the user should know about the profile, if its Rubies couldn't say it.
fn remarks_on(status: &Status, end: End, name: &OsStr) -> Vec<String> {
    let name = name.to_string_lossy();
    let mut remarks = Vec::new();
    if status.members.is_empty() {
        if !status.refused {
            remarks.push(format!(
                "'{name}' ran no Ruby program that rperf could profile; nothing was recorded"
            ));
        }
        return remarks;
    }
    let mut remarks = match &status.members[..] {
        // Of a single process more is known.
        [only]
            if only.outcome == Outcome::Silent
                && status.unborn.is_empty()
                && !only.process.is_alive() =>
        {
            let how = match end {
                End::Signal(signal) => process::ended_by(signal),
                End::Status(_) => "ended".to_string(),
            };
            vec![format!(
                "'{name}' {how} before its profile could be written"
            )]
        }
        _ => merge::silence(status),
    };
    if status.replaced {
        remarks.push(format!(
            "'{name}' became another program by exec; only the part before that was profiled"
        ));
    }
    match status.others {
        0 => {}
        1 => remarks.push("one more Ruby ran; only the first was profiled".to_string()),
        others => remarks.push(format!(
            "{others} more Rubies ran; only the first was profiled"
        )),
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_session::process_id::ProcessId;
    use rperf_session::process_stats::ProcessStats;
    use rperf_session::status::Member;
    use std::fs;
    use std::thread;

    fn remarks(status: Status, end: End) -> Vec<String> {
        remarks_on(&status, end, OsStr::new("tool"))
    }

    /// A member whose process is gone.
    fn member(outcome: Outcome) -> Member {
        Member {
            process: ProcessId {
                pid: i32::MAX,
                start: 1,
            },
            begun_ns: 1,
            outcome,
            ending: false,
        }
    }

    fn delivered() -> Member {
        member(Outcome::Delivered(ProcessStats::default()))
    }

    #[test]
    fn a_delivered_profile_needs_no_words() {
        let status = Status {
            members: vec![delivered(), member(Outcome::Failed)],
            ..Status::default()
        };
        assert!(remarks(status, End::Status(3)).is_empty());
    }

    #[test]
    fn what_went_wrong_is_said_once() {
        let nothing = remarks(Status::default(), End::Status(0));
        assert!(nothing[0].contains("'tool' ran no Ruby program"));
        let refused = Status {
            refused: true,
            ..Status::default()
        };
        assert!(remarks(refused, End::Status(0)).is_empty());
        let mut killed = Status {
            members: vec![member(Outcome::Silent)],
            ..Status::default()
        };
        let line = "'tool' was ended by SIGKILL before its profile could be written";
        assert_eq!(remarks(killed, End::Signal(libc::SIGKILL)), [line]);
        killed = Status {
            members: vec![
                delivered(),
                member(Outcome::Silent),
                member(Outcome::Silent),
            ],
            ..Status::default()
        };
        let line = "2 processes ended before their profiles could be written";
        assert_eq!(remarks(killed, End::Status(0)), [line]);
    }

    #[test]
    fn processes_that_run_on_are_counted() {
        let own = Member {
            process: ProcessId::own(),
            ..member(Outcome::Silent)
        };
        let status = Status {
            members: vec![delivered(), own],
            ..Status::default()
        };
        let line = "1 process still ran; its samples are not in the profile";
        assert_eq!(remarks(status, End::Status(0)), [line]);
    }

    #[test]
    fn a_profile_that_ends_with_an_exec_is_called_a_part() {
        let status = Status {
            members: vec![delivered()],
            replaced: true,
            ..Status::default()
        };
        assert!(remarks(status, End::Status(0))[0].contains("another program by exec"));
    }

    fn own_line(word: &str) -> String {
        let ProcessId { pid, start } = ProcessId::own();
        match word {
            "started" => format!("started {pid} {start} 1\n"),
            _ => format!("{word} {pid} 1\n"),
        }
    }

    #[test]
    fn who_writes_a_profile_is_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("status");
        let begun = own_line("started");
        fs::write(&path, &begun).expect("a file");
        assert_eq!(
            final_status(directory.path(), End::Status(0)).silent(),
            (1, 0)
        );
        let lines = format!("{begun}{}", own_line("ending"));
        fs::write(&path, &lines).expect("a file");
        let status = thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(3 * PATIENCE);
                fs::write(&path, format!("{lines}{}", own_line("delivered"))).expect("a file");
            });
            final_status(directory.path(), End::Status(0))
        });
        assert_eq!(status.silent(), (0, 0));
    }

    #[test]
    fn what_is_lost_by_our_fault_is_a_failure() {
        let (lost, killed) = (member(Outcome::Failed), member(Outcome::Silent));
        let unmerged = merge::merge(
            Path::new("/no/such/directory"),
            &Status {
                members: vec![delivered()],
                ..Status::default()
            },
            None,
        );
        let whole = Merged::default();
        for (members, merged, expected) in [
            (vec![delivered(), killed], &whole, false),
            (vec![delivered(), lost], &whole, true),
            (vec![delivered()], &unmerged, true),
        ] {
            let status = Status {
                members,
                ..Status::default()
            };
            assert_eq!(is_incomplete(&status, merged), expected);
        }
    }

    #[test]
    fn memory_that_can_be_ours_is_not_the_programs() {
        const MB: u64 = 1 << 20;
        let memory = |most, peak, inherited| Memory::of(most, peak * MB, inherited * MB);
        let most = Some(100 * MB);
        assert_eq!(memory(most, 90, 8), Memory::Allowed);
        assert_eq!(memory(most, 250, 8), Memory::Above);
        assert_eq!(memory(most, 250, 200), Memory::Above);
        assert_eq!(memory(most, 200, 200), Memory::Unknown);
        assert_eq!(memory(most, 90, 200), Memory::Allowed);
        assert_eq!(memory(None, 900, 8), Memory::Allowed);
        let of = |status, memory| Launched {
            end: End::Status(status),
            is_whole: true,
            memory,
        };
        let unknown = of(0, Memory::Unknown);
        assert_eq!(
            (unknown.status(), of(7, Memory::Unknown).status()),
            (USAGE, 7)
        );
        assert!(unknown.fault().expect("a fault").contains("isn't known"));
    }

    #[test]
    fn further_rubies_are_counted() {
        let status = Status {
            members: vec![delivered()],
            others: 2,
            ..Status::default()
        };
        assert!(remarks(status, End::Status(0))[0].starts_with("2 more Rubies"));
    }
}
