//! `rperf report --live PID`: the web viewer on snapshots of a running program, which are taken at an
//! interval, and whenever the user wants one. On Ruby's main thread, on one that takes snapshots, and
//! on those of the viewer's requests.

mod current;
mod page_data;

use crate::live::process;
use crate::live::top::watched::SESSION;
use crate::viewer::{self, Answer, Site};
use crate::{FAILURE, Refusal, say};
use current::Current;
use page_data::data;
use rperf_format::viewer::Comparison;
use rperf_model::Profile;
use rperf_protocol::ask::Ask;
use rperf_protocol::limits::MAX_PROFILE;
use rperf_watch::client::{AskError, Client};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Snapshots that are kept, and their bytes.
const MOST: usize = 50;
const MOST_BYTES: usize = 256 << 20;

/// How long the program may take for one.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many times as long as the last one took, none is taken.
const SHARE: u32 = 10;

/// How often the program is asked for something: its port lets go of clients that are silent.
const REST: Duration = Duration::from_secs(20);

/// Serves the viewer until a signal ends it.
pub fn run(pid: i32, interval: Duration, opens_browser: bool) -> Result<i32, Refusal> {
    let mut program = Program {
        pid,
        session: None,
        asked: Instant::now(),
    };
    program.see_to_session().map_err(refusal)?;
    let site = Arc::new(Snapshots {
        pid,
        program: Mutex::new(program),
        kept: Mutex::default(),
        current: Mutex::new(Current::of(pid)),
    });
    let taker = Arc::clone(&site);
    let begun = thread::Builder::new().spawn(move || taker.take_all(interval));
    begun.map_err(|error| refusal(error.to_string()))?;
    viewer::serve_site(site, opens_browser)
}

fn refusal(message: String) -> Refusal {
    Refusal {
        message,
        status: FAILURE,
    }
}

/// The program, and the session that was asked for in it, if it had none.
struct Program {
    pid: i32,
    session: Option<OwnSession>,
    asked: Instant,
}

/// A session that ends with its connection.
struct OwnSession {
    client: Client,
    /// Until then the next reply says whether it has.
    has_begun: bool,
}

impl Program {
    /// Begins a session if none runs. The error says why there is none yet.
    fn see_to_session(&mut self) -> Result<(), String> {
        let failed = |error| process::failed(self.pid, &error).message;
        let mut client = match self.session.take() {
            Some(OwnSession {
                client,
                has_begun: false,
            }) => client,
            // One that has begun has ended.
            _ => {
                let mut client = process::connect(self.pid).map_err(|refusal| refusal.message)?;
                let hello = client.hello().map_err(failed)?;
                if hello.session.is_some() {
                    return Ok(());
                }
                client.ask_for_session(SESSION).map_err(failed)?;
                client
            }
        };
        let begun = client.session_begun(Instant::now() + PATIENCE / 5);
        match begun {
            // The program was quicker.
            Err(AskError::Refused(it)) if it.code.has_other_session() => Ok(()),
            // It begins with the first Ruby code that runs.
            Ok(()) | Err(AskError::Silent) => {
                self.session = Some(OwnSession {
                    client,
                    has_begun: begun.is_ok(),
                });
                self.asked = Instant::now();
                Ok(())
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// The port isn't to let go of us, as it does with clients for which it has nothing to do.
    fn stay(&mut self) {
        if self.asked.elapsed() < REST {
            return;
        }
        self.asked = Instant::now();
        let Some(session) = &mut self.session else {
            return;
        };
        if !session.has_begun {
            // One that the program has begun meanwhile is as good.
            let _ = self.see_to_session();
        } else if session.client.hello_within(process::PATIENCE).is_err() {
            self.session = None;
        }
    }

    /// On a connection of its own: what comes late would be taken for another answer.
    fn snapshot(&mut self) -> Result<(Profile, Duration), String> {
        let mut client = process::connect(self.pid).map_err(|refusal| refusal.message)?;
        let mut began = Instant::now();
        let mut asked = self.ask(&mut client);
        if let Err(AskError::Refused(it)) = &asked
            && it.code.lacks_session()
        {
            self.see_to_session()?;
            began = Instant::now();
            asked = self.ask(&mut client);
        }
        let took = began.elapsed();
        let content = asked.map_err(|error| match error {
            AskError::Refused(it) if it.code.lacks_session() => format!(
                "{} runs no Ruby code just now; profiling begins as soon as it does",
                self.pid
            ),
            error => process::failed(self.pid, &error).message,
        })?;
        let profile = rperf_format::pprof::read(&mut &*content);
        let profile = profile.map_err(|error| format!("its profile can't be read ({error})"))?;
        Ok((profile, took))
    }

    fn ask(&self, client: &mut Client) -> Result<Vec<u8>, AskError> {
        let until = Instant::now() + PATIENCE;
        client.ask(Ask::Snapshot { may_wake: false }, until)?;
        Ok(client.reply(MAX_PROFILE, until)?.body)
    }
}

/// What is served.
struct Snapshots {
    pid: i32,
    program: Mutex<Program>,
    kept: Mutex<Kept>,
    current: Mutex<Current>,
}

#[derive(Default)]
struct Kept {
    snapshots: VecDeque<Arc<Snapshot>>,
    number: u64,
    dropped: u64,
    /// Why the last one couldn't be taken.
    why: Option<String>,
    /// For how long none is taken, where that is longer than the user wants.
    stretched: Option<Duration>,
}

struct Snapshot {
    number: u64,
    id: String,
    /// What the list says of it.
    facts: serde_json::Value,
    /// The snapshot as the page has it; `file` is the snapshot as a pprof file.
    data: Vec<u8>,
    file: Vec<u8>,
}

impl Snapshot {
    fn new(number: u64, profile: &Profile) -> Result<Self, String> {
        let id = number.to_string();
        let data = data(&[(&title(&id), profile)], None)?;
        let mut file = Vec::new();
        let written = rperf_format::pprof::write(profile, &mut file);
        written.map_err(|error| error.to_string())?;
        Ok(Snapshot {
            facts: facts(&id, profile, data.len() + file.len()),
            number,
            id,
            data,
            file,
        })
    }

    fn bytes(&self) -> usize {
        self.data.len() + self.file.len()
    }
}

fn facts(id: &str, profile: &Profile, bytes: usize) -> serde_json::Value {
    let meta = &profile.meta;
    json!({
        "id": id,
        "title": title(id),
        "start_ms": meta.start_time_ns / 1_000_000,
        "duration_ns": meta.duration_ns,
        "samples": profile.sample_count(),
        "bytes": bytes,
    })
}

fn title(id: &str) -> String {
    format!("snapshot {id}")
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Snapshots {
    /// One after the other, until the command ends.
    fn take_all(&self, interval: Duration) {
        let mut has_said = false;
        loop {
            let taken = self.take();
            if let Err(why) = &taken
                && !std::mem::replace(&mut has_said, true)
            {
                say(why);
            }
            has_said &= taken.is_err();
            let least = taken.map_or(Duration::ZERO, |(_, took)| took * SHARE);
            let rest = interval.max(least);
            lock(&self.kept).stretched = (rest > interval).then_some(rest);
            let until = Instant::now() + rest;
            while Instant::now() < until {
                thread::sleep(REST.min(until.saturating_duration_since(Instant::now())));
                lock(&self.program).stay();
            }
        }
    }

    /// Returns its id, and how long the program took for it.
    fn take(&self) -> Result<(String, Duration), String> {
        let taken = lock(&self.program).snapshot();
        let number = {
            let mut kept = lock(&self.kept);
            kept.number += u64::from(taken.is_ok());
            kept.number
        };
        let snapshot =
            taken.and_then(|(profile, took)| Ok((Snapshot::new(number, &profile)?, took)));
        let mut kept = lock(&self.kept);
        kept.why = snapshot.as_ref().err().cloned();
        let (snapshot, took) = snapshot?;
        let id = snapshot.id.clone();
        // Two may be taken at once.
        let place = kept.snapshots.partition_point(|it| it.number < number);
        kept.snapshots.insert(place, Arc::new(snapshot));
        let bytes = |kept: &Kept| kept.snapshots.iter().map(|it| it.bytes()).sum::<usize>();
        while kept.snapshots.len() > MOST || kept.snapshots.len() > 1 && bytes(&kept) > MOST_BYTES {
            kept.snapshots.pop_front();
            kept.dropped += 1;
        }
        Ok((id, took))
    }

    fn found(&self, id: &str) -> Option<Arc<Snapshot>> {
        let kept = lock(&self.kept);
        kept.snapshots.iter().find(|it| it.id == id).cloned()
    }

    fn list(&self) -> Answer {
        let kept = lock(&self.kept);
        let mut notes: Vec<String> = kept.why.iter().cloned().collect();
        match kept.dropped {
            0 => {}
            1 => notes.push("One older snapshot was dropped.".into()),
            count => notes.push(format!("{count} older snapshots were dropped.")),
        }
        if let Some(rest) = kept.stretched {
            notes.push(format!(
                "The program takes long for a snapshot: the next one comes after {:.0} s.",
                rest.as_secs_f64()
            ));
        }
        let list = json!({
            "snapshots": kept.snapshots.iter().map(|it| &it.facts).collect::<Vec<_>>(),
            "is_live": true,
            "can_take": true,
            "can_delete": true,
            "can_save": true,
            "process": self.pid,
            "notes": notes,
        });
        of_json("200 OK", &list)
    }

    fn difference(&self, base: &str, target: &str) -> Answer {
        let (Some(base), Some(target)) = (self.found(base), self.found(target)) else {
            return missing();
        };
        let read = |snapshot: &Snapshot| {
            let profile = rperf_format::pprof::read(&mut &*snapshot.file);
            profile.map_err(|error| error.to_string())
        };
        let compared = read(&base).and_then(|before| {
            let after = read(&target)?;
            let titles = [title(&base.id), title(&target.id)];
            let pairs = [(&*titles[0], &before), (&*titles[1], &after)];
            data(&pairs, Some(Comparison::by_duration(&before, &after)))
        });
        match compared {
            Ok(data) => of_data(data),
            Err(why) => Answer::text("500 Internal Server Error", &why),
        }
    }
}

impl Site for Snapshots {
    fn answer(&self, method: &str, place: &str) -> Answer {
        let snapshot = |name: &str, of: fn(&Snapshot) -> &Vec<u8>| {
            let found = self.found(name);
            found.map_or_else(missing, |snapshot| of_data(of(&snapshot).clone()))
        };
        let method = if method == "HEAD" { "GET" } else { method };
        match (method, place.split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", ["live.json"]) => of_json("200 OK", &lock(&self.current).facts()),
            ("GET", ["live.rpv"]) => match lock(&self.current).data() {
                Ok(data) => of_data(data),
                Err(why) => Answer::text("409 Conflict", &why),
            },
            ("GET", ["snapshots.json"]) => self.list(),
            ("POST", ["snapshots"]) => match self.take() {
                Ok((id, _)) => of_json("201 Created", &json!({ "id": id })),
                Err(why) => Answer::text("409 Conflict", &why),
            },
            ("DELETE", ["snapshots", id]) => {
                lock(&self.kept).snapshots.retain(|it| it.id != *id);
                Answer::text("200 OK", "")
            }
            ("GET", ["snapshots", name]) => match name.split_once('.') {
                Some((id, "rpv")) => snapshot(id, |it| &it.data),
                Some((id, "pb.gz")) => snapshot(id, |it| &it.file),
                _ => missing(),
            },
            ("GET", ["diff", base, target]) => {
                let target = target.strip_suffix(".rpv").unwrap_or_default();
                self.difference(base, target)
            }
            _ => missing(),
        }
    }
}

fn missing() -> Answer {
    Answer::text(
        "404 Not Found",
        "there is no such snapshot: it was dropped or deleted",
    )
}

fn of_json(status: &'static str, body: &serde_json::Value) -> Answer {
    Answer {
        status,
        kind: "application/json",
        body: body.to_string().into(),
    }
}

fn of_data(body: Vec<u8>) -> Answer {
    Answer {
        status: "200 OK",
        kind: "application/octet-stream",
        body,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

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
        let mut program = Program {
            pid,
            session: None,
            asked: Instant::now(),
        };
        let begins = |program: &Program| program.session.as_ref().map(|it| it.has_begun);
        let stay = |program: &mut Program| {
            program.asked = Instant::now().checked_sub(REST).expect("a while ago");
            program.stay();
        };
        thread::scope(|scope| {
            let port = scope.spawn(|| {
                let (stream, _) = listener.accept().expect("a client");
                assert!(requests(&stream, 1)[0].starts_with("GET /v1/hello "));
                reply(&stream, hello);
                assert!(requests(&stream, 1)[0].starts_with("POST /v1/session?"));
                stream
            });
            program.see_to_session().expect("asked for");
            let stream = port.join().expect("a connection");
            assert_eq!(begins(&program), Some(false));
            stay(&mut program);
            assert_eq!(begins(&program), Some(false), "it is still waited for");
            reply(&stream, "{}");
            stay(&mut program);
            assert_eq!(begins(&program), Some(true));
            reply(&stream, hello);
            stay(&mut program);
            assert_eq!(begins(&program), Some(true));
            assert!(requests(&stream, 1)[0].starts_with("GET /v1/hello "));
        });
    }
}
