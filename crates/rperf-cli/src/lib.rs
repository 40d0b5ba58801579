//! The `rperf` command: options, running a program, terminal output.
//!
//! The executable (`rperf-command`) calls [`run`] on its main thread. Nothing here knows Ruby; only
//! `rperf push` starts one. Commands that watch several programs, draw, or start a browser, have
//! threads of their own.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod args;
mod attach;
mod clients;
mod diff;
mod fleet;
mod help;
mod installation;
mod launch;
mod left_out;
mod memory;
mod misuse;
mod options;
mod output;
mod places;
mod process;
mod programs;
mod progress;
mod refusal;
mod report;
mod shared_args;
mod signals;
mod viewer;
mod why;

pub use installation::Installation;

use args::{Args, Subcommand};
use options::Options;
use refusal::{EXCEEDED, FAILURE, NOT_EXECUTABLE, NOT_FOUND, Refusal, USAGE, say};
use std::ffi::OsString;

/// Runs the `rperf` command and returns its exit status.
///
/// `arguments` are without the program's name. Ends the process by a signal where the profiled program
/// ended so.
pub fn run(arguments: Vec<OsString>, installation: &Installation) -> i32 {
    let line = std::iter::once(OsString::from("rperf")).chain(arguments);
    let line: Vec<OsString> = line.collect();
    let args = match Args::of(line.clone()) {
        Ok(args) => args,
        Err(error) => {
            if let Some(refusal) = misuse::refusal(&error, &line) {
                say(&refusal.message);
                return refusal.status;
            }
            // Help goes to stdout, which somebody may have closed.
            let _ = error.print();
            return error.exit_code();
        }
    };
    run_subcommand(args.subcommand, installation).unwrap_or_else(|refusal| {
        say(&refusal.message);
        refusal.status
    })
}

fn run_subcommand(subcommand: Subcommand, installation: &Installation) -> Result<i32, Refusal> {
    let launch = |options: Options| {
        let launched = launch::launch(&options, installation.library()?)?;
        Ok(launched.status())
    };
    match subcommand {
        Subcommand::Record(args) => launch::runs::record(args, installation),
        Subcommand::Trace(args) => launch(Options::for_trace(args)?),
        Subcommand::Stat(args) => launch(Options::for_page(args.page, args.report)?),
        Subcommand::Exec(args) => launch(Options::for_page(args, true)?),
        Subcommand::Report(args) => match args.live {
            Some(pid) => {
                let (interval, opens_browser) = args.for_live()?;
                programs::viewer::run(pid, interval, opens_browser)
            }
            None => report::run(args),
        },
        Subcommand::Why(args) => why::run(&args),
        Subcommand::Diff(args) => diff::run(args),
        Subcommand::Ps(args) => programs::ps::run(&args),
        Subcommand::Stacks(args) => programs::stacks::run(&args),
        Subcommand::Memory(args) => memory::run(&args),
        Subcommand::Heap(args) => memory::heap::run(&args),
        Subcommand::Leak(args) => memory::leak::run(&args),
        Subcommand::Top(args) => programs::top::run(&args, installation),
        Subcommand::Attach(args) => attach::run(&args),
        Subcommand::Snapshot(args) => attach::snapshot::run(&args),
        Subcommand::Push(args) => fleet::push::run(&args, installation),
        Subcommand::Serve(args) => fleet::serve::run(&args),
        Subcommand::Help(args) => Ok(help::print(args.name.as_deref())),
    }
}
