//! From what was captured to a profile: epoch by epoch, node by node, with the
//! names that the bridge has resolved. Epochs are added by the worker, and the last one
//! by a snapshot, without the GVL.

use crate::accounting::UNATTRIBUTED;
use crate::call_tree::{CapturedNode, TRUNCATED, TreeSize};
use crate::frame_names::ResolvedFrame;
use crate::labels::LabelTexts;
use crate::sample::{Sample, SampleSums, merge_ended_threads};
use crate::{Mode, Values};
use rperf_model::live_table::LiveTable;
use rperf_model::{
    CallTree, Frame, FrameId, Frames, LabelSetId, Node, NodeId, Profile, RawSamples, StringId,
    Strings, Thread, WeightKey, Weights,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Nodes that a profile holds at most; further stacks are `[truncated]`.
const NODE_CAP: usize = 1 << 20;
/// Rows of summed samples that a profile, or an epoch, holds at most.
pub(crate) const ROW_CAP: usize = 1 << 20;
/// Raw samples that it holds at most.
pub(crate) const RAW_CAP: usize = 10_000_000;

/// A profile in the making. Epochs are added one after the other; stacks with
/// the same names are the same stack, whichever epoch they come from.
#[derive(Debug, Clone)]
pub struct ProfileBuilder {
    node_cap: usize,
    tables: Tables,
    sums: FxHashMap<WeightKey, Values>,
    raw: Vec<Sample>,
    ended: Vec<u32>,
    truncated: Option<NodeId>,
    counts: BuilderCounts,
}

/// The tables of the profile that stacks lead to.
#[derive(Debug, Clone, Default)]
struct Tables {
    strings: Strings,
    frames: Frames,
    tree: CallTree,
}

/// What did not find its own place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BuilderCounts {
    /// Samples whose stack was folded into `[truncated]`.
    pub truncated: u64,
    /// Samples that found no row, and their time.
    pub lost: Values,
    /// Ended threads whose rows were added up under thread 0.
    pub folded_threads: u64,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        Self::with_node_cap(NODE_CAP)
    }
}

impl ProfileBuilder {
    fn with_node_cap(node_cap: usize) -> Self {
        Self {
            node_cap,
            tables: Tables::default(),
            sums: FxHashMap::default(),
            raw: Vec::new(),
            ended: Vec::new(),
            truncated: None,
            counts: BuilderCounts::default(),
        }
    }

    /// Adds an epoch: its nodes, its frame table's names, and what was collected.
    pub fn add(
        &mut self,
        nodes: &[CapturedNode],
        frames: &[Arc<ResolvedFrame>],
        epoch: SampleSums,
    ) {
        let map = self.add_nodes(nodes, frames);
        let truncated = self.truncated;
        let new_node = |node: NodeId| map.get(node.0 as usize).copied().unwrap_or(NodeId::ROOT);
        // In the order of capture, so that equal runs give equal profiles.
        let mut sums: Vec<_> = epoch.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| (key.node, key.thread, key.labels, key.state));
        for (mut key, values) in sums {
            let was_truncated = is_truncated(nodes, key.node);
            key.node = new_node(key.node);
            if Some(key.node) == truncated && !was_truncated {
                self.counts.truncated += values.count;
            }
            self.add_sum(key, values);
        }
        for sample in epoch.raw {
            let was_truncated = is_truncated(nodes, sample.node);
            let sample = Sample {
                node: new_node(sample.node),
                ..sample
            };
            if Some(sample.node) == truncated && !was_truncated {
                self.counts.truncated += u64::from(sample.count);
            }
            if self.raw.len() < RAW_CAP {
                self.add_sum(sample.key(), sample.values());
                self.raw.push(sample);
            } else {
                self.counts.lost.add(sample.values());
            }
        }
        self.counts.lost.add(epoch.lost);
        self.counts.folded_threads += epoch.folded_threads;
        self.ended.extend(epoch.ended);
    }

    /// What did not find its own place so far.
    pub fn counts(&self) -> BuilderCounts {
        self.counts
    }

    /// The stacks go into `table`, too. Returns its number for each node, the root included.
    pub fn copy_tree(&self, table: &mut LiveTable) -> Vec<NodeId> {
        let (strings, frames) = (&self.tables.strings, &self.tables.frames);
        let mut numbers = vec![NodeId::ROOT];
        for (id, node) in self.tables.tree.iter() {
            let parent = numbers.get(node.parent.0 as usize);
            let parent = parent.copied().unwrap_or(NodeId::ROOT);
            let frame = frames
                .get(node.frame)
                .filter(|_| Some(id) != self.truncated);
            let found = frame.and_then(|frame| {
                let (name, path) = (strings.get(frame.name), strings.get(frame.path));
                let frame = table.frame(name, path, frame.first_line);
                table.node(node_of(parent, frame, node.line))
            });
            numbers.push(found.unwrap_or_else(|| table.truncate()));
        }
        numbers
    }

    /// The sums of the epochs so far.
    pub fn sums(&self) -> impl Iterator<Item = (WeightKey, Values)> + '_ {
        self.sums.iter().map(|(key, values)| (*key, *values))
    }

    /// What the epochs so far had, by names.
    pub fn size(&self) -> TreeSize {
        TreeSize {
            nodes: self.tables.tree.len(),
            frames: self.tables.frames.len(),
        }
    }

    /// Bytes held, roughly: names are not counted.
    pub fn memory(&self) -> usize {
        let node = 2 * size_of::<Node>() + size_of::<NodeId>() + 1;
        let frame = 2 * size_of::<Frame>() + size_of::<FrameId>() + 1;
        self.tables.tree.len() * node
            + self.tables.frames.len() * frame
            + self.sums.capacity() * (size_of::<(WeightKey, Values)>() + 1)
            + self.raw.capacity() * size_of::<Sample>()
            + self.ended.capacity() * size_of::<u32>()
    }

    /// The profile, without its description. `label_sets` have the numbers from 1; of
    /// raw samples the times count from `raw_since`, if they are wanted.
    pub fn finish(self, mode: Mode, label_sets: &[LabelTexts], raw_since: Option<u64>) -> Profile {
        let mut profile = Profile::new(mode.schema());
        profile.strings = self.tables.strings;
        profile.frames = self.tables.frames;
        profile.tree = self.tables.tree;
        let ids = add_label_sets(&mut profile, label_sets);
        let labelled = |key: WeightKey| WeightKey {
            labels: ids[key.labels.0 as usize],
            ..key
        };
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| (key.node, key.thread, key.labels, key.state));
        let mut row = Vec::new();
        for (key, values) in sums {
            mode.fill_row(values, &mut row);
            if row.iter().any(|value| *value != 0) {
                profile.weights.push(labelled(key), &row);
            }
        }
        if let Some(since) = raw_since {
            let mut samples = RawSamples::new(profile.schema.len());
            for sample in &self.raw {
                let time_ns = sample.time_ns.saturating_sub(since);
                mode.fill_row(sample.values(), &mut row);
                samples.push(time_ns, labelled(sample.key()), &row);
            }
            // Those of other Ractors came later.
            samples.sort();
            profile.raw_samples = Some(samples);
        }
        profile.threads = threads_of(&profile.weights);
        profile
    }

    fn add_sum(&mut self, key: WeightKey, values: Values) {
        if let Some(sum) = self.sums.get_mut(&key) {
            sum.add(values);
            return;
        }
        if self.sums.len() >= ROW_CAP && !self.ended.is_empty() {
            self.counts.folded_threads += merge_ended_threads(&mut self.sums, &mut self.ended);
        }
        if self.sums.len() < ROW_CAP {
            self.sums.insert(key, values);
        } else {
            self.counts.lost.add(values);
        }
    }

    /// Adds the frames and nodes; returns the model's node for each captured one,
    /// the root included. Several captured nodes can become one: two methods of
    /// the VM may have the same name and place.
    fn add_nodes(&mut self, nodes: &[CapturedNode], frames: &[Arc<ResolvedFrame>]) -> Vec<NodeId> {
        let mut frame_ids = vec![None; frames.len()];
        let mut map = vec![NodeId::ROOT];
        for node in nodes {
            let parent = map
                .get(node.parent.0 as usize)
                .copied()
                .unwrap_or(NodeId::ROOT);
            let row = node.frame as usize;
            let fold =
                node.frame == TRUNCATED || Some(parent) == self.truncated || row >= frames.len();
            let known_only = self.tables.tree.len() >= self.node_cap;
            let found = if fold {
                None
            } else if known_only {
                let frame = frame_ids[row].or_else(|| find_frame(&self.tables, &frames[row]));
                frame_ids[row] = frame;
                frame.and_then(|frame| self.tables.tree.find(&node_of(parent, frame, node.line)))
            } else {
                let frame = *frame_ids[row]
                    .get_or_insert_with(|| intern_frame(&mut self.tables, &frames[row]));
                Some(self.tables.tree.intern(node_of(parent, frame, node.line)))
            };
            map.push(found.unwrap_or_else(|| self.truncated_node()));
        }
        map
    }

    fn truncated_node(&mut self) -> NodeId {
        if let Some(node) = self.truncated {
            return node;
        }
        let frame = ResolvedFrame {
            name: "[truncated]".into(),
            path: "<rperf>".into(),
            first_line: 0,
        };
        let frame = intern_frame(&mut self.tables, &frame);
        let node = self.tables.tree.intern(Node {
            parent: NodeId::ROOT,
            frame,
            line: 0,
        });
        *self.truncated.insert(node)
    }
}

fn node_of(parent: NodeId, frame: FrameId, line: u32) -> Node {
    Node {
        parent,
        frame,
        line,
    }
}

fn find_frame(tables: &Tables, frame: &ResolvedFrame) -> Option<FrameId> {
    tables.frames.find(&Frame {
        name: tables.strings.find(&frame.name)?,
        path: tables.strings.find(&frame.path)?,
        first_line: frame.first_line,
    })
}

fn is_truncated(nodes: &[CapturedNode], node: NodeId) -> bool {
    let row = (node.0 as usize).wrapping_sub(1);
    nodes.get(row).is_some_and(|node| node.frame == TRUNCATED)
}

fn intern_frame(tables: &mut Tables, frame: &ResolvedFrame) -> FrameId {
    let name = tables.strings.intern(&frame.name);
    let path = tables.strings.intern(&frame.path);
    tables.frames.intern(Frame {
        name,
        path,
        first_line: frame.first_line,
    })
}

/// Adds the sets, which have the numbers from 1 in samples; number 0 is the empty one.
/// Returns the profile's id for each number.
fn add_label_sets(profile: &mut Profile, sets: &[LabelTexts]) -> Vec<LabelSetId> {
    let mut ids = vec![LabelSetId::default()];
    ids.extend(sets.iter().map(|set| {
        let pairs = set.iter().map(|(key, value)| {
            let key = profile.strings.intern(key);
            (key, profile.strings.intern(value))
        });
        let pairs = pairs.collect();
        profile.label_sets.intern(pairs)
    }));
    ids
}

/// The threads that weights name; thread 0 needs no row.
fn threads_of(weights: &Weights) -> Vec<Thread> {
    let mut seqs: Vec<u32> = weights.iter().map(|weight| weight.key.thread).collect();
    seqs.sort_unstable();
    seqs.dedup();
    seqs.into_iter()
        .filter(|&seq| seq != UNATTRIBUTED)
        .map(|seq| Thread {
            seq,
            name: StringId(0),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_tree::{CapturedTree, LastStack};

    fn epoch(stacks: &[&[usize]]) -> (CapturedTree, Vec<Arc<ResolvedFrame>>, SampleSums) {
        let mut tree = CapturedTree::new(100);
        let mut collected = SampleSums::default();
        for stack in stacks {
            let node = tree.intern(stack, &[], &mut LastStack::default()).node;
            let key = WeightKey {
                node,
                thread: 1,
                labels: LabelSetId(0),
                state: rperf_model::State::Running,
            };
            let values = Values {
                count: 1,
                wall_ns: 10,
                cpu_ns: 0,
            };
            collected.sums.entry(key).or_default().add(values);
        }
        let name = |&frame: &usize| {
            Arc::new(ResolvedFrame {
                name: format!("method{frame}"),
                path: "app.rb".into(),
                first_line: 1,
            })
        };
        let names = tree.frames().iter().map(name).collect();
        (tree, names, collected)
    }

    #[test]
    fn stacks_of_different_epochs_with_the_same_names_are_one() {
        let mut builder = ProfileBuilder::default();
        for _ in 0..3 {
            let (tree, names, collected) = epoch(&[&[2, 1], &[3, 1]]);
            builder.add(tree.nodes(), &names, collected);
        }
        assert_eq!(
            builder.size(),
            TreeSize {
                nodes: 3,
                frames: 3
            }
        );
        assert_eq!(builder.sums.len(), 2);
        assert!(builder.sums.values().all(|values| values.wall_ns == 30));
    }

    #[test]
    fn at_the_cap_known_stacks_stay_known_and_new_ones_are_truncated() {
        let mut builder = ProfileBuilder::with_node_cap(3);
        let (tree, names, collected) = epoch(&[&[2, 1], &[3, 1]]);
        builder.add(tree.nodes(), &names, collected);
        let (tree, names, collected) = epoch(&[&[2, 1], &[4, 1], &[1]]);
        builder.add(tree.nodes(), &names, collected);
        assert_eq!(builder.counts().truncated, 1);
        let truncated = builder.truncated.expect("a folded stack");
        let at = |node| {
            let keys = builder.sums.iter().filter(move |(key, _)| key.node == node);
            keys.map(|(_, values)| values.wall_ns).sum::<u64>()
        };
        assert_eq!((at(truncated), builder.sums.len()), (10, 4));
        assert!(builder.sums.values().any(|values| values.wall_ns == 20));
    }
}
