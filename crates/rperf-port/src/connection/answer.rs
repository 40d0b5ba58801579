//! The answer that a client takes in. On the port's thread.

use std::time::{Duration, Instant};

/// How long a client may take for a small answer, however steadily it reads.
const SMALL_ANSWER: Duration = Duration::from_secs(30);
/// The slowest reader, in bytes a second, that gets a large answer whole.
const SLOWEST_READER: u64 = 64 * 1024;

/// An answer, of which no more is sent than there is. It has no bytes while there is none.
pub(super) struct Answer {
    bytes: Vec<u8>,
    sent: usize,
    pub(super) is_profile: bool,
    /// When it is to be out.
    pub(super) due: Instant,
}

impl Answer {
    /// An answer of these bytes, which are there `now`.
    pub(super) fn new(bytes: Vec<u8>, now: Instant) -> Self {
        let at_slowest = Duration::from_secs(bytes.len() as u64 / SLOWEST_READER);
        Self {
            bytes,
            sent: 0,
            is_profile: false,
            due: now + SMALL_ANSWER.max(at_slowest),
        }
    }

    /// No answer.
    pub(super) fn none(now: Instant) -> Self {
        Self::new(Vec::new(), now)
    }

    /// What the client hasn't taken in yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// The client has taken in so many bytes more. Returns whether it has all.
    pub(super) fn note_sent(&mut self, count: usize) -> bool {
        self.sent += count;
        self.sent >= self.bytes.len()
    }

    /// Whether the client has taken in anything.
    #[cfg(test)]
    pub(super) fn has_begun(&self) -> bool {
        self.sent > 0
    }
}
