//! A profile of some time: how far it is, and its encoding, on a native thread of its own. Used by
//! the port's thread.

use super::sampling::Sampling;
use super::state::Port;
use super::task::{Message, ProfileUpTo};
use crate::message::{Refusal, Request};
use rperf_format::pprof;
use rperf_model::{Note, Profile};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The longest time.
const LONGEST: f64 = 86_400.0;

/// The seconds of a profile if the request names none: Go's tools assume as many.
const USUAL: &str = "30";

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
    /// How its session samples, if it has one of its own.
    pub sampling: Sampling,
    /// For how long.
    pub time: Duration,
    /// How far it is.
    pub phase: Phase,
    /// What the session had before.
    pub base: Option<Arc<Profile>>,
    /// The session is the program's.
    pub is_of_program: bool,
}

impl Profiling {
    /// The profile that the request wants.
    pub fn of(request: &Request) -> Result<Self, Refusal> {
        let seconds = request.parameter("seconds").unwrap_or(USUAL);
        let seconds = seconds.parse::<f64>().ok();
        let seconds = seconds.filter(|it| (0.001..=LONGEST).contains(it));
        let seconds = seconds.ok_or_else(|| {
            let hint = format!("ask with seconds=0.001 to {LONGEST}");
            Refusal::new(400, "there is no such time", hint)
        })?;
        Ok(Profiling {
            sampling: Sampling::of(request)?,
            time: Duration::from_secs_f64(seconds),
            phase: Phase::Begins,
            base: None,
            is_of_program: false,
        })
    }

    /// The time begins.
    pub fn run(&mut self, base: Option<Arc<Profile>>) {
        self.base = base;
        self.phase = Phase::Runs(Instant::now() + self.time);
    }
}

/// Has the pprof file made for the client with this number: of what came after `base`, and with the
/// `comment`.
pub fn encode(
    port: &Port,
    client: u64,
    taken: ProfileUpTo,
    base: Option<Arc<Profile>>,
    comment: Option<String>,
) {
    let messages = port.messages();
    let make = move || encoded(taken, base, comment);
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
) -> Result<Vec<u8>, String> {
    let mut profile = Arc::unwrap_or_clone(taken.profile);
    if let Some(base) = base {
        let subtracted = profile.subtract(&base);
        subtracted.map_err(|error| error.to_string())?;
    }
    if let Some(helper) = taken.helper {
        profile.remove_thread(helper);
    }
    profile.meta.notes.extend(comment.map(Note::from));
    let mut content = Vec::new();
    let written = pprof::write(&profile, &mut content);
    written.map_err(|error| error.to_string())?;
    Ok(content)
}
