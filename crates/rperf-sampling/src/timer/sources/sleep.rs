//! The timer without signals: the worker itself sleeps until the next deadline.
//! For macOS, and for programs that want no signal. Runs on the worker.

use super::schedule::Schedule;
use super::source::Source;
use crate::timer::ticks::{AfterTick, Ticks};
use rperf_vm::clock;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

/// The worker's own timed wait.
#[derive(Debug)]
pub struct SleepTimer {
    worker: Thread,
    ticks: Arc<Ticks>,
    /// The worker alone takes the lock.
    pace: Mutex<Pace>,
}

#[derive(Debug)]
struct Pace {
    schedule: Schedule,
    /// The next tick's time; `None` while at rest.
    deadline: Option<u64>,
}

impl SleepTimer {
    /// A timer at rest, for the calling thread (the worker).
    pub fn open(schedule: Schedule, ticks: Arc<Ticks>) -> Arc<SleepTimer> {
        let pace = Pace {
            schedule,
            deadline: None,
        };
        // It looks at each end of its sleep whether anybody runs.
        ticks.timer().never_stop();
        Arc::new(SleepTimer {
            worker: thread::current(),
            ticks,
            pace: Mutex::new(pace),
        })
    }
}

impl Source for SleepTimer {
    fn arm(&self) {
        self.ticks.timer().set();
        self.worker.unpark();
    }

    fn poll(&self) -> Option<Duration> {
        let mut pace = self.pace.lock().unwrap_or_else(PoisonError::into_inner);
        pace.poll(&self.ticks)
    }

    fn stop(&self) {}
}

impl Pace {
    /// Ticks if it is time to. Returns how long to sleep, or `None` to sleep until woken.
    fn poll(&mut self, ticks: &Ticks) -> Option<Duration> {
        if !ticks.armed() {
            self.deadline = None;
            return None;
        }
        let mut deadline = match self.deadline {
            Some(deadline) => deadline,
            None => self.schedule.restart(),
        };
        if deadline <= clock::monotonic_ns() {
            let AfterTick::GoOn { in_slices } = ticks.tick() else {
                self.deadline = None;
                // Armed again in the meantime: start over at once.
                return ticks.armed().then_some(Duration::ZERO);
            };
            deadline = self.schedule.advance(in_slices);
            ticks.timer().set();
        }
        self.deadline = Some(deadline);
        Some(Duration::from_nanos(
            deadline.saturating_sub(clock::monotonic_ns()),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::pace::Pace;
    use rperf_vm::NativeId;

    #[test]
    fn it_ticks_while_armed_and_rests_when_nothing_runs() {
        let ticks = Arc::new(Ticks::new(|| (), |_, _| false));
        let schedule = Schedule::new(Arc::new(Pace::new(200_000)), 5);
        let timer = SleepTimer::open(schedule, Arc::clone(&ticks));
        assert_eq!(timer.poll(), None, "at rest until armed");
        assert!(ticks.set_holder(1, NativeId::NONE));
        timer.arm();
        assert!(!ticks.timer().may_be_stopped(clock::monotonic_ns()));
        let start = clock::monotonic_ns();
        let mut polls = 0;
        // About 500 ticks; a busy machine wakes the thread late, which makes fewer of them.
        while ticks.triggers() < 50 || clock::monotonic_ns() < start + 100_000_000 {
            std::thread::sleep(timer.poll().expect("armed"));
            polls += 1;
            assert!(polls < 100_000, "no ticks in {polls} sleeps");
        }
        let intervals = (clock::monotonic_ns() - start) / 200_000;
        let triggers = ticks.triggers();
        assert!(triggers <= 2 * intervals, "{triggers} in {intervals}");
        ticks.clear_holder(1);
        let mut polls = 0;
        while let Some(pause) = timer.poll() {
            std::thread::sleep(pause);
            polls += 1;
            assert!(polls < 10_000, "never came to rest");
        }
        assert_eq!(timer.poll(), None);
    }
}
