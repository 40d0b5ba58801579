//! The client: asks the port of a program. It may be root, and the program hostile: what comes back
//! is bounded in bytes and in time, and whoever listens must be the process that was meant. On the
//! command's thread.

use crate::peer::Peer;
use crate::place::connect_to;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::Uid;
use rperf_model::live_table::Cursor;
use rperf_protocol::delta::{BadDelta, Delta};
use rperf_protocol::hello::Hello;
use rperf_protocol::message::{MAX_REPLY_HEAD, NotAReply, PROTOCOL, ReplyHead, parse_reply};
use rperf_protocol::shown;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of the answer to `/v1/hello` at most. It has less; later versions may have more.
const MAX_HELLO: usize = 256 << 10;

/// How long a port may take for what it knows without the VM.
const HELLO_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of a page of changes at most: names can be long.
const MAX_DELTA: usize = 64 << 20;

/// How long a page may take to come: the port answers within 2 s.
const DELTA_PATIENCE: Duration = Duration::from_secs(5);

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
    #[error("{error} ({hint})")]
    Refused {
        /// HTTP's number.
        status: u16,
        /// What is wrong.
        error: String,
        /// What to do.
        hint: String,
    },
    /// Another version of the protocol.
    #[error("its rperf speaks version {0} of the protocol, this one version {PROTOCOL}")]
    OtherProtocol(u32),
    /// The connection broke.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// An answer.
pub struct Reply {
    /// What it is.
    pub body: Vec<u8>,
    /// Why the profile in it ended early, if it did.
    pub ended: Option<String>,
    /// Whether the program's main thread was woken for it.
    pub is_woken: bool,
}

/// A connection to a port.
pub struct Client {
    stream: UnixStream,
    peer: Peer,
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
        self.hello_at("/v1/hello", patience)
    }

    fn hello_at(&mut self, path: &str, patience: Duration) -> Result<Hello, AskError> {
        let body = self.get(path, MAX_HELLO, patience)?;
        let hello = Hello::from_json(&body).ok_or(NotAReply)?;
        match hello.protocol {
            PROTOCOL => Ok(hello),
            other => Err(AskError::OtherProtocol(other)),
        }
    }

    /// What the program says of itself. The VM is asked for a sign of life, of which the next
    /// answer tells.
    pub fn hello_asking(&mut self, patience: Duration) -> Result<Hello, AskError> {
        self.hello_at("/v1/hello?ask=1", patience)
    }

    /// The answer to a GET of `path`, if it comes in time and has at most `most` bytes.
    pub fn get(&mut self, path: &str, most: usize, patience: Duration) -> Result<Value, AskError> {
        let until = Instant::now() + patience;
        self.ask(path, until)?;
        let reply = self.reply(most, until)?;
        let body = serde_json::from_slice(&reply.body);
        Ok(clean(body.map_err(|_| NotAReply)?))
    }

    /// What has changed in the session that runs since `cursor`. The port waits for the VM for
    /// `wait` at most.
    pub fn delta(&mut self, cursor: Cursor, wait: Duration) -> Result<Delta, AskError> {
        self.ask_for_delta(cursor, wait)?;
        self.delta_reply(Instant::now() + DELTA_PATIENCE)
    }

    /// Asks for that.
    pub fn ask_for_delta(&mut self, cursor: Cursor, wait: Duration) -> Result<(), AskError> {
        let path = format!("/v1/delta?at={cursor}&wait_ms={}", wait.as_millis());
        self.ask(&path, Instant::now() + DELTA_PATIENCE)
    }

    /// And waits for the reply. [`AskError::Silent`] if it isn't there in time: it can be waited for
    /// again.
    pub fn delta_reply(&mut self, until: Instant) -> Result<Delta, AskError> {
        Ok(Delta::from_bytes(&self.reply(MAX_DELTA, until)?.body)?)
    }

    /// Asks for a session, which ends with this connection at the latest. The reply comes when it
    /// has begun.
    pub fn ask_for_session(&mut self, mode: &str, frequency: u32) -> Result<(), AskError> {
        let path = format!("/v1/session?mode={mode}&frequency={frequency}");
        self.request("POST", &path, Instant::now() + HELLO_PATIENCE)
    }

    /// Waits for that reply. [`AskError::Silent`] if it isn't there in time: it can be waited for
    /// again.
    pub fn session_begun(&mut self, until: Instant) -> Result<(), AskError> {
        self.reply(MAX_HELLO, until).map(|_| ())
    }

    /// Sends a GET of `path`.
    pub fn ask(&mut self, path: &str, until: Instant) -> Result<(), AskError> {
        self.request("GET", path, until)
    }

    fn request(&mut self, method: &str, path: &str, until: Instant) -> Result<(), AskError> {
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
            status => {
                let body = serde_json::from_slice(&body);
                Err(refused(status, &clean(body.map_err(|_| NotAReply)?)))
            }
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

/// All texts in `body`, fit for a terminal.
fn clean(body: Value) -> Value {
    match body {
        Value::String(text) => Value::String(shown(&text).into_owned()),
        Value::Array(items) => items.into_iter().map(clean).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            fields
                .map(|(key, value)| (shown(&key).into_owned(), clean(value)))
                .collect()
        }
        other => other,
    }
}

fn refused(status: u16, body: &Value) -> AskError {
    let text = |key: &str| {
        let text = body.get(key).and_then(Value::as_str).unwrap_or_default();
        text.chars().take(500).collect()
    };
    AskError::Refused {
        status,
        error: text("error"),
        hint: text("hint"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread;

    /// What the client makes of a server that sends `bytes` and then waits, or goes.
    fn asked(bytes: &[u8], goes: bool) -> Result<Value, AskError> {
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
                client.get("/v1/hello", 1 << 20, Duration::from_millis(300))
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
    fn no_text_of_an_answer_commands_a_terminal() {
        let body = r#"{"a\u009b":["\u001b[2J",{"b":"\u202e"}],"c":1}"#;
        let length = body.len();
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}");
        let found = asked(text.as_bytes(), false).expect("an answer");
        assert_eq!(found.to_string(), r#"{"a ":[" [2J",{"b":" "}],"c":1}"#);
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
