//! `rperf attach PID...`: profiles running programs for a while. Called by `run`, on Ruby's main
//! thread.

pub mod snapshot;

use crate::args::AttachArgs;
use crate::launch::delivery;
use crate::options::{Options, sampling_of};
use crate::programs::choose::Chosen;
use crate::programs::words::{of_event, of_failure};
use crate::progress::Progress;
use crate::signals::Actions;
use crate::{FAILURE, Refusal, say};
use nix::sys::signal::{SigHandler, Signal};
use rperf_model::Profile;
use rperf_protocol::ask::Wanted;
use rperf_protocol::limits::{MAX_PROFILE, SECONDS};
use rperf_protocol::measure::Measure;
use rperf_session::merge::Merged;
use rperf_session::page::stat::CommandTimes;
use rperf_session::process_id::ProcessId;
use rperf_session::settings::{FORMAT, LINES, OUTPUT, Setting, VERBOSE, quoted};
use rperf_watch::condition::{Condition, Event};
use rperf_watch::several::{Asked, Whole, several};
use rperf_watch::take::Content;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Processes at a time.
const MOST_PROCESSES: usize = 64;

/// Whether the user has had enough.
static STOP: AtomicBool = AtomicBool::new(false);

/// Profiles the programs. Returns the exit status: 1 if one couldn't be profiled.
pub fn run(args: &AttachArgs) -> Result<i32, Refusal> {
    let time = duration(&args.duration)?;
    let options = options(args)?;
    let Chosen {
        processes,
        left_out,
    } = args.choice.processes(MOST_PROCESSES)?;
    if let Some(line) = &left_out {
        say(line);
    }
    let wanted = Wanted {
        time,
        sampling: sampling_of(&options.settings),
    };
    let _signals = Actions::set(&ENDS, SigHandler::Handler(stop));
    let whole = profile(&processes, wanted);
    if whole.profile.is_none() {
        return Ok(FAILURE);
    }
    let merged = Merged {
        profile: whole.profile,
        processes: whole.processes,
        ..Merged::default()
    };
    let has_failed = merged.processes < processes.len() || left_out.is_some();
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

/// The profile of these processes over the same time. Several have their processes as labels, like
/// those of `rperf record`. Processes are left out, and reported, that fail or have other values
/// than the first.
fn profile(processes: &[ProcessId], wanted: Wanted) -> Whole {
    let progress = Progress::new();
    let tell = |pid, event: &Event| {
        let mut line = of_event(pid, event);
        if event.is_of_silence() {
            if matches!(event, Event::Is(Condition::RunsNoRuby { .. })) {
                line += "; profiling begins as soon as Ruby code runs";
            }
            line += " (Ctrl-C to give up)";
        }
        progress.say(&line);
    };
    let began = Instant::now();
    let pids: Vec<_> = processes.iter().map(|it| it.pid).collect();
    let asked = processes.iter().map(|process| Asked {
        process: *process,
        most: MAX_PROFILE,
    });
    let asked: Vec<_> = asked.collect();
    let found = several(&asked, wanted, &tell, || {
        progress.show(progress_line(&pids, wanted.time, began.elapsed()));
        !STOP.load(SeqCst)
    });
    let mut whole = Whole::new(false);
    for (pid, content) in found {
        match content.and_then(Content::read) {
            Ok((profile, event)) => {
                event.iter().for_each(|event| tell(pid, event));
                let lacking = lacking(wanted.sampling.measure, &profile);
                match whole.add(pid, profile) {
                    Ok(()) => lacking.iter().for_each(|what| {
                        progress.say(&format!("the profile of {pid} {what}"));
                    }),
                    Err(error) => {
                        progress.say(&format!("the profile of {pid} is left out: {error}"));
                    }
                }
            }
            Err(failure) => progress.say(&of_failure(pid, &failure).message),
        }
    }
    progress.end();
    whole
}

/// What the profile of a program says that it lacks, and that it has no requests though they were asked for.
fn lacking(measure: Measure, profile: &Profile) -> Vec<String> {
    let missing = profile.meta.missing.iter();
    let mut lacking: Vec<_> = missing.map(|it| format!("lacks {it}")).collect();
    // A part of a session lacks them, and says so.
    if measure.requests && profile.requests.is_empty() && lacking.is_empty() {
        let why = "none ended meanwhile, or the program has no middleware of rperf, which tells of them \
                   ('rperf help slow-requests')";
        lacking.push(format!("has no requests: {why}"));
    }
    lacking
}

fn progress_line(pids: &[i32], time: Duration, elapsed: Duration) -> String {
    let of = match pids {
        [pid] => pid.to_string(),
        pids => format!("{} processes", pids.len()),
    };
    let (elapsed, time) = (elapsed.min(time).as_secs(), time.as_secs_f64());
    format!("rperf: profiling {of}: {elapsed} of {time} s (Ctrl-C ends it now)")
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
