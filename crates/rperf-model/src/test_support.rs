//! What tests and benchmarks of several crates make profiles with. Behind the feature
//! `test-support`, which only dev-dependencies turn on. Any thread, no I/O.

mod random_walk;

pub use random_walk::RandomWalk;

use crate::{Frame, LabelSetId, Node, NodeId, Profile};

/// Name, path, first line and line of a frame.
pub type TestFrame<'a> = (&'a str, &'a str, u32, u32);

/// The node in `profile` of the stack with these frames, root first.
pub fn node(profile: &mut Profile, frames: &[TestFrame<'_>]) -> NodeId {
    frames
        .iter()
        .fold(NodeId::ROOT, |parent, &(name, path, first_line, line)| {
            let name = profile.strings.intern(name);
            let path = profile.strings.intern(path);
            let frame = profile.frames.intern(Frame {
                name,
                path,
                first_line,
            });
            profile.tree.intern(Node {
                parent,
                frame,
                line,
            })
        })
}

/// The set in `profile` with these labels.
pub fn labels(profile: &mut Profile, pairs: &[(&str, &str)]) -> LabelSetId {
    let strings = &mut profile.strings;
    let set = pairs
        .iter()
        .map(|(key, value)| (strings.intern(key), strings.intern(value)))
        .collect();
    profile.label_sets.intern(set)
}
