//! `Rperf::Native.cli`, which hands over to the crate rperf-cli, and what
//! `Rperf::Options` must know of the system. Called on Ruby's main thread, with
//! the GVL: nothing else of Ruby has to run while the command does.

use magnus::{Error, RModule, Range, Ruby, function, prelude::*};
use std::path::PathBuf;

/// Defines the functions on `native`.
pub fn init(_ruby: &Ruby, native: RModule) -> Result<(), Error> {
    native.define_singleton_method("cli", function!(cli, 3))?;
    native.define_singleton_method("timer_signals", function!(timer_signals, 0))
}

/// The whole `rperf` command; returns its exit status.
fn cli(arguments: Vec<PathBuf>, library: PathBuf, abi: String) -> i32 {
    let arguments = arguments.into_iter().map(PathBuf::into_os_string).collect();
    rperf_cli::run(arguments, &library, &abi)
}

/// The signals that a timer may use, or nil where timers can't signal.
fn timer_signals(ruby: &Ruby) -> Result<Option<Range>, Error> {
    #[cfg(target_os = "linux")]
    let signals = Some(ruby.range_new(libc::SIGRTMIN(), libc::SIGRTMAX(), false)?);
    #[cfg(not(target_os = "linux"))]
    let signals = None;
    Ok(signals)
}
