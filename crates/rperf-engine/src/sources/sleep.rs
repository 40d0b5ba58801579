//! The timer without signals: the worker itself sleeps until the next deadline.
//! For macOS, and for programs that want no signal. Runs on the worker.

use super::Schedule;
use crate::clock;
use crate::ticks::{AfterTick, Ticks};
use std::time::Duration;

/// The worker's own timed wait.
#[derive(Debug)]
pub struct SleepTimer {
    schedule: Schedule,
    /// The next tick's time; `None` while at rest.
    deadline: Option<u64>,
}

impl SleepTimer {
    /// A timer at rest.
    pub fn new(interval: u64, seed: u64) -> Self {
        Self {
            schedule: Schedule::new(interval, seed),
            deadline: None,
        }
    }

    /// Ticks if it is time to. Returns how long to sleep, or `None` to sleep
    /// until woken: whoever arms `ticks` has to unpark the worker.
    pub fn poll(&mut self, ticks: &Ticks) -> Option<Duration> {
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

    #[test]
    fn it_ticks_while_armed_and_rests_when_nothing_runs() {
        let ticks = Ticks::new(|| (), |_| false);
        let mut timer = SleepTimer::new(200_000, 5);
        assert_eq!(timer.poll(&ticks), None, "at rest until armed");
        assert!(ticks.set_holder(1, 0));
        let until = clock::monotonic_ns() + 100_000_000;
        while clock::monotonic_ns() < until {
            std::thread::sleep(timer.poll(&ticks).expect("armed"));
        }
        let triggers = ticks.triggers();
        assert!(
            (50..=1000).contains(&triggers),
            "about 500 ticks, got {triggers}"
        );
        ticks.clear_holder(1);
        let mut polls = 0;
        while let Some(pause) = timer.poll(&ticks) {
            std::thread::sleep(pause);
            polls += 1;
            assert!(polls < 10_000, "never came to rest");
        }
        assert_eq!(timer.poll(&ticks), None);
    }
}
