//! Who had the GVL lately: a request that has waited for it takes from here what it has waited for. With
//! the GVL, in hooks too.

use crate::Values;
use crate::accounting::SamplePoint;
use crate::collect::packed_labels::PackedLabels;
use rperf_model::{NodeId, State};
use rperf_vm::OpNumber;

/// Samples that are kept: at 1000 Hz those of a second, in 24 KB.
const KEPT: usize = 1024;

/// Stacks that a wait tells apart; those beyond may come several times.
const STACKS: usize = 16;

/// What had the GVL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Holder {
    /// Its stack.
    pub(crate) node: NodeId,
    /// The op that it was in.
    pub(crate) op: OpNumber,
    /// Whether it ran, or collected.
    pub(crate) state: State,
}

/// A sample of a thread that had the GVL.
#[derive(Debug, Clone, Copy)]
struct Held {
    at_ns: u64,
    /// What the sample stands for.
    ns: u64,
    holder: Holder,
}

/// The last samples of threads that had the GVL, in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct HolderLog {
    /// With room for [`KEPT`], or for none where this isn't measured.
    held: Vec<Held>,
    /// Where the oldest one is, once there are so many.
    oldest: usize,
    last_ns: u64,
    interval_ns: u64,
}

impl HolderLog {
    /// An empty one; samples are an interval apart in the mean.
    pub(crate) fn new(interval_ns: u64) -> Self {
        Self {
            held: Vec::with_capacity(KEPT),
            interval_ns,
            ..Self::default()
        }
    }

    /// A sample was made of a thread in `state`: if it had the GVL then, it is noted.
    #[inline]
    pub(crate) fn note(&mut self, at_ns: u64, point: SamplePoint, state: State, values: Values) {
        if self.held.capacity() == 0 || !state.has_gvl() || values.count == 0 {
            return;
        }
        let held = Held {
            at_ns,
            ns: values.wall_ns,
            holder: Holder {
                node: point.node,
                op: PackedLabels::of(point.labels).op,
                state,
            },
        };
        self.last_ns = at_ns;
        if self.held.len() < KEPT {
            self.held.push(held);
        } else {
            self.held[self.oldest] = held;
            self.oldest = (self.oldest + 1) % KEPT;
        }
    }

    /// Whether there is a sample from `since` on.
    #[inline]
    pub(crate) fn has_since(&self, since: u64) -> bool {
        self.last_ns >= since && !self.held.is_empty()
    }

    /// Hands out what had the GVL from `since` on, up to the last sample, and for how long. A sample in
    /// that time stands for all of its weight, as it does in the mean over all waits; but those of
    /// several ticks in a row, and of long collections, for no more than has passed of them.
    pub(crate) fn each_since(&self, since: u64, mut each: impl FnMut(Holder, u64)) {
        let (newer, older) = self.held.split_at(self.oldest);
        let backwards = newer.iter().rev().chain(older.iter().rev());
        let mut sums: [Option<(Holder, u64)>; STACKS] = [None; STACKS];
        for held in backwards.take_while(|it| it.at_ns >= since) {
            let passed = (held.at_ns - since).saturating_add(self.interval_ns);
            let ns = held.ns.min(passed);
            let mut places = sums.iter_mut();
            let place = places.find(|it| it.is_none_or(|(holder, _)| holder == held.holder));
            match place {
                Some(place) => place.get_or_insert((held.holder, 0)).1 += ns,
                None => each(held.holder, ns),
            }
        }
        let sums = sums.into_iter().flatten();
        sums.for_each(|(holder, ns)| each(holder, ns));
    }

    /// The call tree is another one.
    pub(crate) fn clear(&mut self) {
        self.held.clear();
        self.oldest = 0;
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.held.capacity() * size_of::<Held>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::LabelSetId;
    use rperf_vm::RequestNumber;

    const INTERVAL: u64 = 10;

    fn note(log: &mut HolderLog, at_ns: u64, node: u32, state: State, ticks: u64, wall_ns: u64) {
        let point = SamplePoint {
            node: NodeId(node),
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
        };
        let values = Values {
            count: ticks,
            wall_ns,
            ..Values::default()
        };
        log.note(at_ns, point, state, values);
    }

    fn since(log: &HolderLog, since: u64) -> Vec<(u32, State, u64)> {
        let mut all = Vec::new();
        log.each_since(since, |it, ns| all.push((it.node.0, it.state, ns)));
        all.sort_unstable_by_key(|it| it.0);
        all
    }

    #[test]
    fn a_wait_takes_the_samples_since_it_began() {
        let mut log = HolderLog::new(INTERVAL);
        assert!(!log.has_since(0));
        note(&mut log, 100, 1, State::Running, 1, 9);
        note(&mut log, 110, 2, State::Running, 1, 10);
        note(&mut log, 120, 1, State::GvlWait, 1, 10);
        note(&mut log, 121, 1, State::Running, 0, 10);
        note(&mut log, 125, 2, State::Running, 1, 11);
        note(&mut log, 130, 3, State::GcMarking, 1, 500);
        assert!(log.has_since(130) && !log.has_since(131));
        let running = State::Running;
        // The collection began before, and so did the wait, by 25.
        let collection = (3, State::GcMarking, 35);
        assert_eq!(since(&log, 105), [(2, running, 21), collection]);
        assert_eq!(since(&log, 131), []);
        log.clear();
        assert!(!log.has_since(100) && since(&log, 0).is_empty());
    }

    #[test]
    fn ticks_in_a_row_count_from_the_wait_on() {
        let mut log = HolderLog::new(INTERVAL);
        note(&mut log, 200, 1, State::Running, 10, 100);
        assert_eq!(since(&log, 50), [(1, State::Running, 100)]);
        assert_eq!(since(&log, 160), [(1, State::Running, 50)]);
        assert_eq!(since(&log, 200), [(1, State::Running, INTERVAL)]);
    }

    #[test]
    fn the_oldest_make_room_and_no_stack_is_lost() {
        let mut log = HolderLog::new(INTERVAL);
        let bytes = log.memory();
        for at in 0..2 * KEPT as u64 + 7 {
            note(&mut log, at, at as u32 % 40, State::Running, 1, 1);
        }
        let sum = |from| since(&log, from).iter().map(|it| it.2).sum::<u64>();
        assert_eq!(sum(2 * KEPT as u64), 7);
        assert_eq!(sum(0), KEPT as u64);
        assert_eq!(log.memory(), bytes);
        let none = HolderLog::default();
        assert_eq!(none.memory(), 0);
    }

    #[test]
    fn without_room_nothing_is_noted() {
        let mut log = HolderLog::default();
        note(&mut log, 100, 1, State::Running, 1, 9);
        assert!(!log.has_since(0));
    }

    /// Ticks at random moments, and waits that begin at any: in the mean a holder has its time.
    #[test]
    fn in_the_mean_a_holder_has_the_time_for_which_it_was_waited_for() {
        const TURN: u64 = 1_000;
        let mut random = rperf_vm::Dither::new(7);
        let mut log = HolderLog::new(TURN);
        let mut sums = [0_u64; 2];
        const TURNS: u64 = 20_000;
        for turn in 1..=TURNS {
            // One holds for 300, and the other for 700; a tick in each turn finds one of them.
            let begin = turn * TURN;
            let tick = random.gap(TURN) - TURN / 2;
            let node = u32::from(tick >= 300);
            note(&mut log, begin + tick, node, State::Running, 1, TURN);
            log.each_since(begin, |it, ns| sums[it.node.0 as usize] += ns);
        }
        let share = sums[0] as f64 / (sums[0] + sums[1]) as f64;
        assert!((0.28..0.32).contains(&share), "{share}");
        assert_eq!(sums[0] + sums[1], TURNS * TURN);
    }
}
