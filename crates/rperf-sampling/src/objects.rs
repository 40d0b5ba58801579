//! Objects that a program makes, sampled by their bytes: a byte in so many is drawn at random, and the
//! object that it is of becomes a sample, with its stack, class and labels.
//!
//! The bridge's hook on new objects counts the bytes down ([`Countdown`]), and hands in what becomes a
//! sample ([`ObjectSampler`]). All with the GVL, in the hook on new objects; only a stack, a class or a label set that is new takes memory. docs/internals/sampled-objects.md has the
//! rules.

mod countdown;
mod limit;
mod site;
mod site_table;
mod sums;

pub use countdown::Countdown;
use countdown::Gaps;
use limit::CostLimit;
use rperf_vm::FrameWord;
pub use site::SampledObject;
use site::Weight;
use site_table::SiteTable;
pub use sums::SampledObjects;

/// Bytes that a sample stands for in the mean.
const BYTES: u64 = 64 << 10;

/// What samples new objects.
#[derive(Debug)]
pub struct ObjectSampler {
    gaps: Gaps,
    limit: CostLimit,
    table: SiteTable,
}

impl ObjectSampler {
    /// From `now_ns` on, with so much of one CPU's time at most, in percent. Equal seeds give equal samples.
    pub fn new(seed: u64, max_overhead: u32, now_ns: u64) -> Self {
        Self {
            gaps: Gaps::new(seed, BYTES),
            limit: CostLimit::new(max_overhead, now_ns),
            table: SiteTable::new(),
        }
    }

    /// The bytes from here to the next sample.
    pub fn next_gap(&mut self) -> u64 {
        self.gaps.next()
    }

    /// Takes a sample, which took from `began_ns` to `now_ns`. Returns the bytes to the next one.
    pub fn add(&mut self, object: SampledObject<'_>, began_ns: u64, now_ns: u64) -> u64 {
        let objects = self.gaps.weight(object.bytes);
        let weight = Weight {
            objects,
            bytes: objects * object.bytes as f64,
        };
        self.table.add(object, weight);
        if let Some(step) = self.limit.spent(now_ns.saturating_sub(began_ns), now_ns) {
            self.gaps.change(step);
        }
        self.gaps.next()
    }

    /// Frames and classes: the garbage collector's roots.
    pub fn words(&self) -> impl Iterator<Item = FrameWord> + '_ {
        self.table.words()
    }

    /// The frames and classes that are new since this was asked last.
    pub fn new_words(&mut self) -> impl Iterator<Item = FrameWord> + '_ {
        self.table.new_words()
    }

    /// What has been sampled.
    pub fn sums(&self) -> SampledObjects {
        self.table.sums(self.gaps.longest())
    }

    /// Lets go of what has been sampled. The caller keeps the words of [`Self::sums`] alive that are to
    /// get names.
    pub fn clear(&mut self) {
        self.table = SiteTable::new();
        self.gaps.forget_longest();
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.table.memory()
    }
}

#[cfg(test)]
mod tests;
