//! What was recorded of threads of other Ractors, in one call tree: of those that have ended, and
//! at a snapshot of others too. Only numbers and words are moved, so the worker can do it too.

use super::config::RecorderConfig;
use crate::Values;
use crate::accounting::{SamplePoint, UNATTRIBUTED};
use crate::collect::sample::{Sample, SampleSums, SumLimits};
use crate::collect::sample_key::SampleKey;
use crate::counters::SessionCounters;
use rperf_model::{LabelSetId, NodeId, State};
use rperf_vm::{CapturedTree, FOLDED, FrameWord, Interned, TRUNCATED, ThreadNames};
use rustc_hash::FxHashMap;

/// Nodes that the tree holds at most.
const NODE_CAP: usize = 1 << 20;

/// Everything in one tree. In place of a label set, samples have the number of their Ractor.
#[derive(Debug)]
pub struct Merged {
    /// The tree; its frames are roots for the garbage collector.
    pub tree: CapturedTree,
    /// The samples.
    pub sums: SampleSums,
    /// What was counted.
    pub counters: SessionCounters,
    /// The names of threads that are new, or have ended.
    pub names: ThreadNames,
    limits: SumLimits,
    /// Time of threads without any stack, by state.
    unattributed: [Values; State::ALL.len()],
}

impl Merged {
    /// Nothing.
    pub fn new(config: &RecorderConfig) -> Self {
        Self {
            tree: CapturedTree::new(NODE_CAP),
            sums: SampleSums::default(),
            counters: SessionCounters::default(),
            names: ThreadNames::default(),
            limits: config.limits,
            unattributed: Default::default(),
        }
    }

    /// Adds samples whose stacks are in `tree`, of Ractor `ractor`.
    pub fn add(&mut self, tree: &CapturedTree, sums: SampleSums, ractor: u32) {
        if sums.is_empty() {
            return;
        }
        let labels = |_| LabelSetId(ractor);
        let (sums, truncated) = move_samples(sums, tree, &mut self.tree, labels);
        self.counters.truncated += truncated;
        self.sums.merge(sums, self.limits);
    }

    /// Adds time of a thread of `ractor` that has no stack. If the thread had `points`, whose stacks
    /// are in `tree`, then time of threads before it goes there: those of one kind tend to come in
    /// numbers, and the few that are caught stand for the others.
    pub fn add_unattributed(
        &mut self,
        tree: &CapturedTree,
        unattributed: [Values; State::ALL.len()],
        points: [Option<SamplePoint>; State::ALL.len()],
        ractor: u32,
    ) {
        let rows = State::ALL.into_iter().zip(unattributed).zip(points);
        for ((state, values), point) in rows {
            let pool = &mut self.unattributed[state as usize];
            pool.add(values);
            let Some(point) = point.filter(|_| !pool.is_zero()) else {
                continue;
            };
            let values = std::mem::take(pool);
            let mut sums = SampleSums::default();
            sums.sums.insert(key(point.node, state), values);
            self.add(tree, sums, ractor);
        }
    }

    /// The time that no stack was found for goes to the root.
    pub fn flush_unattributed(&mut self) {
        for state in State::ALL {
            let values = std::mem::take(&mut self.unattributed[state as usize]);
            if !values.is_zero() {
                let mut sums = SampleSums::default();
                sums.sums.insert(key(NodeId::ROOT, state), values);
                self.sums.merge(sums, self.limits);
            }
        }
    }

    /// No sample is left: no stack is needed any more.
    pub fn forget_stacks(&mut self) {
        self.tree = CapturedTree::new(NODE_CAP);
    }

    /// Hands out all frames, for the garbage collector.
    pub fn each_root(&self, mark: impl FnMut(FrameWord)) {
        self.tree.frames().iter().copied().for_each(mark);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.tree.memory() + self.sums.memory() + self.names.memory()
    }
}

fn key(node: NodeId, state: State) -> SampleKey {
    SampleKey {
        node,
        thread: UNATTRIBUTED,
        labels: LabelSetId::default(),
        state,
        gc: None,
    }
}

/// Moves the stacks of samples from one tree `to` another. `labels` says what becomes of their
/// label sets. Returns how many samples have lost their stack, too.
pub fn move_samples(
    mut sums: SampleSums,
    from: &CapturedTree,
    to: &mut CapturedTree,
    mut labels: impl FnMut(LabelSetId) -> LabelSetId,
) -> (SampleSums, u64) {
    let mut nodes = Nodes {
        from,
        known: FxHashMap::default(),
    };
    let mut truncated = 0;
    let mut moved = |node: NodeId, count: u64, to: &mut CapturedTree| {
        let Interned {
            node,
            truncated: is_lost,
        } = nodes.node_in(to, node);
        truncated += if is_lost { count } else { 0 };
        node
    };
    let mut rows = std::mem::take(&mut sums.sums)
        .into_iter()
        .collect::<Vec<_>>();
    // In the order of capture, so that equal runs give equal trees.
    rows.sort_unstable_by_key(|(key, _)| *key);
    for (key, values) in rows {
        let key = SampleKey {
            node: moved(key.node, values.count, to),
            labels: labels(key.labels),
            ..key
        };
        sums.sums.entry(key).or_default().add(values);
    }
    for sample in &mut sums.raw {
        sample.node = moved(sample.node, u64::from(sample.count), to);
        sample.labels = labels(sample.labels);
    }
    (sums, truncated)
}

/// The nodes of one tree in another.
struct Nodes<'a> {
    from: &'a CapturedTree,
    known: FxHashMap<NodeId, There>,
}

/// Where a node is in the other tree.
#[derive(Debug, Clone, Copy)]
enum There {
    /// Here.
    At(NodeId),
    /// Nowhere: this is its last caller that has room, or that isn't folded.
    Below(NodeId),
}

impl Nodes<'_> {
    fn node_in(&mut self, to: &mut CapturedTree, node: NodeId) -> Interned {
        let mut path = Vec::new();
        let mut at = node;
        let mut there = loop {
            if at == NodeId::ROOT {
                break There::At(NodeId::ROOT);
            }
            if let Some(&known) = self.known.get(&at) {
                break known;
            }
            path.push(at);
            at = self.from.nodes()[at.0 as usize - 1].parent;
        };
        for &node in path.iter().rev() {
            there = self.child_in(to, there, node);
            self.known.insert(node, there);
        }
        match there {
            There::At(node) => Interned {
                node,
                // Those were counted where they were lost.
                truncated: false,
            },
            There::Below(caller) => {
                let leaf = self.from.nodes()[node.0 as usize - 1];
                match self.from.frames().get(leaf.frame as usize) {
                    Some(&frame) => to.leaf_without_room(caller, frame, leaf.line),
                    None => Interned {
                        node: to.truncated_node(),
                        truncated: true,
                    },
                }
            }
        }
    }

    fn child_in(&self, to: &mut CapturedTree, parent: There, node: NodeId) -> There {
        let node = self.from.nodes()[node.0 as usize - 1];
        match (parent, node.frame) {
            (_, TRUNCATED) => There::At(to.truncated_node()),
            (There::Below(caller), _) | (There::At(caller), FOLDED) => There::Below(caller),
            (There::At(parent), frame) => {
                let frame = self.from.frames()[frame as usize];
                let child = to.child(parent, frame, node.line);
                child.map_or(There::Below(parent), There::At)
            }
        }
    }
}

impl SampleSums {
    /// Takes `other` in, which is of other Ractors: no request is told apart in it.
    pub fn merge(&mut self, other: SampleSums, limits: SumLimits) {
        for (key, values) in other.sums {
            self.add_sum(key, values, limits);
        }
        let room = limits.rows.saturating_sub(self.raw.len());
        let (kept, lost): (Vec<Sample>, Vec<Sample>) = if other.raw.len() <= room {
            (other.raw, Vec::new())
        } else {
            let mut raw = other.raw;
            let lost = raw.split_off(room);
            (raw, lost)
        };
        self.raw.extend(kept);
        lost.iter()
            .for_each(|sample| self.lost.add(sample.values()));
        self.lost.add(other.lost);
        self.ended.extend(other.ended);
        self.folded_threads += other.folded_threads;
        if limits.aggregate && self.has_to_fold() {
            self.fold_ended_threads();
        }
    }
}
