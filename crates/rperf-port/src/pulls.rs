//! Clients that watch the session, and what they get: all of them share one table, and a client
//! says how far it is. The VM is asked for a step whenever somebody pulls, and nobody waits longer
//! for it than he likes: then the sums are those of the last step. On the port's thread.

use crate::connection::Connection;
use crate::facts;
use crate::pull;
use crate::state::Port;
use crate::step::{Holder, Holding, Pull, SharedTable, Step};
use rperf_protocol::delta::{Delta, Freshness};
use rperf_protocol::message::bytes_response;
use rperf_protocol::refusal::{Code, Refusal};
use std::sync::PoisonError;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// How long there may be nothing at all to answer with.
const PATIENCE: Duration = Duration::from_secs(2);

/// Steps come no faster, however many clients pull.
const GAP: Duration = Duration::from_millis(20);

/// How often the VM is asked again: the thread that was asked may have just lost the GVL.
const AGAIN: Duration = Duration::from_millis(2);
/// How often the VM is asked again after [`EAGER`].
const AGAIN_LATER: Duration = Duration::from_millis(10);
const EAGER: Duration = Duration::from_millis(100);
/// When it is wanted anew: the session, or the port, that it was wanted of may have ended.
const ANEW: Duration = Duration::from_millis(500);

/// What is wanted of the VM.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    since: Instant,
    /// When it is asked again.
    again: Instant,
}

/// The VM has been asked in vain.
#[derive(Debug, Clone, Copy)]
struct Silence {
    since: Instant,
    /// Who had the GVL then.
    holding: Option<Holding>,
}

/// What the port knows of the session that is watched.
pub struct Pulls {
    port: &'static Port,
    steps: Receiver<Step>,
    /// The table of the session that is watched, or was watched last.
    table: Option<SharedTable>,
    /// When the last step came that was complete.
    stepped: Option<Instant>,
    wanted: Option<Wanted>,
    silence: Option<Silence>,
    holder: Option<Holder>,
    not_before: Instant,
    is_watched: bool,
}

impl Pulls {
    /// Nobody watches yet. Steps come through `steps`.
    pub fn new(port: &'static Port, steps: Receiver<Step>) -> Self {
        Pulls {
            port,
            steps,
            table: None,
            stepped: None,
            wanted: None,
            silence: None,
            holder: None,
            not_before: Instant::now(),
            is_watched: false,
        }
    }

    /// Answers the clients that pull, as far as that is possible, and asks for what is missing.
    pub fn advance(&mut self, clients: &mut [Connection]) {
        let now = Instant::now();
        while let Ok(step) = self.steps.try_recv() {
            self.take(step, now);
        }
        if !clients.iter().any(|client| client.is_watching) {
            self.end();
            return;
        }
        self.is_watched = true;
        let refusal = self.refusal();
        let mut waits = false;
        for client in clients.iter_mut() {
            let Some(pull) = client.pull() else { continue };
            let closes = client.closes();
            let bytes = match &refusal {
                Some(refusal) => Some(refusal.response(closes)),
                None => self.answer(&pull, now, closes),
            };
            match bytes {
                Some(bytes) => client.answer(bytes),
                None => waits = true,
            }
        }
        match refusal {
            Some(_) => self.forget(),
            None if waits => self.ask(now),
            None => {}
        }
    }

    /// When [`Pulls::advance`] is to be called, whatever happens.
    pub fn deadline(&self, clients: &[Connection]) -> Option<Instant> {
        let pulls = || clients.iter().filter_map(Connection::pull);
        pulls().next()?;
        let again = self.wanted.map_or(self.not_before, |wanted| wanted.again);
        let ends = pulls().map(|pull| match self.table {
            Some(_) => pull.until,
            None => pull.since + PATIENCE,
        });
        ends.chain([again]).min()
    }

    /// How long the VM has been asked in vain.
    pub fn silence(&self) -> Duration {
        self.silence.map_or(Duration::ZERO, |it| it.since.elapsed())
    }

    /// The native thread that has had the GVL for all of that time.
    pub fn holder(&self) -> Option<i32> {
        let before = self.silence?.holding?;
        let now = self.holder.as_ref().and_then(|holder| holder())?;
        (now == before).then(|| i32::try_from(now.tid).ok())?
    }

    fn forget(&mut self) {
        (self.table, self.wanted) = (None, None);
        (self.silence, self.holder) = (None, None);
    }

    fn take(&mut self, step: Step, now: Instant) {
        self.table = Some(step.table);
        self.holder = step.holder;
        (self.wanted, self.silence) = (None, None);
        if step.is_complete {
            self.stepped = Some(now);
        }
        // What is missing comes soon, but the program runs in between.
        self.not_before = now + if step.is_complete { GAP } else { AGAIN };
    }

    /// Why there is nothing to be watched, if there isn't.
    fn refusal(&self) -> Option<Refusal> {
        let (code, error, hint) = match (self.port.program.session)() {
            None => (
                Code::NoSession,
                "the program isn't being profiled",
                "begin a session, by Rperf.start or under 'rperf record --listen'",
            ),
            Some(running) if running.session.is_trace() => (
                Code::Tracing,
                "the program's session traces calls",
                "only sampling sessions can be watched",
            ),
            Some(_) => return None,
        };
        Some(Refusal::new(code, error, hint))
    }

    /// The answer, if it needn't wait any longer.
    fn answer(&self, pull: &Pull, now: Instant, closes: bool) -> Option<Vec<u8>> {
        let is_fresh = self.stepped.is_some_and(|stepped| stepped >= pull.since);
        let Some(table) = &self.table else {
            let hint = "ask again: profiling goes on with the next Ruby code that runs";
            let is_over = now >= pull.since + PATIENCE;
            let error = "the program runs no Ruby code just now";
            let refusal = || Refusal::new(Code::Silent, error, hint);
            return is_over.then(|| refusal().response(closes));
        };
        if !is_fresh && now < pull.until {
            return None;
        }
        let changes = {
            let mut table = table.lock().unwrap_or_else(PoisonError::into_inner);
            table.changes(pull.cursor)
        };
        let freshness = Freshness {
            is_fresh,
            clock_ns: facts::now_ns(),
        };
        let body = Delta { changes, freshness }.to_bytes();
        let kind = "application/octet-stream";
        Some(bytes_response(200, kind, "", &body, closes))
    }

    /// Asks the VM, for the first time or again.
    fn ask(&mut self, now: Instant) {
        let elapsed = match &self.wanted {
            None if now < self.not_before => return,
            None => {
                pull::want();
                if self.silence.is_none() {
                    let holding = self.holder.as_ref().and_then(|holder| holder());
                    self.silence = Some(Silence {
                        since: now,
                        holding,
                    });
                }
                Duration::ZERO
            }
            Some(wanted) if now < wanted.again => return,
            Some(wanted) if now >= wanted.since + ANEW => {
                self.wanted = None;
                return;
            }
            Some(wanted) => now.saturating_duration_since(wanted.since),
        };
        self.port.ask_vm();
        let pause = if elapsed < EAGER { AGAIN } else { AGAIN_LATER };
        self.wanted = Some(Wanted {
            since: self.wanted.map_or(now, |wanted| wanted.since),
            again: now + pause,
        });
    }

    /// The last client that watched has gone: the session is let know.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.is_watched) {
            self.forget();
            self.stepped = None;
            pull::forget();
            self.port.ask_vm();
        }
    }
}
