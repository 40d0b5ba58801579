//! Snapshots of a profile that is under way, for the case that its program ends before the profile is
//! there. They are waited for in steps.

use crate::connection::Connection;
use crate::failure::AskError;
use crate::patience::{ANSWER, STEP};
use crate::program::Program;
use rperf_protocol::ask::Ask;
use std::time::{Duration, Instant};

/// Snapshots are asked for so often, and at most for this share of the program's time.
pub const INTERVAL: Duration = Duration::from_secs(1);
const SHARE: u32 = 100;

/// The snapshots of a program.
pub struct Snapshots {
    /// A connection of their own, while it is of use.
    client: Option<Box<dyn Connection>>,
    /// When the one that is under way was asked for.
    asked: Option<Instant>,
    next: Instant,
    newest: Option<Snapshot>,
}

/// What the profile has been so far.
pub struct Snapshot {
    /// The profile as the program has sent it.
    pub file: Vec<u8>,
    /// When it was asked for.
    pub taken: Instant,
}

impl Snapshots {
    /// None yet; the first is asked for after an interval.
    pub fn none(now: Instant) -> Self {
        Snapshots {
            client: None,
            asked: None,
            next: now + INTERVAL,
            newest: None,
        }
    }

    /// Looks whether one of at most `most` bytes has come, or asks for the next one, if it is time and
    /// this `asks`.
    pub fn step(&mut self, program: &Program, most: usize, asks: bool) {
        let now = program.now();
        match self.asked {
            Some(asked) => self.look(asked, program, most, Duration::ZERO),
            None if asks && now >= self.next => self.ask(program, most),
            None => {}
        }
    }

    /// The newest.
    pub fn take(&mut self) -> Option<Snapshot> {
        self.newest.take()
    }

    /// Most come at once, and tell by that how long they take.
    fn ask(&mut self, program: &Program, most: usize) {
        let ask = Ask::Snapshot { may_wake: false };
        let now = program.now();
        self.client = self.client.take().or_else(|| program.another().ok());
        let is_asked = self
            .client
            .as_mut()
            .is_some_and(|client| client.ask(ask, ANSWER).is_ok());
        if is_asked {
            self.look(now, program, most, STEP);
        } else {
            self.end(now, now);
        }
    }

    fn look(&mut self, asked: Instant, program: &Program, most: usize, patience: Duration) {
        let Some(client) = &mut self.client else {
            return;
        };
        let reply = client.reply(most, patience);
        let now = program.now();
        match reply {
            Ok(reply) => {
                let (file, taken) = (reply.body, asked);
                self.newest = Some(Snapshot { file, taken });
                self.rest(asked, now);
            }
            Err(AskError::Silent) if now.duration_since(asked) <= ANSWER => {
                self.asked = Some(asked);
            }
            Err(_) => self.end(asked, now),
        }
    }

    /// An answer may come late, and be taken for another one: the next question has another connection.
    fn end(&mut self, asked: Instant, now: Instant) {
        self.client = None;
        self.rest(asked, now);
    }

    fn rest(&mut self, asked: Instant, now: Instant) {
        self.asked = None;
        let rest = now.duration_since(asked).min(ANSWER) * SHARE;
        self.next = now + rest.max(INTERVAL);
    }
}
