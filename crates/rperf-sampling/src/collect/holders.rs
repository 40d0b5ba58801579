//! Who had the GVL lately: a request that has waited for it takes from here what it has waited for. On
//! the worker's thread.

use super::packed_labels::{PackedLabels, with_op};
use super::sample::Sample;
use crate::Times;
use crate::timer::pace::Pace;
use rperf_model::{GcCause, NodeId, State};
use rperf_vm::OpNumber;
use std::sync::Arc;

/// Samples that are kept: at 1000 Hz those of a second or more, in 40 KB. While one stack has the GVL
/// without a pause, its samples are one.
const KEPT: usize = 1024;

/// Stacks that a wait tells apart; those beyond are told as one without frames.
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
    /// Why the collection ran.
    pub(crate) gc: Option<GcCause>,
}

impl Holder {
    /// All beyond those that are told apart.
    const OTHERS: Self = Self {
        node: NodeId::ROOT,
        op: OpNumber::NONE,
        state: State::Running,
        gc: None,
    };
}

/// A sample of a thread that had the GVL, or several of one stack in a row.
#[derive(Debug, Clone, Copy)]
struct Held {
    /// The first tick.
    first_ns: u64,
    at_ns: u64,
    /// What the samples stand for.
    ns: u64,
    ticks: u64,
    holder: Holder,
}

impl Held {
    /// What it stands for in a wait since `since`, which isn't after its time. Ticks in the wait stand for
    /// all of their weight, because they do so in the mean over all waits. Of several in a row, some of
    /// which came before, only what has passed counts, and a gap between two. So it is with a collection
    /// that is longer than the gap between two samples of it (`gc_gap`).
    fn since(&self, since: u64, gc_gap: u64) -> u64 {
        let gap = match self.holder.state {
            State::Running if self.first_ns >= since => return self.ns,
            State::Running => self.ns / self.ticks.max(1),
            _ => gc_gap,
        };
        self.ns.min((self.at_ns - since).saturating_add(gap))
    }

    /// Takes in a later sample of the same stack, if that has had the GVL all the time between them.
    fn join(&mut self, later: &Held) -> bool {
        let is_one = self.holder == later.holder
            && later.holder.state == State::Running
            && later.at_ns.saturating_sub(later.ns) <= self.at_ns;
        if is_one {
            self.at_ns = later.at_ns;
            self.ns += later.ns;
            self.ticks += later.ticks;
        }
        is_one
    }
}

/// The last samples of threads that had the GVL, in the order of their times.
#[derive(Debug, Default)]
pub(crate) struct HolderLog {
    /// With room for [`KEPT`], or for none where this isn't measured.
    held: Vec<Held>,
    /// Where the oldest one is, once there are so many.
    oldest: usize,
    /// The intervals in force.
    pace: Option<Arc<Pace>>,
}

impl HolderLog {
    /// An empty one, of samples at this pace.
    pub(crate) fn new(pace: Arc<Pace>) -> Self {
        Self {
            held: Vec::with_capacity(KEPT),
            pace: Some(pace),
            ..Self::default()
        }
    }

    /// If the thread of this sample had the GVL, that is noted.
    #[inline]
    pub(crate) fn note(&mut self, sample: &Sample) {
        if self.held.capacity() == 0 || !sample.state.has_gvl() || sample.count == 0 {
            return;
        }
        // Ticks in a row are told with the last one's time.
        let ticks = u64::from(sample.count);
        let gap = sample.times.wall_ns / ticks;
        let held = Held {
            first_ns: sample.time_ns.saturating_sub(gap * (ticks - 1)),
            at_ns: sample.time_ns,
            ns: sample.times.wall_ns,
            ticks,
            holder: Holder {
                node: sample.node,
                op: PackedLabels::of(sample.labels).op,
                state: sample.state,
                gc: sample.gc,
            },
        };
        let newest = self
            .oldest
            .checked_sub(1)
            .unwrap_or(self.held.len().wrapping_sub(1));
        if self.held.get_mut(newest).is_some_and(|it| it.join(&held)) {
            return;
        }
        if self.held.len() < KEPT {
            self.held.push(held);
        } else {
            self.held[self.oldest] = held;
            self.oldest = (self.oldest + 1) % KEPT;
        }
    }

    /// Hands out what a request has waited for since then: of each stack that had the GVL a sample with the
    /// request's labels. `wait` has these and its thread.
    pub(crate) fn each_of_wait(&self, wait: &Sample, since: u64, mut each: impl FnMut(Sample)) {
        self.each_since(since, |holder, ns| {
            each(Sample {
                times: Times {
                    waited_for_ns: ns,
                    ..wait.times
                },
                node: holder.node,
                labels: with_op(wait.labels, holder.op),
                state: holder.state,
                gc: holder.gc,
                count: 0,
                ..*wait
            });
        });
    }

    /// Hands out what had the GVL from `since` on, up to the last sample, and for how long.
    fn each_since(&self, since: u64, mut each: impl FnMut(Holder, u64)) {
        // A gap between two points is at most half as long again as an interval.
        let interval = self.pace.as_ref().map_or(0, |pace| pace.tick());
        let gc_gap = interval + interval / 2;
        let (newer, older) = self.held.split_at(self.oldest);
        let backwards = newer.iter().rev().chain(older.iter().rev());
        let mut sums: [Option<(Holder, u64)>; STACKS] = [None; STACKS];
        let mut others = 0;
        for held in backwards.take_while(|it| it.at_ns >= since) {
            let ns = held.since(since, gc_gap);
            let mut places = sums.iter_mut();
            let place = places.find(|it| it.is_none_or(|(holder, _)| holder == held.holder));
            match place {
                Some(place) => place.get_or_insert((held.holder, 0)).1 += ns,
                None => others += ns,
            }
        }
        let sums = sums.into_iter().flatten();
        sums.for_each(|(holder, ns)| each(holder, ns));
        if others > 0 {
            each(Holder::OTHERS, others);
        }
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
    use crate::collect::sample::RequestNews;
    use rperf_model::{LabelSetId, Mode};
    use rperf_vm::{OpNumber, RequestNumber};

    const INTERVAL: u64 = 10;

    fn log() -> HolderLog {
        HolderLog::new(Arc::new(Pace::new(INTERVAL)))
    }

    fn note(log: &mut HolderLog, at_ns: u64, node: u32, state: State, ticks: u16, wall_ns: u64) {
        log.note(&sample(at_ns, node, state, ticks, wall_ns));
    }

    fn sample(at_ns: u64, node: u32, state: State, ticks: u16, wall_ns: u64) -> Sample {
        Sample {
            time_ns: at_ns,
            times: Times::of(Mode::Wall, wall_ns),
            node: NodeId(node),
            thread: 1,
            labels: LabelSetId::default(),
            request: RequestNumber::NONE,
            state,
            gc: None,
            count: ticks,
        }
    }

    fn since(log: &HolderLog, since: u64) -> Vec<(u32, State, u64)> {
        let mut all = Vec::new();
        log.each_since(since, |it, ns| all.push((it.node.0, it.state, ns)));
        all.sort_unstable_by_key(|it| it.0);
        all
    }

    #[test]
    fn a_wait_takes_the_samples_since_it_began() {
        let mut log = log();
        assert_eq!(since(&log, 0), []);
        note(&mut log, 100, 1, State::Running, 1, 9);
        note(&mut log, 110, 2, State::Running, 1, 10);
        note(&mut log, 120, 1, State::GvlWait, 1, 10);
        note(&mut log, 121, 1, State::Running, 0, 10);
        // Slices that no tick fell into are in it.
        note(&mut log, 125, 2, State::Running, 1, 40);
        note(&mut log, 130, 3, State::GcMarking, 1, 500);
        let running = State::Running;
        // The collection began before, and so did the wait, by 25.
        let collection = (3, State::GcMarking, 25 + INTERVAL * 3 / 2);
        assert_eq!(since(&log, 105), [(2, running, 50), collection]);
        assert_eq!(since(&log, 131), []);
        log.clear();
        assert_eq!(since(&log, 0), []);
    }

    #[test]
    fn ticks_in_a_row_count_from_the_wait_on() {
        let mut log = log();
        note(&mut log, 200, 1, State::Running, 10, 100);
        assert_eq!(since(&log, 50), [(1, State::Running, 100)]);
        assert_eq!(since(&log, 160), [(1, State::Running, 50)]);
        assert_eq!(since(&log, 200), [(1, State::Running, 10)]);
    }

    #[test]
    fn who_has_it_without_a_pause_is_one_entry() {
        let mut log = log();
        for turn in 1..=10_000 {
            note(&mut log, turn * INTERVAL, 1, State::Running, 1, INTERVAL);
        }
        assert_eq!(log.held.len(), 1);
        assert_eq!(since(&log, 50_000), [(1, State::Running, 50_010)]);
        // It had a pause of 1.
        note(&mut log, 100_011, 1, State::Running, 1, INTERVAL);
        assert_eq!(log.held.len(), 2);
        assert_eq!(since(&log, 100_005), [(1, State::Running, INTERVAL)]);
    }

    #[test]
    fn the_oldest_make_room_and_stacks_beyond_are_one() {
        let mut log = log();
        let bytes = log.memory();
        for at in 0..2 * KEPT as u64 + 7 {
            note(&mut log, at, at as u32 % 40, State::Running, 1, 1);
        }
        let sum = |from| since(&log, from).iter().map(|it| it.2).sum::<u64>();
        assert_eq!(sum(2 * KEPT as u64), 7);
        assert_eq!(sum(0), KEPT as u64);
        assert_eq!(since(&log, 0).len(), STACKS + 1);
        assert_eq!(log.memory(), bytes);
        let none = HolderLog::default();
        assert_eq!(none.memory(), 0);
    }

    #[test]
    fn without_room_nothing_is_noted() {
        let mut log = HolderLog::default();
        note(&mut log, 100, 1, State::Running, 1, 9);
        assert_eq!(since(&log, 0), []);
    }

    #[test]
    fn what_a_request_has_waited_for_has_its_labels_and_its_thread() {
        let mut log = log();
        let op = OpNumber(5);
        log.note(&Sample {
            labels: with_op(LabelSetId(8), op),
            gc: Some(GcCause::MinorMalloc),
            ..sample(100, 3, State::GcMarking, 1, 10)
        });
        let wait = Sample {
            thread: 9,
            labels: LabelSetId(4),
            ..Sample::of_request(RequestNumber(7), RequestNews::Waited { since_ns: 95 })
        };
        let mut all = Vec::new();
        log.each_of_wait(&wait, 95, |it| all.push(it));
        let [it] = all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            (it.thread, it.labels, it.request),
            (9, with_op(LabelSetId(4), op), RequestNumber(7))
        );
        let waited_ns = it.times.waited_for_ns;
        assert_eq!((it.node, waited_ns, it.count), (NodeId(3), 10, 0));
        let cause = Some(GcCause::MinorMalloc);
        assert_eq!((it.state, it.gc), (State::GcMarking, cause));
        assert_eq!(it.request_news(), None);
    }

    /// Two threads take turns, of a length of their own; the ticks are those of `gap`. While the first
    /// one runs, another waits. Returns how much of that wait is charged to the first and to the
    /// second, as a part of it.
    fn charged(turns: [u64; 2], mut gap: impl FnMut() -> u64) -> [f64; 2] {
        const ROUNDS: u64 = 40_000;
        let mut log = log();
        let (mut now, mut next) = (1, 1 + gap());
        let mut unsampled = [0; 2];
        let mut charged = [0; 2];
        for _ in 0..ROUNDS {
            let began = now;
            for (thread, turn) in turns.into_iter().enumerate() {
                let ends = now + turn;
                while next < ends {
                    unsampled[thread] += next - now;
                    now = next;
                    note(
                        &mut log,
                        now,
                        thread as u32,
                        State::Running,
                        1,
                        unsampled[thread],
                    );
                    unsampled[thread] = 0;
                    next += gap();
                }
                unsampled[thread] += ends - now;
                now = ends;
            }
            log.each_since(began, |it, ns| charged[it.node.0 as usize] += ns);
        }
        let all = turns.map(|turn| (turn * ROUNDS) as f64);
        [charged[0] as f64 / all[0], charged[1] as f64 / all[1]]
    }

    #[test]
    fn in_the_mean_each_is_charged_with_its_time_however_long_the_turns_are() {
        const GAP: u64 = 1_000;
        for turns in [
            [50, 100],
            [300, 700],
            [2_000, 500],
            [10_000, 10_000],
            [40, 5_000],
        ] {
            let mut dither = rperf_vm::Dither::new(turns[0]);
            let memoryless = charged(turns, || dither.memoryless_gap(GAP) + 1);
            let mut dither = rperf_vm::Dither::new(turns[1]);
            let even = charged(turns, || dither.gap(GAP));
            for part in memoryless.into_iter().chain(even) {
                assert!(
                    (0.94..1.06).contains(&part),
                    "{turns:?}: {memoryless:?} {even:?}"
                );
            }
        }
    }
}
