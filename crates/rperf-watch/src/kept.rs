//! A session that is kept in a program which has none of its own, and snapshots of the session that
//! runs.

use crate::failure::{AskError, Failure};
use crate::patience::{ANSWER, ASIDE, BEGIN, REST};
use crate::program::Program;
use crate::pull::SESSION;
use crate::take::read;
use rperf_model::Profile;
use rperf_session::process_id::ProcessId;
use std::time::{Duration, Instant};

/// A program, and the session that was asked for in it, if it had none.
pub struct KeptSession {
    process: ProcessId,
    own: Option<Own>,
    asked: Instant,
}

/// A session that ends with its connection.
struct Own {
    program: Program,
    /// Until then the next reply says whether it has.
    has_begun: bool,
}

impl KeptSession {
    /// Begins a session in the process if none runs. The error says why there is none yet.
    pub fn begin(pid: i32) -> Result<Self, Failure> {
        let mut kept = KeptSession {
            process: ProcessId::named(pid),
            own: None,
            asked: Instant::now(),
        };
        kept.see_to_session()?;
        Ok(kept)
    }

    fn see_to_session(&mut self) -> Result<(), Failure> {
        let mut program = match self.own.take() {
            Some(Own {
                program,
                has_begun: false,
            }) => program,
            // One that has begun has ended.
            _ => {
                let mut program = Program::connect(self.process)?;
                if program.hello.session.is_some() {
                    return Ok(());
                }
                program.ask_for_session(SESSION)?;
                program
            }
        };
        let begun = program.session_begun(BEGIN);
        match begun {
            // The program was quicker.
            Err(AskError::Refused(it)) if it.code.has_other_session() => Ok(()),
            // It begins with the first Ruby code that runs.
            Ok(()) | Err(AskError::Silent) => {
                self.own = Some(Own {
                    program,
                    has_begun: begun.is_ok(),
                });
                self.asked = Instant::now();
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Asks for something now and then: the port lets go of clients for which it has nothing to do.
    pub fn stay(&mut self) {
        if self.asked.elapsed() < REST {
            return;
        }
        self.asked = Instant::now();
        let Some(own) = &mut self.own else {
            return;
        };
        if !own.has_begun {
            // One that the program has begun meanwhile is as good.
            let _ = self.see_to_session();
        } else if own.program.renew_within(ASIDE).is_err() {
            self.own = None;
        }
    }

    /// What the session has so far, and how long the program took for it. It is asked on a new
    /// connection: an answer that comes late would be taken for another one.
    pub fn snapshot(&mut self) -> Result<(Profile, Duration), Failure> {
        let mut program = Program::connect(self.process)?;
        let mut began = Instant::now();
        let mut asked = program.snapshot(false, ANSWER);
        if lacks_session(&asked) {
            self.see_to_session()?;
            began = Instant::now();
            asked = program.snapshot(false, ANSWER);
        }
        let took = began.elapsed();
        if lacks_session(&asked) {
            return Err(Failure::RunsNoRuby);
        }
        Ok((read(&asked?.body)?, took))
    }
}

fn lacks_session<T>(asked: &Result<T, AskError>) -> bool {
    matches!(asked, Err(AskError::Refused(it)) if it.code.lacks_session())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::thread;

    fn reply(mut stream: &UnixStream, body: &str) {
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .expect("sent");
    }

    /// The first lines of so many requests.
    fn requests(stream: &UnixStream, count: usize) -> Vec<String> {
        let lines = BufReader::new(stream)
            .lines()
            .map(|line| line.expect("one"));
        let first = lines.filter(|line| line.ends_with("HTTP/1.1"));
        first.take(count).collect()
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_session_of_an_idle_program_is_waited_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let pid = std::process::id() as i32;
        let path = directory.path().join(format!("{pid}-5.sock"));
        let listener = UnixListener::bind(&path).expect("bound");
        let hello = include_str!("../../rperf-protocol/golden/least_hello.json");
        let begins = |kept: &KeptSession| kept.own.as_ref().map(|it| it.has_begun);
        let stay = |kept: &mut KeptSession| {
            kept.asked = Instant::now().checked_sub(REST).expect("a while ago");
            kept.stay();
        };
        thread::scope(|scope| {
            let port = scope.spawn(|| {
                let (stream, _) = listener.accept().expect("a client");
                assert!(requests(&stream, 1)[0].starts_with("GET /v1/hello "));
                reply(&stream, hello);
                assert!(requests(&stream, 1)[0].starts_with("POST /v1/session?"));
                stream
            });
            let mut kept = KeptSession::begin(pid).expect("asked for");
            let stream = port.join().expect("a connection");
            assert_eq!(begins(&kept), Some(false));
            stay(&mut kept);
            assert_eq!(begins(&kept), Some(false), "it is still waited for");
            reply(&stream, "{}");
            stay(&mut kept);
            assert_eq!(begins(&kept), Some(true));
            reply(&stream, hello);
            stay(&mut kept);
            assert_eq!(begins(&kept), Some(true));
            assert!(requests(&stream, 1)[0].starts_with("GET /v1/hello "));
        });
    }
}
