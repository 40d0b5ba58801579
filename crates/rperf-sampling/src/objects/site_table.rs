//! Samples of objects, summed by stack, class, thread and labels, within bounds.

use super::followed::{FollowedSample, FollowedSamples, Sites};
use super::site::{SampledObject, Site, Weight};
use super::sums::SampledObjects;
use rperf_model::LabelSetId;
use rperf_vm::{CapturedTree, FrameWord, LabelSet, LabelTable, LastStack};
use rustc_hash::{FxHashMap, FxHashSet};

/// Different sites at most.
const SITES: usize = 1 << 16;

/// Nodes of the call tree at most. There is a quarter more for leaves of stacks that find no room.
const NODES: usize = 1 << 18;

/// Words of the VM that are kept alive at most: frames and classes.
const FRAMES: usize = 1 << 16;
const CLASSES: usize = 1 << 16;

/// The sums.
#[derive(Debug)]
pub(super) struct SiteTable {
    tree: CapturedTree,
    last: LastStack,
    labels: LabelTable,
    sums: FxHashMap<Site, Weight>,
    /// Objects whose sites found no room, or without a stack.
    lost: Weight,
    classes: Vec<FrameWord>,
    known_classes: FxHashSet<FrameWord>,
    /// Classes that somebody has been told of.
    handed_out: usize,
    site_cap: usize,
    class_cap: usize,
}

impl SiteTable {
    pub(super) fn new() -> Self {
        Self::with_room(NODES, FRAMES, SITES, CLASSES)
    }

    fn with_room(nodes: usize, frames: usize, site_cap: usize, class_cap: usize) -> Self {
        Self {
            tree: CapturedTree::new(nodes).with_frames_up_to(frames),
            last: LastStack::default(),
            labels: LabelTable::default(),
            sums: FxHashMap::default(),
            lost: Weight::default(),
            classes: Vec::new(),
            known_classes: FxHashSet::default(),
            handed_out: 0,
            site_cap,
            class_cap,
        }
    }

    /// Adds a sample that stands for so much. Returns its site, if there was room for it.
    pub(super) fn add(&mut self, object: SampledObject<'_>, weight: Weight) -> Option<Site> {
        let site = self.site(object);
        match site {
            Some(site) => self.sums.entry(site).or_default().add(weight),
            None => self.lost.add(weight),
        }
        site
    }

    fn site(&mut self, object: SampledObject<'_>) -> Option<Site> {
        let stack = object.stack.filter(|it| !it.frames.is_empty())?;
        let has_class = object.class == 0
            || self.known_classes.contains(&object.class)
            || self.classes.len() < self.class_cap;
        if !has_class {
            return None;
        }
        let site = Site {
            node: self
                .tree
                .intern(stack.frames, stack.lines, &mut self.last)
                .node,
            thread: object.thread,
            labels: object
                .labels
                .map_or(LabelSetId::default(), |set| self.labels.number(set, 1)),
            class: object.class,
        };
        if self.sums.contains_key(&site) {
            return Some(site);
        }
        if self.sums.len() >= self.site_cap {
            return None;
        }
        if site.class != 0 && self.known_classes.insert(site.class) {
            self.classes.push(site.class);
        }
        Some(site)
    }

    /// A table without sums, and with these sites' nodes, labels and classes; and these sites in it.
    pub(super) fn with_only(
        &self,
        sites: impl Iterator<Item = Site>,
    ) -> (Self, FxHashMap<Site, Site>) {
        let sites: FxHashSet<Site> = sites.collect();
        let mut kept = Self::with_room(NODES, FRAMES, self.site_cap, self.class_cap);
        let (tree, nodes) = self.tree.with_only(sites.iter().map(|site| site.node));
        kept.tree = tree;
        let sets = self.labels.sets();
        let mut map = FxHashMap::default();
        for site in sites {
            let set = (site.labels.0 as usize).checked_sub(1);
            let set = set.and_then(|row| sets.get(row)).cloned();
            let labels = set.map(|set| kept.labels.number(&LabelSet::of(set), 0));
            if site.class != 0 && kept.known_classes.insert(site.class) {
                kept.classes.push(site.class);
            }
            if let Some(moved) = site.in_tree(&nodes) {
                let labels = labels.unwrap_or_default();
                map.insert(site, Site { labels, ..moved });
            }
        }
        (kept, map)
    }

    /// Frames and classes.
    pub(super) fn words(&self) -> impl Iterator<Item = FrameWord> + '_ {
        self.tree.frames().iter().chain(&self.classes).copied()
    }

    /// New frames and classes, since this was asked last.
    pub(super) fn new_words(&mut self) -> impl Iterator<Item = FrameWord> + '_ {
        let rows = self.tree.take_new_frames();
        let known = std::mem::replace(&mut self.handed_out, self.classes.len());
        let frames = &self.tree.frames()[rows];
        frames.iter().chain(&self.classes[known..]).copied()
    }

    /// The sums; a sample stands for so many bytes at most, in the mean.
    pub(super) fn sums(&self, bytes_per_sample: u64) -> SampledObjects {
        // In an order of their own, whatever that of the table was.
        let mut sites: Vec<_> = self.sums.iter().map(|(site, sum)| (*site, *sum)).collect();
        sites.sort_unstable_by_key(|(site, _)| *site);
        SampledObjects {
            nodes: self.tree.nodes().to_vec(),
            frames: self.tree.frames().len(),
            words: self.words().collect(),
            label_sets: self.labels.sets().to_vec(),
            lacks_labels: self.labels.refused(),
            sites,
            lost: self.lost,
            bytes_per_sample,
            in_use: None,
            gc_costs: None,
        }
    }

    /// Samples that are followed, with their sites here.
    pub(super) fn followed(
        &self,
        samples: impl Iterator<Item = (FollowedSample, Option<Site>)>,
    ) -> FollowedSamples {
        let sites = Sites {
            nodes: self.tree.nodes(),
            frames: self.tree.frames(),
            label_sets: self.labels.sets(),
        };
        FollowedSamples::of(samples, &sites)
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.tree.memory()
            + self.last.memory()
            + self.labels.memory()
            + self.sums.capacity() * (size_of::<(Site, Weight)>() + 1)
            + self.classes.capacity() * size_of::<FrameWord>()
            + self.known_classes.capacity() * (size_of::<FrameWord>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_vm::Stack;

    const ONE: Weight = Weight {
        objects: 10.0,
        bytes: 400.0,
    };

    fn object(frames: &[FrameWord], class: FrameWord) -> SampledObject<'_> {
        SampledObject {
            object: 8,
            bytes: 40,
            class,
            thread: 1,
            stack: Some(Stack {
                frames,
                lines: &[],
                cut: false,
            }),
            labels: None,
        }
    }

    #[test]
    fn samples_are_summed_by_stack_class_thread_and_labels() {
        let mut table = SiteTable::new();
        let labels = LabelSet::empty().with([("page".into(), Some("a".into()))]);
        for _ in 0..3 {
            table.add(object(&[8, 16], 64), ONE);
        }
        table.add(object(&[16], 64), ONE);
        table.add(object(&[8, 16], 0), ONE);
        let other = object(&[8, 16], 64);
        table.add(SampledObject { thread: 2, ..other }, ONE);
        let labelled = SampledObject {
            labels: Some(&labels),
            ..other
        };
        table.add(labelled, ONE);
        let sums = table.sums(1);
        let found: Vec<f64> = sums.sites.iter().map(|it| it.1.objects).collect();
        assert_eq!(found, [10.0, 10.0, 30.0, 10.0, 10.0]);
        assert_eq!(sums.lost, Weight::default());
        assert_eq!(sums.words, [16, 8, 64]);
        assert_eq!(sums.label_sets.len(), 1);
    }

    #[test]
    fn words_are_handed_out_once() {
        let mut table = SiteTable::new();
        table.add(object(&[8, 16], 64), ONE);
        let new = |table: &mut SiteTable| table.new_words().collect::<Vec<_>>();
        assert_eq!(new(&mut table), [16, 8, 64]);
        assert_eq!(new(&mut table), [0; 0]);
        table.add(object(&[24, 16], 72), ONE);
        assert_eq!(new(&mut table), [24, 72]);
        assert_eq!(table.words().collect::<Vec<_>>(), [16, 8, 24, 64, 72]);
        assert!(table.memory() > 0);
    }

    #[test]
    fn what_finds_no_room_is_kept_without_a_site() {
        let mut table = SiteTable::with_room(1 << 10, 3, 2, 2);
        table.add(object(&[8], 64), ONE);
        table.add(object(&[8], 72), ONE);
        table.add(object(&[8], 80), ONE);
        table.add(object(&[16], 64), ONE);
        table.add(
            SampledObject {
                stack: None,
                ..object(&[], 64)
            },
            ONE,
        );
        table.add(object(&[8], 72), ONE);
        let sums = table.sums(1);
        let kept: f64 = sums.sites.iter().map(|it| it.1.bytes).sum();
        assert!((kept - 1200.0).abs() < 1e-9 && (sums.lost.bytes - 1200.0).abs() < 1e-9);
        for frame in 1..1000 {
            table.add(object(&[8 * frame], 64), ONE);
        }
        assert!(table.words().count() <= 5);
    }
}
