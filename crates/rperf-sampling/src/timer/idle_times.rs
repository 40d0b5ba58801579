//! How long nobody has the GVL once a thread has given it up: a request does so several times for a
//! moment, and once for long. The place in its code tells which. Only atomics: hooks that have the GVL
//! ask and learn, and whoever starts the timer sets the interval.

use crate::sync::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Places that are told apart.
const PLACES: usize = 256;

/// An idle time is worth a stop of the timer from this part of an interval on. In a virtual machine,
/// where the caches are cold after a wait, a stop and a start take 13 to 27 us, and a tick that finds
/// nobody 25 to 45 and a start.
const WORTH: u32 = 4;

/// The mean is one of about so many idle times.
const MEAN_OF: u32 = 8;

/// No idle time was seen yet.
const UNKNOWN: u32 = u32::MAX;

/// What is expected of idle times, by the place where they begin.
#[derive(Debug)]
pub(crate) struct IdleTimes {
    /// When the present one began; 0 if it isn't followed.
    began_ns: AtomicU64,
    /// Between ticks, in ns: longer idle times count as this.
    interval: AtomicU32,
    place: AtomicU8,
    expected: Box<Expected>,
}

/// The mean of the idle times of each place, in ns.
#[derive(Debug)]
#[repr(align(64))]
struct Expected([AtomicU32; PLACES]);

impl Default for IdleTimes {
    fn default() -> Self {
        Self {
            began_ns: AtomicU64::new(0),
            interval: AtomicU32::new(0),
            place: AtomicU8::new(0),
            expected: Box::new(Expected([const { AtomicU32::new(UNKNOWN) }; PLACES])),
        }
    }
}

impl IdleTimes {
    /// Ticks come at this interval, in ns; from some four seconds on it counts as that.
    pub(crate) fn set_interval(&self, interval: u64) {
        let interval = interval.min(u64::from(UNKNOWN - 1));
        self.interval.store(interval as u32, Relaxed);
    }

    /// The interval between ticks, in ns, as it counts here.
    pub(crate) fn interval(&self) -> u32 {
        self.interval.load(Relaxed)
    }

    /// An idle time begins at `now`, as a thread gives the GVL up at this `place`. Returns whether it is
    /// expected to be worth a stop of the timer: also if nothing is known.
    pub(crate) fn begin(&self, place: usize, now: u64) -> bool {
        let row = row_of(place);
        self.place.store(row, Relaxed);
        self.began_ns.store(now, Relaxed);
        let expected = self.expected.0[usize::from(row)].load(Relaxed);
        expected >= self.interval() / WORTH
    }

    /// A thread has the GVL at `now`.
    #[inline]
    pub(crate) fn end(&self, now: u64) {
        let began = self.began_ns.load(Relaxed);
        if began != 0 {
            self.began_ns.store(0, Relaxed);
            self.learn(now.saturating_sub(began));
        }
    }

    fn learn(&self, idle_ns: u64) {
        let idle = idle_ns.min(self.interval().into()) as u32;
        let expected = &self.expected.0[usize::from(self.place.load(Relaxed))];
        let next = match expected.load(Relaxed) {
            UNKNOWN => idle,
            mean => mean - mean / MEAN_OF + idle / MEAN_OF,
        };
        expected.store(next, Relaxed);
    }
}

/// The row of a place, by Fibonacci hashing. Some places share one.
fn row_of(place: usize) -> u8 {
    const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
    ((place as u64).wrapping_mul(GOLDEN) >> (u64::BITS - PLACES.ilog2())) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: u64 = 1_000_000;
    const SHORT: u64 = INTERVAL / 5;
    const LONG: u64 = 12 * INTERVAL;

    fn times() -> IdleTimes {
        let times = IdleTimes::default();
        times.set_interval(INTERVAL);
        times
    }

    /// Begins and ends an idle time of this length at `place`. Returns whether it was expected to be
    /// worth a stop.
    fn pass(times: &IdleTimes, place: usize, idle: u64) -> bool {
        let expected = times.begin(place, 5);
        times.end(5 + idle);
        times.end(5 + 2 * idle);
        expected
    }

    #[test]
    fn a_stop_is_worth_it_where_long_ones_begin() {
        let times = times();
        let (wait, write) = (0x7f00_1000, 0x7f00_2008);
        assert!(pass(&times, wait, LONG) && pass(&times, write, SHORT));
        for _ in 0..100 {
            assert!(pass(&times, wait, LONG));
            assert!(!pass(&times, write, SHORT));
        }
    }

    #[test]
    fn a_place_with_a_long_one_now_and_then_is_worth_it_if_they_are_many() {
        let share = |one_in: usize| {
            let times = times();
            let passed = (0..10_000).map(|turn| {
                let idle = if turn % one_in == 0 { LONG } else { 0 };
                usize::from(pass(&times, 8, idle))
            });
            passed.sum::<usize>()
        };
        assert!(share(2) > 9_900);
        assert!(share(100) < 1_000);
    }

    #[test]
    fn a_change_is_learned_soon() {
        let times = times();
        for _ in 0..1000 {
            pass(&times, 8, SHORT);
        }
        pass(&times, 8, LONG);
        pass(&times, 8, LONG);
        assert!(pass(&times, 8, LONG));
        let again = (0..100).take_while(|_| pass(&times, 8, 0)).count();
        assert!((2..20).contains(&again), "{again}");
    }

    #[test]
    fn intervals_of_any_length_are_all_right() {
        for interval in [1, 7, u64::MAX] {
            let times = IdleTimes::default();
            times.set_interval(interval);
            for _ in 0..100 {
                assert!(pass(&times, 8, u64::MAX / 4), "long ones, {interval}");
            }
        }
        let times = IdleTimes::default();
        times.set_interval(u64::MAX);
        pass(&times, 8, SHORT);
        assert!(!pass(&times, 8, SHORT));
    }
}
