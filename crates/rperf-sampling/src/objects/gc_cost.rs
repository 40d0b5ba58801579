//! What objects cost the garbage collector, by their sites: a model that shares each nanosecond of collections.
//! docs/internals/accounting.md has its rules.

use super::site::Site;
use super::unshared::GcTimes;
use rustc_hash::FxHashMap;
use std::mem::{replace, swap, take};

/// A site; `None` for objects whose sites found no room.
pub(super) type SiteOrLost = Option<Site>;

/// The model. Times are in ns.
#[derive(Debug, Default)]
pub(super) struct GcCosts {
    /// Bytes sampled since the last collection began.
    fresh: FxHashMap<SiteOrLost, f64>,
    /// Bytes sampled before, since the one before it began: the objects that it is for.
    due: FxHashMap<SiteOrLost, f64>,
    /// What it has taken, and isn't shared yet.
    due_ns: u64,
    /// Major marking that isn't shared yet.
    marking_ns: u64,
    marked_at_ns: u64,
    shared: FxHashMap<SiteOrLost, u64>,
    told: GcCostsOfNone,
    /// How many had begun when this was asked last.
    collections: u64,
}

/// What belongs to no site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GcCostsOfNone {
    /// Major marking of objects of which no sample is known.
    pub(super) long_lived_ns: u64,
    /// Collections that the program asked for.
    pub(super) asked_ns: u64,
    /// Collections before there was a sample.
    pub(super) unsampled_ns: u64,
}

/// All of it. The times of a session add up to those of its collections.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GcCostSums {
    pub(super) sites: Vec<(SiteOrLost, u64)>,
    pub(super) of_none: GcCostsOfNone,
}

impl GcCosts {
    /// A sample was drawn, after [`Self::collected`] was told of collections before it.
    pub(super) fn sampled(&mut self, site: SiteOrLost, bytes: f64) {
        *self.fresh.entry(site).or_default() += bytes;
    }

    /// Whether a collection has begun since this was asked last; so many have in all, whether their time is told or
    /// not.
    pub(super) fn has_begun(&mut self, collections: u64) -> bool {
        replace(&mut self.collections, collections) != collections
    }

    /// Collections have taken so long since this was told last. Where nothing was sampled between two of them, both
    /// are for the same objects.
    pub(super) fn collected(&mut self, times: GcTimes) {
        self.due_ns += times.before_ns;
        if times.has_begun && !self.fresh.is_empty() {
            self.share_due();
            // Both keep their room, because this is in the hook on new objects.
            self.due.clear();
            swap(&mut self.due, &mut self.fresh);
        }
        self.due_ns += times.since_ns;
        self.told.asked_ns += times.asked_ns;
        self.marking_ns += times.marking_ns;
        self.marked_at_ns = self.marked_at_ns.max(times.marked_at_ns);
    }

    /// Shares what the last collection has taken so far. The rest of it is for the same objects.
    pub(super) fn share_due(&mut self) {
        let ns = take(&mut self.due_ns);
        let weights = self.due.iter().map(|(site, bytes)| (*site, *bytes));
        let shared = &mut self.shared;
        let give = |site, ns| *shared.entry(site).or_default() += ns;
        if !share(ns, weights, give) {
            self.told.unsampled_ns += ns;
        }
    }

    /// Major marking that isn't shared yet.
    pub(super) fn marking_ns(&self) -> u64 {
        self.marking_ns
    }

    /// When it ended.
    pub(super) fn marked_at_ns(&self) -> u64 {
        self.marked_at_ns
    }

    /// Shares major marking among the sites of these objects, which lived then. They are some of `all` that lived.
    pub(super) fn share_marking(
        &mut self,
        live: impl Iterator<Item = (SiteOrLost, f64)>,
        all: u64,
    ) {
        let ns = take(&mut self.marking_ns);
        if ns == 0 {
            return;
        }
        let mut sums = FxHashMap::default();
        for (site, objects) in live {
            *sums.entry(site).or_default() += objects;
        }
        let known: f64 = sums.values().sum();
        let others = (None, (all as f64 - known).max(0.0));
        let live = sums.iter().map(|(site, objects)| (Some(*site), *objects));
        let Self { shared, told, .. } = self;
        let give = |site, ns| match site {
            Some(site) => *shared.entry(site).or_default() += ns,
            None => told.long_lived_ns += ns,
        };
        if !share(ns, live.chain([others]), give) {
            told.long_lived_ns += ns;
        }
    }

    /// What is shared. Nothing is left if both were shared just now.
    pub(super) fn sums(&self) -> GcCostSums {
        let mut sites: Vec<_> = self.shared.iter().map(|it| (*it.0, *it.1)).collect();
        // In an order of their own, whatever that of the table was.
        sites.sort_unstable();
        GcCostSums {
            sites,
            of_none: self.told,
        }
    }

    /// Lets go of what is shared.
    pub(super) fn clear(&mut self) {
        self.shared = FxHashMap::default();
        self.told = GcCostsOfNone::default();
    }

    /// The sites that may still get a share.
    pub(super) fn sites(&self) -> impl Iterator<Item = Site> + '_ {
        let sites = self.fresh.keys().chain(self.due.keys());
        sites.filter_map(|site| *site)
    }

    /// Sites have become others, while nothing is shared.
    pub(super) fn change_sites(&mut self, change: impl Fn(Site) -> Option<Site>) {
        for weights in [&mut self.fresh, &mut self.due] {
            for (site, bytes) in take(weights) {
                *weights.entry(site.and_then(&change)).or_default() += bytes;
            }
        }
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        let weights = self.fresh.capacity() + self.due.capacity();
        weights * (size_of::<(SiteOrLost, f64)>() + 1)
            + self.shared.capacity() * (size_of::<(SiteOrLost, u64)>() + 1)
    }
}

/// Shares `ns` in proportion to weights, in whole numbers that add up to it. Returns whether there was anybody to
/// give it to. Takes no memory.
fn share<K>(
    ns: u64,
    weights: impl Iterator<Item = (K, f64)> + Clone,
    mut give: impl FnMut(K, u64),
) -> bool {
    if ns == 0 {
        return true;
    }
    let weights = weights.filter(|it| it.1 > 0.0);
    let sum = |(rows, all): (usize, f64), weight: f64| (rows + 1, all + weight);
    let (rows, all) = weights.clone().map(|it| it.1).fold((0, 0.0), sum);
    let (mut seen, mut given) = (0.0, 0);
    for (row, (key, weight)) in weights.enumerate() {
        seen += weight;
        let end = match row + 1 == rows {
            true => ns,
            false => ((ns as f64 * (seen / all)).round() as u64).clamp(given, ns),
        };
        if end > given {
            give(key, end - given);
        }
        given = end;
    }
    given == ns
}

#[cfg(test)]
mod tests;
