//! A connection to a program as the machine that watches it knows it, with the clock: tests script
//! it, without sockets and without waiting.

use crate::failure::{AskError, Failure};
use crate::patience::{ANSWER, HELLO, MEMORY};
use crate::process::State;
use rperf_protocol::PROTOCOL;
use rperf_protocol::ask::Ask;
use rperf_protocol::hello::Hello;
use rperf_protocol::json::read;
use rperf_protocol::limits::{MAX_HELLO, MAX_MEMORY, MAX_PROFILE, MAX_STACKS};
use rperf_protocol::memory::Memory;
use rperf_protocol::stacks::Stacks;
use serde::de::DeserializeOwned;
use std::thread;
use std::time::{Duration, Instant};

/// An answer.
pub struct Reply {
    /// What it is.
    pub body: Vec<u8>,
    /// Why the profile in it ended early, if it did.
    pub ended: Option<String>,
    /// Whether the program's main thread was woken for it.
    pub is_woken: bool,
}

/// A connection to the port of a program.
pub trait Connection: Send {
    /// The process that listens; 0 if it has no number here.
    fn pid(&self) -> i32;

    /// Sends a request.
    fn ask(&mut self, ask: Ask, patience: Duration) -> Result<(), AskError>;

    /// The answer to what was asked, if it has at most `most` bytes. [`AskError::Silent`] if it
    /// isn't whole in time: it can be waited for again.
    fn reply(&mut self, most: usize, patience: Duration) -> Result<Reply, AskError>;

    /// Nothing more will be asked: a profile that is under way ends now, and is the answer.
    fn end_asking(&mut self);

    /// Makes one more connection to the same process.
    fn another(&self) -> Result<Box<dyn Connection>, Failure>;

    /// The state of its process, as the system tells.
    fn state(&self) -> State;

    /// The time by the clock that patience is measured with.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Waits.
    fn sleep(&self, time: Duration) {
        thread::sleep(time);
    }
}

/// What can be asked of any connection, with an answer that is waited for.
pub trait Questions: Connection {
    /// The answer, if it comes in time and has at most `most` bytes.
    fn get<T: DeserializeOwned>(
        &mut self,
        ask: Ask,
        most: usize,
        patience: Duration,
    ) -> Result<T, AskError> {
        Ok(read(&self.answer(ask, most, patience)?.body)?)
    }

    /// The answer as it comes, if it comes in time and has at most `most` bytes.
    fn answer(&mut self, ask: Ask, most: usize, patience: Duration) -> Result<Reply, AskError> {
        let until = self.now() + patience;
        self.ask(ask, patience)?;
        let rest = until.saturating_duration_since(self.now());
        self.reply(most, rest)
    }

    /// What the program says of itself.
    fn hello(&mut self) -> Result<Hello, AskError> {
        self.hello_within(false, HELLO)
    }

    /// What the program says of itself, if it comes in time. The VM is asked for a sign of life if
    /// this `looks`: of that the next answer tells.
    fn hello_within(&mut self, looks: bool, patience: Duration) -> Result<Hello, AskError> {
        let hello: Hello = self.get(Ask::Hello { looks }, MAX_HELLO, patience)?;
        match hello.protocol {
            PROTOCOL => Ok(hello),
            other => Err(AskError::OtherProtocol(other)),
        }
    }

    /// What its threads do, and its fibers if they are wanted. The main thread may be woken for that
    /// if it `may_wake`.
    fn stacks(&mut self, with_fibers: bool, may_wake: bool) -> Result<Stacks<'static>, AskError> {
        let ask = Ask::Stacks {
            with_fibers,
            may_wake,
        };
        self.get(ask, MAX_STACKS, ANSWER)
    }

    /// What its memory is of; and its objects are walked if they are wanted. The main thread may be woken
    /// for that if it `may_wake`.
    fn memory(&mut self, with_objects: bool, may_wake: bool) -> Result<Memory, AskError> {
        let ask = Ask::Memory {
            with_objects,
            may_wake,
        };
        self.get(ask, MAX_MEMORY, MEMORY)
    }

    /// What its session has so far. The main thread may be woken for that if it `may_wake`.
    fn snapshot(&mut self, may_wake: bool, patience: Duration) -> Result<Reply, AskError> {
        self.answer(Ask::Snapshot { may_wake }, MAX_PROFILE, patience)
    }
}

impl<C: Connection + ?Sized> Questions for C {}
