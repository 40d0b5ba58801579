//! `rperf report --live PID`: the web viewer on snapshots of a running program, which are taken at an
//! interval, and whenever the user wants one. On Ruby's main thread, on one that takes snapshots, and
//! on those of the viewer's requests.

use crate::live::process;
use crate::viewer::{self, Answer, Site};
use crate::{FAILURE, Refusal, say};
use rperf_format::viewer::{Comparison, TitledProfile, View};
use rperf_live::client::{AskError, Client};
use rperf_model::{Column, Profile};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The session that is begun where there is none.
const MODE: &str = "wall";
const FREQUENCY: u32 = 1000;

/// Snapshots that are kept, and their bytes.
const MOST: usize = 50;
const MOST_BYTES: usize = 256 << 20;

/// Bytes of a profile at most.
const MOST_PROFILE: usize = 256 << 20;

/// How long the program may take for one.
const PATIENCE: Duration = Duration::from_secs(5);

/// Taking one takes this share of the program's time at most.
const SHARE: u32 = 100;

/// How often the program is asked for something: its port lets go of clients that are silent.
const REST: Duration = Duration::from_secs(20);

/// HTTP's number for: there is no such session.
const NO_SESSION: u16 = 409;

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

/// The program, and the session that was begun in it for us, if it has none.
struct Program {
    pid: i32,
    /// It ends with this connection.
    session: Option<Client>,
    asked: Instant,
}

impl Program {
    /// Begins a session if none runs. The error says why there is none yet.
    fn see_to_session(&mut self) -> Result<(), String> {
        let failed = |error| process::failed(self.pid, &error).message;
        let mut client = match self.session.take() {
            Some(client) => client,
            None => {
                let mut client = process::connect(self.pid).map_err(|refusal| refusal.message)?;
                let hello = client.hello().map_err(failed)?;
                if hello.session.is_some() {
                    return Ok(());
                }
                client.ask_for_session(MODE, FREQUENCY).map_err(failed)?;
                client
            }
        };
        let begun = client.session_begun(Instant::now() + PATIENCE / 5);
        match begun {
            // The program was quicker.
            Err(AskError::Refused {
                status: NO_SESSION, ..
            }) => Ok(()),
            // It begins with the first Ruby code that runs.
            Ok(()) | Err(AskError::Silent) => {
                self.session = Some(client);
                self.asked = Instant::now();
                Ok(())
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// The port isn't to let go of us.
    fn stay(&mut self) {
        if self.asked.elapsed() < REST {
            return;
        }
        self.asked = Instant::now();
        let is_there = |client: &mut Client| client.hello_within(process::PATIENCE).is_ok();
        if !self.session.as_mut().is_some_and(is_there) {
            self.session = None;
        }
    }

    /// On a connection of its own: what comes late would be taken for another answer.
    fn snapshot(&mut self) -> Result<Profile, String> {
        let mut client = process::connect(self.pid).map_err(|refusal| refusal.message)?;
        let mut asked = self.ask(&mut client);
        if let Err(AskError::Refused {
            status: NO_SESSION, ..
        }) = asked
        {
            self.session = None;
            self.see_to_session()?;
            asked = self.ask(&mut client);
        }
        let content = asked.map_err(|error| match error {
            AskError::Refused {
                status: NO_SESSION, ..
            } => format!(
                "{} runs no Ruby code just now; profiling begins as soon as it does",
                self.pid
            ),
            error => process::failed(self.pid, &error).message,
        })?;
        let profile = rperf_format::pprof::read(&mut &*content);
        profile.map_err(|error| format!("its profile can't be read ({error})"))
    }

    fn ask(&self, client: &mut Client) -> Result<Vec<u8>, AskError> {
        let until = Instant::now() + PATIENCE;
        client.ask("/v1/snapshot?wake=0", until)?;
        Ok(client.reply(MOST_PROFILE, until)?.body)
    }
}

/// What is served.
struct Snapshots {
    pid: i32,
    program: Mutex<Program>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    snapshots: VecDeque<Arc<Snapshot>>,
    number: u64,
    dropped: u64,
    /// Why the last one couldn't be taken.
    why: Option<String>,
}

struct Snapshot {
    id: String,
    profile: Profile,
    /// As the page has it, and as a file.
    data: Vec<u8>,
    file: Vec<u8>,
}

impl Snapshot {
    fn new(number: u64, profile: Profile) -> Result<Self, String> {
        let id = number.to_string();
        let data = data(&[(&title(&id), &profile)], None)?;
        let mut file = Vec::new();
        let written = rperf_format::pprof::write(&profile, &mut file);
        written.map_err(|error| error.to_string())?;
        Ok(Snapshot {
            id,
            profile,
            data,
            file,
        })
    }

    fn facts(&self) -> serde_json::Value {
        let Profile {
            schema,
            weights,
            meta,
            ..
        } = &self.profile;
        let mut types = schema.types().iter();
        let column = types.position(|it| it.name == "samples" && it.unit == "count");
        let samples = column.map(|column| {
            let values = weights.iter().map(|row| row.value(Column(column)));
            values.fold(0, i64::saturating_add)
        });
        json!({
            "id": self.id,
            "title": title(&self.id),
            "start_ms": meta.start_time_ns / 1_000_000,
            "duration_ns": meta.duration_ns,
            "samples": samples,
            "bytes": self.bytes(),
        })
    }

    fn bytes(&self) -> usize {
        self.data.len() + self.file.len()
    }
}

fn title(id: &str) -> String {
    format!("snapshot {id}")
}

fn data(profiles: &[(&str, &Profile)], comparison: Option<Comparison>) -> Result<Vec<u8>, String> {
    let profiles = profiles.iter();
    let profiles = profiles.map(|&(title, profile)| TitledProfile { title, profile });
    let view = View {
        profiles: profiles.collect(),
        comparison,
        ..View::default()
    };
    let mut data = Vec::new();
    let written = rperf_format::viewer::write(&view, &mut data);
    written.map_err(|error| error.to_string()).map(|()| data)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Snapshots {
    /// One after the other, until the command ends.
    fn take_all(&self, interval: Duration) {
        let mut has_said = false;
        loop {
            let began = Instant::now();
            let taken = self.take();
            if let Err(why) = &taken
                && !std::mem::replace(&mut has_said, true)
            {
                say(why);
            }
            has_said &= taken.is_err();
            let rest = interval.max(began.elapsed() * SHARE);
            let until = Instant::now() + rest;
            while Instant::now() < until {
                thread::sleep(REST.min(until.saturating_duration_since(Instant::now())));
                lock(&self.program).stay();
            }
        }
    }

    /// Returns its id.
    fn take(&self) -> Result<String, String> {
        let taken = lock(&self.program).snapshot();
        let number = {
            let mut kept = lock(&self.kept);
            kept.number += u64::from(taken.is_ok());
            kept.number
        };
        let snapshot = taken.and_then(|profile| Snapshot::new(number, profile));
        let mut kept = lock(&self.kept);
        kept.why = snapshot.as_ref().err().cloned();
        let snapshot = Arc::new(snapshot?);
        let id = snapshot.id.clone();
        kept.snapshots.push_back(snapshot);
        let bytes = |kept: &Kept| kept.snapshots.iter().map(|it| it.bytes()).sum::<usize>();
        while kept.snapshots.len() > MOST || kept.snapshots.len() > 1 && bytes(&kept) > MOST_BYTES {
            kept.snapshots.pop_front();
            kept.dropped += 1;
        }
        Ok(id)
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
        let list = json!({
            "snapshots": kept.snapshots.iter().map(|it| it.facts()).collect::<Vec<_>>(),
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
        let comparison = Comparison::by_duration(&base.profile, &target.profile);
        let titles = [title(&base.id), title(&target.id)];
        let pairs = [(&*titles[0], &base.profile), (&*titles[1], &target.profile)];
        match data(&pairs, Some(comparison)) {
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
        match (method, place.split('/').collect::<Vec<_>>().as_slice()) {
            ("GET", ["snapshots.json"]) => self.list(),
            ("POST", ["snapshots"]) => match self.take() {
                Ok(id) => of_json("201 Created", &json!({ "id": id })),
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
