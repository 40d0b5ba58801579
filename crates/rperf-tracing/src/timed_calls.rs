//! Calls that are timed one by one, for the time line and for how long the calls of each method
//! take: there if one of them was asked for. In hooks, under the GVL.

use crate::clock::ClockReading;
use crate::fiber::Open;
use crate::tree::TracedTree;
use latencies::MethodLatencies;
use open_calls::{OpenCalls, TimedCall};
use spans::{Spans, SpansSnapshot};

pub(crate) mod latencies;
pub(crate) mod open_calls;
pub(crate) mod spans;

/// The calls that are open, and what becomes of those that end.
#[derive(Debug, Default)]
pub(crate) struct TimedCalls {
    open: OpenCalls,
    pub(crate) spans: Option<Spans>,
    pub(crate) latencies: Option<MethodLatencies>,
}

/// What is known of calls that were timed one by one; each is there if it was asked for.
#[derive(Debug, Default)]
pub(crate) struct TimedCallsSnapshot {
    pub(crate) spans: Option<SpansSnapshot>,
    /// How long the calls of each method took.
    pub(crate) latencies: Option<MethodLatencies>,
}

impl TimedCalls {
    /// The stack of a fiber is this one, after an event in it.
    pub(crate) fn follow(
        &mut self,
        tree: &TracedTree,
        fiber: usize,
        thread: u32,
        stack: &[Open],
        now: u64,
    ) {
        let (spans, latencies) = (&mut self.spans, &mut self.latencies);
        let end = |call| ended(tree, spans, latencies, call);
        self.open.follow(fiber, thread, stack, now, end);
    }

    /// A fiber is gone, and the next one has its place.
    pub(crate) fn end_fiber(&mut self, tree: &TracedTree, fiber: usize) {
        let (spans, latencies) = (&mut self.spans, &mut self.latencies);
        let end = |call| ended(tree, spans, latencies, call);
        self.open.end_fiber(fiber, end);
    }

    /// The open calls of a fiber go on in a pause that began `at`. In the time line they end there;
    /// how long they take isn't known.
    pub(crate) fn pause_fiber(&mut self, fiber: usize, at: u64) {
        let spans = &mut self.spans;
        self.open.pause_fiber(fiber, at, |call| {
            if let Some(spans) = spans {
                spans.add(call);
            }
        });
    }

    /// A thread comes into being, whose own fiber this is.
    pub(crate) fn add_thread(&mut self, fiber: usize) {
        if let Some(spans) = &mut self.spans {
            spans.add_thread(fiber);
        }
    }

    /// What is known up to `end`.
    pub(crate) fn snapshot(&self, end: &ClockReading) -> TimedCallsSnapshot {
        let spans = self.spans.as_ref();
        TimedCallsSnapshot {
            spans: spans.map(|spans| spans.snapshot(&self.open, end)),
            latencies: self.latencies.clone(),
        }
    }

    /// Lets go of all calls that have ended. Open ones begin at `start` in the time line; how long
    /// they take in all is kept.
    pub(crate) fn clear(&mut self, start: &ClockReading) {
        if let Some(latencies) = &mut self.latencies {
            latencies.clear();
        }
        if let Some(spans) = &mut self.spans {
            spans.clear(start);
        }
    }

    /// Bytes held.
    pub(crate) fn memory(&self) -> usize {
        self.open.memory()
            + self.spans.as_ref().map_or(0, Spans::memory)
            + self.latencies.as_ref().map_or(0, MethodLatencies::memory)
    }
}

#[inline]
fn ended(
    tree: &TracedTree,
    spans: &mut Option<Spans>,
    latencies: &mut Option<MethodLatencies>,
    call: TimedCall,
) {
    if let Some(latencies) = latencies {
        latencies.add(tree, call);
    }
    if let Some(spans) = spans {
        spans.add(call);
    }
}
