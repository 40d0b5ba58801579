//! The sums of a running program, pulled from time to time: the way to its session, which is begun
//! where there is none, and the pages of what has changed.

use crate::condition::{Condition, Event, Stuck};
use crate::failure::{AskError, Failure};
use crate::patience::{AGAIN, ANSWER, BETWEEN_SESSIONS, LOOK, TRIES};
use crate::process::State;
use crate::program::Program;
use crate::sums::Feed;
use rperf_model::Mode;
use rperf_model::shared_sums::{Cursor, SumsFacts};
use rperf_protocol::ask::{Ask, Sampling};
use rperf_protocol::delta::{BadDelta, Delta};
use rperf_protocol::hello::Session;
use rperf_protocol::limits::MAX_DELTA;
use rperf_protocol::measure::Measure;
use rperf_protocol::refusal::Refusal;
use rperf_session::process_id::ProcessId;
use std::mem;
use std::ops::Deref;
use std::time::{Duration, Instant};

/// The session that is begun where there is none.
pub const SESSION: Sampling = Sampling {
    mode: Mode::Wall,
    frequency: 1000,
    measure: Measure::NOTHING,
};

/// Pages of one pull at most: a table has fewer rows.
const MAX_PAGES: usize = 1 << 14;

/// What is known of a program after it was asked.
#[derive(Debug)]
pub enum News {
    /// The program has sent nothing new: it is stopped or runs no Ruby code, or its session hasn't begun.
    Waits,
    /// The program can be watched from now on.
    Begins,
    /// The profile has begun anew.
    BeginsAnew,
    /// An interval is over.
    Interval {
        /// The facts at its begin.
        before: SumsFacts,
        /// The VM has answered at its end.
        is_fresh: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The program hasn't said whether a session runs.
    New,
    /// A session was asked for.
    Asked,
    /// A session runs, and nothing is known of it.
    First,
    Watching,
}

/// A program whose sums are pulled.
pub struct Pull {
    program: Program,
    /// Facts about its session, as of the last page.
    pub facts: SumsFacts,
    cursor: Cursor,
    phase: Phase,
    /// How often the program couldn't begin one.
    failures: u32,
    /// The session was begun for us.
    is_ours: bool,
    /// Whether the program was watched before.
    has_begun: bool,
    /// An answer is under way since then.
    asked: Option<Instant>,
}

impl Deref for Pull {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

impl Pull {
    /// Connects to the port of the process.
    pub fn connect(process: ProcessId) -> Result<Self, Failure> {
        Program::connect(process).map(Self::of)
    }

    /// Nothing has been pulled from it.
    pub fn of(program: Program) -> Self {
        Pull {
            program,
            facts: SumsFacts::default(),
            cursor: Cursor::default(),
            phase: Phase::New,
            failures: 0,
            is_ours: false,
            has_begun: false,
            asked: None,
        }
    }

    /// What the user should know since this was last asked.
    pub fn take_events(&mut self) -> Vec<Event> {
        self.program.take_events()
    }

    /// Whether it is watched already.
    pub fn is_watched(&self) -> bool {
        self.phase == Phase::Watching
    }

    /// Why its VM doesn't answer, if it doesn't because a thread keeps the GVL.
    pub fn stuck(&self) -> Option<&Stuck> {
        match self.program.condition() {
            Condition::Stuck(stuck) => Some(stuck),
            _ => None,
        }
    }

    /// The mode of its session.
    pub fn mode(&self) -> Mode {
        self.facts.mode
    }

    /// Takes one step: asks the program for what has changed, or for a session. It may take `wait`
    /// for what needs its VM.
    pub fn step(&mut self, wait: Duration, feed: &Feed) -> Result<News, AskError> {
        match self.try_step(wait, feed) {
            // The port lets go of clients that are silent, as after a stop by Ctrl-Z.
            Err(AskError::Closed) if self.program.connect_anew() => {
                if self.phase == Phase::Asked {
                    self.phase = Phase::New;
                }
                self.asked = None;
                self.try_step(wait, feed)
            }
            result => result,
        }
    }

    fn try_step(&mut self, wait: Duration, feed: &Feed) -> Result<News, AskError> {
        if self.program.is_stopped() {
            self.program.sleep(AGAIN);
            return Ok(News::Waits);
        }
        if self.phase == Phase::New {
            self.phase = match self.program.renew()?.session {
                Some(_) => Phase::First,
                None => self.ask_for_session()?,
            };
        }
        if self.phase == Phase::Asked && !self.has_session(wait)? {
            return Ok(News::Waits);
        }
        let before = self.facts.clone();
        let is_first = self.phase == Phase::First;
        let is_fresh = match self.pull_patiently(wait, feed) {
            Err(AskError::Refused(it)) if it.code.is_of_vm() => return Ok(News::Waits),
            Err(AskError::Silent) if self.program.is_stopped() => return Ok(News::Waits),
            Err(AskError::Refused(it)) if it.code.lacks_session() => {
                self.ask_again(it)?;
                return Ok(News::Waits);
            }
            result => result?,
        };
        if is_first {
            if !is_fresh {
                return Ok(News::Waits);
            }
            (self.phase, self.has_begun) = (Phase::Watching, true);
            return Ok(News::Begins);
        }
        self.note_silence(is_fresh);
        let facts = &self.facts;
        if facts.start_ns == before.start_ns {
            return Ok(News::Interval { before, is_fresh });
        }
        let session = Session {
            mode: facts.mode.into(),
            frequency: facts.frequency,
        };
        self.program.tell(match mem::take(&mut self.is_ours) {
            true => Event::TookOver(session),
            false => Event::BeginsAnew(session),
        });
        Ok(News::BeginsAnew)
    }

    fn note_silence(&mut self, is_fresh: bool) {
        if is_fresh {
            self.program.note_answer();
        } else if let Some(stuck) = self.program.look(false)
            // In a session of ours there is a helper, which would answer if it came to run.
            && (self.is_ours || stuck.holder.is_some())
        {
            self.program.note(Condition::Stuck(stuck));
        }
    }

    fn ask_for_session(&mut self) -> Result<Phase, AskError> {
        self.program.ask_for_session(SESSION)?;
        Ok(Phase::Asked)
    }

    /// Whether the session that was asked for, or another one, has begun.
    fn has_session(&mut self, wait: Duration) -> Result<bool, AskError> {
        match self.program.session_begun(wait) {
            Err(AskError::Silent) => return Ok(false),
            // The VM had no room for it just now, or never has.
            Err(AskError::Refused(it)) if it.code.is_of_vm() => {
                self.failures += 1;
                if self.failures >= TRIES {
                    return Err(AskError::Refused(it));
                }
                self.program.sleep(AGAIN);
                self.phase = Phase::New;
                return Ok(false);
            }
            // The program was quicker.
            Err(AskError::Refused(it)) if it.code.has_other_session() => {}
            result => {
                result?;
                self.is_ours = true;
            }
        }
        self.failures = 0;
        self.phase = Phase::First;
        Ok(true)
    }

    /// There is no session any more, or none that can be watched, as `refusal` says.
    fn ask_again(&mut self, refusal: Refusal) -> Result<(), AskError> {
        self.phase = match &self.program.renew()?.session {
            Some(session) if session.is_trace() => return Err(AskError::Refused(refusal)),
            Some(_) => Phase::First,
            None => {
                if self.has_begun {
                    self.program.tell(Event::Profiled(SESSION.into()));
                }
                self.ask_for_session()?
            }
        };
        Ok(())
    }

    /// [`Pull::pull`]; where a session has ended, another one may begin in a moment.
    fn pull_patiently(&mut self, wait: Duration, feed: &Feed) -> Result<bool, AskError> {
        let patience = match self.phase {
            Phase::Watching => BETWEEN_SESSIONS,
            _ => Duration::ZERO,
        };
        let until = self.program.now() + patience;
        loop {
            match self.pull(wait, feed) {
                Err(AskError::Refused(it))
                    if it.code.lacks_session() && self.program.now() < until =>
                {
                    self.program.sleep(AGAIN);
                }
                result => return result,
            }
        }
    }

    /// All pages of what has changed. Returns whether the VM has answered.
    fn pull(&mut self, mut wait: Duration, feed: &Feed) -> Result<bool, AskError> {
        let mut is_fresh = false;
        for _ in 0..MAX_PAGES {
            let delta = self.page(wait)?;
            let more = delta.changes.more;
            is_fresh |= delta.freshness.is_fresh;
            // The rest is there already: nothing is to be done for it in the program.
            wait = Duration::ZERO;
            let (facts, cursor) = (delta.changes.facts.clone(), delta.changes.cursor);
            feed.take(delta)?;
            (self.facts, self.cursor) = (facts, cursor);
            if !more {
                return Ok(is_fresh);
            }
        }
        Err(BadDelta.into())
    }

    /// A page; the answer to what was asked before if that is under way.
    fn page(&mut self, wait: Duration) -> Result<Delta, AskError> {
        let asked = match self.asked {
            Some(asked) => asked,
            None => {
                let ask = Ask::Delta {
                    cursor: self.cursor,
                    wait,
                };
                self.program.client().ask(ask, ANSWER)?;
                *self.asked.insert(self.program.now())
            }
        };
        loop {
            match self.program.client().reply(MAX_DELTA, LOOK) {
                Err(AskError::Silent) => {
                    let now = self.program.now();
                    let is_stopped = self.program.state() == State::Stopped;
                    if is_stopped || now.duration_since(asked) >= ANSWER {
                        // The time until SIGCONT doesn't count.
                        self.asked = Some(now);
                        return Err(AskError::Silent);
                    }
                }
                result => {
                    self.asked = None;
                    return Ok(Delta::from_bytes(&result?.body)?);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
