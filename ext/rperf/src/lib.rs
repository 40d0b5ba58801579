//! The extension's entry point. Ruby calls [`init`] on the main thread when it
//! loads `rperf/rperf`; everything else is in the modules.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![allow(
    missing_docs,
    reason = "exports one C function, which a macro makes, and no Rust API"
)]

mod abi;
mod accounts;
mod fork;
mod interrupts;
mod labels;
mod made_session;
mod message;
mod native;
mod port;
mod probes;
mod profile;
mod push;
mod recording;
mod ruby;
mod running;
mod sampling;
mod settings;
mod text;
mod tracing;
mod variables;
mod whole;
mod without_gvl;

use magnus::{Error, Module, Ruby};
#[cfg(target_os = "linux")]
use rperf_vm::system_calls;

/// Defines `Rperf::Native`, and the classes beside it.
#[magnus::init(name = "rperf")]
fn init(ruby: &Ruby) -> Result<(), Error> {
    abi::check(ruby)?;
    #[cfg(target_os = "linux")]
    system_calls::learn();
    let rperf = ruby.define_module("Rperf")?;
    let native = rperf.define_module("Native")?;
    profile::init(ruby, rperf)?;
    settings::init(ruby, rperf)?;
    push::init(ruby, rperf)?;
    made_session::init(ruby, rperf)?;
    message::init(ruby)?;
    whole::init(native)?;
    ruby::init(ruby)?;
    running::roots::init();
    running::tracing::make_key();
    running::label_set::init(ruby, native)?;
    probes::init();
    labels::init(ruby);
    fork::watch();
    port::init(native)?;
    native::init(ruby, rperf, native)
}
