//! From what was captured to a profile: epoch by epoch, node by node, with the
//! names that the bridge has resolved. Epochs are added by the worker, and the last one
//! by a snapshot, without the GVL.

use crate::accounting::UNATTRIBUTED;
use crate::collect::kept_requests::KeptRequests;
use crate::collect::sample::{Sample, SampleSums};
use crate::collect::sample_key::SampleKey;
use crate::config::DEFAULT_MAX_NODES;
use crate::values::Measured;
use crate::{Mode, Values};
use rperf_model::fold::{FoldLimits, folded_frame};
use rperf_model::frame_kind::{FOLDED_FRAME, TRUNCATED_FRAME};
use rperf_model::{
    CallTree, Frame, FrameId, Frames, Node, NodeId, Profile, RawSamples, StringId, Strings, Thread,
    Weights,
};
use rperf_vm::{CapturedNode, FOLDED, RequestNumber, ResolvedFrame, TRUNCATED, TreeSize};
use rustc_hash::FxHashMap;
use std::sync::Arc;

mod folding;
mod profile_ids;

use profile_ids::ProfileIds;
pub use profile_ids::SessionNames;

/// Rows of summed samples that an epoch holds at most, and a profile after each epoch, if stacks can
/// be folded so far.
pub(crate) const ROW_CAP: usize = 1 << 20;
/// Raw samples that it holds at most.
pub(crate) const RAW_CAP: usize = 10_000_000;

/// A profile in the making. Epochs are added one after the other; stacks with
/// the same names are the same stack, whichever epoch they come from.
#[derive(Debug, Clone)]
pub struct ProfileBuilder {
    limits: ProfileLimits,
    /// With more, stacks are folded next.
    fold_at: FoldLimits,
    tables: Tables,
    sums: FxHashMap<SampleKey, Values>,
    kept: KeptRequests,
    raw: Vec<Sample>,
    ended: Vec<u32>,
    truncated: Option<NodeId>,
    counts: BuilderCounts,
}

/// How large a profile may become, and what weighs in it.
#[derive(Debug, Clone, Copy)]
pub struct ProfileLimits {
    /// Nodes after each epoch: what needs more is folded.
    pub nodes: usize,
    /// Rows after each epoch, if stacks can be folded so far. With half as many again, further ones
    /// are lost: the table takes no more memory than one with a single row more.
    pub rows: usize,
    /// The lightest stacks are folded, by the time that this mode is about.
    pub mode: Mode,
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
    /// Samples whose stack was lost in the builder: it is `[truncated]`.
    pub truncated: u64,
    /// Samples that found no row, and their time.
    pub lost: Values,
    /// Ended threads whose rows were added up under thread 0.
    pub folded_threads: u64,
}

impl Default for ProfileBuilder {
    fn default() -> Self {
        Self::new(ProfileLimits {
            nodes: DEFAULT_MAX_NODES as usize,
            rows: ROW_CAP,
            mode: Mode::default(),
        })
    }
}

impl ProfileBuilder {
    /// Nothing yet.
    pub fn new(limits: ProfileLimits) -> Self {
        Self {
            limits,
            fold_at: FoldLimits {
                nodes: limits.nodes,
                rows: limits.rows,
            },
            tables: Tables::default(),
            sums: FxHashMap::default(),
            kept: KeptRequests::default(),
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
        for (request, mut key, values) in in_order(&epoch.sums, &epoch.kept) {
            let was_truncated = is_truncated(nodes, key.node);
            key.node = new_node(key.node);
            if Some(key.node) == truncated && !was_truncated {
                self.counts.truncated += values.count;
            }
            self.add_row(request, key, values);
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
        self.fold_if_full();
    }

    /// What did not find its own place so far.
    pub fn counts(&self) -> BuilderCounts {
        self.counts
    }

    /// The nodes of the epochs so far, in the order of their numbers from 1: of each its parent, its
    /// frame as the VM had it, or a frame of ours, and its line.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, NamedNode<'_>, u32)> + '_ {
        let (strings, frames) = (&self.tables.strings, &self.tables.frames);
        self.tables.tree.iter().map(move |(id, node)| {
            let frame = frames.get(node.frame);
            let named = match frame.map(|it| (strings.get(it.name), strings.get(it.path))) {
                Some(FOLDED_FRAME) => NamedNode::Folded,
                Some((name, path)) if Some(id) != self.truncated => {
                    let first_line = frame.map_or(0, |it| it.first_line);
                    NamedNode::Frame(name, path, first_line)
                }
                _ => NamedNode::Truncated,
            };
            (node.parent, named, node.line)
        })
    }

    /// The sums of the epochs so far.
    pub fn sums(&self) -> impl Iterator<Item = (SampleKey, Values)> + '_ {
        let sums = self.sums.iter().map(|(key, values)| (*key, *values));
        sums.chain(self.kept.iter().map(|(_, key, values)| (key, values)))
    }

    /// `request` is told apart from all others no more.
    pub fn let_go(&mut self, request: RequestNumber) {
        for (key, values) in self.kept.take(request) {
            self.add_sum(key, values);
        }
    }

    /// Rows of requests that are told apart from all others.
    pub fn kept_rows(&self) -> usize {
        self.kept.rows()
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
            + self.sums.capacity() * (size_of::<(SampleKey, Values)>() + 1)
            + self.kept.memory()
            + self.raw.capacity() * size_of::<Sample>()
            + self.ended.capacity() * size_of::<u32>()
    }

    /// The profile, without its description. Of raw samples the times count from `raw_since`, if they
    /// are wanted.
    pub fn finish(
        self,
        measured: Measured,
        names: SessionNames<'_>,
        raw_since: Option<u64>,
    ) -> Profile {
        let mut profile = Profile::new(measured.schema());
        profile.strings = self.tables.strings;
        profile.frames = self.tables.frames;
        profile.tree = self.tables.tree;
        let mut ids = ProfileIds::add(&mut profile, names);
        let mut row = Vec::new();
        for (request, key, values) in in_order(&self.sums, &self.kept) {
            values.fill_row(measured, &mut row);
            if row.iter().any(|value| *value != 0) {
                let key = ids.of(&mut profile, key, request);
                profile.weights.push(key, &row);
            }
        }
        if let Some(since) = raw_since {
            let mut samples = RawSamples::new(profile.schema.len());
            for sample in &self.raw {
                let time_ns = sample.time_ns.saturating_sub(since);
                sample.values().fill_row(measured, &mut row);
                let key = ids.of(&mut profile, sample.key(), RequestNumber::NONE);
                samples.push(time_ns, key, &row);
            }
            // Those of other Ractors came later.
            samples.sort();
            profile.raw_samples = Some(samples);
        }
        profile.threads = threads_of(&profile.weights);
        profile
    }

    /// Adds to a row of `request`, if there is one.
    fn add_row(&mut self, request: RequestNumber, key: SampleKey, values: Values) {
        if request == RequestNumber::NONE {
            self.add_sum(key, values);
        } else {
            self.kept.add(request, key, values);
        }
    }

    fn add_sum(&mut self, key: SampleKey, values: Values) {
        if let Some(sum) = self.sums.get_mut(&key) {
            sum.add(values);
            return;
        }
        if self.sums.len() < self.limits.rows / 2 * 3 {
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
        let mut folded = None;
        let mut map = vec![NodeId::ROOT];
        for node in nodes {
            let parent = map
                .get(node.parent.0 as usize)
                .copied()
                .unwrap_or(NodeId::ROOT);
            let row = node.frame as usize;
            let frame = match node.frame {
                _ if Some(parent) == self.truncated => None,
                FOLDED => Some(*folded.get_or_insert_with(|| self.tables.folded_frame())),
                _ => frames.get(row).map(|frame| {
                    *frame_ids[row].get_or_insert_with(|| intern_frame(&mut self.tables, frame))
                }),
            };
            map.push(match frame {
                Some(frame) => self.tables.tree.intern(node_of(parent, frame, node.line)),
                None => self.truncated_node(),
            });
        }
        map
    }

    fn truncated_node(&mut self) -> NodeId {
        if let Some(node) = self.truncated {
            return node;
        }
        let (name, path) = TRUNCATED_FRAME;
        let frame = ResolvedFrame::new(name, path);
        let frame = intern_frame(&mut self.tables, &frame);
        let node = self.tables.tree.intern(Node {
            parent: NodeId::ROOT,
            frame,
            line: 0,
        });
        *self.truncated.insert(node)
    }
}

/// The frame of a node, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedNode<'a> {
    /// Its name, its path and the line of its definition.
    Frame(&'a str, &'a str, u32),
    /// `[folded]`.
    Folded,
    /// `[truncated]`.
    Truncated,
}

impl Tables {
    fn folded_frame(&mut self) -> FrameId {
        folded_frame(&mut self.strings, &mut self.frames)
    }
}

fn node_of(parent: NodeId, frame: FrameId, line: u32) -> Node {
    Node {
        parent,
        frame,
        line,
    }
}

fn is_truncated(nodes: &[CapturedNode], node: NodeId) -> bool {
    let row = (node.0 as usize).wrapping_sub(1);
    nodes.get(row).is_some_and(|node| node.frame == TRUNCATED)
}

fn intern_frame(tables: &mut Tables, frame: &ResolvedFrame) -> FrameId {
    tables.frames.intern_named(
        &mut tables.strings,
        &frame.name,
        &frame.path,
        frame.first_line,
    )
}

/// The rows of `sums` and of the requests that are told apart, in the order of capture, so that equal runs
/// give equal profiles.
fn in_order(
    sums: &FxHashMap<SampleKey, Values>,
    kept: &KeptRequests,
) -> Vec<(RequestNumber, SampleKey, Values)> {
    let sums = sums.iter();
    let sums = sums.map(|(key, values)| (RequestNumber::NONE, *key, *values));
    let mut rows: Vec<_> = sums.chain(kept.iter()).collect();
    rows.sort_unstable_by_key(|(request, key, _)| (*key, request.0));
    rows
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
mod tests;
