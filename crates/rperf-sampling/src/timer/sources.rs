//! What asks for samples. A source is opened on the worker, which hosts it, behind one
//! interface ([`Source`]): [`signal`] is a POSIX timer that interrupts the worker,
//! [`sleep`] the worker's own timed wait.

use crate::timer::pace::Pace;
use crate::timer::ticks::Ticks;
use std::io;
use std::sync::Arc;

pub mod schedule;
#[cfg(target_os = "linux")]
mod signal;
mod sleep;
mod source;

#[cfg(target_os = "linux")]
pub use signal::{default_signal, is_usable as is_usable_signal};
pub use source::Source;

/// Which timer makes the ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// A POSIX timer with this signal number.
    #[cfg(target_os = "linux")]
    Signal(i32),
    /// The worker's timed wait.
    Sleep,
}

/// What a timer is opened with.
#[derive(Debug)]
pub struct TimerConfig {
    /// The timer.
    pub kind: TimerKind,
    /// Has the mean gap between ticks.
    pub pace: Arc<Pace>,
    /// Seed of the schedule's dither.
    pub seed: u64,
}

impl TimerConfig {
    /// The timer, at rest. On the worker, which hosts it.
    pub fn open(self, ticks: Arc<Ticks>) -> io::Result<Arc<dyn Source>> {
        let schedule = schedule::Schedule::new(self.pace, self.seed);
        Ok(match self.kind {
            #[cfg(target_os = "linux")]
            TimerKind::Signal(signal) => signal::SignalTimer::open(signal, schedule, ticks)?,
            TimerKind::Sleep => sleep::SleepTimer::open(schedule, ticks),
        })
    }
}

/// In a forked child, which has no worker: lets go of what sources have put in place.
/// Async-signal-safe.
pub fn forget_in_child() {
    #[cfg(target_os = "linux")]
    signal::forget_in_child();
}
