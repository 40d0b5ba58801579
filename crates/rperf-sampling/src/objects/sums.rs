//! Sampled objects on their way to a profile. On the thread that asks for it.

use super::age::Age;
use super::gc_cost::{GcCostSums, GcCostsOfNone};
use super::site::{Site, Weight};
use rperf_model::fold::folded_frame;
use rperf_model::frame_kind::{
    ASKED_FOR_FRAME, LONG_LIVED_FRAME, TRUNCATED_FRAME, UNSAMPLED_FRAME,
};
use rperf_model::numbers::grouped;
use rperf_model::{FrameId, LabelSetId, Node, NodeId, Note, OwnColumn, Profile, SampledBytes};
use rperf_vm::{
    CapturedNode, FOLDED, FrameWord, HIDDEN_CLASS, KnownOfObjects, LabelTexts, ObjectRow,
    ResolvedFrame, TRUNCATED, add_object_columns,
};
use rustc_hash::FxHashMap;
use std::borrow::Borrow;

/// What was sampled up to a moment, still with the words of the VM.
#[derive(Debug, Clone)]
pub struct SampledObjects {
    pub(super) nodes: Vec<CapturedNode>,
    /// Frames first, so many of them; then classes.
    pub(super) words: Vec<FrameWord>,
    pub(super) frames: usize,
    /// The label sets, from number 1.
    pub(super) label_sets: Vec<LabelTexts>,
    /// Samples that went without their labels.
    pub(super) lacks_labels: u64,
    pub(super) sites: Vec<(Site, Weight)>,
    pub(super) lost: Weight,
    pub(super) bytes_per_sample: u64,
    pub(super) in_use: Option<ObjectsInUse>,
    pub(super) gc_costs: Option<GcCostSums>,
}

/// What the values of [`OwnColumn::GcCost`] are.
const MODEL: &str = "a model, which shares all time of collections: minor marking and sweeping by the bytes sampled \
     since the collection before, major marking by the objects that lived";
/// What they are where it isn't known which objects lived.
const MODEL_OF_MADE: &str = "a model, which shares the time of collections: minor marking and sweeping by the bytes \
     sampled since the collection before; whose objects major ones mark isn't known (measure heap, too)";

/// The objects in use, if they were followed.
#[derive(Debug, Clone)]
pub(super) struct ObjectsInUse {
    /// By their sites, if there was room for these, and ages.
    pub(super) rows: Vec<(Option<Site>, Age, Weight)>,
    /// Objects of which nobody knows whether they are in use.
    pub(super) unknown: Weight,
    /// What tells the process from others.
    pub(super) process: String,
}

impl SampledObjects {
    /// The frames and classes of all samples.
    pub fn words(&self) -> &[FrameWord] {
        &self.words
    }

    /// Adds columns for objects to `profile`, which has no samples one by one. `names` are those of
    /// the words, in their order.
    pub fn add_to(&self, profile: &mut Profile, names: &[impl Borrow<ResolvedFrame>]) {
        let (frames, _) = names.split_at(self.frames.min(names.len()));
        let nodes = self.add_nodes(profile, frames);
        let sets = self.add_label_sets(profile);
        let classes = self.words.iter().zip(names).skip(self.frames);
        let classes: FxHashMap<FrameWord, &str> = classes
            .map(|(word, name)| (*word, name.borrow().name.as_str()))
            .collect();
        let row = |site: &Site, sum: &Weight, age: Option<Age>| {
            let node = nodes.get(site.node.0 as usize).copied();
            let set = sets.get(site.labels.0 as usize).copied();
            ObjectRow {
                node: node.unwrap_or(NodeId::ROOT),
                thread: site.thread,
                class: classes.get(&site.class).copied().unwrap_or(HIDDEN_CLASS),
                labels: set.unwrap_or_default(),
                age: age.map(Age::text),
                objects: whole(sum.objects),
                bytes: whole(sum.bytes),
                gc_cost_ns: 0,
            }
        };
        let made = self.sites.iter();
        let mut rows: Vec<_> = made.map(|(site, sum)| row(site, sum, None)).collect();
        let mut notes = vec![Note::SampledObjects(SampledBytes(self.bytes_per_sample))];
        if let Some(in_use) = &self.in_use {
            for (site, age, sum) in &in_use.rows {
                rows.push(match site {
                    Some(site) => row(site, sum, Some(*age)),
                    None => ObjectRow {
                        age: Some(age.text()),
                        ..ObjectRow::lost(profile, whole(sum.objects), whole(sum.bytes))
                    },
                });
            }
            notes.push(Note::InUse(in_use.process.clone()));
            notes.extend(in_use.note_on_unknown());
        }
        if self.lost != Weight::default() {
            let Weight { objects, bytes } = self.lost;
            rows.push(ObjectRow::lost(profile, whole(objects), whole(bytes)));
        }
        if let Some(costs) = &self.gc_costs {
            for (site, ns) in &costs.sites {
                let empty = match site {
                    Some(site) => row(site, &Weight::default(), None),
                    None => ObjectRow::of_frame(profile, TRUNCATED_FRAME),
                };
                rows.push(ObjectRow {
                    gc_cost_ns: *ns,
                    ..empty
                });
            }
            for (frame, ns) in costs.of_none.frames().into_iter().filter(|it| it.1 > 0) {
                rows.push(ObjectRow {
                    gc_cost_ns: ns,
                    ..ObjectRow::of_frame(profile, frame)
                });
            }
            let model = match self.in_use {
                Some(_) => MODEL,
                None => MODEL_OF_MADE,
            };
            notes.push(Note::Values(OwnColumn::GcCost, model.into()));
        }
        let known = KnownOfObjects {
            in_use: self.in_use.is_some(),
            gc_cost: self.gc_costs.is_some(),
        };
        add_object_columns(profile, known, rows.into_iter(), notes);
        if self.lacks_labels > 0 {
            let line = format!(
                "samples of objects without their labels: {}",
                self.lacks_labels
            );
            profile.meta.notes.push(line.into());
        }
    }

    /// The profile's node for each captured one, the root included.
    fn add_nodes(
        &self,
        profile: &mut Profile,
        names: &[impl Borrow<ResolvedFrame>],
    ) -> Vec<NodeId> {
        let mut ids: Vec<Option<FrameId>> = vec![None; names.len()];
        let mut map = vec![NodeId::ROOT];
        for node in &self.nodes {
            let frame = match node.frame {
                TRUNCATED => truncated_frame(profile),
                FOLDED => folded_frame(&mut profile.strings, &mut profile.frames),
                row => match names.get(row as usize) {
                    Some(name) => {
                        *ids[row as usize].get_or_insert_with(|| name.borrow().intern(profile))
                    }
                    None => truncated_frame(profile),
                },
            };
            let parent = map.get(node.parent.0 as usize).copied();
            map.push(profile.tree.intern(Node {
                parent: parent.unwrap_or(NodeId::ROOT),
                frame,
                line: node.line,
            }));
        }
        map
    }

    /// The profile's label set for each number; 0 is the empty one.
    fn add_label_sets(&self, profile: &mut Profile) -> Vec<LabelSetId> {
        let mut sets = vec![LabelSetId::default()];
        for set in &self.label_sets {
            let pairs = set.iter().map(|(key, value)| {
                let key = profile.strings.intern(key);
                (key, profile.strings.intern(value))
            });
            let pairs = pairs.collect();
            sets.push(profile.label_sets.intern(pairs));
        }
        sets
    }
}

impl GcCostsOfNone {
    /// What belongs to no site has frames of its own: their names and paths, and times in ns.
    fn frames(self) -> [((&'static str, &'static str), u64); 3] {
        [
            (LONG_LIVED_FRAME, self.long_lived_ns),
            (ASKED_FOR_FRAME, self.asked_ns),
            (UNSAMPLED_FRAME, self.unsampled_ns),
        ]
    }
}

impl ObjectsInUse {
    /// A line on objects of which nobody knows whether they are in use, if there are some.
    fn note_on_unknown(&self) -> Option<Note> {
        let Weight { objects, bytes } = self.unknown;
        let line = format!(
            "lacks those of {} new objects ({} of slots), which couldn't be followed: too many were made \
             between two safepoints",
            grouped(whole(objects)),
            SampledBytes(whole(bytes)),
        );
        (objects > 0.0).then_some(Note::Values(OwnColumn::BytesInUse, line))
    }
}

fn truncated_frame(profile: &mut Profile) -> FrameId {
    let (name, path) = TRUNCATED_FRAME;
    ResolvedFrame::new(name, path).intern(profile)
}

/// A sum as columns have it.
fn whole(sum: f64) -> u64 {
    sum.round() as u64
}
