//! The client: asks the port of a program. It may be root, and the program hostile: what comes back
//! is bounded in bytes and in time, and whoever listens must be the process that was meant. On the
//! command's thread.

use crate::connection::{Connection, Reply};
use crate::failure::{AskError, Failure};
use crate::find;
use crate::process::{State, check, runs_ruby, state, user};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Uid;
use rperf_protocol::ask::Ask;
use rperf_protocol::json::NotAReply;
use rperf_protocol::limits::MAX_REPLY_HEAD;
use rperf_protocol::message::{ReplyHead, parse_reply};
use rperf_protocol::refusal::Refusal;
use rperf_report::terminal_text::shown;
use rperf_session::peer::Peer;
use rperf_session::place::connect_to;
use rperf_session::process_id::ProcessId;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection to a port.
pub struct Client {
    stream: UnixStream,
    peer: Peer,
    process: Option<ProcessId>,
    /// The user that the process has now.
    uid: u32,
    received: Vec<u8>,
}

impl Client {
    /// Connects to the port at `path`. Only root asks processes of other users.
    pub fn connect(path: &Path) -> Result<Self, AskError> {
        let stream = connect_to(path).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => AskError::Closed,
            io::ErrorKind::PermissionDenied => AskError::Forbidden,
            // Those that wait to be taken in are too many.
            io::ErrorKind::WouldBlock => AskError::Silent,
            _ => AskError::Io(error),
        })?;
        let peer = Peer::of(&stream)?;
        let own = Uid::effective();
        let process = ProcessId::present(peer.pid);
        let uid = user(peer.pid).unwrap_or(peer.uid);
        // The process that listened first can have ended, and its number be another user's by now.
        let is_trusted = peer.is_trusted_by(own.as_raw()) || own.is_root() && uid == peer.uid;
        if !is_trusted {
            let Peer { pid, uid } = peer;
            return Err(AskError::Impostor { pid, uid });
        }
        Ok(Client {
            stream,
            peer,
            process,
            uid,
            received: Vec::new(),
        })
    }

    /// The user with whose rights its process runs now: it may have listened as root before.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// Its process.
    pub fn process(&self) -> ProcessId {
        let (pid, start) = (self.peer.pid, 0);
        self.process.unwrap_or(ProcessId { pid, start })
    }

    /// Fails if it is another process than this one, such as a later one with its number.
    pub fn expect(self, process: ProcessId) -> Result<Self, AskError> {
        let Peer { pid, uid } = self.peer;
        let is_later = process.start > 0 && self.process != Some(process);
        match pid == process.pid {
            true if is_later => Err(AskError::Closed),
            true => Ok(self),
            false => Err(AskError::Impostor { pid, uid }),
        }
    }

    /// What was asked is answered by bytes without a known end: those that come from here on. Each piece
    /// comes within `patience`, and all of them within `most`.
    pub fn stream(mut self, patience: Duration, most: Duration) -> Result<Stream, AskError> {
        let now = Instant::now();
        let head = self.receive_head(MAX_REFUSAL, now + patience)?;
        let mut body = self.received.split_off(head.length);
        if head.is_stream && head.status == 200 {
            self.received = body;
            return Ok(Stream {
                client: self,
                patience,
                until: now + most,
            });
        }
        while body.len() < head.body {
            self.received.clear();
            self.receive(now + patience)?;
            body.extend_from_slice(&self.received);
        }
        match head.status {
            200 => Err(AskError::NotAReply(NotAReply)),
            status => Err(AskError::Refused(Refusal::read(status, &body)?)),
        }
    }

    fn receive_head(&mut self, most: usize, until: Instant) -> Result<ReplyHead, AskError> {
        loop {
            match parse_reply(&self.received)? {
                Some(head) if head.body > most => return Err(AskError::TooLarge(most)),
                Some(head) => return Ok(head),
                None => self.receive(until)?,
            }
        }
    }

    fn send(&mut self, text: &str, until: Instant) -> Result<(), AskError> {
        let mut rest = text.as_bytes();
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(count) => rest = &rest[count..],
                // It may have said why before it ended the connection.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
                Err(error) => self.wait(error, PollFlags::POLLOUT, until)?,
            }
        }
        Ok(())
    }

    /// Waits for more bytes.
    fn receive(&mut self, until: Instant) -> Result<(), AskError> {
        let mut bytes = [0; MAX_REPLY_HEAD];
        match (&self.stream).read(&mut bytes) {
            Ok(0) => Err(AskError::Closed),
            Ok(count) => {
                self.received.extend_from_slice(&bytes[..count]);
                Ok(())
            }
            Err(error) => self.wait(error, PollFlags::POLLIN, until),
        }
    }

    /// After `error`: if there was nothing to be had yet, waits for it.
    fn wait(&self, error: io::Error, flags: PollFlags, until: Instant) -> Result<(), AskError> {
        match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::Interrupted => return Ok(()),
            io::ErrorKind::ConnectionReset => return Err(AskError::Closed),
            _ => return Err(error.into()),
        }
        let rest = until.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Err(AskError::Silent);
        }
        let rest = PollTimeout::try_from(rest + Duration::from_millis(1));
        let mut descriptors = [PollFd::new(self.stream.as_fd(), flags)];
        match poll(&mut descriptors, rest.unwrap_or(PollTimeout::MAX)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// Bytes of a refusal at most.
const MAX_REFUSAL: usize = 64 << 10;

/// An answer whose length isn't known.
pub struct Stream {
    client: Client,
    patience: Duration,
    until: Instant,
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let client = &mut self.client;
        if client.received.is_empty() {
            let until = self.until.min(Instant::now() + self.patience);
            loop {
                match (&client.stream).read(bytes) {
                    Ok(count) => return Ok(count),
                    Err(error) => match client.wait(error, PollFlags::POLLIN, until) {
                        Ok(()) => {}
                        Err(AskError::Io(error)) => return Err(error),
                        Err(AskError::Silent) => return Err(io::ErrorKind::TimedOut.into()),
                        Err(_) => return Ok(0),
                    },
                }
            }
        }
        let count = client.received.len().min(bytes.len());
        bytes[..count].copy_from_slice(&client.received[..count]);
        client.received.drain(..count);
        Ok(count)
    }
}

/// Connects to the port of the process.
pub fn reach(process: ProcessId) -> Result<Client, Failure> {
    let pid = process.pid;
    check(pid)?;
    if !process.is_alive() {
        return Err(AskError::Closed.into());
    }
    let mut last = None;
    for path in find::of(pid) {
        match Client::connect(&path).and_then(|client| client.expect(process)) {
            Ok(client) => return Ok(client),
            Err(AskError::Closed) => {}
            Err(error) => last = Some(error),
        }
    }
    Err(match last {
        Some(error) => error.into(),
        None if runs_ruby(pid) == Some(false) => Failure::NoRuby,
        None => Failure::NoPort,
    })
}

impl Connection for Client {
    fn pid(&self) -> i32 {
        self.peer.pid
    }

    fn ask(&mut self, ask: Ask, patience: Duration) -> Result<(), AskError> {
        let (method, path) = (ask.method(), ask.path());
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.send(&request, Instant::now() + patience)
    }

    fn reply(&mut self, most: usize, patience: Duration) -> Result<Reply, AskError> {
        let until = Instant::now() + patience;
        let head = self.receive_head(most, until)?;
        if head.is_stream {
            return Err(AskError::NotAReply(NotAReply));
        }
        let end = head.length + head.body;
        while self.received.len() < end {
            self.receive(until)?;
        }
        let mut body = self.received.split_off(head.length);
        self.received = body.split_off(head.body);
        match head.status {
            200 => Ok(Reply {
                body,
                ended: head.ended.map(|why| shown(&why).into_owned()),
                is_woken: head.is_woken,
            }),
            status => Err(AskError::Refused(Refusal::read(status, &body)?)),
        }
    }

    fn end_asking(&mut self) {
        // Where this fails, the connection has ended.
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn another(&self) -> Result<Box<dyn Connection>, Failure> {
        Ok(Box::new(reach(self.process())?))
    }

    fn state(&self) -> State {
        match self.process {
            Some(process) if !process.is_alive() => State::Gone,
            _ => state(self.peer.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::Questions;
    use rperf_protocol::hello::Hello;
    use std::os::unix::net::UnixListener;
    use std::thread;

    /// What the client makes of a server that sends `bytes` and then waits, or goes.
    fn asked(bytes: &[u8], goes: bool) -> Result<Hello, AskError> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-1.sock");
        let listener = UnixListener::bind(&path).expect("bound");
        thread::scope(|scope| {
            let (over, wait) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().expect("a client");
                // The client may have seen enough.
                let _ = stream.write_all(bytes);
                if !goes {
                    let _ = wait.recv();
                }
            });
            let result = Client::connect(&path).and_then(|mut client| {
                let ask = Ask::Hello { looks: false };
                client.get(ask, 1 << 20, Duration::from_millis(300))
            });
            drop(over);
            result
        })
    }

    #[test]
    fn a_hostile_server_cannot_make_it_wait_or_fill_its_memory() {
        let length = |number: usize| format!("HTTP/1.1 200 OK\r\nContent-Length: {number}\r\n\r\n");
        let deep = "[".repeat(100_000);
        for (text, goes, expected) in [
            ("".into(), true, AskError::Closed),
            ("".into(), false, AskError::Silent),
            ("HTTP/1.1 200".into(), false, AskError::Silent),
            (
                "SMTP ready\r\n".into(),
                false,
                AskError::NotAReply(NotAReply),
            ),
            (
                format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(99_999)),
                false,
                AskError::NotAReply(NotAReply),
            ),
            (length((1 << 20) + 1), false, AskError::TooLarge(1 << 20)),
            (length(usize::MAX), false, AskError::TooLarge(1 << 20)),
            (length(10), false, AskError::Silent),
            (
                format!("{}nonsense", length(8)),
                false,
                AskError::NotAReply(NotAReply),
            ),
            (
                format!("{}{deep}", length(deep.len())),
                false,
                AskError::NotAReply(NotAReply),
            ),
        ] {
            let began = Instant::now();
            let error = asked(text.as_bytes(), goes).expect_err("no answer");
            assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{text:.60}");
            assert!(began.elapsed() < Duration::from_secs(20));
        }
    }

    #[test]
    fn what_a_refusal_says_commands_no_terminal() {
        let body = r#"{"error":"\u001b[2Jno","hint":"\u202eyes"}"#;
        let text = format!(
            "HTTP/1.1 403 x\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let Err(AskError::Refused(refusal)) = asked(text.as_bytes(), false) else {
            panic!("not refused");
        };
        assert_eq!(refusal.to_string(), " [2Jno ( yes)");
    }

    #[test]
    fn another_process_than_the_one_meant_is_not_asked() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-1.sock");
        let _listener = UnixListener::bind(&path).expect("bound");
        let client = Client::connect(&path).expect("connected");
        assert_eq!(client.pid(), std::process::id() as i32);
        let own = ProcessId::own();
        let client = client.expect(own).expect("the one that is meant");
        let start = own.start + 1;
        let later = client.expect(ProcessId { start, ..own });
        assert!(own.start == 0 || matches!(later, Err(AskError::Closed)));
        let client = Client::connect(&path).expect("connected");
        let error = client.expect(ProcessId::named(1)).err().expect("another");
        assert!(matches!(error, AskError::Impostor { pid, .. } if pid == own.pid));
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(Client::connect(&path), Err(AskError::Closed)));
    }
}
