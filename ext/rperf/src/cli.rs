//! `Rperf::Native.cli`, which hands over to the crate rperf-cli. Called on Ruby's main thread, with
//! the GVL: nothing else of Ruby has to run while the command does.

use crate::text;
use magnus::{Error, RModule, RString, Ruby, Value, function, prelude::*};
use rperf_cli::{Answer, Parcel};
use std::path::PathBuf;
use std::time::Duration;

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
        let answer = sender.funcall("call", (parcel.url, headers, body));
        let answer: Result<(u16, String, RString, f64), Error> = answer;
        match answer {
            Ok((status, said, body, retry_after)) => Answer {
                status,
                said,
                body: text::bytes(body),
                retry_after: Duration::try_from_secs_f64(retry_after).ok(),
            },
            Err(error) => Answer::nothing(error.to_string()),
        }
    };
    rperf_cli::run(arguments, &library, &abi, &post)
}
