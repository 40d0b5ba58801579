//! What a client sends: the bytes of its next request, and whether more will come. On the port's
//! thread.

use crate::socket::Socket;
use nix::sys::socket::{MsgFlags, recv};
use rperf_protocol::limits::MAX_REQUEST;
use rperf_protocol::message::{Request, parse_request};
use rperf_protocol::refusal::Refusal;
use std::os::fd::{AsFd, AsRawFd};

/// What has come of a client's requests, never more than [`MAX_REQUEST`] bytes, and what is known of
/// those to come.
#[derive(Default)]
pub(super) struct Asking {
    received: Vec<u8>,
    /// The connection ends with the answer to the last request.
    pub(super) closes: bool,
    /// The next request has come before the answer to the last one.
    pub(super) asks_on: bool,
    /// The client sends nothing any more, but may still read.
    pub(super) has_ended: bool,
}

impl Asking {
    /// Whether a part of the next request is there.
    pub(super) fn has_begun(&self) -> bool {
        !self.received.is_empty()
    }

    /// How many bytes may come.
    pub(super) fn room(&self) -> usize {
        MAX_REQUEST - self.received.len().min(MAX_REQUEST)
    }

    /// More bytes have come.
    pub(super) fn take_in(&mut self, bytes: &[u8]) {
        self.received.extend_from_slice(bytes);
    }

    /// The next request, once it is whole; why not, if it isn't any.
    pub(super) fn next_request(&mut self) -> Result<Option<Request>, Refusal> {
        let Some((request, length)) = parse_request(&self.received)? else {
            return Ok(None);
        };
        self.received.drain(..length);
        self.closes = request.closes;
        Ok(Some(request))
    }

    /// Looks which it is that can be read before the answer is there: the end, or the next request.
    pub(super) fn look(&mut self, socket: &Socket) {
        let descriptor = socket.as_fd().as_raw_fd();
        match recv(descriptor, &mut [0], MsgFlags::MSG_PEEK) {
            Ok(0) => self.has_ended = true,
            Ok(_) => self.asks_on = true,
            Err(_) => {}
        }
    }
}
