//! A running program at its user: the connection, what the program is doing, and why it is silent,
//! as data. On the command's threads, one for each program while it is asked.

use crate::client::reach;
use crate::condition::{Condition, Event, Stuck};
use crate::connection::{Connection, Questions, Reply};
use crate::failure::{AskError, Failure};
use crate::patience::{ASIDE, END, HELLO, LOOK, STUCK};
use crate::process::State;
use rperf_protocol::ask::{Ask, Sampling};
use rperf_protocol::hello::Hello;
use rperf_protocol::limits::MAX_HELLO;
use rperf_protocol::memory::Memory;
use rperf_protocol::stacks::Stacks;
use rperf_session::process_id::ProcessId;
use std::mem;
use std::time::{Duration, Instant};

/// A program with a port.
pub struct Program {
    /// Its process.
    pub pid: i32,
    /// What it says of itself.
    pub hello: Hello,
    client: Box<dyn Connection>,
    /// Asks while an answer is under way.
    aside: Option<Box<dyn Connection>>,
    condition: Condition,
    /// When it was asked why the VM is silent.
    looked: Option<Instant>,
    events: Vec<Event>,
}

impl Program {
    /// Connects to the port of the process.
    pub fn connect(process: ProcessId) -> Result<Self, Failure> {
        Self::greet(Box::new(reach(process)?), HELLO)
    }

    /// The program at the other end, if it says in time what it is.
    pub fn greet(mut client: Box<dyn Connection>, patience: Duration) -> Result<Self, Failure> {
        Ok(Program {
            pid: client.pid(),
            hello: client.hello_within(false, patience)?,
            client,
            aside: None,
            condition: Condition::Answers,
            looked: None,
            events: Vec::new(),
        })
    }

    /// What the user should know since this was last asked.
    pub fn take_events(&mut self) -> Vec<Event> {
        mem::take(&mut self.events)
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// What it is doing, as far as that has been noted.
    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// Notes its condition, which is told if it is of another kind than before.
    pub fn note(&mut self, condition: Condition) {
        let before = mem::replace(&mut self.condition, condition);
        if mem::discriminant(&before) != mem::discriminant(&self.condition) {
            self.events.push(Event::Is(self.condition.clone()));
        }
    }

    /// Notes that the VM has answered, which is told if it was stuck.
    pub(crate) fn note_answer(&mut self) {
        (self.looked, self.aside) = (None, None);
        match self.condition {
            Condition::Stuck(_) => self.note(Condition::Answers),
            _ => self.condition = Condition::Answers,
        }
    }

    /// Whether it was stopped: then what was asked is answered later. It is noted.
    pub fn is_stopped(&mut self) -> bool {
        let is_stopped = self.state() == State::Stopped;
        if is_stopped {
            self.note(Condition::Stopped);
        } else if self.condition == Condition::Stopped {
            self.condition = Condition::Answers;
        }
        is_stopped
    }

    /// The state of its process.
    pub fn state(&self) -> State {
        self.client.state()
    }

    /// What has become of it, once its connections were closed: a process that ends loses those
    /// first.
    pub(crate) fn end(&self) -> Condition {
        let until = self.now() + END;
        while self.state() != State::Gone {
            if self.now() > until {
                return Condition::Became;
            }
            self.sleep(Duration::from_millis(5));
        }
        Condition::Ended
    }

    /// Why nothing comes of it if its VM runs nothing for us, and isn't known to be kept from it.
    pub fn quiet(&self) -> Condition {
        let share = |now: Hello| {
            let elapsed = now.clock_ns.saturating_sub(self.hello.clock_ns).max(1);
            let used = now.cpu_ns.saturating_sub(self.hello.cpu_ns);
            used as f64 / elapsed as f64
        };
        Condition::RunsNoRuby {
            share_of_cpu: self.greeting().map(share),
        }
    }

    /// How long its VM has been silent, and which thread keeps the GVL meanwhile.
    pub(crate) fn silence(&self) -> Option<Stuck> {
        self.greeting().map(Stuck::of)
    }

    /// Whether its VM is stuck, asked if that wasn't done just now. The VM is asked for a sign of
    /// life if this `asks`.
    pub(crate) fn look(&mut self, asks: bool) -> Option<Stuck> {
        let now = self.now();
        if self.looked.is_some_and(|it| now.duration_since(it) < LOOK) {
            return None;
        }
        self.looked = Some(now);
        let hello = self.aside(|client| client.hello_within(asks, ASIDE));
        hello.map(Stuck::of).filter(|it| it.silence >= STUCK)
    }

    /// Makes one more connection to the program.
    pub(crate) fn another(&self) -> Result<Box<dyn Connection>, Failure> {
        self.client.another()
    }

    /// What it says of itself now, on a new connection: an answer that comes late would be taken for
    /// another one.
    fn greeting(&self) -> Option<Hello> {
        self.another().ok()?.hello_within(false, ASIDE).ok()
    }

    /// What it says of itself now, while an answer is under way.
    pub(crate) fn hello_aside(&mut self) -> Option<Hello> {
        self.aside(|client| client.hello_within(false, ASIDE))
    }

    /// Asks while an answer is under way. Where this fails, an answer may come late, and be taken for
    /// another one: then the next question has another connection.
    pub(crate) fn aside<T>(
        &mut self,
        ask: impl FnOnce(&mut dyn Connection) -> Result<T, AskError>,
    ) -> Option<T> {
        let mut client = match self.aside.take() {
            Some(client) => client,
            None => self.another().ok()?,
        };
        let answer = ask(&mut *client).ok()?;
        self.aside = Some(client);
        Some(answer)
    }

    /// Takes another connection in the place of the one that it has. Returns whether there is one.
    pub(crate) fn connect_anew(&mut self) -> bool {
        let connected = self.another().and_then(|it| Self::greet(it, HELLO));
        let is_there = connected.is_ok();
        if let Ok(Program { client, hello, .. }) = connected {
            (self.client, self.hello, self.aside) = (client, hello, None);
        }
        is_there
    }

    /// The connection, for answers that are waited for in steps.
    pub(crate) fn client(&mut self) -> &mut dyn Connection {
        &mut *self.client
    }

    pub(crate) fn now(&self) -> Instant {
        self.client.now()
    }

    pub(crate) fn sleep(&self, time: Duration) {
        self.client.sleep(time);
    }

    /// Asks it again what it says of itself.
    pub fn renew(&mut self) -> Result<&Hello, AskError> {
        self.renew_within(HELLO)
    }

    pub(crate) fn renew_within(&mut self, patience: Duration) -> Result<&Hello, AskError> {
        self.hello = self.client.hello_within(false, patience)?;
        Ok(&self.hello)
    }

    /// What its threads do, and its fibers if they are wanted. The main thread may be woken for that
    /// if it `may_wake`.
    pub fn stacks(
        &mut self,
        with_fibers: bool,
        may_wake: bool,
    ) -> Result<Stacks<'static>, AskError> {
        self.client.stacks(with_fibers, may_wake)
    }

    /// What its memory is of, as far as only it knows; and its objects are walked if they are wanted. The
    /// main thread may be woken for that if it `may_wake`.
    pub fn memory(&mut self, with_objects: bool, may_wake: bool) -> Result<Memory, AskError> {
        self.client.memory(with_objects, may_wake)
    }

    /// What its session has so far. The main thread may be woken for that if it `may_wake`.
    pub fn snapshot(&mut self, may_wake: bool, patience: Duration) -> Result<Reply, AskError> {
        self.client.snapshot(may_wake, patience)
    }

    /// Asks for a session, which ends with this connection at the latest. The reply comes when it
    /// has begun.
    pub(crate) fn ask_for_session(&mut self, sampling: Sampling) -> Result<(), AskError> {
        self.client.ask(Ask::Session(sampling), HELLO)
    }

    /// Waits for that reply. [`AskError::Silent`] if it isn't there in time: it can be waited for
    /// again.
    pub(crate) fn session_begun(&mut self, patience: Duration) -> Result<(), AskError> {
        self.client.reply(MAX_HELLO, patience).map(|_| ())
    }
}
