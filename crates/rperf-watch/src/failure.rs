//! Why a program can't be asked, or nothing comes of it. Any thread.

use crate::condition::Lost;
use rperf_format::ReadError;
use rperf_protocol::delta::BadDelta;
use rperf_protocol::json::NotAReply;
use rperf_protocol::refusal::Refusal;
use std::io;

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// Nobody listens there any more.
    Closed,
    /// The system refuses the connection.
    Forbidden,
    /// Someone else listens there than was meant.
    Impostor {
        /// Its number.
        pid: i32,
        /// Its user.
        uid: u32,
    },
    /// Nothing came in time.
    Silent,
    /// What came is no answer.
    NotAReply(NotAReply),
    /// There is more than so many bytes of it.
    TooLarge(usize),
    /// What came is no page of changes.
    BadDelta(BadDelta),
    /// The port says why not.
    Refused(Refusal),
    /// Another version of the protocol.
    OtherProtocol(u32),
    /// The connection broke.
    Io(io::Error),
}

impl From<NotAReply> for AskError {
    fn from(error: NotAReply) -> Self {
        AskError::NotAReply(error)
    }
}

impl From<BadDelta> for AskError {
    fn from(error: BadDelta) -> Self {
        AskError::BadDelta(error)
    }
}

impl From<io::Error> for AskError {
    fn from(error: io::Error) -> Self {
        AskError::Io(error)
    }
}

/// Why nothing comes of a program.
#[derive(Debug)]
pub enum Failure {
    /// There is no such process.
    NoProcess,
    /// Its process belongs to this user, and we are neither that nor root.
    OtherUser(u32),
    /// A signal or a debugger has stopped the process.
    Stopped,
    /// No Ruby is in its process.
    NoRuby,
    /// Its user has more than so many programs, which is no reason to wait for all of them.
    TooMany(usize),
    /// The process has no port.
    NoPort,
    /// The program was asked in vain.
    Asking(AskError),
    /// Its calls are traced, and a trace isn't cut to a stretch of time.
    Traced,
    /// The program runs no Ruby code, so its session hasn't begun.
    RunsNoRuby,
    /// No Ruby code ran while a profile was waited for.
    NothingRan,
    /// The program was lost before there was a profile of it.
    Lost(Lost),
    /// The profile that it has sent is none.
    Unreadable(ReadError),
    /// There is no thread that could ask it.
    NoThread(io::Error),
    /// The thread that asked it has failed.
    Internal,
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        Failure::Asking(error)
    }
}
