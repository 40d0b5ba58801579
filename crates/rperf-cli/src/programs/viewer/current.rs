//! The profile as it is now, for a page that follows the program. It is pulled by generation, and
//! only while a page asks. On the threads of the viewer's requests.

use super::page_data::data;
use crate::programs::words::{of_condition, of_event, of_failure};
use rperf_session::process_id::ProcessId;
use rperf_watch::condition::Condition;
use rperf_watch::failure::{AskError, Failure};
use rperf_watch::process::{State, state};
use rperf_watch::pull::{News, Pull};
use rperf_watch::sums::{Extent, Feed, LockedSums};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// How often the program is asked at most, however many pages there are.
const OFTEN: Duration = Duration::from_millis(400);

/// How long it may take for what needs its VM.
const WAIT: Duration = Duration::from_millis(300);

/// For how long it is shown what has become of a session.
const SHOWN: Duration = Duration::from_secs(10);

/// The session of a program, up to the last pull.
pub struct Current {
    pid: i32,
    /// When the process started: another one may get its number.
    start: Option<u64>,
    watched: Option<Pull>,
    /// What has come of it.
    feed: Option<Feed>,
    asked: Option<Instant>,
    /// What keeps the profile from growing.
    note: Option<String>,
    /// What has become of the session, and when.
    line: Option<(String, Instant)>,
    has_ended: bool,
    /// The profile as the page has it, and of which generation.
    data: Option<(u64, Vec<u8>)>,
}

impl Current {
    /// The profile of the process, which hasn't been asked yet.
    pub fn of(pid: i32) -> Self {
        Current {
            pid,
            start: None,
            watched: None,
            feed: None,
            asked: None,
            note: None,
            line: None,
            has_ended: false,
            data: None,
        }
    }

    /// Pulls what is new; what the page is told of it.
    pub fn facts(&mut self) -> Value {
        if !self.has_ended && self.asked.is_none_or(|asked| asked.elapsed() >= OFTEN) {
            self.note = self.pull().unwrap_or_else(Some);
            self.asked = Some(Instant::now());
        }
        json!({
            "generation": self.generation(),
            "note": self.note,
            "has_ended": self.has_ended,
        })
    }

    /// What each pull that brings something increases.
    fn generation(&self) -> u64 {
        self.feed
            .as_ref()
            .map_or(0, |feed| feed.lock().rounds.generation)
    }

    /// The profile as of the last pull. The error says why there is none.
    pub fn data(&mut self) -> Result<Vec<u8>, String> {
        if let Some((generation, data)) = &self.data
            && (*generation == self.generation() || self.watched.is_none())
        {
            return Ok(data.clone());
        }
        self.encode()?;
        let (_, data) = self.data.as_ref().ok_or("nothing is known of it yet")?;
        Ok(data.clone())
    }

    fn encode(&mut self) -> Result<(), String> {
        let Some(feed) = &self.feed else {
            return Ok(());
        };
        let sums = feed.lock();
        if let Some(profile) = sums.profile(Extent::Session, None) {
            let generation = sums.rounds.generation;
            drop(sums);
            let title = format!("{} {}", self.pid, profile.meta.program);
            self.data = Some((generation, data(&[(&title, &profile)], None)?));
        }
        Ok(())
    }

    /// Returns what the page should say.
    fn pull(&mut self) -> Result<Option<String>, String> {
        let mut watched = match self.watched.take() {
            Some(watched) => watched,
            None => self.connect()?,
        };
        let feed = self.feed.get_or_insert_with(|| {
            let sums = LockedSums::default();
            Feed::new(&sums, watched.pid, &watched.hello)
        });
        let news = watched.step(WAIT, feed);
        let event = watched.take_events().pop();
        let is_stopped = watched.state() == State::Stopped;
        let condition = match (&news, watched.condition()) {
            _ if is_stopped => Some(Condition::Stopped),
            (Ok(News::Waits), _) => Some(Condition::RunsNoRuby { share_of_cpu: None }),
            (Ok(_), stuck @ Condition::Stuck(_)) => Some(stuck.clone()),
            _ => None,
        };
        let mut note = condition.map(|it| format!("{} {}", self.pid, of_condition(&it)));
        self.watched = Some(watched);
        if let Err(error) = news {
            // The page keeps what there is.
            self.encode()?;
            self.watched = None;
            self.has_ended = matches!(error, AskError::Closed) && state(self.pid) == State::Gone;
            note = note.or_else(|| Some(of_failure(self.pid, &error.into()).message));
        }
        if let Some(event) = event {
            self.line = Some((of_event(self.pid, &event), Instant::now()));
        }
        let line = self.line.as_ref();
        let line = line.filter(|(_, since)| since.elapsed() < SHOWN);
        Ok(note.or_else(|| line.map(|(line, _)| line.clone())))
    }

    fn connect(&mut self) -> Result<Pull, String> {
        let found = Pull::connect(ProcessId::named(self.pid));
        let is_other = match &found {
            Ok(found) => *self.start.get_or_insert(found.hello.start) != found.hello.start,
            Err(_) => state(self.pid) == State::Gone,
        };
        let found = match is_other {
            true => Err(Failure::Asking(AskError::Closed)),
            false => found,
        };
        self.has_ended = is_other;
        found.map_err(|failure| of_failure(self.pid, &failure).message)
    }
}
