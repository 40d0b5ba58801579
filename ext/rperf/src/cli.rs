//! `Rperf::Native.cli`, which hands over to the crate rperf-cli. Called on Ruby's main thread, with
//! the GVL: nothing else of Ruby has to run while the command does.

use crate::push;
use magnus::{Error, RModule, Ruby, Value, function, prelude::*};
use rperf_cli::Parcel;
use rperf_push::Answer;
use std::path::PathBuf;

/// Defines the function on `native`.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("cli", function!(cli, 4))
}

/// The whole `rperf` command; returns its exit status. `sender.call(url, headers, body)` sends what
/// `rperf push` has.
fn cli(ruby: &Ruby, arguments: Vec<PathBuf>, library: PathBuf, abi: String, sender: Value) -> i32 {
    let arguments = arguments.into_iter().map(PathBuf::into_os_string).collect();
    let post = |parcel: &Parcel<'_>| {
        let headers = ruby.ary_from_iter(parcel.headers.iter().cloned());
        let body = ruby.str_from_slice(parcel.body);
        let found: Result<push::Found, Error> = sender.funcall("call", (parcel.url, headers, body));
        found.map_or_else(|error| Answer::nothing(error.to_string()), push::answer)
    };
    rperf_cli::run(arguments, &library, &abi, &post)
}
