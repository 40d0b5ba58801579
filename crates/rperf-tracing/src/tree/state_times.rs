//! Times in which a thread didn't run: blocked, waiting for the GVL, collecting garbage; by the
//! node that was innermost then. They are few, next to calls, so their sums have a table of their
//! own, and the numbers of calls stay small. Under the GVL, at events.

use rperf_model::State;
use rustc_hash::FxHashMap;

/// The sums of one thread, in ticks of the clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct StateTimes(FxHashMap<(u32, State), u64>);

impl StateTimes {
    /// Adds time of `node`.
    pub(crate) fn add(&mut self, node: u32, state: State, ticks: u64) {
        if ticks > 0 {
            *self.0.entry((node, state)).or_default() += ticks;
        }
    }

    /// Adds the time of a thread that has been without the GVL from `since` to `now`, and was
    /// ready to run from `ready` on; before `since` if nobody told.
    pub(crate) fn add_away(&mut self, node: u32, since: u64, ready: u64, now: u64) {
        let now = now.max(since);
        let ready = if ready == 0 {
            now
        } else {
            ready.clamp(since, now)
        };
        self.add(node, State::GvlBlocked, ready - since);
        self.add(node, State::GvlWait, now - ready);
    }

    /// All sums, in the order of the nodes.
    pub(crate) fn sorted(&self) -> Vec<(u32, State, u64)> {
        let sums = self.0.iter();
        let mut sums: Vec<_> = sums
            .map(|(&(node, state), &ticks)| (node, state, ticks))
            .collect();
        sums.sort_unstable();
        sums
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.0.capacity() * (size_of::<((u32, State), u64)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use State::{GvlBlocked, GvlWait};

    #[test]
    fn time_away_is_blocked_until_the_thread_is_ready() {
        for (ready, expected) in [
            (30, vec![(7, GvlBlocked, 20), (7, GvlWait, 40)]),
            // Nobody told of it.
            (0, vec![(7, GvlBlocked, 60)]),
            // It was ready before its time began to count.
            (3, vec![(7, GvlWait, 60)]),
            // Clocks of two processors.
            (80, vec![(7, GvlBlocked, 60)]),
        ] {
            let mut times = StateTimes::default();
            times.add_away(7, 10, ready, 70);
            assert_eq!(times.sorted(), expected, "ready at {ready}");
        }
        let mut times = StateTimes::default();
        times.add_away(7, 10, 5, 9);
        assert_eq!(times.sorted(), []);
    }

    #[test]
    fn sums_are_by_node_and_state() {
        let mut times = StateTimes::default();
        for (node, state, ticks) in [(2, GvlWait, 5), (1, GvlWait, 1), (2, GvlBlocked, 3)] {
            times.add(node, state, ticks);
            times.add(node, state, ticks);
        }
        let expected = [(1, GvlWait, 2), (2, GvlBlocked, 6), (2, GvlWait, 10)];
        assert_eq!(times.sorted(), expected);
        assert!(times.memory() > 0);
    }
}
