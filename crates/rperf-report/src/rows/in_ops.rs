//! Which op each row of a profile is in, by its stack. Used by tables whose rows are ops; any thread.

use rperf_model::frame_kind::OP;
use rperf_model::{Profile, WeightKey};

/// The op of a row: the innermost one that its stack has; `None` if it has none.
pub(crate) fn op_of_rows<'a>(profile: &'a Profile) -> impl Fn(WeightKey) -> Option<&'a str> {
    let text = |id| profile.strings.get(id);
    let names: Vec<Option<&str>> = profile
        .frames
        .iter()
        .map(|(_, frame)| (text(frame.path) == OP).then(|| text(frame.name)))
        .collect();
    // By node, from the root's number on: callers come first.
    let mut ops = vec![None];
    for (_, node) in profile.tree.iter() {
        let around = ops[node.parent.0 as usize];
        ops.push(names[node.frame.0 as usize].or(around));
    }
    move |key| ops[key.node.0 as usize]
}

/// The op of a row in words.
pub(crate) fn op_texts(profile: &Profile) -> impl Fn(WeightKey) -> String {
    let ops = op_of_rows(profile);
    move |key| ops(key).unwrap_or("(no op)").to_string()
}

/// Whether any sample is in an op.
pub fn has_ops(profile: &Profile) -> bool {
    let ops = op_of_rows(profile);
    profile.weights.iter().any(|row| ops(row.key).is_some())
}
