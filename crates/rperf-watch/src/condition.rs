//! What a program is doing, and what its user should know of that, as data.

use rperf_protocol::hello::{GvlHolder, Hello, Session};
use std::time::Duration;

/// A thread keeps the GVL, so that the VM doesn't answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stuck {
    /// Which one, if that is known.
    pub holder: Option<GvlHolder>,
    /// How long the VM has been silent.
    pub silence: Duration,
}

impl Stuck {
    /// What the program says of it.
    pub fn of(hello: Hello) -> Self {
        Stuck {
            holder: hello.holder,
            silence: Duration::from_nanos(hello.silent_ns),
        }
    }
}

/// What a program is doing, as far as that matters to those who ask it.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// The program answers, or hasn't been asked.
    Answers,
    /// The program runs no Ruby code: all its threads wait, or one keeps the GVL in native code.
    RunsNoRuby {
        /// The share of a CPU that it uses meanwhile, if that is known.
        share_of_cpu: Option<f64>,
    },
    /// The program doesn't answer: it has no helper that would, or its last answer hasn't come in time.
    NoAnswer,
    /// The program doesn't answer, as a thread keeps the GVL: that thread is known, or else
    /// a helper in the program would have answered.
    Stuck(Stuck),
    /// A signal or a debugger has stopped the program.
    Stopped,
    /// Another program runs in its process, or it has closed its port.
    Became,
    /// Its process has ended.
    Ended,
}

/// The rest of a profile is lost.
#[derive(Debug, Clone, PartialEq)]
pub struct Lost {
    /// What has become of the program.
    pub why: Condition,
    /// How long it was profiled, or asked in vain.
    pub elapsed: Duration,
    /// How much at the end the profile lacks; `None` if there is no profile.
    pub lacks: Option<Duration>,
}

/// What the user should know of a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Its condition is another one.
    Is(Condition),
    /// A session runs in it, which is watched.
    Watches {
        /// The session.
        session: Session,
        /// Whether the session is like the one that was wanted.
        is_as_wanted: bool,
    },
    /// The program has begun a session of its own in the place of ours.
    TookOver(Session),
    /// Its profile begins anew.
    BeginsAnew(Session),
    /// Its session has ended, and this one was asked for.
    Profiled(Session),
    /// The rest of its profile is lost.
    Lost(Lost),
    /// The program has ended its profile early.
    EndedEarly {
        /// The program's reason.
        why: String,
        /// The time that the profile is of.
        after: Duration,
    },
}

impl Event {
    /// Whether it is that the program doesn't answer, and may do so by and by.
    pub fn is_of_silence(&self) -> bool {
        matches!(
            self,
            Event::Is(Condition::RunsNoRuby { .. } | Condition::NoAnswer | Condition::Stuck(_))
        )
    }
}
