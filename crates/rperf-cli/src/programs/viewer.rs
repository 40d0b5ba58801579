//! `rperf report --live PID`: the web viewer on snapshots of a running program, which are taken at an
//! interval, and whenever the user wants one. On the main thread, on one that takes snapshots, and
//! on those of the viewer's requests.

mod current;
mod page_data;

use crate::programs::words::of_failure;
use crate::viewer::{self, Answer, Site};
use crate::{FAILURE, Refusal, say};
use current::Current;
use page_data::data;
use rperf_format::viewer::Comparison;
use rperf_model::Profile;
use rperf_watch::kept::KeptSession;
use rperf_watch::patience::REST;
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Snapshots that are kept, and their bytes.
const MOST: usize = 50;
const MOST_BYTES: usize = 256 << 20;

/// So many times as long as the last one took, none is taken.
const SHARE: u32 = 10;

/// Serves the viewer until a signal ends it.
pub fn run(pid: i32, interval: Duration, opens_browser: bool) -> Result<i32, Refusal> {
    let session = KeptSession::begin(pid).map_err(|failure| of_failure(pid, &failure))?;
    let site = Arc::new(Snapshots {
        pid,
        session: Mutex::new(session),
        kept: Mutex::default(),
        current: Mutex::new(Current::of(pid)),
    });
    let taker = Arc::clone(&site);
    let begun = thread::Builder::new().spawn(move || taker.take_all(interval));
    begun.map_err(|error| Refusal {
        message: error.to_string(),
        status: FAILURE,
    })?;
    viewer::serve_site(site, opens_browser)
}

/// What is served.
struct Snapshots {
    pid: i32,
    session: Mutex<KeptSession>,
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
    /// Takes one snapshot after the other, until the command ends.
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
                lock(&self.session).stay();
            }
        }
    }

    /// Returns its id, and how long the program took for it.
    fn take(&self) -> Result<(String, Duration), String> {
        let taken = lock(&self.session).snapshot();
        let taken = taken.map_err(|failure| of_failure(self.pid, &failure).message);
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
