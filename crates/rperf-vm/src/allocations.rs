//! The objects that a program makes, each counted: by thread, place, line and class. The bridge's
//! hook on new objects calls it under the GVL; an object of a known site costs one look-up, and
//! only a new site takes memory. The sums become columns of a profile ([`AllocationSums`]) on the
//! thread that asks for it.

use crate::call_tree::shown_line;
use crate::frame_names::ResolvedFrame;
use crate::object_rows::{HIDDEN_CLASS, KnownOfObjects, ObjectRow, add_object_columns};
use rperf_model::{LabelSetId, Node, NodeId, Note, OwnColumn, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Borrow;

/// Different sites at most; the objects of others are counted without one.
const SITE_CAP: usize = 1 << 16;

/// Words of the VM that are kept alive at most, over all that was let go of meanwhile.
const WORD_CAP: usize = 1 << 17;

/// What the bytes are of.
const SLOTS: &str = "bytes of slots in Ruby's heap, without the memory that objects have elsewhere";

/// Where objects are made, and of what class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AllocationSite {
    /// The number of the thread; 0 if it isn't known.
    pub thread: u32,
    /// The frame, or the node of a traced tree.
    pub place: usize,
    /// The line in execution there; 0 if it isn't known.
    pub line: u32,
    /// The class; 0 for objects that the program doesn't see.
    pub class: usize,
    /// The number of the label set, in a trace.
    pub labels: LabelSetId,
}

/// How many objects, and how large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allocated {
    /// Objects.
    pub objects: u64,
    /// The bytes of their slots.
    pub bytes: u64,
}

impl Allocated {
    #[inline]
    fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// What has been counted so far.
#[derive(Debug)]
pub struct Allocations {
    sites: FxHashMap<AllocationSite, Allocated>,
    /// Objects whose sites found no room.
    lost: Allocated,
    /// Places are objects of the VM, too.
    places_are_words: bool,
    words: Vec<usize>,
    known_words: FxHashSet<usize>,
    /// Words that somebody has been told of.
    handed_out: usize,
    site_cap: usize,
}

impl Allocations {
    /// Nothing yet. `places_are_words`: places are frames, which have to be kept alive.
    pub fn new(places_are_words: bool) -> Self {
        Self {
            sites: FxHashMap::default(),
            lost: Allocated::default(),
            places_are_words,
            words: Vec::new(),
            known_words: FxHashSet::default(),
            handed_out: 0,
            site_cap: SITE_CAP,
        }
    }

    /// An object of so many bytes was made.
    #[inline]
    pub fn add(&mut self, site: AllocationSite, bytes: u64) {
        match self.sites.get_mut(&site) {
            Some(sum) => sum.add(bytes),
            None => self.add_site(site, bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn add_site(&mut self, site: AllocationSite, bytes: u64) {
        let words = self.words_of(&site);
        let is_known = |word: &usize| *word == 0 || self.known_words.contains(word);
        let have_room = words.iter().all(is_known) || self.words.len() + 2 <= WORD_CAP;
        if self.sites.len() >= self.site_cap || !have_room {
            return self.lost.add(bytes);
        }
        for word in words {
            if word != 0 && self.known_words.insert(word) {
                self.words.push(word);
            }
        }
        self.sites.entry(site).or_default().add(bytes);
    }

    /// All frames and classes: the garbage collector's roots.
    pub fn words(&self) -> &[usize] {
        &self.words
    }

    /// The frames and classes that are new since this was asked last.
    #[inline]
    pub fn new_words(&mut self) -> &[usize] {
        let known = std::mem::replace(&mut self.handed_out, self.words.len());
        &self.words[known..]
    }

    /// What has been counted.
    pub fn sums(&self) -> AllocationSums {
        // Those of a trace are named in the order in which they came.
        let words = match self.places_are_words {
            true => self.used_words(),
            false => self.words.clone(),
        };
        AllocationSums {
            sites: self.sites.iter().map(|(site, sum)| (*site, *sum)).collect(),
            lost: self.lost,
            words,
        }
    }

    /// The frames and classes of what was counted: no others need names.
    fn used_words(&self) -> Vec<usize> {
        let used = self.sites.keys().flat_map(|site| self.words_of(site));
        let mut words: Vec<usize> = used.filter(|word| *word != 0).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// What of a site is an object of the VM; 0 for what isn't.
    fn words_of(&self, site: &AllocationSite) -> [usize; 2] {
        let place = if self.places_are_words { site.place } else { 0 };
        [place, site.class]
    }

    /// Lets go of what was counted. Words stay known, and alive: they may be about to get names.
    pub fn clear(&mut self) {
        self.sites.clear();
        self.lost = Allocated::default();
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.sites.capacity() * (size_of::<(AllocationSite, Allocated)>() + 1)
            + self.words.capacity() * size_of::<usize>()
            + self.known_words.capacity() * (size_of::<usize>() + 1)
    }
}

/// What was counted up to a moment, still with the words of the VM.
#[derive(Debug, Clone, Default)]
pub struct AllocationSums {
    sites: Vec<(AllocationSite, Allocated)>,
    lost: Allocated,
    words: Vec<usize>,
}

impl AllocationSums {
    /// All frames and classes of what was counted.
    pub fn words(&self) -> &[usize] {
        &self.words
    }

    /// Adds columns for objects to `profile`, which has no samples one by one. `names` are those of
    /// the words, in their order. Places are frames: each is a stack of its own.
    pub fn add_to(&self, profile: &mut Profile, names: &[impl Borrow<ResolvedFrame>]) {
        let named = self.named(names);
        self.add_rows(profile, &named, &[], |profile, site| {
            let frame = match named.get(&site.place) {
                Some(name) => name.intern(profile),
                None => return NodeId::ROOT,
            };
            profile.tree.intern(Node {
                parent: NodeId::ROOT,
                frame,
                line: shown_line(site.line),
            })
        });
    }

    /// Adds columns for objects to a traced `profile`. Places are nodes: `map` has the profile's
    /// node for each, `sets` the profile's number for each label set.
    pub fn add_to_traced(
        &self,
        profile: &mut Profile,
        names: &[ResolvedFrame],
        map: &[NodeId],
        sets: &[LabelSetId],
    ) {
        self.add_rows(profile, &self.named(names), sets, |profile, site| {
            let node = map.get(site.place).copied().unwrap_or(NodeId::ROOT);
            match profile.tree.get(node) {
                Some(known) => profile.tree.intern(Node {
                    line: shown_line(site.line),
                    ..*known
                }),
                None => node,
            }
        });
    }

    fn named<'a>(
        &self,
        names: &'a [impl Borrow<ResolvedFrame>],
    ) -> FxHashMap<usize, &'a ResolvedFrame> {
        let names = names.iter().map(Borrow::borrow);
        self.words.iter().copied().zip(names).collect()
    }

    fn add_rows(
        &self,
        profile: &mut Profile,
        named: &FxHashMap<usize, &ResolvedFrame>,
        sets: &[LabelSetId],
        node: impl Fn(&mut Profile, &AllocationSite) -> NodeId,
    ) {
        // In an order of their own, whatever that of the table was.
        let mut sites: Vec<_> = self.sites.iter().collect();
        sites.sort_unstable_by_key(|(site, _)| *site);
        let mut rows: Vec<ObjectRow<'_>> = Vec::with_capacity(sites.len() + 1);
        for (site, sum) in sites {
            rows.push(ObjectRow {
                node: node(profile, site),
                thread: site.thread,
                class: named.get(&site.class).map_or(HIDDEN_CLASS, |it| &it.name),
                labels: sets
                    .get(site.labels.0 as usize)
                    .copied()
                    .unwrap_or_default(),
                age: None,
                objects: sum.objects,
                bytes: sum.bytes,
                gc_cost_ns: 0,
            });
        }
        if self.lost != Allocated::default() {
            let Allocated { objects, bytes } = self.lost;
            rows.push(ObjectRow::lost(profile, objects, bytes));
        }
        let note = Note::Values(OwnColumn::Bytes, SLOTS.into());
        let known = KnownOfObjects::default();
        add_object_columns(profile, known, rows.into_iter(), [note]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::label_keys::CLASS;
    use rperf_model::test_support::{self, cpu_schema};
    use rperf_model::{State, StringId, Thread, WeightKey};

    fn site(place: usize, class: usize) -> AllocationSite {
        AllocationSite {
            thread: 1,
            place,
            line: 3,
            class,
            labels: LabelSetId::default(),
        }
    }

    #[test]
    fn objects_are_counted_by_site_and_their_words_are_handed_out_once() {
        let mut allocations = Allocations::new(true);
        for _ in 0..3 {
            allocations.add(site(8, 16), 40);
        }
        allocations.add(site(8, 24), 80);
        allocations.add(site(8, 0), 160);
        assert_eq!(allocations.new_words(), [8, 16, 24]);
        assert_eq!(allocations.new_words(), [0; 0]);
        let sums = allocations.sums();
        let mut found: Vec<_> = sums
            .sites
            .iter()
            .map(|(site, sum)| (site.class, sum.objects, sum.bytes))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [(0, 1, 160), (16, 3, 120), (24, 1, 80)]);
        assert_eq!(sums.lost, Allocated::default());
        allocations.clear();
        assert!(allocations.sums().sites.is_empty());
        assert_eq!(allocations.words(), [8, 16, 24]);
        allocations.add(site(8, 24), 40);
        assert_eq!(allocations.sums().words(), [8, 24], "others need no name");
        assert!(allocations.memory() > 0);
    }

    #[test]
    fn nodes_are_no_words() {
        let mut allocations = Allocations::new(false);
        allocations.add(site(7, 16), 40);
        assert_eq!(allocations.new_words(), [16]);
    }

    #[test]
    fn sites_beyond_the_cap_are_counted_without_one() {
        let mut allocations = Allocations::new(true);
        allocations.site_cap = 2;
        for place in [8, 16, 24, 8, 32] {
            allocations.add(site(place, 64), 40);
        }
        let AllocationSums { sites, lost, .. } = allocations.sums();
        assert_eq!(sites.iter().map(|it| it.1.objects).sum::<u64>(), 3);
        assert_eq!((lost.objects, lost.bytes), (2, 80));
    }

    #[test]
    fn a_profile_gets_columns_and_the_classes_as_labels() {
        let mut profile = Profile::new(cpu_schema());
        let node = test_support::node(&mut profile, &[("work", "app.rb", 1, 4)]);
        let time = WeightKey {
            node,
            thread: 1,
            labels: LabelSetId::default(),
            state: State::Running,
        };
        profile.weights.push(time, &[1, 50]);
        profile.threads.push(Thread {
            seq: 1,
            name: StringId(0),
        });
        let mut allocations = Allocations::new(true);
        allocations.site_cap = 2;
        for (thread, class) in [(2, 16), (2, 16), (2, 0), (3, 0)] {
            let site = AllocationSite {
                thread,
                ..site(8, class)
            };
            allocations.add(site, 40);
        }
        let name = |name: &str| ResolvedFrame {
            name: name.into(),
            path: "app.rb".into(),
            first_line: 1,
        };
        let names = [name("work"), name("String")];
        allocations.sums().add_to(&mut profile, &names);
        profile.check().expect("it hangs together");
        let rows: Vec<_> = profile
            .weights
            .iter()
            .map(|row| row.values.to_vec())
            .collect();
        let expected = [[1, 50, 0, 0], [0, 0, 1, 40], [0, 0, 2, 80], [0, 0, 1, 40]];
        assert_eq!(rows, expected);
        let labels: Vec<_> = profile
            .label_sets
            .iter()
            .flatten()
            .map(|(key, value)| (profile.strings.get(*key), profile.strings.get(*value)))
            .collect();
        assert_eq!(labels, [("%class", "(internal)"), ("%class", "String")]);
        assert_eq!(profile.schema.default_type().name, "cpu");
        let names: Vec<_> = profile
            .weights
            .iter()
            .map(|row| profile.tree.stack(row.key.node).count())
            .collect();
        assert_eq!(names, [1; 4]);
    }

    #[test]
    fn nodes_of_a_trace_get_the_lines_of_their_objects() {
        let mut profile = Profile::new(cpu_schema());
        let frames = [("work", "app.rb", 1, 0), ("leaf", "app.rb", 5, 0)];
        let node = test_support::node(&mut profile, &frames);
        let mut allocations = Allocations::new(false);
        allocations.add(site(1, 0), 40);
        allocations.add(site(0, 0), 40);
        let map = [NodeId::ROOT, node];
        let labels = test_support::labels(&mut profile, &[("page", "a")]);
        let labelled = AllocationSite {
            labels: LabelSetId(1),
            ..site(1, 0)
        };
        allocations.add(labelled, 40);
        let sets = [LabelSetId::default(), labels];
        let sums = allocations.sums();
        sums.add_to_traced(&mut profile, &[], &map, &sets);
        profile.check().expect("it hangs together");
        let stacks = profile.weights.iter().map(|row| {
            let stack = profile.tree.stack(row.key.node);
            stack.map(|node| node.line).collect::<Vec<_>>()
        });
        assert_eq!(stacks.collect::<Vec<_>>(), [vec![], vec![3, 0], vec![3, 0]]);
        let sets = profile.weights.iter().map(|row| {
            let set = profile.label_sets.get(row.key.labels).iter();
            set.map(|(key, _)| profile.strings.get(*key))
                .collect::<Vec<_>>()
        });
        let expected: [Vec<&str>; 3] = [vec![CLASS], vec![CLASS], vec!["page", CLASS]];
        assert_eq!(sets.collect::<Vec<_>>(), expected);
    }
}
