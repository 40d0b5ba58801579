//! The time line of a traced session: calls that take long, each with its begin and end, if it was
//! asked for. In hooks, under the GVL; its profile is made outside of them.

use crate::clock::ClockReading;
use crate::clock::session_time::CountedTime;
use crate::timed_calls::open_calls::{OpenCalls, TimedCall};
use crate::tree::TracedNode;
use rperf_model::frame_kind::TRUNCATED_FRAME;
use rperf_model::{Span, TimeLine};
use rperf_vm::ResolvedFrame;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::process;

/// Calls that are kept at most: of more, the longest ones.
const ROOM: usize = 1 << 17;

/// The length of a tick is known from a short measurement only: calls that may be long enough are
/// kept until the end, which knows it.
const SLACK: f64 = 0.99;

/// The time line so far.
#[derive(Debug)]
pub(crate) struct Spans {
    least_ns: u64,
    kept: LongCalls,
    /// The fibers that are threads' own, in order.
    own_fibers: Vec<usize>,
    /// When it was let go of last: calls that were open then begin there.
    since: u64,
}

/// The calls that are kept.
#[derive(Debug, Clone)]
struct LongCalls {
    calls: Vec<LongCall>,
    /// How many there can be.
    room: usize,
    /// Ticks that a call must have taken.
    asked: u64,
    /// Ticks that it must have taken to find room.
    least: u64,
    left_out: u64,
}

/// A call that is kept.
#[derive(Debug, Clone, Copy)]
struct LongCall {
    call: TimedCall,
    is_open: bool,
}

/// The time line up to a moment.
#[derive(Debug)]
pub(crate) struct SpansSnapshot {
    least_ns: u64,
    kept: LongCalls,
    own_fibers: Vec<usize>,
}

impl Spans {
    /// The time line of calls that take at least `least_ns`; `ns_per_tick` is nearly the length of
    /// a tick.
    pub(crate) fn of(least_ns: u64, ns_per_tick: f64) -> Self {
        Self::new(least_ns, ns_per_tick, ROOM)
    }

    fn new(least_ns: u64, ns_per_tick: f64, room: usize) -> Self {
        let asked = (least_ns as f64 / ns_per_tick * SLACK) as u64;
        Self {
            least_ns,
            kept: LongCalls {
                // Taken up front: hooks allocate no such amounts.
                calls: Vec::with_capacity(room),
                room,
                asked,
                least: asked,
                left_out: 0,
            },
            own_fibers: Vec::new(),
            since: 0,
        }
    }

    /// A fiber is the own one of a new thread.
    pub(crate) fn add_thread(&mut self, fiber: usize) {
        self.own_fibers.push(fiber);
    }

    /// A call has ended.
    #[inline]
    pub(crate) fn add(&mut self, call: TimedCall) {
        self.kept.add(self.cut(call, false));
    }

    fn cut(&self, call: TimedCall, is_open: bool) -> LongCall {
        let began = call.began.max(self.since);
        LongCall {
            call: TimedCall { began, ..call },
            is_open,
        }
    }

    /// The time line up to `end`, with the calls that are open.
    pub(crate) fn snapshot(&self, open: &OpenCalls, end: &ClockReading) -> SpansSnapshot {
        let mut kept = self.kept.clone();
        // What is open may need more room than hooks have.
        kept.room = usize::MAX;
        for call in open.iter(end.ticks) {
            kept.add(self.cut(call, true));
        }
        SpansSnapshot {
            least_ns: self.least_ns,
            kept,
            own_fibers: self.own_fibers.clone(),
        }
    }

    /// Lets go of all calls that have ended. Open ones begin at `start`.
    pub(crate) fn clear(&mut self, start: &ClockReading) {
        self.kept.calls.clear();
        self.since = start.ticks;
        (self.kept.least, self.kept.left_out) = (self.kept.asked, 0);
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.kept.calls.capacity() * size_of::<LongCall>()
    }
}

impl LongCall {
    fn ticks(&self) -> u64 {
        self.call.ticks()
    }
}

impl LongCalls {
    /// Keeps a call, if it took long enough.
    #[inline]
    fn add(&mut self, call: LongCall) {
        if call.ticks() < self.asked {
            return;
        }
        self.keep(call);
    }

    #[cold]
    fn keep(&mut self, call: LongCall) {
        if call.ticks() < self.least {
            self.left_out += 1;
            return;
        }
        if self.calls.len() >= self.room {
            self.make_room();
        }
        self.calls.push(call);
    }

    /// Lets go of the shorter half.
    fn make_room(&mut self) {
        let half = self.room / 2;
        let (_, middle, _) = self
            .calls
            .select_nth_unstable_by_key(half, |call| Reverse(call.ticks()));
        self.least = middle.ticks().max(self.asked);
        self.left_out += (self.calls.len() - half) as u64;
        self.calls.truncate(half);
    }
}

impl SpansSnapshot {
    /// The time line of all this `time`, without `excluded` nodes, and with names, which are those of
    /// the frames in the order of their rows.
    pub(crate) fn into_time_line(
        self,
        nodes: &[TracedNode],
        excluded: &[bool],
        names: &[ResolvedFrame],
        time: &CountedTime,
        program: &str,
    ) -> TimeLine {
        let (start, ns_per_tick) = (&time.start, time.ns_per_tick());
        let ns = |ticks: u64| (ticks as f64 * ns_per_tick) as u64;
        let mut line = TimeLine {
            process: process::id(),
            program: program.to_owned(),
            start_time_ns: start.realtime_ns,
            least_ns: self.least_ns,
            left_out: self.kept.left_out,
            ..TimeLine::default()
        };
        let mut places: FxHashMap<u32, u32> = FxHashMap::default();
        for LongCall { call, is_open } in &self.kept.calls {
            let is_excluded = excluded.get(call.node as usize) == Some(&true);
            if is_excluded || ns(call.ticks()) < self.least_ns {
                continue;
            }
            // Rounded one by one: calls that end together do so in ns, too, and nest.
            let start_ns = ns(call.began.saturating_sub(start.ticks));
            let end_ns = ns(call.ended.saturating_sub(start.ticks));
            let node = nodes[call.node as usize];
            let name = *places.entry(node.row).or_insert_with(|| {
                let name = names.get(node.row as usize).map(|it| &*it.name);
                line.names.push(name.unwrap_or(TRUNCATED_FRAME.0).into());
                line.names.len() as u32 - 1
            });
            let is_own = self
                .own_fibers
                .binary_search(&(call.fiber as usize))
                .is_ok();
            line.spans.push(Span {
                name,
                thread: call.thread + 1,
                fiber: if is_own { 0 } else { call.fiber },
                start_ns,
                duration_ns: end_ns.saturating_sub(start_ns),
                is_open: *is_open,
            });
        }
        line.sort();
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::TraceClock;
    use crate::clock::session_time::SessionTime;
    use crate::event::TracedKind;
    use crate::tree::{ROOT, TracedFrame, TracedTree};

    fn call(took: u64) -> TimedCall {
        TimedCall {
            node: 1,
            thread: 0,
            fiber: 0,
            began: 0,
            ended: took,
        }
    }

    #[test]
    fn of_too_many_calls_the_longest_are_kept_and_the_others_counted() {
        let mut spans = Spans::new(1_000, 1.0, 8);
        let mut durations: Vec<u64> = (1..=100).map(|number| number * 7_919 % 10_007).collect();
        for took in &durations {
            spans.add(call(*took));
        }
        let asked = spans.kept.asked;
        durations.retain(|took| *took >= asked);
        durations.sort_unstable_by_key(|took| Reverse(*took));
        let kept = &spans.kept.calls;
        assert!(kept.len() >= 4 && kept.len() <= 8, "{kept:?}");
        assert_eq!(
            kept.len() as u64 + spans.kept.left_out,
            durations.len() as u64
        );
        let mut found: Vec<u64> = kept.iter().map(LongCall::ticks).collect();
        found.sort_unstable_by_key(|took| Reverse(*took));
        assert_eq!(found, durations[..found.len()]);
    }

    #[test]
    fn calls_that_end_together_do_so_in_ns_too() {
        let mut spans = Spans::new(1, 1.0, 64);
        for began in 0..64 {
            spans.add(TimedCall {
                began,
                ended: 1_000,
                ..call(0)
            });
        }
        let (start, end) = (
            ClockReading::default(),
            ClockReading {
                ticks: 10_000,
                monotonic_ns: 3_333,
                realtime_ns: 3_333,
            },
        );
        let mut tree = TracedTree::default();
        tree.child(ROOT, TracedFrame { word: 1, method: 0 }, TracedKind::Method);
        let taken = spans.snapshot(&OpenCalls::default(), &end);
        let time = SessionTime::new(TraceClock::Monotonic, start).until(end);
        let line = taken.into_time_line(tree.nodes(), &[], &[], &time, "");
        assert_eq!(line.spans.len(), 64);
        let mut ends = line.spans.iter().map(|it| it.start_ns + it.duration_ns);
        assert!(ends.all(|end| end == 333), "{:?}", line.spans);
    }

    #[test]
    fn calls_that_are_all_as_long_make_room_for_each_other() {
        let mut spans = Spans::new(10, 1.0, 8);
        for _ in 0..100 {
            spans.add(call(10));
        }
        assert!(spans.kept.calls.len() <= 8);
        assert_eq!(spans.kept.calls.len() as u64 + spans.kept.left_out, 100);
        assert!(spans.memory() >= 8 * size_of::<LongCall>());
        spans.clear(&ClockReading::default());
        assert_eq!((spans.kept.calls.len(), spans.kept.left_out), (0, 0));
    }
}
