//! `Rperf::Native`'s functions for sessions of several processes, which the crate rperf-session
//! does. On a thread of the main Ractor, with the GVL.

use crate::profile::errors;
use magnus::{Error, RModule, Ruby, Symbol, function, prelude::*};
use rperf_session::event::Event;
use std::path::PathBuf;

/// Defines the functions on `native`.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("tell", function!(tell, 3))
}

/// `tell(directory, event, process)`: what has become of a process that this one has forked. If the
/// session has ended nobody wants to know.
fn tell(ruby: &Ruby, directory: PathBuf, event: Symbol, process: u64) -> Result<(), Error> {
    let name = event.name()?;
    let event = Event::named(&name, process, None)
        .ok_or_else(|| errors::argument(ruby, format!("there is no event :{name}")))?;
    let _ = event.tell(&directory);
    Ok(())
}
