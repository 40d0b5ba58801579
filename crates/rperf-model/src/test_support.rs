//! Profiles for tests and benchmarks of several crates. Behind the feature `test-support`, which
//! only dev-dependencies turn on. Any thread, no I/O.

mod random_walk;
pub mod test_profile;

pub use random_walk::RandomWalk;

use crate::{Column, LabelSetId, Mode, Node, NodeId, Profile, Requests, Schema, ValueType};

/// Name, path, first line and line of a frame.
pub type TestFrame<'a> = (&'a str, &'a str, u32, u32);

/// A schema with these pairs of name and unit.
///
/// # Panics
///
/// If `default` is not one of them.
pub fn schema(types: &[(&str, &str)], default: usize) -> Schema {
    let types = types.iter().map(|&(name, unit)| ValueType::new(name, unit));
    Schema::new(types.collect(), Column(default)).expect("the default is one of the columns")
}

/// The schema of rperf's profiles of CPU time.
pub fn cpu_schema() -> Schema {
    Mode::Cpu.schema()
}

/// The schema of rperf's profiles of wall time.
pub fn wall_schema() -> Schema {
    Mode::Wall.schema()
}

/// The node in `profile` of the stack with these frames, root first.
pub fn node(profile: &mut Profile, frames: &[TestFrame<'_>]) -> NodeId {
    frames
        .iter()
        .fold(NodeId::ROOT, |parent, &(name, path, first_line, line)| {
            let strings = &mut profile.strings;
            let frame = profile.frames.intern_named(strings, name, path, first_line);
            profile.tree.intern(Node {
                parent,
                frame,
                line,
            })
        })
}

/// A profile of wall time that has requests with these keys and names, and no samples.
pub fn with_requests(names: &[(&str, &str)]) -> Profile {
    let mut profile = test_profile::TestProfile::wall().profile;
    let names = names.iter();
    profile.requests = names.map(|(key, name)| Requests::new(key, name)).collect();
    profile
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
