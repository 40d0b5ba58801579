//! Sampled objects on their way to a profile. On the thread that asks for it.

use super::site::{Site, Weight};
use rperf_model::fold::folded_frame;
use rperf_model::frame_kind::TRUNCATED_FRAME;
use rperf_model::{FrameId, LabelSetId, Node, NodeId, Note, Profile, SampledBytes};
use rperf_vm::{
    CapturedNode, FOLDED, FrameWord, HIDDEN_CLASS, LabelTexts, ObjectRow, ResolvedFrame, TRUNCATED,
    add_object_columns,
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
        let mut rows: Vec<ObjectRow<'_>> = Vec::with_capacity(self.sites.len() + 1);
        for (site, sum) in &self.sites {
            let node = nodes.get(site.node.0 as usize).copied();
            let set = sets.get(site.labels.0 as usize).copied();
            rows.push(ObjectRow {
                node: node.unwrap_or(NodeId::ROOT),
                thread: site.thread,
                class: classes.get(&site.class).copied().unwrap_or(HIDDEN_CLASS),
                labels: set.unwrap_or_default(),
                objects: whole(sum.objects),
                bytes: whole(sum.bytes),
            });
        }
        if self.lost != Weight::default() {
            let Weight { objects, bytes } = self.lost;
            rows.push(ObjectRow::lost(profile, whole(objects), whole(bytes)));
        }
        let note = Note::SampledObjects(SampledBytes(self.bytes_per_sample));
        add_object_columns(profile, rows.into_iter(), note);
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

fn truncated_frame(profile: &mut Profile) -> FrameId {
    let (name, path) = TRUNCATED_FRAME;
    ResolvedFrame::new(name, path).intern(profile)
}

/// A sum as columns have it.
fn whole(sum: f64) -> u64 {
    sum.round() as u64
}
