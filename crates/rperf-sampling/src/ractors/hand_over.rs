//! What was recorded of threads of other Ractors is handed over to the session, a part at a time. On
//! the main Ractor, with its GVL.

use super::merged::Merged;
use super::{Kept, OtherRactors, let_go};
use crate::collect::sample::SampleSums;
use crate::counters::SessionCounters;
use rperf_vm::{CapturedTree, OthersReady, ThreadNames, clock};
use std::mem::take;
use std::sync::atomic::Ordering::Relaxed;

/// Rows that one part has at most: they are handed over in less than a millisecond.
const PART_ROWS: usize = 1 << 10;

/// A part of what was recorded. In place of a label set, samples have the number of their Ractor.
#[derive(Debug)]
pub struct Part<'a> {
    /// Where the stacks of the samples are.
    pub tree: &'a CapturedTree,
    /// The samples.
    pub sums: SampleSums,
    /// What was counted.
    pub counters: SessionCounters,
    /// The names of threads.
    pub names: ThreadNames,
}

impl OtherRactors {
    /// Brings the threads from row `from` on up to `now`, and hands over what was recorded, until
    /// `until_ns`. Returns the row of the first thread for which there was no time; `None` if that
    /// was all. Rows change as threads end: one may be left out by who goes on from here.
    pub fn hand_over(
        &self,
        now: u64,
        ready: &OthersReady,
        from: usize,
        until_ns: u64,
        mut take: impl FnMut(Part<'_>),
    ) -> Option<usize> {
        let is_time_over = || until_ns != u64::MAX && clock::monotonic_ns() >= until_ns;
        let began_ns = self.began_ns.load(Relaxed);
        let mut kept = self.kept();
        let Kept { recorders, merged } = &mut *kept;
        let mut row = from;
        loop {
            while merged.rows() >= PART_ROWS {
                merged.hand_over_part(&mut take);
                if is_time_over() {
                    return Some(row);
                }
            }
            let Some(recorder) = recorders.get(row) else {
                break;
            };
            let has_ended = recorder.end.has_come();
            recorder.move_to(merged, now, ready.since(recorder.thread), began_ns);
            if has_ended {
                let_go(recorder);
                recorders.swap_remove(row);
            } else {
                row += 1;
            }
            if is_time_over() {
                merged.hand_over_part(&mut take);
                return Some(row);
            }
        }
        merged.flush_unattributed();
        merged.hand_over_part(&mut take);
        None
    }
}

impl Merged {
    fn rows(&self) -> usize {
        self.sums.rows()
    }

    fn hand_over_part(&mut self, hand_over: &mut impl FnMut(Part<'_>)) {
        let is_all = self.rows() <= PART_ROWS;
        hand_over(Part {
            sums: self.sums.take_rows(PART_ROWS),
            counters: take(&mut self.counters),
            names: take(&mut self.names),
            tree: &self.tree,
        });
        if is_all {
            self.forget_stacks();
        }
    }
}
