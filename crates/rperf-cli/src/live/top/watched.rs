//! A program that `top` watches: the way to its session, which `top` begins where there is none,
//! and the pulls. On a thread of the command's for each program while it is asked.

use crate::Refusal;
use crate::live::process;
use rperf_model::Mode;
use rperf_model::shared_sums::{Cursor, SumsFacts};
use rperf_protocol::ask::Sampling;
use rperf_protocol::delta::{BadDelta, Delta};
use rperf_protocol::hello::{Hello, Keeper};
use rperf_protocol::refusal::Refusal as PortRefusal;
use rperf_watch::client::{AskError, Client};
use rperf_watch::sums::Feed;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How often a session is asked for that the program can't begin.
const TRIES: u32 = 4;

/// The session that is begun where there is none.
pub const SESSION: Sampling = Sampling {
    mode: Mode::Wall,
    frequency: 1000,
};

/// How long a program may take from the end of a session to the begin of the next one.
const BETWEEN_SESSIONS: Duration = Duration::from_secs(2);
/// How often it is asked meanwhile.
pub const AGAIN: Duration = Duration::from_millis(50);

/// How long the port may take beyond what it was told, and how often the program is looked at
/// meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(500);

/// A VM that has been silent for so long is kept from answering.
const STUCK: Duration = Duration::from_millis(900);

/// How often it is asked why its VM is silent.
const INQUIRY: Duration = Duration::from_millis(900);

/// Pages of one pull at most: a table has fewer rows.
const MAX_PAGES: usize = 1 << 14;

/// What is known of a program after it was asked.
#[derive(Debug)]
pub enum News {
    /// It runs no Ruby code, so its session hasn't begun, or nothing is known of it yet.
    Waits,
    /// It can be watched from now on.
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

/// A thread keeps the GVL, so that the VM doesn't answer.
#[derive(Debug, Clone)]
pub struct Stuck {
    /// Which one, if that is known.
    pub keeper: Option<Keeper>,
    /// How long the VM has been silent.
    pub silence: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It isn't known whether a session runs.
    New,
    /// A session was asked for.
    Asked,
    /// A session runs, and nothing is known of it.
    First,
    Watching,
}

/// A program.
pub struct Watched {
    /// Its process.
    pub pid: i32,
    /// What it says of itself.
    pub hello: Hello,
    /// Facts about its session, as of the last page.
    pub facts: SumsFacts,
    cursor: Cursor,
    client: Client,
    phase: Phase,
    /// How often the program couldn't begin one.
    failures: u32,
    /// The session was begun for us.
    is_ours: bool,
    /// It was watched before.
    has_begun: bool,
    /// An answer is under way since then.
    asked: Option<Instant>,
    /// It was said that the program is stopped.
    is_stopped: bool,
    /// The VM doesn't answer.
    stuck: Option<Stuck>,
    /// When it was last asked why, on a connection of its own.
    inquired: Option<Instant>,
    /// What the user should know.
    lines: Vec<String>,
}

impl Watched {
    /// Connects to the port of the process.
    pub fn connect(pid: i32) -> Result<Self, Refusal> {
        let mut client = process::connect(pid)?;
        let hello = client.hello();
        Ok(Watched {
            pid,
            hello: hello.map_err(|error| process::failed(pid, &error))?,
            facts: SumsFacts::default(),
            cursor: Cursor::default(),
            client,
            phase: Phase::New,
            failures: 0,
            is_ours: false,
            has_begun: false,
            asked: None,
            is_stopped: false,
            stuck: None,
            inquired: None,
            lines: Vec::new(),
        })
    }

    /// What the user should know since this was last asked.
    pub fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    /// Whether it is watched already.
    pub fn is_watched(&self) -> bool {
        self.phase == Phase::Watching
    }

    /// Why its VM doesn't answer, if it doesn't because a thread keeps the GVL.
    pub fn stuck(&self) -> Option<&Stuck> {
        self.stuck.as_ref()
    }

    /// The mode of its session.
    pub fn mode(&self) -> &str {
        &self.facts.mode
    }

    /// One step: the program is asked for what has changed, or for a session. It may take `wait`
    /// for what needs its VM.
    pub fn step(&mut self, wait: Duration, feed: &Feed) -> Result<News, AskError> {
        match self.try_step(wait, feed) {
            // The port lets go of clients that are silent, as after a stop by Ctrl-Z.
            Err(AskError::Closed) if self.connects_anew() => self.try_step(wait, feed),
            result => result,
        }
    }

    fn connects_anew(&mut self) -> bool {
        let Ok(Watched { client, hello, .. }) = Self::connect(self.pid) else {
            return false;
        };
        if self.phase == Phase::Asked {
            self.phase = Phase::New;
        }
        (self.client, self.hello, self.asked) = (client, hello, None);
        true
    }

    fn try_step(&mut self, wait: Duration, feed: &Feed) -> Result<News, AskError> {
        if self.waits_for_continuation() {
            sleep(AGAIN);
            return Ok(News::Waits);
        }
        if self.phase == Phase::New {
            self.look()?;
        }
        if self.phase == Phase::Asked && !self.has_session(wait)? {
            return Ok(News::Waits);
        }
        let before = self.facts.clone();
        let is_first = self.phase == Phase::First;
        let is_fresh = match self.pull_patiently(wait, feed) {
            Err(AskError::Refused(it)) if it.code.is_of_vm() => return Ok(News::Waits),
            Err(AskError::Silent) if self.waits_for_continuation() => return Ok(News::Waits),
            Err(AskError::Refused(it)) if it.code.lacks_session() => {
                self.ask_again(it)?;
                return Ok(News::Waits);
            }
            result => result?,
        };
        if !is_first {
            self.note_silence(is_fresh);
        }
        let facts = &self.facts;
        let is_other = facts.start_ns != before.start_ns;
        if is_first {
            if is_fresh {
                self.phase = Phase::Watching;
                self.has_begun = true;
            }
            return Ok(if is_fresh { News::Begins } else { News::Waits });
        }
        if is_other {
            let (pid, mode, frequency) = (self.pid, &facts.mode, facts.frequency);
            self.lines.push(match std::mem::take(&mut self.is_ours) {
                true => format!(
                    "{pid}: the program has begun a session of its own ({mode}, {frequency} Hz); \
                     watching that one"
                ),
                false => format!("{pid}: the profile begins anew ({mode}, {frequency} Hz)"),
            });
            return Ok(News::BeginsAnew);
        }
        Ok(News::Interval { before, is_fresh })
    }

    /// Whether it is stopped: then what was asked is answered later.
    fn waits_for_continuation(&mut self) -> bool {
        let is_stopped = process::is_stopped(self.pid);
        if is_stopped && !self.is_stopped {
            self.lines.push(process::stopped(self.pid));
        }
        self.is_stopped = is_stopped;
        is_stopped
    }

    fn note_silence(&mut self, is_fresh: bool) {
        let pid = self.pid;
        if is_fresh {
            self.inquired = None;
            if self.stuck.take().is_some() {
                self.lines.push(format!("{pid} answers again"));
            }
            return;
        }
        if self.inquired.is_some_and(|it| it.elapsed() < INQUIRY) {
            return;
        }
        self.inquired = Some(Instant::now());
        let Some(hello) = process::greeted(pid) else {
            return;
        };
        let silence = Duration::from_nanos(hello.silent_ns);
        // In a session of ours there is a helper, which would answer if it came to run.
        if silence < STUCK || !(self.is_ours || hello.keeper.is_some()) {
            return;
        }
        let stuck = Stuck {
            keeper: hello.keeper,
            silence,
        };
        if self.stuck.is_none() {
            let kept = process::kept(stuck.keeper.as_ref(), silence);
            self.lines.push(format!("{pid} doesn't answer: {kept}"));
        }
        self.stuck = Some(stuck);
    }

    fn look(&mut self) -> Result<(), AskError> {
        self.hello = self.client.hello()?;
        self.phase = match self.hello.session {
            Some(_) => Phase::First,
            None => self.ask_for_session()?,
        };
        Ok(())
    }

    fn ask_for_session(&mut self) -> Result<Phase, AskError> {
        self.client.ask_for_session(SESSION)?;
        Ok(Phase::Asked)
    }

    /// Whether the session that was asked for, or another one, has begun.
    fn has_session(&mut self, wait: Duration) -> Result<bool, AskError> {
        match self.client.session_begun(Instant::now() + wait) {
            Err(AskError::Silent) => return Ok(false),
            // The VM had no room for it just now, or never has.
            Err(AskError::Refused(it)) if it.code.is_of_vm() => {
                self.failures += 1;
                if self.failures >= TRIES {
                    return Err(AskError::Refused(it));
                }
                sleep(AGAIN);
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
    fn ask_again(&mut self, refusal: PortRefusal) -> Result<(), AskError> {
        self.hello = self.client.hello()?;
        match &self.hello.session {
            Some(session) if session.is_trace() => {
                return Err(AskError::Refused(refusal));
            }
            Some(_) => self.phase = Phase::First,
            None => {
                if self.has_begun {
                    self.lines.push(format!(
                        "{}: the program's session has ended; profiling it ({}, {} Hz)",
                        self.pid,
                        SESSION.mode.name(),
                        SESSION.frequency
                    ));
                }
                self.phase = self.ask_for_session()?;
            }
        }
        Ok(())
    }

    /// [`Watched::pull`]; where a session has ended, another one may begin in a moment.
    fn pull_patiently(&mut self, wait: Duration, feed: &Feed) -> Result<bool, AskError> {
        let patience = match self.phase {
            Phase::Watching => BETWEEN_SESSIONS,
            _ => Duration::ZERO,
        };
        let until = Instant::now() + patience;
        loop {
            match self.pull(wait, feed) {
                Err(AskError::Refused(it)) if it.code.lacks_session() && Instant::now() < until => {
                    sleep(AGAIN);
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
                self.client.ask_for_delta(self.cursor, wait)?;
                *self.asked.insert(Instant::now())
            }
        };
        loop {
            match self.client.delta_reply(Instant::now() + LOOK) {
                Err(AskError::Silent)
                    if asked.elapsed() < PATIENCE && !process::is_stopped(self.pid) => {}
                Err(AskError::Silent) => {
                    // The time until SIGCONT doesn't count.
                    self.asked = Some(Instant::now());
                    return Err(AskError::Silent);
                }
                result => {
                    self.asked = None;
                    return result;
                }
            }
        }
    }
}
