//! Samples whose objects are followed for as long as they live. A new one is held, so that nobody frees it,
//! until the bridge has put it where the collector takes it from without anybody's doing; there it has a
//! number. Those numbers that are gone from there are forgotten.

use super::age::{Age, Moment};
use super::countdown::{Gaps, weight};
use super::followed::FollowedSample;
use super::site::{Site, Weight};
use rperf_model::NodeId;
use rperf_vm::{Dither, FrameWord};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Samples that are followed at most.
const MOST: usize = 1 << 16;

/// New ones that are held at most: they are 256 MB of slots, made without a safepoint in between.
const HELD: usize = 1 << 12;

/// Samples are looked through when they have doubled, from so many on.
const FEW: usize = 1 << 10;

/// A new object that has yet to be put away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Its number.
    pub number: u64,
    /// The object.
    pub object: FrameWord,
}

/// What became of an object that was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The object was put away when so many collections had begun.
    Since(u64),
    /// There was no room for it.
    NoRoom,
    /// The program doesn't see it: it isn't followed.
    Hidden,
}

/// A sample whose object is followed.
#[derive(Debug, Clone, Copy)]
struct Sample {
    number: u64,
    /// `None`: there was no room for its site.
    site: Option<Site>,
    bytes: u64,
    /// The mean of the gaps when it was drawn, or later: then others were let go of.
    mean: u64,
    born_ns: u64,
    /// Collections that had begun when it was no longer held.
    collections: u64,
}

impl Sample {
    fn weight(&self) -> Weight {
        let objects = weight(self.bytes, self.mean);
        Weight {
            objects,
            bytes: objects * self.bytes as f64,
        }
    }
}

/// What is in use, summed by site and age.
pub(super) type UseBySite = FxHashMap<(Option<Site>, Age), Weight>;

/// The samples.
#[derive(Debug)]
pub(super) struct InUse {
    /// In the order of their numbers. Those of [`Self::held`] are among them.
    samples: Vec<Sample>,
    held: VecDeque<Held>,
    last: u64,
    /// How many are there when they are looked through next.
    next_look: usize,
    /// Objects that aren't followed.
    unknown: Weight,
    dither: Dither,
    most: usize,
}

impl InUse {
    pub(super) fn new(seed: u64) -> Self {
        Self::with_room(seed, MOST)
    }

    fn with_room(seed: u64, most: usize) -> Self {
        Self {
            samples: Vec::new(),
            held: VecDeque::with_capacity(HELD),
            last: 0,
            next_look: FEW.min(most),
            unknown: Weight::default(),
            dither: Dither::new(seed),
            most,
        }
    }

    /// A sample was drawn. It is followed if there is room.
    pub(super) fn add(
        &mut self,
        object: FrameWord,
        bytes: u64,
        mean: u64,
        site: Option<Site>,
        now: Moment,
    ) {
        let number = self.last + 1;
        let sample = Sample {
            number,
            site,
            bytes,
            mean,
            born_ns: now.ns,
            collections: now.collections,
        };
        if self.held.len() >= HELD || self.samples.len() >= self.most + HELD {
            return self.unknown.add(sample.weight());
        }
        self.last = number;
        self.held.push_back(Held { number, object });
        self.samples.push(sample);
    }

    /// The objects that are held: the collector's roots.
    pub(super) fn held(&self) -> impl Iterator<Item = FrameWord> + '_ {
        self.held.iter().map(|it| it.object)
    }

    /// How many are held.
    pub(super) fn held_count(&self) -> usize {
        self.held.len()
    }

    /// How many are followed.
    pub(super) fn count(&self) -> usize {
        self.samples.len()
    }

    /// The sites and numbers of objects that were made up to a moment and live.
    pub(super) fn born_before(&self, ns: u64) -> impl Iterator<Item = (Option<Site>, f64)> + '_ {
        let born = self.samples.iter().filter(move |it| it.born_ns <= ns);
        born.map(|it| (it.site, it.weight().objects))
    }

    /// The next object that has to be put away.
    pub(super) fn next_held(&self) -> Option<Held> {
        self.held.front().copied()
    }

    /// Releases an object that was held.
    pub(super) fn release(&mut self, held: Held, put: Put) {
        if self.held.front() != Some(&held) {
            return;
        }
        self.held.pop_front();
        // It may have been let go of meanwhile.
        let Ok(row) = self.row(held.number) else {
            return;
        };
        match put {
            Put::Since(collections) => self.samples[row].collections = collections,
            Put::NoRoom => {
                let lost = self.samples.remove(row);
                self.unknown.add(lost.weight());
            }
            Put::Hidden => {
                self.samples.remove(row);
            }
        }
    }

    /// Whether it is time to look which of them live.
    pub(super) fn wants_look(&self) -> bool {
        self.samples.len() >= self.next_look
    }

    /// The samples with these numbers live, and those held. If they are too many, the gaps lengthen, and
    /// about half of them are let go of: the others stand for them.
    pub(super) fn looked(&mut self, mut alive: Vec<u64>, gaps: &mut Gaps) {
        alive.sort_unstable();
        let first_held = self.held.front().map_or(u64::MAX, |it| it.number);
        let mut alive = alive.into_iter().peekable();
        self.samples.retain(|sample| {
            while alive.next_if(|number| *number < sample.number).is_some() {}
            sample.number >= first_held || alive.peek() == Some(&sample.number)
        });
        while self.samples.len() > self.most / 8 * 7 && gaps.lengthen_for_good() {
            self.thin_out(gaps.usual());
        }
        self.next_look = (2 * self.samples.len()).clamp(FEW.min(self.most), self.most);
    }

    /// Lets samples go that stand for less than those of gaps with this mean.
    fn thin_out(&mut self, mean: u64) {
        let dither = &mut self.dither;
        self.samples.retain_mut(|sample| {
            if sample.mean >= mean {
                return true;
            }
            // As likely as if it had been drawn with such gaps.
            let part = weight(sample.bytes, sample.mean) / weight(sample.bytes, mean);
            sample.mean = mean;
            dither.part() < part
        });
    }

    /// Whether the sample with this number is followed.
    pub(super) fn follows(&self, number: u64) -> bool {
        self.row(number).is_ok()
    }

    /// What is in use at `now`.
    pub(super) fn sums(&self, now: Moment) -> UseBySite {
        let first_held = self.held.front().map_or(u64::MAX, |it| it.number);
        let mut sums = UseBySite::default();
        for sample in &self.samples {
            let age = match sample.number < first_held {
                true => Age::at(now, sample.born_ns, sample.collections),
                false => Age::BeforeCollection,
            };
            let sum = sums.entry((sample.site, age)).or_default();
            sum.add(sample.weight());
        }
        sums
    }

    /// All samples, as they are at `now`, with their sites.
    pub(super) fn followed(
        &self,
        now: Moment,
    ) -> impl Iterator<Item = (FollowedSample, Option<Site>)> + '_ {
        self.samples.iter().map(move |it| {
            let sample = FollowedSample {
                number: it.number,
                site: None,
                bytes: it.bytes,
                mean: it.mean,
                age_ns: now.ns.saturating_sub(it.born_ns),
                collections: now.collections.saturating_sub(it.collections),
            };
            (sample, it.site)
        })
    }

    /// Objects of which nobody knows whether they are in use.
    pub(super) fn unknown(&self) -> Weight {
        self.unknown
    }

    /// The longest mean that a sample has been drawn with, if there are some.
    pub(super) fn longest_mean(&self) -> u64 {
        self.samples.iter().map(|it| it.mean).max().unwrap_or(0)
    }

    /// The sites of all samples, each as often as it has some.
    pub(super) fn sites(&self) -> impl Iterator<Item = Site> + '_ {
        self.samples.iter().filter_map(|it| it.site)
    }

    /// Sites have become others.
    pub(super) fn change_sites(&mut self, change: impl Fn(Site) -> Option<Site>) {
        for sample in &mut self.samples {
            sample.site = sample.site.and_then(&change);
        }
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.samples.capacity() * size_of::<Sample>() + self.held.capacity() * size_of::<Held>()
    }

    fn row(&self, number: u64) -> Result<usize, usize> {
        self.samples.binary_search_by_key(&number, |it| it.number)
    }
}

impl Site {
    /// The site in a call tree that has been built anew: `nodes` are the new ones.
    pub(super) fn in_tree(self, nodes: &[NodeId]) -> Option<Self> {
        let node = nodes.get(self.node.0 as usize).copied();
        node.map(|node| Self { node, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::LabelSetId;

    const MEAN: u64 = 1 << 16;

    fn site(class: FrameWord) -> Option<Site> {
        Some(Site {
            node: NodeId(1),
            thread: 1,
            labels: LabelSetId::default(),
            class,
        })
    }

    fn at(ns: u64, collections: u64) -> Moment {
        Moment { ns, collections }
    }

    fn put_all(in_use: &mut InUse, collections: u64) -> Vec<u64> {
        let next = || {
            let held = in_use.next_held()?;
            in_use.release(held, Put::Since(collections));
            Some(held.number)
        };
        std::iter::from_fn(next).collect()
    }

    fn bytes(sums: &UseBySite, class: FrameWord) -> f64 {
        let of_class = sums.iter().filter(|it| it.0.0 == site(class));
        of_class.map(|it| it.1.bytes).sum()
    }

    #[test]
    fn those_that_are_gone_are_forgotten_and_those_held_are_not() {
        let (mut in_use, mut gaps) = (InUse::new(1), Gaps::new(1, MEAN));
        for object in 1..=6 {
            in_use.add(8 * object, 40, MEAN, site(object % 2), at(0, 3));
        }
        assert_eq!(in_use.held().collect::<Vec<_>>(), [8, 16, 24, 32, 40, 48]);
        for _ in 0..4 {
            let held = in_use.next_held().expect("some are held");
            in_use.release(held, Put::Since(3));
        }
        in_use.looked(vec![3, 1, 99], &mut gaps);
        let sums = in_use.sums(at(1, 4));
        let each = weight(40, MEAN) * 40.0;
        assert!((bytes(&sums, 1) - 3.0 * each).abs() < 1e-6);
        assert!((bytes(&sums, 0) - each).abs() < 1e-6);
        let ages = |age| sums.keys().filter(|it| it.1 == age).count();
        assert_eq!((ages(Age::BeforeCollection), ages(Age::Minute)), (2, 1));
        let held = in_use.next_held().expect("two are held");
        in_use.release(held, Put::NoRoom);
        assert!((in_use.unknown().bytes - each).abs() < 1e-6);
        assert!(!in_use.follows(held.number) && in_use.follows(6));
        let held = in_use.next_held().expect("one is held");
        in_use.release(held, Put::Hidden);
        assert!((in_use.unknown().bytes - each).abs() < 1e-6);
        assert!(!in_use.follows(6) && in_use.next_held().is_none());
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut in_use = InUse::new(1);
        for object in 0..HELD + 10 {
            in_use.add(8 * object, 40, MEAN, site(8), at(0, 3));
        }
        let each = weight(40, MEAN);
        assert_eq!(in_use.held_count(), HELD);
        assert!((in_use.unknown().objects - 10.0 * each).abs() < 1e-3);
        assert!(in_use.memory() > 0);
    }

    #[test]
    fn too_many_are_halved_and_stand_for_all() {
        const MOST: usize = 1 << 12;
        let (mut in_use, mut gaps) = (InUse::with_room(7, MOST), Gaps::new(1, MEAN));
        let sizes = [40, 640, 100_000];
        let mut truth = [0.0; 3];
        let mut known = 0;
        for turn in 0..12_000_usize {
            let row = turn % 3;
            let mean = gaps.usual();
            truth[row] += weight(sizes[row], mean) * sizes[row] as f64;
            in_use.add(8, sizes[row], mean, site(row), at(0, 3));
            let all = put_all(&mut in_use, 3);
            known = known.max(all.last().copied().unwrap_or(0));
            if in_use.wants_look() {
                in_use.looked((1..=known).collect(), &mut gaps);
            }
            assert!(in_use.samples.len() <= MOST);
        }
        assert!(gaps.usual() > 2 * MEAN);
        let sums = in_use.sums(at(1, 4));
        for (row, truth) in truth.into_iter().enumerate() {
            let off = (bytes(&sums, row) - truth).abs();
            assert!(
                off < 6.0 * f64::sqrt(truth * gaps.usual() as f64),
                "{row}: {off}"
            );
        }
        assert!(in_use.longest_mean() >= gaps.usual());
    }
}
