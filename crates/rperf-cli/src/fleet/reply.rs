//! What `rperf serve` answers to one client. On a thread of its own for each.

use super::profile::of_all;
use super::programs::Programs;
use crate::clients::{Client, STEP, Stream, read};
use crate::say;
use rperf_format::pprof;
use rperf_protocol::access::Token;
use rperf_protocol::ask::{PPROF, Wanted, check_method};
use rperf_protocol::limits::MAX_REQUEST;
use rperf_protocol::message::{Request, bytes_response};
use rperf_protocol::refusal::{Code, Refusal};
use std::collections::HashSet;
use std::io;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

/// Seconds that a profile may take.
const SECONDS: RangeInclusive<f64> = 0.01..=3600.0;

/// Profiles that are under way at a time.
const MAX_PROFILES: usize = 2;

/// What all clients share.
pub struct Site {
    /// Whom they ask about.
    pub programs: Programs,
    /// Who asks must have it, if there is one.
    pub token: Option<Token>,
    profiles: AtomicUsize,
    /// What the last profile has said: it isn't said again.
    said: Mutex<HashSet<String>>,
}

impl Site {
    /// Nobody has asked yet.
    pub fn new(programs: Programs, token: Option<Token>) -> Self {
        Site {
            programs,
            token,
            profiles: AtomicUsize::new(0),
            said: Mutex::default(),
        }
    }

    /// Reads one request, and answers. A profile ends early if `ends`, or the client goes.
    pub fn serve(&self, client: &Client<impl Stream>, ends: &dyn Fn() -> bool) -> io::Result<()> {
        let stream = client.stream();
        let request = stream.block().and_then(|()| read(stream, ends));
        client.has_asked();
        let response = match request? {
            Ok(request) => self.response(&request, &|| ends() || stream.is_gone()),
            Err(refusal) => refusal.response(true),
        };
        stream.send(&response)
    }

    fn response(&self, request: &Request, ends: &dyn Fn() -> bool) -> Vec<u8> {
        let refusal = self.token.as_ref().and_then(|it| it.refusal(request));
        if let Some(refusal) = refusal {
            return refusal.response(true);
        }
        let answer = match request.path.strip_prefix(PPROF) {
            Some(name) => {
                let checked = check_method(request, "GET");
                checked.and_then(|()| self.answer(name, request, ends))
            }
            None => {
                let error = "there is nothing here";
                Err(Refusal::new(Code::NotFound, error, profile_hint()))
            }
        };
        answer.unwrap_or_else(|refusal| refusal.response(true))
    }

    fn answer(
        &self,
        name: &str,
        request: &Request,
        ends: &dyn Fn() -> bool,
    ) -> Result<Vec<u8>, Refusal> {
        match name {
            "" => Ok(bytes_response(
                200,
                "text/plain; charset=utf-8",
                "",
                self.index().as_bytes(),
                true,
            )),
            "profile" => {
                let content = self.profile(request, ends)?;
                let kind = "application/octet-stream";
                Ok(bytes_response(200, kind, "", &content, true))
            }
            _ => Err(Refusal::new(
                Code::NoSuchProfile,
                "rperf has no such profile of running programs",
                profile_hint(),
            )),
        }
    }

    fn index(&self) -> String {
        let present = self.programs.now();
        let mut text = "profile?seconds=30  the time of all threads of these programs, as a pprof \
                        file; also mode=cpu, frequency=100, measure=alloc=sampled,requests,ops\n\n"
            .to_string();
        for program in present.programs {
            text.push_str(&format!("{} {}\n", program.process.pid, program.name));
        }
        for line in present.silent.iter().chain(&present.hint) {
            text.push_str(&format!("{line}\n"));
        }
        text
    }

    fn profile(&self, request: &Request, ends: &dyn Fn() -> bool) -> Result<Vec<u8>, Refusal> {
        let wanted = Wanted::of(request, SECONDS)?;
        let _turn = Turn::take(&self.profiles)?;
        let present = self.programs.now();
        let nobody = present.says_nobody();
        let taken = of_all(present, wanted, ends);
        self.say(&taken.notes);
        let Some(profile) = taken.profile else {
            let why = || format!("there is no profile: {}", taken.notes.join("; "));
            let error = nobody.unwrap_or_else(why);
            let hint = "start programs with RPERF_LISTEN=1; 'rperf ps' lists those with a port";
            return Err(Refusal::new(Code::Failed, error, hint));
        };
        let mut content = Vec::new();
        let written = pprof::write(&profile, &mut content);
        written.map_err(|error| Refusal::new(Code::Internal, error.to_string(), "ask again"))?;
        Ok(content)
    }

    fn say(&self, notes: &[String]) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let notes: HashSet<_> = notes.iter().cloned().collect();
        for note in notes.difference(&said) {
            say(note);
        }
        *said = notes;
    }
}

/// A place among the profiles that are under way.
struct Turn<'a>(&'a AtomicUsize);

impl<'a> Turn<'a> {
    fn take(count: &'a AtomicUsize) -> Result<Self, Refusal> {
        let turn = Turn(count);
        match count.fetch_add(1, SeqCst) < MAX_PROFILES {
            true => Ok(turn),
            false => {
                let error = format!("{MAX_PROFILES} profiles are under way already");
                Err(Refusal::new(Code::Busy, error, "end one of them, or wait"))
            }
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

fn profile_hint() -> String {
    format!("ask for {PPROF}profile?seconds=30")
}

/// Says that `count` clients are being answered already. What has come is read, as the end of a
/// connection with unread bytes is an error to the other end.
pub fn turn_away(stream: &(impl Stream + ?Sized), count: usize) {
    let error = format!("{count} clients are being answered already");
    let refusal = Refusal::new(Code::Busy, error, "end one of them, or wait");
    let _ = stream
        .block()
        .and_then(|()| stream.receive(&mut [0; MAX_REQUEST], STEP));
    // It may be gone.
    let _ = stream.send(&refusal.response(true));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn who_is_turned_away_is_told_so() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        (&theirs)
            .write_all(b"GET / HTTP/1.1\r\n\r\n")
            .expect("sent");
        turn_away(&ours, 16);
        drop(ours);
        let mut answer = String::new();
        (&theirs).read_to_string(&mut answer).expect("read");
        assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
        assert!(answer.contains("16 clients"), "{answer}");
    }
}
