//! Frames made of tags, above or below all others. Called by `filter`; any thread.

use crate::rows::keys::set_keys;
use crate::rows::tags::{self, ThreadNames};
use crate::text::one_line::without_end;
use rperf_model::Order;
use rperf_model::frame_kind::TRUNCATED_FRAME;
use rperf_model::{CallTree, DisplayFrame, FrameId, Node, NodeId, Profile, State, WeightKey};
use rustc_hash::FxHashMap;

/// Nodes that the tree with the new frames holds at most: with a root for each of many
/// values it can have many times as many as the tree without. Further stacks are
/// `[truncated]`.
const MAX_NODES: usize = 16 << 20;

/// The outcome: the options that matched nothing.
pub(super) struct Added {
    pub(super) unmatched: Vec<&'static str>,
}

/// Puts the values of the tags with these keys as frames around the stacks of
/// `profile`: `roots` above them, `leaves` below. Samples without a tag get a frame that
/// says so.
pub(super) fn add(profile: &mut Profile, roots: &[String], leaves: &[String]) -> Added {
    add_within(MAX_NODES, profile, roots, leaves)
}

fn add_within(
    max_nodes: usize,
    profile: &mut Profile,
    roots: &[String],
    leaves: &[String],
) -> Added {
    let mut tree = CallTree::default();
    let mut around = Around::new(profile, roots, leaves);
    let keys: Vec<WeightKey> = profile.weights.iter().map(|weight| weight.key).collect();
    let rows: Vec<(WeightKey, usize)> = keys
        .into_iter()
        .map(|key| (key, around.of_row(profile, &mut tree, key)))
        .collect();
    // Root by root, since what is known of the nodes below one tells nothing of others.
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.order_by_key(|&row| around.all[rows[row].1].root);
    let mut stacks = Stacks::new(&profile.tree);
    let mut keys = vec![None; rows.len()];
    for row in order {
        let (key, around_row) = rows[row];
        let Frames { root, leaves } = &around.all[around_row];
        let mut node = if tree.len() < max_nodes {
            stacks.node(&profile.tree, &mut tree, *root, key.node)
        } else {
            truncated(profile, &mut tree, *root, row)
        };
        // A stack without frames has a leaf to be shown, which must stay one.
        let leaf = profile.display_leaf(key);
        let mut state = key.state;
        if !leaves.is_empty() || leaf.is_some_and(is_placeholder) {
            state = State::Running;
            let leaf = leaf.map(|leaf| real_frame(profile, leaf));
            for &frame in leaf.iter().chain(leaves) {
                node = child(&mut tree, node, frame);
            }
        }
        keys[row] = Some(WeightKey { node, state, ..key });
    }
    profile.tree = tree;
    set_keys(profile, &keys);
    Added {
        unmatched: around.unmatched(),
    }
}

/// The node for the stack of a row that finds no room below `root`.
fn truncated(profile: &mut Profile, tree: &mut CallTree, root: NodeId, row: usize) -> NodeId {
    let samples = profile.schema.samples();
    let weight = profile.weights.get(row);
    let samples = samples.and_then(|samples| Some(weight?.value(samples).unsigned_abs()));
    let lost = &mut profile.meta.counters.truncated_samples;
    *lost = lost.saturating_add(samples.unwrap_or(1));
    let (name, path) = TRUNCATED_FRAME;
    let frame = intern(profile, name, path);
    child(tree, root, frame)
}

/// The frames to be put around stacks.
struct Around<'a> {
    roots: &'a [String],
    leaves: &'a [String],
    threads: ThreadNames,
    has_root: bool,
    has_leaf: bool,
    all: Vec<Frames>,
    /// Rows of `all` by the properties that tags depend on.
    by_tags: FxHashMap<WeightKey, usize>,
}

struct Frames {
    /// The node of the frames above, in the new tree.
    root: NodeId,
    leaves: Vec<FrameId>,
}
impl<'a> Around<'a> {
    fn new(profile: &Profile, roots: &'a [String], leaves: &'a [String]) -> Self {
        Self {
            roots,
            leaves,
            threads: ThreadNames::of(profile),
            has_root: roots.is_empty(),
            has_leaf: leaves.is_empty(),
            all: Vec::new(),
            by_tags: FxHashMap::default(),
        }
    }

    /// The row of `all` for a row of weights.
    fn of_row(&mut self, profile: &mut Profile, tree: &mut CallTree, key: WeightKey) -> usize {
        let tags = tags::without_stack(key);
        if let Some(&known) = self.by_tags.get(&tags) {
            return known;
        }
        let mut root = NodeId::ROOT;
        for name in self.roots {
            let (frame, is_found) = self.label_frame(profile, tags, name);
            self.has_root |= is_found;
            root = child(tree, root, frame);
        }
        let mut leaves = Vec::new();
        for name in self.leaves {
            let (frame, is_found) = self.label_frame(profile, tags, name);
            self.has_leaf |= is_found;
            leaves.push(frame);
        }
        self.all.push(Frames { root, leaves });
        self.by_tags.insert(tags, self.all.len() - 1);
        self.all.len() - 1
    }

    /// The frame for a tag of a row, named for its value, with the key as its path; and
    /// whether there is such a tag.
    fn label_frame(&self, profile: &mut Profile, row: WeightKey, key: &str) -> (FrameId, bool) {
        let value = tags::tag(profile, &self.threads, row, key).map(|value| value.into_owned());
        let is_found = value.is_some();
        let name = value.unwrap_or_else(|| format!("(no {key})"));
        (intern(profile, &without_end(&name), key), is_found)
    }

    fn unmatched(&self) -> Vec<&'static str> {
        let options = [("--tagroot", self.has_root), ("--tagleaf", self.has_leaf)];
        let unmatched = options.iter().filter(|(_, is_found)| !is_found);
        unmatched.map(|(name, _)| *name).collect()
    }
}

fn child(tree: &mut CallTree, parent: NodeId, frame: FrameId) -> NodeId {
    tree.intern(Node {
        parent,
        frame,
        line: 0,
    })
}

/// The old stacks below one of the new roots after the other.
struct Stacks {
    root: NodeId,
    /// For each old node the new one below `root`, or the root of the tree.
    nodes: Vec<NodeId>,
    /// The old nodes that have one.
    known: Vec<NodeId>,
    /// Kept for its memory.
    missing: Vec<(NodeId, Node)>,
}

impl Stacks {
    fn new(old_tree: &CallTree) -> Self {
        Self {
            root: NodeId::ROOT,
            nodes: vec![NodeId::ROOT; old_tree.len() + 1],
            known: Vec::new(),
            missing: Vec::new(),
        }
    }

    /// The stack of `old`, below `root`.
    fn node(
        &mut self,
        old_tree: &CallTree,
        tree: &mut CallTree,
        root: NodeId,
        old: NodeId,
    ) -> NodeId {
        if self.root != root {
            self.root = root;
            for id in self.known.drain(..) {
                self.nodes[id.0 as usize] = NodeId::ROOT;
            }
        }
        let mut id = old;
        let mut new = root;
        while let Some(node) = old_tree.get(id) {
            let known = self.nodes[id.0 as usize];
            if known != NodeId::ROOT {
                new = known;
                break;
            }
            self.missing.push((id, *node));
            id = node.parent;
        }
        while let Some((id, node)) = self.missing.pop() {
            new = tree.intern(Node {
                parent: new,
                ..node
            });
            self.nodes[id.0 as usize] = new;
            self.known.push(id);
        }
        new
    }
}

fn is_placeholder(leaf: DisplayFrame) -> bool {
    matches!(leaf, DisplayFrame::ThreadExited | DisplayFrame::NoFrames)
}

fn real_frame(profile: &mut Profile, leaf: DisplayFrame) -> FrameId {
    let text = profile.frame_text(leaf);
    let (name, path) = (text.name.to_string(), text.path.to_string());
    intern(profile, &name, &path)
}

fn intern(profile: &mut Profile, name: &str, path: &str) -> FrameId {
    profile
        .frames
        .intern_named(&mut profile.strings, name, path, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::LabelSetId;
    use rperf_model::test_profile::TestProfile;

    #[test]
    fn stacks_that_find_no_room_are_counted() {
        let mut test = TestProfile::cpu();
        let sets = ["a", "b", "c"].map(|value| test.labels(&[("request", value)]));
        for labels in sets {
            test.add(&["main", "work"], 1, labels, State::Running, 10);
        }
        test.add(&["main"], 1, LabelSetId(0), State::Running, 10);
        let mut profile = test.profile;
        // Four roots, and room for two stacks below them.
        add_within(8, &mut profile, &["request".to_string()], &[]);
        assert_eq!(profile.check(), Ok(()));
        let name = |frame| profile.frame_text(frame).name;
        let stacks = profile.weights.iter().map(|row| {
            let frames = profile.display_stack(row.key).map(name);
            frames.collect::<Vec<_>>().join(" < ")
        });
        assert_eq!(
            stacks.collect::<Vec<_>>(),
            [
                "work < main < a",
                "work < main < b",
                "[truncated] < c",
                "[truncated] < (no request)"
            ]
        );
        assert_eq!(profile.meta.counters.truncated_samples, 2);
    }
}
