//! The `rperf` command: an executable that links no Ruby. lib/rperf/cli.rb starts it, or whoever has
//! it in PATH.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

use rperf_cli::Installation;

fn main() {
    let mut arguments = std::env::args_os().skip(1).collect();
    let installation = Installation::take(&mut arguments);
    std::process::exit(rperf_cli::run(arguments, &installation));
}
