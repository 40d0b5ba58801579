//! The client: asks the port of a program. It may be root, and the program hostile: what comes back
//! is bounded in bytes and in time, and whoever listens must be the process that was meant. On the
//! command's thread.

use crate::connection::Connection;
pub use crate::connection::Reply;
pub use crate::failure::AskError;
use crate::failure::Failure;
use crate::find;
use crate::process::{State, check, runs_ruby, state};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Uid;
use rperf_model::live_table::Cursor;
use rperf_protocol::PROTOCOL;
use rperf_protocol::ask::{Ask, Sampling};
use rperf_protocol::delta::Delta;
use rperf_protocol::hello::Hello;
use rperf_protocol::json::read;
use rperf_protocol::limits::{MAX_DELTA, MAX_HELLO, MAX_REPLY_HEAD, MAX_STACKS};
use rperf_protocol::message::{ReplyHead, parse_reply};
use rperf_protocol::refusal::Refusal;
use rperf_protocol::stacks::Stacks;
use rperf_report::terminal_text::shown;
use rperf_session::peer::Peer;
use rperf_session::place::connect_to;
use rperf_session::process_id::ProcessId;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a port may take for what it knows without the VM.
const HELLO_PATIENCE: Duration = Duration::from_secs(2);

/// How long stacks, or a page of changes, may take to come: the port itself gives up earlier.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a port.
pub struct Client {
    stream: UnixStream,
    peer: Peer,
    process: Option<ProcessId>,
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
        if !own.is_root() && !peer.is_trusted_by(own.as_raw()) {
            let Peer { pid, uid } = peer;
            return Err(AskError::Impostor { pid, uid });
        }
        Ok(Client {
            stream,
            peer,
            process: ProcessId::present(peer.pid),
            received: Vec::new(),
        })
    }

    /// The number of the process that listens; 0 if it has none here.
    pub fn pid(&self) -> i32 {
        self.peer.pid
    }

    /// Its user.
    pub fn uid(&self) -> u32 {
        self.peer.uid
    }

    /// Fails if it is another process than `pid`.
    pub fn expect_pid(self, pid: i32) -> Result<Self, AskError> {
        match self.peer {
            peer if peer.pid == pid => Ok(self),
            Peer { pid, uid } => Err(AskError::Impostor { pid, uid }),
        }
    }

    /// What the program says of itself.
    pub fn hello(&mut self) -> Result<Hello, AskError> {
        self.hello_within(HELLO_PATIENCE)
    }

    /// What the program says of itself, if it comes in time.
    pub fn hello_within(&mut self, patience: Duration) -> Result<Hello, AskError> {
        self.hello_to(false, patience)
    }

    /// What the program says of itself. The VM is asked for a sign of life, of which the next
    /// answer tells.
    pub fn hello_asking(&mut self, patience: Duration) -> Result<Hello, AskError> {
        self.hello_to(true, patience)
    }

    fn hello_to(&mut self, looks: bool, patience: Duration) -> Result<Hello, AskError> {
        let hello: Hello = self.get(Ask::Hello { looks }, MAX_HELLO, patience)?;
        match hello.protocol {
            PROTOCOL => Ok(hello),
            other => Err(AskError::OtherProtocol(other)),
        }
    }

    /// What its threads do, and its fibers if they are wanted. The main thread may be woken for that
    /// if it `may_wake`.
    pub fn stacks(
        &mut self,
        with_fibers: bool,
        may_wake: bool,
    ) -> Result<Stacks<'static>, AskError> {
        let ask = Ask::Stacks {
            with_fibers,
            may_wake,
        };
        self.get(ask, MAX_STACKS, PATIENCE)
    }

    /// The answer, if it comes in time and has at most `most` bytes.
    fn get<T: DeserializeOwned>(
        &mut self,
        ask: Ask,
        most: usize,
        patience: Duration,
    ) -> Result<T, AskError> {
        let until = Instant::now() + patience;
        self.ask(ask, until)?;
        Ok(read(&self.reply(most, until)?.body)?)
    }

    /// What has changed in the session that runs since `cursor`. The port waits for the VM for
    /// `wait` at most.
    pub fn delta(&mut self, cursor: Cursor, wait: Duration) -> Result<Delta, AskError> {
        self.ask_for_delta(cursor, wait)?;
        self.delta_reply(Instant::now() + PATIENCE)
    }

    /// Asks for that.
    pub fn ask_for_delta(&mut self, cursor: Cursor, wait: Duration) -> Result<(), AskError> {
        self.ask(Ask::Delta { cursor, wait }, Instant::now() + PATIENCE)
    }

    /// And waits for the reply. [`AskError::Silent`] if it isn't there in time: it can be waited for
    /// again.
    pub fn delta_reply(&mut self, until: Instant) -> Result<Delta, AskError> {
        Ok(Delta::from_bytes(&self.reply(MAX_DELTA, until)?.body)?)
    }

    /// Asks for a session, which ends with this connection at the latest. The reply comes when it
    /// has begun.
    pub fn ask_for_session(&mut self, sampling: Sampling) -> Result<(), AskError> {
        self.ask(Ask::Session(sampling), Instant::now() + HELLO_PATIENCE)
    }

    /// Waits for that reply. [`AskError::Silent`] if it isn't there in time: it can be waited for
    /// again.
    pub fn session_begun(&mut self, until: Instant) -> Result<(), AskError> {
        self.reply(MAX_HELLO, until).map(|_| ())
    }

    /// Sends a request.
    pub fn ask(&mut self, ask: Ask, until: Instant) -> Result<(), AskError> {
        let (method, path) = (ask.method(), ask.path());
        let request = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        self.send(&request, until)
    }

    /// The answer to what was asked, if it has at most `most` bytes. [`AskError::Silent`] if it
    /// isn't whole in time: it can be waited for again.
    pub fn reply(&mut self, most: usize, until: Instant) -> Result<Reply, AskError> {
        let head = self.receive_head(most, until)?;
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

    /// Nothing more will be asked: a profile that is under way ends now, and is the answer.
    pub fn end_asking(&self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Write)
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

/// Connects to the port of the process `pid`.
pub fn reach(pid: i32) -> Result<Client, Failure> {
    check(pid)?;
    let mut last = None;
    for path in find::of(pid) {
        match Client::connect(&path).and_then(|client| client.expect_pid(pid)) {
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
        Client::ask(self, ask, Instant::now() + patience)
    }

    fn reply(&mut self, most: usize, patience: Duration) -> Result<Reply, AskError> {
        Client::reply(self, most, Instant::now() + patience)
    }

    fn end_asking(&mut self) {
        // Where this fails, the connection has ended.
        let _ = Client::end_asking(self);
    }

    fn another(&self) -> Result<Box<dyn Connection>, Failure> {
        Ok(Box::new(reach(self.peer.pid)?))
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
            ("".into(), true, "its port is closed"),
            ("".into(), false, "its port doesn't answer"),
            ("HTTP/1.1 200".into(), false, "its port doesn't answer"),
            ("SMTP ready\r\n".into(), false, "no port of rperf's"),
            (
                format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(99_999)),
                false,
                "no port of rperf's",
            ),
            (
                length((1 << 20) + 1),
                false,
                "its answer has more than 1 MB",
            ),
            (length(usize::MAX), false, "its answer has more than 1 MB"),
            (length(10), false, "its port doesn't answer"),
            (
                format!("{}nonsense", length(8)),
                false,
                "no port of rperf's",
            ),
            (
                format!("{}{deep}", length(deep.len())),
                false,
                "no port of rperf's",
            ),
        ] {
            let began = Instant::now();
            let error = asked(text.as_bytes(), goes)
                .expect_err("no answer")
                .to_string();
            assert!(error.contains(expected), "{error} for {text:.60}");
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
        let error = asked(text.as_bytes(), false)
            .expect_err("refused")
            .to_string();
        assert_eq!(error, " [2Jno ( yes)");
    }

    #[test]
    fn another_process_than_the_one_meant_is_not_asked() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("1-1.sock");
        let _listener = UnixListener::bind(&path).expect("bound");
        let client = Client::connect(&path).expect("connected");
        assert_eq!(client.pid(), std::process::id() as i32);
        let error = client.expect_pid(1).err().expect("another").to_string();
        assert!(error.contains("another process's"), "{error}");
        std::fs::remove_file(&path).expect("removed");
        assert!(matches!(Client::connect(&path), Err(AskError::Closed)));
    }
}
