//! `Rperf::Native.cli`, which hands over to the crate rperf-cli. Called on Ruby's main thread, with
//! the GVL: nothing else of Ruby has to run while the command does.

use magnus::{Error, RModule, function, prelude::*};
use std::path::PathBuf;

/// Defines the function on `native`.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("cli", function!(cli, 3))
}

/// The whole `rperf` command; returns its exit status.
fn cli(arguments: Vec<PathBuf>, library: PathBuf, abi: String) -> i32 {
    let arguments = arguments.into_iter().map(PathBuf::into_os_string).collect();
    rperf_cli::run(arguments, &library, &abi)
}
