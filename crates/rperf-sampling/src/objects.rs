//! Objects that a program makes, sampled by their bytes: a byte in so many is drawn at random, and the object
//! that it is of becomes a sample, with its stack, class and labels.
//!
//! The bridge's hook on new objects counts the bytes down ([`Countdown`]), and hands in what becomes a sample
//! ([`ObjectSampler`]). If objects are followed, it says which have to be put where the collector takes them
//! from ([`Held`]). All with the GVL, in the hook on new objects; only a stack, a class or a label set that
//! is new takes memory. docs/internals/sampled-objects.md has the rules.

mod age;
mod countdown;
mod followed;
mod gc_cost;
mod in_use;
mod limit;
mod named_sites;
mod site;
mod site_table;
mod sums;
mod unshared;

pub use age::Moment;
pub use countdown::Countdown;
use countdown::Gaps;
pub use followed::{FollowedSample, FollowedSamples};
use gc_cost::GcCosts;
use in_use::InUse;
pub use in_use::{Held, Put};
use limit::CostLimit;
pub use named_sites::{NamedSite, PlaceOfSite, PlacedSamples};
use rperf_vm::FrameWord;
pub use site::SampledObject;
use site::Weight;
use site_table::SiteTable;
use sums::ObjectsInUse;
pub use sums::SampledObjects;
pub use unshared::{GcTimes, UnsharedGc};

/// Bytes that a sample stands for in the mean.
const BYTES: u64 = 64 << 10;

/// A look takes less than a tenth of this for each sample. In ns.
const LOOK_NS_PER_SAMPLE: u64 = 1_000;

/// A look without samples takes as long as one with so many.
const LOOK_LIKE_SAMPLES: u64 = 256;

/// What samples new objects.
#[derive(Debug)]
pub struct ObjectSampler {
    gaps: Gaps,
    limit: CostLimit,
    table: SiteTable,
    /// If objects are followed for as long as they live.
    in_use: Option<InUse>,
    /// If the time of collections is shared among sites.
    gc_costs: Option<GcCosts>,
    since_ns: u64,
}

impl ObjectSampler {
    /// From `now_ns` on, with so much of one CPU's time at most, in percent. Equal seeds give equal samples.
    pub fn new(seed: u64, max_overhead: u32, now_ns: u64) -> Self {
        Self {
            gaps: Gaps::new(seed, BYTES),
            limit: CostLimit::new(max_overhead, now_ns),
            table: SiteTable::new(),
            in_use: None,
            gc_costs: None,
            since_ns: now_ns,
        }
    }

    /// A sampler that follows objects for as long as they live.
    pub fn with_objects_in_use(self, seed: u64) -> Self {
        Self {
            in_use: Some(InUse::new(seed)),
            ..self
        }
    }

    /// A sampler that shares the time of collections among the sites of objects.
    pub fn with_gc_costs(self) -> Self {
        Self {
            gc_costs: Some(GcCosts::default()),
            ..self
        }
    }

    /// The bytes from here to the next sample.
    pub fn next_gap(&mut self) -> u64 {
        self.gaps.next()
    }

    /// Takes a sample, which took from `began` to `now_ns`. Returns the bytes to the next one.
    pub fn add(&mut self, object: SampledObject<'_>, began: Moment, now_ns: u64) -> u64 {
        let objects = self.gaps.weight(object.bytes);
        let weight = Weight {
            objects,
            bytes: objects * object.bytes as f64,
        };
        let (word, bytes) = (object.object, object.bytes);
        let site = self.table.add(object, weight);
        if let Some(in_use) = &mut self.in_use {
            in_use.add(word, bytes, self.gaps.mean(), site, began);
        }
        if let Some(costs) = &mut self.gc_costs {
            costs.sampled(site, weight.bytes);
        }
        if let Some(step) = self.limit.spent(now_ns.saturating_sub(began.ns), now_ns) {
            self.gaps.change(step);
        }
        self.gaps.next()
    }

    /// Whether the time of collections is shared among sites.
    pub fn shares_gc(&self) -> bool {
        self.gc_costs.is_some()
    }

    /// Whether a collection has begun since this was asked last, if their time is shared: also one of which none is
    /// told. So many have begun in all.
    pub fn has_collected(&mut self, collections: u64) -> bool {
        let costs = self.gc_costs.as_mut();
        costs.is_some_and(|it| it.has_begun(collections))
    }

    /// Collections have taken so long since this was told last: before the next sample, if one has begun, and before
    /// all is told.
    pub fn collected(&mut self, times: GcTimes) {
        if let Some(costs) = &mut self.gc_costs {
            costs.collected(times);
        }
    }

    /// Whether a look is worth its time, now that collections have marked all objects for so many ns.
    pub fn wants_look_after(&self, marking_ns: u64) -> bool {
        let (Some(costs), Some(in_use)) = (&self.gc_costs, &self.in_use) else {
            return false;
        };
        let (count, ns) = (in_use.count() as u64, costs.marking_ns() + marking_ns);
        count > 0 && ns > (count + LOOK_LIKE_SAMPLES) * LOOK_NS_PER_SAMPLE
    }

    /// Shares all that collections have taken so far, while none is marking or as a profile has to be complete. So
    /// many objects lived after the last marking, if that is known, and those that are followed are those of a
    /// look.
    pub fn share_gc(&mut self, live: Option<u64>) {
        let Some(costs) = &mut self.gc_costs else {
            return;
        };
        costs.share_due();
        let known = self.in_use.as_ref().filter(|_| live.is_some());
        let until_ns = costs.marked_at_ns();
        let known = known.into_iter().flat_map(|it| it.born_before(until_ns));
        costs.share_marking(known, live.unwrap_or(0));
    }

    /// Frames and classes: the garbage collector's roots.
    pub fn words(&self) -> impl Iterator<Item = FrameWord> + '_ {
        self.table.words()
    }

    /// The frames and classes that are new since this was asked last.
    pub fn new_words(&mut self) -> impl Iterator<Item = FrameWord> + '_ {
        self.table.new_words()
    }

    /// New objects that are held until they are put away: the garbage collector's roots, too.
    pub fn held(&self) -> impl Iterator<Item = FrameWord> + '_ {
        self.in_use.iter().flat_map(InUse::held)
    }

    /// How many are held.
    pub fn held_count(&self) -> usize {
        self.in_use.as_ref().map_or(0, InUse::held_count)
    }

    /// The next one that has to be put away.
    pub fn next_held(&self) -> Option<Held> {
        self.in_use.as_ref()?.next_held()
    }

    /// Releases an object that was held: it was put away, and its number tells whether it lives, or it isn't
    /// followed.
    pub fn release(&mut self, held: Held, put: Put) {
        if let Some(in_use) = &mut self.in_use {
            in_use.release(held, put);
        }
    }

    /// Whether somebody has to look which numbers there are still ([`Self::looked`]).
    pub fn wants_look(&self) -> bool {
        self.in_use.as_ref().is_some_and(InUse::wants_look)
    }

    /// The numbers of the objects that have been put away and live.
    pub fn looked(&mut self, alive: Vec<u64>) {
        if let Some(in_use) = &mut self.in_use {
            in_use.looked(alive, &mut self.gaps);
        }
    }

    /// Whether anybody asks for the object with this number.
    pub fn follows(&self, number: u64) -> bool {
        self.in_use.as_ref().is_some_and(|it| it.follows(number))
    }

    /// What has been sampled, and what of it is in use at `now` in this `process`.
    pub fn sums(&self, now: Moment, process: &str) -> SampledObjects {
        let longest = self.in_use.as_ref().map_or(0, InUse::longest_mean);
        let mut sums = self.table.sums(self.gaps.longest().max(longest));
        sums.gc_costs = self.gc_costs.as_ref().map(GcCosts::sums);
        sums.in_use = self.in_use.as_ref().map(|in_use| {
            let rows = in_use.sums(now).into_iter();
            let mut rows: Vec<_> = rows.map(|((site, age), sum)| (site, age, sum)).collect();
            rows.sort_unstable_by_key(|row| (row.0, row.1));
            ObjectsInUse {
                rows,
                unknown: in_use.unknown(),
                process: process.into(),
            }
        });
        sums
    }

    /// The samples that are followed, at `now`; `None` if none are.
    pub fn followed(&self, now: Moment) -> Option<FollowedSamples> {
        let in_use = self.in_use.as_ref()?;
        let mut followed = self.table.followed(in_use.followed(now));
        followed.bytes_per_sample = self.gaps.usual().max(in_use.longest_mean());
        followed.lost_bytes = in_use.unknown().bytes.round() as u64;
        followed.since_ns = self.since_ns;
        Some(followed)
    }

    /// Lets go of what has been sampled, but for what is in use or waits for its collection. The caller keeps the
    /// words of [`Self::sums`] alive that are to get names.
    pub fn clear(&mut self) {
        if let Some(costs) = &mut self.gc_costs {
            costs.clear();
        }
        let followed = self.in_use.iter().flat_map(InUse::sites);
        let collected = self.gc_costs.iter().flat_map(GcCosts::sites);
        let (table, sites) = self.table.with_only(followed.chain(collected));
        let moved = |site| sites.get(&site).copied();
        if let Some(in_use) = &mut self.in_use {
            in_use.change_sites(moved);
        }
        if let Some(costs) = &mut self.gc_costs {
            costs.change_sites(moved);
        }
        self.table = table;
        self.gaps.forget_longest();
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.table.memory()
            + self.in_use.as_ref().map_or(0, InUse::memory)
            + self.gc_costs.as_ref().map_or(0, GcCosts::memory)
    }
}

#[cfg(test)]
mod tests;
