//! A profile of some time: how far it is, and its encoding, on a native thread of its own. Used by
//! the port's thread.

use crate::state::Port;
use crate::task::{Message, ProfileUpTo};
use rperf_format::pprof;
use rperf_model::{Note, Profile};
use rperf_protocol::ask::Wanted;
use rperf_protocol::measure::Measure;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

/// How far a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its session has to begin.
    Begins,
    /// A session runs, and what it has so far must be known.
    Joins,
    /// Until then.
    Runs(Instant),
    /// The time is over, and the VM has to say what came of it.
    Ends,
}

/// A client's profile.
pub struct Profiling {
    /// What it is to be of.
    pub wanted: Wanted,
    /// How far it is.
    pub phase: Phase,
    /// What the session had before.
    pub base: Option<Arc<Profile>>,
    /// The session is the program's.
    pub is_of_program: bool,
}

impl Profiling {
    /// A profile for which nothing has been done yet.
    pub fn of(wanted: Wanted) -> Self {
        Profiling {
            wanted,
            phase: Phase::Begins,
            base: None,
            is_of_program: false,
        }
    }

    /// The time begins.
    pub fn run(&mut self, base: Option<Arc<Profile>>) {
        self.base = base;
        self.phase = Phase::Runs(Instant::now() + self.wanted.time);
    }
}

/// Has the pprof file made for the client with this number: of what came after `base`, and with the
/// `comment`. If it lacks what is `wanted`, as a session that ran already has been joined, it says so.
pub fn encode(
    port: &Port,
    client: u64,
    taken: ProfileUpTo,
    base: Option<Arc<Profile>>,
    comment: Option<String>,
    wanted: Measure,
) {
    let messages = port.messages();
    let make = move || encoded(taken, base, comment, wanted);
    // The thread inherits the mask: it takes no signal either.
    let thread = thread::Builder::new().name("rperf-encode".into());
    let spawned = thread.spawn(move || {
        let content = make();
        let _ = messages.send(Message::Encoded(client, content));
        if let Some(port) = Port::current() {
            port.wake();
        }
    });
    if spawned.is_err() {
        let why = "the system gives no thread".into();
        port.hand_over(Message::Encoded(client, Err(why)));
    }
}

fn encoded(
    taken: ProfileUpTo,
    base: Option<Arc<Profile>>,
    comment: Option<String>,
    wanted: Measure,
) -> Result<Vec<u8>, String> {
    let mut profile = Arc::unwrap_or_clone(taken.profile);
    let is_part = base.is_some();
    if let Some(base) = base {
        let subtracted = profile.subtract(&base);
        subtracted.map_err(|error| error.to_string())?;
    }
    if let Some(helper) = taken.helper {
        profile.remove_thread(helper);
    }
    profile.meta.notes.extend(comment.map(Note::from));
    let lacking = wanted.lacking(&profile, is_part).into_iter();
    profile.meta.missing.extend(lacking.map(String::from));
    let mut content = Vec::new();
    let written = pprof::write(&profile, &mut content);
    written.map_err(|error| error.to_string())?;
    Ok(content)
}
