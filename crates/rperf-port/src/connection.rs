//! A client of the port. Reads a request, and nothing more until its answer is out: so a client
//! costs a bounded amount of memory, and holds up nobody else. On the port's thread.

use crate::profiling::Profiling;
use crate::socket::Socket;
use crate::socket::descriptors::Guarded;
use crate::step::Pull;
use crate::task::Task;
use answer::Answer;
use asking::Asking;
use rperf_protocol::ask::Sampling;
use rperf_protocol::measure::Measure;
use rperf_protocol::message::{Request, response};
use rperf_protocol::refusal::{Code, Refusal};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

mod answer;
mod asking;

/// How long a client may be connected without asking.
const IDLE: Duration = Duration::from_secs(60);
/// How long a request's head may take to come.
const HEAD: Duration = Duration::from_secs(2);
/// How long a client may take in nothing of an answer.
const STALLED: Duration = Duration::from_secs(5);

/// What a client is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing, or it is sending the head of a request.
    Asking,
    /// The client waits for an answer that isn't there yet.
    Waiting,
    /// The client takes in an answer.
    Answered,
    /// The client gets its answer from elsewhere.
    HandedOver,
}

/// What a client waits for that isn't there at once.
pub enum Wait {
    /// What this task is for: the VM's answer, or the system's.
    Answer(Task, MayWake),
    /// A session that samples so.
    Session(Sampling),
    /// A copy of the process that sends it the graph of all objects.
    Heap {
        /// However little memory is free, and however soon after the last one.
        force: bool,
        /// The VM may be woken for it.
        may_wake: MayWake,
        /// The VM was asked.
        is_asked: bool,
    },
    /// The profile up to now.
    Snapshot(MayWake),
    /// News of the session.
    News(Pull),
    /// A profile of some time.
    Profile(Profiling),
    /// An answer that another thread is making.
    Encoding,
}

/// Whether the VM may be woken for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MayWake(pub bool);

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The connection goes on.
    Stays,
    /// The connection ends.
    Ends,
}

/// Whether a client may ask. Who needs no token is always known.
pub struct Access {
    /// Whether the client has come over TCP, so each of its requests needs the token.
    pub needs_token: bool,
    /// Whether the last request had the token, if it needs one.
    pub is_known: bool,
}

/// What goes with a profile that a client waits for. What its answer says of it is forgotten then.
#[derive(Default)]
pub struct AboutProfile {
    /// Why it ended early, if it did.
    pub ended: Option<&'static str>,
    /// The VM was woken for it.
    pub is_woken: bool,
    /// The profile is to say of which process it is.
    pub names_process: bool,
}

/// A client. Its `phase` tells which part is at work: `asking`, `wait` or `answer`.
pub struct Connection {
    /// No other connection of this process has it.
    pub id: u64,
    stream: Guarded<Socket>,
    /// Whether the client may ask.
    pub access: Access,
    /// Whether the client has asked for news of the session.
    pub is_watching: bool,
    /// The session that clients have begun belongs to this one, too.
    pub holds_session: bool,
    phase: Phase,
    /// When the client last did something.
    since: Instant,
    asking: Asking,
    /// What the client waits for.
    pub wait: Option<Wait>,
    /// What its profile comes with.
    pub profile: AboutProfile,
    answer: Answer,
}

impl Connection {
    /// A client that has just connected.
    pub fn new(id: u64, stream: Guarded<Socket>, needs_token: bool) -> Self {
        let now = Instant::now();
        Connection {
            id,
            stream,
            access: Access {
                needs_token,
                is_known: !needs_token,
            },
            is_watching: false,
            holds_session: false,
            phase: Phase::Asking,
            since: now,
            asking: Asking::default(),
            wait: None,
            profile: AboutProfile::default(),
            answer: Answer::none(now),
        }
    }

    /// What it waits for, if that is news of the session.
    pub fn pull(&self) -> Option<Pull> {
        match self.wait {
            Some(Wait::News(pull)) => Some(pull),
            _ => None,
        }
    }

    /// Its socket.
    pub fn socket(&self) -> &Socket {
        &self.stream
    }

    /// Whether it is to be read from, and whether it is to be written to.
    pub fn wants(&self) -> (bool, bool) {
        (self.phase == Phase::Asking, self.phase == Phase::Answered)
    }

    /// What its profile is to have beside times.
    pub fn measure(&self) -> Measure {
        match &self.wait {
            Some(Wait::Profile(it)) => it.wanted.sampling.measure,
            _ => Measure::NOTHING,
        }
    }

    /// Whether it matters that the client sends nothing any more: it wants its profile now.
    pub fn watches_end_of_asking(&self) -> bool {
        let waits = matches!(self.wait, Some(Wait::Profile(_)));
        waits && !self.asking.has_ended && !self.asking.asks_on
    }

    /// While it is watched, something can be read: the end, or the next request.
    pub fn note_end_of_asking(&mut self) {
        self.asking.look(&self.stream);
    }

    /// Whether the client sends nothing any more.
    pub fn has_ended_asking(&self) -> bool {
        self.asking.has_ended
    }

    /// Whether the connection lies idle: nothing has come of the next request.
    fn is_idle(&self) -> bool {
        !self.asking.has_begun() && self.access.is_known
    }

    /// When its time is up.
    pub fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Asking if self.is_idle() => Some(self.since + IDLE),
            Phase::Asking => Some(self.since + HEAD),
            Phase::Waiting => None,
            Phase::Answered => Some(self.answer.due.min(self.since + STALLED)),
            Phase::HandedOver => Some(self.since),
        }
    }

    /// Whether it waits for a profile, or holds the memory of one that it hasn't taken in yet.
    pub fn holds_profile(&self) -> bool {
        let waits = matches!(
            self.wait,
            Some(Wait::Profile(_) | Wait::Snapshot(_) | Wait::Encoding)
        );
        waits || self.answer.is_profile
    }

    /// Somebody else answers, who has the connection by now: it ends here.
    pub fn hand_over(&mut self) {
        self.wait = None;
        self.phase = Phase::HandedOver;
        self.since = Instant::now();
    }

    /// Its time is up.
    pub fn time_is_up(&mut self) -> Fate {
        if self.phase == Phase::Asking && self.asking.has_begun() {
            let hint = "send the request at once";
            let refusal = Refusal::new(Code::TooSlow, "the request took too long to come", hint);
            let _ = (&*self.stream).write(&refusal.response(true));
        }
        Fate::Ends
    }

    /// Something can be read.
    pub fn read(&mut self) -> Fate {
        if !self.stream.is_ours() {
            return Fate::Ends;
        }
        let mut bytes = [0; 1024];
        let room = self.asking.room().min(bytes.len());
        match (&*self.stream).read(&mut bytes[..room]) {
            Ok(0) => Fate::Ends,
            Ok(count) => {
                // Who isn't known yet has no more time for it.
                if self.is_idle() {
                    self.since = Instant::now();
                }
                self.asking.take_in(&bytes[..count]);
                Fate::Stays
            }
            Err(error) => fate_of(&error),
        }
    }

    /// The next request, once it is whole. One that isn't any gets its answer here.
    pub fn next_request(&mut self) -> Option<Request> {
        if self.phase != Phase::Asking {
            return None;
        }
        match self.asking.next_request() {
            Ok(Some(request)) => {
                self.phase = Phase::Waiting;
                Some(request)
            }
            Ok(None) => None,
            Err(refusal) => {
                self.turn_away(&refusal);
                None
            }
        }
    }

    /// Whether the connection ends with the answer to its request.
    pub fn closes(&self) -> bool {
        self.asking.closes
    }

    /// The answer is this JSON.
    pub fn answer_json(&mut self, body: &str) {
        self.answer(response(body, self.closes()));
    }

    /// The answer says why not.
    pub fn refuse(&mut self, refusal: &Refusal) {
        self.answer(refusal.response(self.closes()));
    }

    /// The answer is the last one.
    pub fn turn_away(&mut self, refusal: &Refusal) {
        self.asking.closes = true;
        self.answer(refusal.response(true));
    }

    /// The answer is a profile.
    pub fn answer_profile(&mut self, bytes: Vec<u8>) {
        self.answer(bytes);
        self.answer.is_profile = true;
    }

    /// Sets the answer; [`Self::write`] sends as much of it as the client takes in.
    pub fn answer(&mut self, bytes: Vec<u8>) {
        self.since = Instant::now();
        self.answer = Answer::new(bytes, self.since);
        self.wait = None;
        self.asking.asks_on = false;
        self.phase = Phase::Answered;
    }

    /// Sends more of the answer.
    pub fn write(&mut self) -> Fate {
        if self.phase != Phase::Answered {
            return Fate::Stays;
        }
        if !self.stream.is_ours() {
            return Fate::Ends;
        }
        let is_out = match (&*self.stream).write(self.answer.rest()) {
            Ok(count) => {
                self.since = Instant::now();
                self.answer.note_sent(count)
            }
            Err(error) => return fate_of(&error),
        };
        if !is_out {
            return Fate::Stays;
        }
        self.answer = Answer::none(self.since);
        self.phase = Phase::Asking;
        match self.closes() || self.has_ended_asking() {
            true => Fate::Ends,
            false => Fate::Stays,
        }
    }
}

fn fate_of(error: &io::Error) -> Fate {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Fate::Stays,
        _ => Fate::Ends,
    }
}

#[cfg(test)]
mod tests;
