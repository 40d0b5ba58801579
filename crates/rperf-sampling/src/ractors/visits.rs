//! The visits of the worker, which empties logs and merges what ended threads have left. Hooks of all
//! Ractors ask for them, without a lock.

use crate::timer::other_holders::OtherHolders;
use crate::timer::sources::Source;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;
use std::time::Duration;

/// How long the worker lets stacks wait in logs, at most, and for how many ticks.
const PAUSE: Duration = Duration::from_millis(250);
const PAUSE_TICKS: u32 = 256;

/// Divides the pause of [`PAUSE_TICKS`] once a log was filling: deep stacks that have little in common take much
/// room.
const FILLING_PART: u32 = 8;

/// Threads that have ended, after which the worker comes at once.
const ENDED_BATCH: u32 = 16;

/// When the worker comes, and what has happened since it came last.
#[derive(Debug)]
pub(super) struct Visits {
    /// Between ticks, in ns.
    interval: u64,
    /// The worker comes by itself. As for the timer's rest, either this sees that it doesn't, or
    /// the worker sees the thread that runs.
    are_regular: AtomicBool,
    /// When the last one was.
    last_ns: AtomicU64,
    /// A log was filling then.
    are_logs_filling: AtomicBool,
    /// Threads that have ended since.
    ended: AtomicU32,
    /// What makes the ticks, and the worker.
    worker: OnceLock<(Arc<dyn Source>, Thread)>,
    /// Who wants to know of ends.
    listener: OnceLock<fn(u32)>,
}

impl Visits {
    /// None is asked for; ticks come at this `interval`.
    pub(super) fn new(interval: u64) -> Self {
        Self {
            interval,
            are_regular: AtomicBool::new(false),
            last_ns: AtomicU64::new(0),
            are_logs_filling: AtomicBool::new(false),
            ended: AtomicU32::new(0),
            worker: OnceLock::new(),
            listener: OnceLock::new(),
        }
    }

    /// The worker has begun.
    pub(super) fn set_worker(&self, source: Arc<dyn Source>, worker: Thread) {
        let _ = self.worker.set((source, worker));
    }

    /// From here on `tell` is told of ends.
    pub(super) fn listen(&self, tell: fn(u32)) {
        self.listener.get_or_init(|| tell);
    }

    /// A thread runs: there have to be visits from now on.
    pub(super) fn ask(&self) {
        if !self.are_regular.load(SeqCst) && !self.are_regular.swap(true, SeqCst) {
            self.wake_worker();
        }
    }

    /// A thread has ended. Many of them are worth a visit.
    pub(super) fn note_end(&self) {
        if self.ended.fetch_add(1, Relaxed) + 1 == ENDED_BATCH {
            self.wake_worker();
        }
    }

    /// Starts the timer, which rests.
    pub(super) fn arm_timer(&self) {
        if let Some((source, _)) = self.worker.get() {
            source.arm();
        }
    }

    fn wake_worker(&self) {
        if let Some((_, worker)) = self.worker.get() {
            worker.unpark();
        }
    }

    /// On the worker: begins a visit at `now`, if one is due. Returns how many threads have ended since
    /// the last one.
    pub(super) fn begin(&self, now: u64) -> Option<u32> {
        let pause = self.pause_length();
        let since = now.saturating_sub(self.last_ns.load(Relaxed));
        let is_due = self.are_regular.load(Relaxed) && since >= pause.as_nanos() as u64 / 2;
        if is_due || self.ended.load(Relaxed) >= ENDED_BATCH {
            self.last_ns.store(now, Relaxed);
            return Some(self.ended.swap(0, Relaxed));
        }
        None
    }

    /// Logs were emptied, and some were filling, or none.
    pub(super) fn note_filling(&self, are_some: bool) {
        self.are_logs_filling.store(are_some, Relaxed);
    }

    /// So many threads have ended.
    pub(super) fn tell_of_ends(&self, ended: u32) {
        if let Some(tell) = self.listener.get() {
            tell(ended);
        }
    }

    /// On the worker: how long it may sleep until the next one; `None` as long as nobody runs.
    pub(super) fn until_next(&self, holders: &OtherHolders) -> Option<Duration> {
        if !holders.is_any_running() {
            self.are_regular.store(false, SeqCst);
            if !holders.is_any_running() || self.are_regular.swap(true, SeqCst) {
                return None;
            }
        }
        Some(self.pause_length())
    }

    fn pause_length(&self) -> Duration {
        let pause = PAUSE.min(Duration::from_nanos(self.interval) * PAUSE_TICKS);
        if self.are_logs_filling.load(Relaxed) {
            pause / FILLING_PART
        } else {
            pause
        }
    }
}
