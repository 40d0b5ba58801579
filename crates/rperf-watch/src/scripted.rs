//! A program as tests script it: its answers and its state, by a clock that goes on only while
//! something is waited for.

use crate::connection::{Connection, Reply};
use crate::failure::{AskError, Failure};
use crate::process::State;
use crate::program::Program;
use rperf_protocol::ask::Ask;
use rperf_protocol::hello::{Hello, Session};
use rperf_protocol::refusal::{Code, Refusal};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// How long it takes until an answer is looked for again.
const STEP: Duration = Duration::from_millis(10);

/// The number of its process.
pub const PID: i32 = 77;

/// What a script is asked.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The question.
    pub ask: Ask,
    /// When it was asked.
    pub since: Duration,
    /// The time now.
    pub now: Duration,
    /// Nothing more will be asked on the connection.
    pub is_last: bool,
}

/// The answer, if there is one now.
pub type Answer = Option<Result<Vec<u8>, AskError>>;

struct World {
    began: Instant,
    now: Duration,
    state: Box<dyn Fn(Duration) -> State + Send>,
    answer: Box<dyn FnMut(Asked) -> Answer + Send>,
}

/// A connection to it.
pub struct Script {
    world: Arc<Mutex<World>>,
    asked: Option<Asked>,
    is_last: bool,
}

/// A program that is there and answers so.
pub fn program(answer: impl FnMut(Asked) -> Answer + Send + 'static) -> Program {
    program_in(|_| State::There, answer)
}

/// A program in this state at each time, which answers so.
pub fn program_in(
    state: impl Fn(Duration) -> State + Send + 'static,
    answer: impl FnMut(Asked) -> Answer + Send + 'static,
) -> Program {
    let world = World {
        began: Instant::now(),
        now: Duration::ZERO,
        state: Box::new(state),
        answer: Box::new(answer),
    };
    let script = Script {
        world: Arc::new(Mutex::new(world)),
        asked: None,
        is_last: false,
    };
    Program::greet(Box::new(script), Duration::from_secs(2)).expect("it says what it is")
}

/// Bytes as an answer.
pub fn found(bytes: impl Into<Vec<u8>>) -> Answer {
    Some(Ok(bytes.into()))
}

/// A refusal as an answer.
pub fn refused(code: Code) -> Answer {
    Some(Err(AskError::Refused(Refusal::new(code, "no", "yes"))))
}

/// What a program says of itself in which this session runs; `change` may change it.
pub fn hello(session: Option<&Session>, change: impl FnOnce(&mut Hello)) -> Answer {
    let golden = include_bytes!("../../rperf-protocol/golden/least_hello.json");
    let mut hello: Hello = rperf_protocol::json::read(golden).expect("one");
    hello.session = session.cloned();
    hello.silent_ns = 0;
    change(&mut hello);
    found(rperf_protocol::json::written(&hello))
}

impl Script {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().expect("no test has failed in it")
    }
}

impl Connection for Script {
    fn pid(&self) -> i32 {
        PID
    }

    fn ask(&mut self, ask: Ask, _: Duration) -> Result<(), AskError> {
        assert!(self.asked.is_none(), "{ask:?} while an answer is under way");
        let now = self.world().now;
        self.asked = Some(Asked {
            ask,
            since: now,
            now,
            is_last: false,
        });
        Ok(())
    }

    fn reply(&mut self, _: usize, patience: Duration) -> Result<Reply, AskError> {
        let until = self.world().now + patience;
        let asked = self.asked.expect("something was asked");
        loop {
            let mut world = self.world();
            let now = world.now;
            let is_last = self.is_last;
            let answer = (world.answer)(Asked {
                now,
                is_last,
                ..asked
            });
            if let Some(answer) = answer {
                drop(world);
                self.asked = None;
                return answer.map(|body| Reply {
                    body,
                    ended: None,
                    is_woken: false,
                });
            }
            if now >= until {
                return Err(AskError::Silent);
            }
            world.now = until.min(now + STEP);
        }
    }

    fn end_asking(&mut self) {
        self.is_last = true;
    }

    fn another(&self) -> Result<Box<dyn Connection>, Failure> {
        match self.state() {
            State::There => Ok(Box::new(Script {
                world: Arc::clone(&self.world),
                asked: None,
                is_last: false,
            })),
            State::Stopped => Err(Failure::Stopped),
            State::Gone => Err(Failure::NoProcess),
        }
    }

    fn state(&self) -> State {
        let world = self.world();
        (world.state)(world.now)
    }

    fn now(&self) -> Instant {
        let world = self.world();
        world.began + world.now
    }

    fn sleep(&self, time: Duration) {
        self.world().now += time;
    }
}
