//! `rperf attach PID...`: profiles running programs for a while. Called by `run`, on Ruby's main
//! thread.

pub mod recording;
pub mod snapshot;

use crate::args::AttachArgs;
use crate::options::{Options, sampling_of};
use crate::signals::Actions;
use crate::{FAILURE, Refusal, delivery, say};
use nix::sys::signal::{SigHandler, Signal};
use recording::{Recording, Told};
use rperf_model::Profile;
use rperf_model::label_keys::{PID, PROCESS};
use rperf_protocol::ask::Wanted;
use rperf_protocol::limits::SECONDS;
use rperf_session::merge::Merged;
use rperf_session::page::stat::CommandTimes;
use rperf_session::settings::{FORMAT, LINES, OUTPUT, Setting, VERBOSE, quoted};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Processes at a time.
const MOST_PROCESSES: usize = 64;

/// How often the progress is shown.
const STEP: Duration = Duration::from_millis(50);

/// Whether the user has had enough.
static STOP: AtomicBool = AtomicBool::new(false);

/// Profiles the programs. Returns the exit status: 1 if one couldn't be profiled.
pub fn run(args: &AttachArgs) -> Result<i32, Refusal> {
    let time = duration(&args.duration)?;
    let options = options(args)?;
    let pids = args.choice.processes()?;
    if pids.len() > MOST_PROCESSES {
        let message = format!("at most {MOST_PROCESSES} processes can be profiled at a time");
        return Err(Refusal::usage(message));
    }
    let wanted = Wanted {
        time,
        sampling: sampling_of(&options.settings),
    };
    let _signals = Actions::set(&ENDS, SigHandler::Handler(stop));
    let found = profiles(&pids, wanted);
    let Some(merged) = merged(found) else {
        return Ok(FAILURE);
    };
    let has_failed = merged.processes < pids.len();
    let is_delivered = delivery::deliver(&options, &merged, CommandTimes::default());
    Ok(if is_delivered && !has_failed {
        0
    } else {
        FAILURE
    })
}

/// What ends it early.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, SeqCst);
}

fn duration(text: &str) -> Result<Duration, Refusal> {
    let number = text.strip_suffix('s').unwrap_or(text).parse::<f64>().ok();
    let number = number.filter(|it| (0.01..=*SECONDS.end()).contains(it));
    number.map(Duration::from_secs_f64).ok_or_else(|| {
        let text = quoted(text.as_ref());
        let message = format!(
            "--duration must be seconds from 0.01 to {}, not {text}",
            SECONDS.end()
        );
        Refusal::usage(message)
    })
}

/// The options of `rperf attach`, checked like those of `rperf record`, as far as a port has them.
fn options(args: &AttachArgs) -> Result<Options, Refusal> {
    let on = |is_on: bool| is_on.then(|| OsString::from("1"));
    let others: [(&'static Setting, Option<OsString>); 4] = [
        (&OUTPUT, args.output.clone()),
        (&FORMAT, args.format.clone()),
        (&LINES, on(args.lines)),
        (&VERBOSE, on(args.verbose)),
    ];
    let others = others
        .into_iter()
        .filter_map(|(it, text)| Some((it, text?)));
    let given = args.settings.given.iter().cloned().chain(others);
    Options::for_attach(given.collect(), args.print)
}

/// The line that shows how far it is, where there is a terminal.
struct Progress {
    is_shown: bool,
    /// The line that is there.
    line: Mutex<String>,
}

impl Progress {
    fn new() -> Self {
        Progress {
            is_shown: std::io::stderr().is_terminal(),
            line: Mutex::default(),
        }
    }

    fn show(&self, line: String) {
        if !self.is_shown {
            return;
        }
        let mut shown = self.line.lock().unwrap_or_else(|it| it.into_inner());
        if *shown != line {
            let rest = shown.len().saturating_sub(line.len());
            let _ = write!(std::io::stderr(), "\r{line}{}", " ".repeat(rest));
            *shown = line;
        }
    }

    /// Says something in a line of its own.
    fn say(&self, message: &str) {
        let mut shown = self.line.lock().unwrap_or_else(|it| it.into_inner());
        if !shown.is_empty() {
            let _ = write!(std::io::stderr(), "\r{}\r", " ".repeat(shown.len()));
            shown.clear();
        }
        say(message);
    }

    fn end(&self) {
        self.show(String::new());
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r");
        }
    }
}

/// The profile of each process, recorded at the same time; processes that fail are reported.
fn profiles(pids: &[i32], wanted: Wanted) -> Vec<(i32, Profile)> {
    let progress = Progress::new();
    let tell = |told: Told<'_>| match told {
        Told::Waiting(line) => progress.say(&format!("{line} (Ctrl-C to give up)")),
        Told::Fact(line) => progress.say(line),
    };
    let record = |pid| Recording::begin(pid, wanted, &tell).and_then(|it| it.finish(&STOP));
    let mut found = Vec::new();
    thread::scope(|scope| {
        let record = &record;
        let threads: Vec<_> = pids
            .iter()
            .map(|&pid| (pid, scope.spawn(move || record(pid))))
            .collect();
        let began = Instant::now();
        while threads.iter().any(|(_, thread)| !thread.is_finished()) {
            progress.show(progress_line(pids, wanted.time, began.elapsed()));
            thread::sleep(STEP);
        }
        for (pid, thread) in threads {
            match thread.join() {
                Ok(Ok(profile)) => found.push((pid, profile)),
                Ok(Err(refusal)) => progress.say(&refusal.message),
                Err(_) => progress.say(&format!("{pid}: an internal error")),
            }
        }
    });
    progress.end();
    found
}

fn progress_line(pids: &[i32], time: Duration, elapsed: Duration) -> String {
    let of = match pids {
        [pid] => pid.to_string(),
        pids => format!("{} processes", pids.len()),
    };
    let (elapsed, time) = (elapsed.min(time).as_secs(), time.as_secs_f64());
    format!("rperf: profiling {of}: {elapsed} of {time} s (Ctrl-C ends it now)")
}

/// Several have their processes as labels, as those of `rperf record`. Those are left out, and said,
/// that have other values than the first.
fn merged(mut found: Vec<(i32, Profile)>) -> Option<Merged> {
    if found.len() > 1 {
        for (pid, profile) in &mut found {
            let name = profile.meta.program.clone();
            profile.label_all(&[(PID, &pid.to_string()), (PROCESS, &name)]);
        }
    }
    let mut found = found.into_iter();
    let (_, mut whole) = found.next()?;
    let mut processes = 1;
    for (pid, profile) in found {
        match whole.merge(&profile) {
            Ok(()) => processes += 1,
            Err(error) => say(&format!("the profile of {pid} is left out: {error}")),
        }
    }
    Some(Merged {
        profile: Some(whole),
        processes,
        ..Merged::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_of_seconds() {
        for (text, seconds) in [("10", 10.0), ("2.5", 2.5), ("1s", 1.0)] {
            assert_eq!(duration(text).expect("a time").as_secs_f64(), seconds);
        }
        for odd in ["", "0", "-1", "x", "1e9", "NaN", "inf", "1m"] {
            let refusal = duration(odd).expect_err("refused");
            assert_eq!(refusal.status, 2);
            assert!(
                refusal.message.ends_with(&format!("not '{odd}'")),
                "{}",
                refusal.message
            );
        }
    }

    #[test]
    fn the_progress_says_of_what_it_is() {
        let line = |pids: &[i32], elapsed| {
            progress_line(
                pids,
                Duration::from_secs(10),
                Duration::from_millis(elapsed),
            )
        };
        assert_eq!(
            line(&[7], 3100),
            "rperf: profiling 7: 3 of 10 s (Ctrl-C ends it now)"
        );
        assert!(line(&[7, 8], 12_000).contains("2 processes: 10 of 10 s"));
    }
}
