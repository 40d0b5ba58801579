//! `rperf snapshot PID`: what a running profiling session has so far. Called by `run`, on Ruby's main
//! thread.

use crate::args::SnapshotArgs;
use crate::launch::delivery;
use crate::options::Options;
use crate::programs::words::of_failure;
use crate::{FAILURE, Refusal, say};
use rperf_session::merge::Merged;
use rperf_session::page::stat::CommandTimes;
use rperf_session::process_id::ProcessId;
use rperf_session::settings::{FORMAT, LINES, OUTPUT, Setting};
use rperf_watch::failure::AskError;
use rperf_watch::patience;
use rperf_watch::program::Program;
use rperf_watch::take::read;
use std::ffi::OsString;

/// Writes the profile. Returns the exit status.
pub fn run(args: &SnapshotArgs) -> Result<i32, Refusal> {
    let lines = args.lines.then(|| OsString::from("1"));
    let given: Vec<(&'static Setting, OsString)> = [
        (&OUTPUT, args.output.clone()),
        (&FORMAT, args.format.clone()),
        (&LINES, lines),
    ]
    .into_iter()
    .filter_map(|(setting, text)| Some((setting, text?)))
    .collect();
    let options = Options::for_attach(given, args.print)?;
    let content = taken(args.pid, !args.no_wake)?;
    let profile = read(&content).map_err(|it| of_failure(args.pid, &it))?;
    let merged = Merged {
        profile: Some(profile),
        processes: 1,
        ..Merged::default()
    };
    let is_delivered = delivery::deliver(&options, &merged, CommandTimes::default());
    Ok(if is_delivered { 0 } else { FAILURE })
}

fn taken(pid: i32, may_wake: bool) -> Result<Vec<u8>, Refusal> {
    let program = Program::connect(ProcessId::named(pid));
    let mut program = program.map_err(|failure| of_failure(pid, &failure))?;
    match program.snapshot(may_wake, patience::SNAPSHOT) {
        Ok(reply) => {
            if reply.is_woken {
                say(&format!(
                    "no thread of {pid} ran, so its main thread was woken for a moment (not with --no-wake)"
                ));
            }
            Ok(reply.body)
        }
        Err(AskError::Refused(refusal)) if refusal.code.lacks_session() => Err(Refusal {
            message: format!(
                "{pid}: no profiling session runs in the program; 'rperf attach {pid}' profiles it"
            ),
            status: FAILURE,
        }),
        // What its hint names is the port's own, and not a command.
        Err(AskError::Refused(refusal)) if refusal.code.is_of_vm() => Err(Refusal {
            message: format!(
                "{pid}: {}; 'rperf stacks {pid}' shows what its threads do",
                refusal.error
            ),
            status: FAILURE,
        }),
        Err(error) => Err(of_failure(pid, &error.into())),
    }
}
