//! Why a program can't be asked, or nothing comes of it. Any thread.

use crate::condition::Lost;
use rperf_format::ReadError;
use rperf_protocol::PROTOCOL;
use rperf_protocol::delta::BadDelta;
use rperf_protocol::json::NotAReply;
use rperf_protocol::refusal::Refusal;
use std::io;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody listens there any more.
    #[error("its port is closed")]
    Closed,
    /// The system refuses the connection.
    #[error("its port belongs to another user")]
    Forbidden,
    /// Someone else listens there than was meant.
    #[error("its port is another process's (pid {pid}, uid {uid}): not asked")]
    Impostor {
        /// Its number.
        pid: i32,
        /// Its user.
        uid: u32,
    },
    /// Nothing came in time.
    #[error("its port doesn't answer")]
    Silent,
    /// What came is no answer.
    #[error(transparent)]
    NotAReply(#[from] NotAReply),
    /// There is more than so many bytes of it.
    #[error("its answer has more than {} MB", .0 >> 20)]
    TooLarge(usize),
    /// What came is no page of changes.
    #[error(transparent)]
    BadDelta(#[from] BadDelta),
    /// The port says why not.
    #[error(transparent)]
    Refused(Refusal),
    /// Another version of the protocol.
    #[error("its rperf speaks version {0} of the protocol, this one version {PROTOCOL}")]
    OtherProtocol(u32),
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Why nothing comes of a program.
#[derive(Debug)]
pub enum Failure {
    /// There is no such process.
    NoProcess,
    /// Its process belongs to this user, and we are neither that nor root.
    OtherUser(u32),
    /// It was stopped by a signal.
    Stopped,
    /// No Ruby is in its process.
    NoRuby,
    /// It has no port.
    NoPort,
    /// It was asked in vain.
    Asking(AskError),
    /// Its calls are traced, and a trace isn't cut to a stretch of time.
    Traced,
    /// It runs no Ruby code, so its session hasn't begun.
    RunsNoRuby,
    /// No Ruby code ran while a profile was waited for.
    NothingRan,
    /// It was lost before there was a profile of it.
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
