//! The profile as it is now, for a page that follows the program. It is pulled by generation, and
//! only while a page asks. On the threads of the viewer's requests.

use super::page_data::data;
use crate::live::process;
use crate::live::top::watched::{News, Watched};
use rperf_watch::client::AskError;
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
    watched: Option<Watched>,
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
        self.feed.as_ref().map_or(0, |feed| feed.lock().generation)
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
            let generation = sums.generation;
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
        let lines = watched.take_lines();
        let mut note = match &news {
            Ok(News::Waits) => {
                let quiet = process::quiet(&watched.hello, None);
                Some(format!("{} {quiet}", self.pid))
            }
            Ok(_) => watched.stuck().map(|stuck| {
                let kept = process::kept(stuck.keeper.as_ref(), stuck.silence);
                format!("{} doesn't answer: {kept}", self.pid)
            }),
            Err(error) => Some(process::failed(self.pid, error).message),
        };
        if process::is_stopped(self.pid) {
            note = Some(process::stopped(self.pid));
        }
        let is_closed = matches!(news, Err(AskError::Closed));
        self.watched = Some(watched);
        if news.is_err() {
            // The page keeps what there is.
            self.encode()?;
            self.watched = None;
            self.has_ended = is_closed && !process::is_there(self.pid);
        }
        if let Some(line) = lines.into_iter().last() {
            self.line = Some((line, Instant::now()));
        }
        let line = self.line.as_ref();
        let line = line.filter(|(_, since)| since.elapsed() < SHOWN);
        Ok(note.or_else(|| line.map(|(line, _)| line.clone())))
    }

    fn connect(&mut self) -> Result<Watched, String> {
        let pid = self.pid;
        let found = Watched::connect(pid);
        let is_other = match &found {
            Ok(found) => *self.start.get_or_insert(found.hello.start) != found.hello.start,
            Err(_) => !process::is_there(pid),
        };
        if is_other {
            self.has_ended = true;
            return Err(format!("the program {pid} has ended"));
        }
        found.map_err(|refusal| refusal.message)
    }
}
