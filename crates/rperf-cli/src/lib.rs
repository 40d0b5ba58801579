//! The `rperf` command: options, running a program, terminal output.
//!
//! `exe/rperf` calls [`run`] on Ruby's main thread. A program's own Ruby calls the
//! public modules on the thread that ends a session. Nothing here knows Ruby. Commands that watch
//! several programs, draw, or start a browser, have threads of their own.

mod args;
mod attach;
mod checked;
mod command;
mod delivery;
mod diff;
mod fleet;
mod forward;
mod help;
mod launch;
mod live;
mod live_viewer;
mod misuse;
mod options;
mod output;
mod path_args;
mod process;
mod refusal;
mod report;
mod runs;
mod signals;
mod viewer;

pub use fleet::push::{Parcel, Post};

use args::{Args, Subcommand};
use options::Options;
use refusal::{EXCEEDED, FAILURE, NOT_EXECUTABLE, NOT_FOUND, Refusal, USAGE, say};
use signals::Actions;
use std::ffi::OsString;
use std::path::Path;

/// Runs the `rperf` command and returns its exit status.
///
/// `arguments` are without the program's name; `library` is the directory that holds
/// `rperf.rb`, and `abi` says which Rubies can load our extension; `post` sends over HTTP. Ends the process by a signal where the profiled program ended so.
pub fn run(arguments: Vec<OsString>, library: &Path, abi: &str, post: Post<'_>) -> i32 {
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
    let result = match args.subcommand {
        Subcommand::Record(args) => runs::record(args, library, abi),
        Subcommand::Trace(args) => {
            Options::for_trace(args).and_then(|options| launch::launch(&options, library, abi))
        }
        Subcommand::Stat(args) => Options::for_page(args.page, args.report)
            .and_then(|options| launch::launch(&options, library, abi)),
        Subcommand::Exec(args) => {
            Options::for_page(args, true).and_then(|options| launch::launch(&options, library, abi))
        }
        Subcommand::Report(args) => {
            let _signals = Actions::end_us();
            match args.live {
                Some(pid) => args.for_live().and_then(|(interval, opens_browser)| {
                    live_viewer::run(pid, interval, opens_browser)
                }),
                None => report::run(args),
            }
        }
        Subcommand::Diff(args) => {
            let _signals = Actions::end_us();
            diff::run(args)
        }
        Subcommand::Ps(args) => {
            let _signals = Actions::end_us();
            live::ps::run(&args)
        }
        Subcommand::Stacks(args) => {
            let _signals = Actions::end_us();
            live::stacks::run(&args)
        }
        Subcommand::Top(args) => {
            let _signals = Actions::end_us();
            live::top::run(&args, library)
        }
        Subcommand::Attach(args) => attach::run(&args),
        Subcommand::Snapshot(args) => {
            let _signals = Actions::end_us();
            attach::snapshot::run(&args)
        }
        Subcommand::Push(args) => fleet::push::run(&args, post),
        Subcommand::Serve(args) => fleet::serve::run(&args),
        Subcommand::Help(args) => return help::print(args.name.as_deref()),
    };
    match result {
        Ok(status) => status,
        Err(refusal) => {
            say(&refusal.message);
            refusal.status
        }
    }
}
