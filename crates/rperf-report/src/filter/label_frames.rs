//! Frames made of tags, above or below all others. Any thread.

use super::{change_keys, tags};
use rperf_model::{
    CallTree, DisplayFrame, Frame, FrameId, Node, NodeId, Profile, State, WeightKey,
};
use rustc_hash::FxHashMap;
use std::mem;

/// What has been done.
pub(super) struct Added {
    pub(super) unmatched: Vec<&'static str>,
}

/// Puts the values of the tags with these keys as frames around the stacks of
/// `profile`: `roots` above them, `leaves` below. Samples without a tag get a frame that
/// says so.
pub(super) fn add(profile: &mut Profile, roots: &[String], leaves: &[String]) -> Added {
    let mut frames = LabelFrames {
        tree: CallTree::default(),
        keys: FxHashMap::default(),
        nodes: FxHashMap::default(),
        has_roots: roots.is_empty(),
        has_leaves: leaves.is_empty(),
    };
    let keys: Vec<WeightKey> = profile.weights.iter().map(|weight| weight.key).collect();
    for key in keys {
        let new_key = frames.key(profile, key, roots, leaves);
        frames.keys.insert(key, new_key);
    }
    profile.tree = mem::take(&mut frames.tree);
    change_keys(profile, |key| frames.keys.get(&key).copied());
    let options = [
        ("--tagroot", frames.has_roots),
        ("--tagleaf", frames.has_leaves),
    ];
    let unmatched = options.iter().filter(|(_, is_found)| !is_found);
    Added {
        unmatched: unmatched.map(|(name, _)| *name).collect(),
    }
}

struct LabelFrames {
    /// The stacks with the new frames.
    tree: CallTree,
    /// New keys by old ones.
    keys: FxHashMap<WeightKey, WeightKey>,
    /// New nodes by the new root and the old node.
    nodes: FxHashMap<(NodeId, NodeId), NodeId>,
    has_roots: bool,
    has_leaves: bool,
}

impl LabelFrames {
    fn key(
        &mut self,
        profile: &mut Profile,
        key: WeightKey,
        roots: &[String],
        leaves: &[String],
    ) -> WeightKey {
        let mut root = NodeId::ROOT;
        for name in roots {
            let (frame, is_found) = label_frame(profile, key, name);
            self.has_roots |= is_found;
            root = self.child(root, frame, 0);
        }
        // A stack without frames has a leaf to be shown, which must stay one.
        let leaf = profile.display_leaf(key);
        let node = self.node(&profile.tree, root, key.node);
        if leaves.is_empty() && !matches!(leaf, Some(leaf) if is_placeholder(leaf)) {
            return WeightKey { node, ..key };
        }
        let mut node = node;
        if let Some(leaf) = leaf {
            let frame = real_frame(profile, leaf);
            node = self.child(node, frame, 0);
        }
        for name in leaves {
            let (frame, is_found) = label_frame(profile, key, name);
            self.has_leaves |= is_found;
            node = self.child(node, frame, 0);
        }
        WeightKey {
            node,
            state: State::Running,
            ..key
        }
    }

    fn child(&mut self, parent: NodeId, frame: FrameId, line: u32) -> NodeId {
        self.tree.intern(Node {
            parent,
            frame,
            line,
        })
    }

    /// The stack of `old`, below `root`.
    fn node(&mut self, old_tree: &CallTree, root: NodeId, old: NodeId) -> NodeId {
        let mut missing = Vec::new();
        let mut id = old;
        let mut new = loop {
            if let Some(&known) = self.nodes.get(&(root, id)) {
                break known;
            }
            match old_tree.get(id) {
                Some(node) => {
                    missing.push((id, *node));
                    id = node.parent;
                }
                None => break root,
            }
        };
        for (id, node) in missing.into_iter().rev() {
            new = self.child(new, node.frame, node.line);
            self.nodes.insert((root, id), new);
        }
        new
    }
}

fn is_placeholder(leaf: DisplayFrame) -> bool {
    matches!(leaf, DisplayFrame::ThreadExited | DisplayFrame::NoFrames)
}

/// The frame for a tag of a row, named for its value, with the key as its path; and
/// whether there is such a tag.
fn label_frame(profile: &mut Profile, row: WeightKey, key: &str) -> (FrameId, bool) {
    let value = tags::tag(profile, row, key).map(|value| value.into_owned());
    let is_found = value.is_some();
    let name = value.unwrap_or_else(|| format!("(no {key})"));
    (intern(profile, &name, key), is_found)
}

fn real_frame(profile: &mut Profile, leaf: DisplayFrame) -> FrameId {
    let text = profile.frame_text(leaf);
    let (name, path) = (text.name.to_string(), text.path.to_string());
    intern(profile, &name, &path)
}

fn intern(profile: &mut Profile, name: &str, path: &str) -> FrameId {
    let name = profile.strings.intern(name);
    let path = profile.strings.intern(path);
    profile.frames.intern(Frame {
        name,
        path,
        first_line: 0,
    })
}
