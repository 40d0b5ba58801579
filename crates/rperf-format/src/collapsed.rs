//! Collapsed stacks: `root;caller;leaf value`, one line for each stack, for flamegraph.pl,
//! speedscope and the like. The value is that of the profile's default column, in its unit. Called
//! by `format::write`; any thread.

use crate::FormatError;
use rperf_model::{CallTree, DisplayFrame, FrameId, Node, NodeId, Profile, State};
use rperf_report::one_line::function_name;
use rustc_hash::FxHashMap;
use std::io::{self, Write};

/// Bytes of all lines together. A line has the names of a whole stack, so a small file
/// with long names and deep stacks could fill a disk.
const MAX_BYTES: u64 = 4 << 30;

/// Writes the stacks of `profile`, in order of their frames' names. Stacks that
/// differ only in lines, thread or labels are one.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    write_within(MAX_BYTES, profile, output)
}

fn write_within(limit: u64, profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let names = Names::of(profile);
    let (tree, sums) = by_name(profile, &names);
    let mut left = limit;
    let mut stack = Stack::default();
    // Only nodes with several children wait, however deep the stacks are.
    let calls = Calls::of(&tree, names.sorted.len());
    let mut next = vec![(0, NodeId::ROOT)];
    while let Some((depth, id)) = next.pop() {
        if let Some(node) = tree.get(id) {
            stack.truncate(depth - 1);
            stack.push(&names.sorted[node.frame.0 as usize]);
        }
        next.extend(calls.below(id).map(|child| (depth + 1, child)));
        // In a difference of two profiles values can cancel out.
        let value = sums[id.0 as usize];
        if value == 0 {
            continue;
        }
        let len = stack.ends.last().copied().unwrap_or(0);
        left = left.checked_sub(len).ok_or(FormatError::TooLarge {
            limit,
            unit: "bytes of collapsed stacks",
        })?;
        stack.write(output)?;
        writeln!(output, " {value}")?;
    }
    Ok(())
}

/// The stack of the node that is being looked at.
#[derive(Default)]
struct Stack<'a> {
    names: Vec<&'a str>,
    /// For each name where it ends in a line.
    ends: Vec<u64>,
    /// The beginning of the line, which the next ones mostly have too.
    line: Vec<u8>,
    /// How many names are in `line`.
    in_line: usize,
}

/// Bytes of a line that are kept.
const MAX_KEPT: u64 = 1 << 20;

impl<'a> Stack<'a> {
    fn truncate(&mut self, depth: usize) {
        self.names.truncate(depth);
        self.ends.truncate(depth);
        if self.in_line > depth {
            self.in_line = depth;
            let end = self.ends.last().copied().unwrap_or(0);
            self.line.truncate(end as usize);
        }
    }

    fn push(&mut self, name: &'a str) {
        let separator = if self.names.is_empty() { "" } else { ";" };
        let start = self.ends.last().copied().unwrap_or(0);
        let end = start + (separator.len() + name.len()) as u64;
        if self.in_line == self.names.len() && end <= MAX_KEPT {
            self.in_line += 1;
            self.line.extend_from_slice(separator.as_bytes());
            self.line.extend_from_slice(name.as_bytes());
        }
        self.names.push(name);
        self.ends.push(end);
    }

    fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        output.write_all(&self.line)?;
        for (depth, name) in self.names.iter().enumerate().skip(self.in_line) {
            if depth > 0 {
                output.write_all(b";")?;
            }
            output.write_all(name.as_bytes())?;
        }
        Ok(())
    }
}

/// The stacks by the names of their frames, which are rows of `names`, and the value of
/// each node's own stack.
fn by_name(profile: &Profile, names: &Names) -> (CallTree, Vec<i64>) {
    let mut tree = CallTree::default();
    let mut child = |parent, row| {
        tree.intern(Node {
            parent,
            frame: FrameId(row),
            line: 0,
        })
    };
    let mut nodes = vec![NodeId::ROOT];
    for (_, node) in profile.tree.iter() {
        let row = names.by_frame[node.frame.0 as usize];
        nodes.push(child(nodes[node.parent.0 as usize], row));
    }
    let column = profile.schema.default_column();
    let mut sums: Vec<i64> = Vec::new();
    for weight in profile.weights.iter() {
        let mut node = nodes[weight.key.node.0 as usize];
        if let Some(leaf) = profile.display_leaf(weight.key) {
            node = child(node, names.by_leaf[&leaf]);
        }
        let row = node.0 as usize;
        if row >= sums.len() {
            sums.resize(row + 1, 0);
        }
        sums[row] = sums[row].saturating_add(weight.value(column));
    }
    sums.resize(tree.len() + 1, 0);
    (tree, sums)
}

/// The nodes by their parents.
struct Calls {
    /// The last child of each node; children are in the order of their frames' rows.
    last_child: Vec<u32>,
    previous: Vec<u32>,
}

const NONE: u32 = 0;

impl Calls {
    /// `names`: how many rows the frames are of.
    fn of(tree: &CallTree, names: usize) -> Self {
        let mut calls = Self {
            last_child: vec![NONE; tree.len() + 1],
            previous: vec![NONE; tree.len() + 1],
        };
        for id in by_frame(tree, names) {
            if let Some(node) = tree.get(NodeId(id)) {
                let last = &mut calls.last_child[node.parent.0 as usize];
                calls.previous[id as usize] = std::mem::replace(last, id);
            }
        }
        calls
    }

    /// The nodes below this one, the last one first.
    fn below(&self, id: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let known = |id: u32| (id != NONE).then_some(NodeId(id));
        let previous = move |id: &NodeId| known(self.previous[id.0 as usize]);
        std::iter::successors(known(self.last_child[id.0 as usize]), previous)
    }
}

/// All nodes in the order of their frames' rows.
fn by_frame(tree: &CallTree, rows: usize) -> Vec<u32> {
    // How many nodes each row has, then where those of each row begin.
    let mut next = vec![0; rows];
    for (_, node) in tree.iter() {
        next[node.frame.0 as usize] += 1;
    }
    let mut start = 0;
    for index in &mut next {
        start += std::mem::replace(index, start);
    }
    let mut ids = vec![NONE; tree.len()];
    for (id, node) in tree.iter() {
        let index = &mut next[node.frame.0 as usize];
        ids[*index] = id.0;
        *index += 1;
    }
    ids
}

/// The names of functions. Two that are written in the same way are one.
struct Names {
    /// The names as they are written, in order.
    sorted: Vec<String>,
    /// The row of `sorted` for each frame of the profile.
    by_frame: Vec<u32>,
    by_leaf: FxHashMap<DisplayFrame, u32>,
}

impl Names {
    fn of(profile: &Profile) -> Self {
        let name = |frame| as_written(profile.frame_text(frame).name);
        let real = profile.frames.iter();
        let real = real.map(|(frame, _)| DisplayFrame::Real { frame, line: 0 });
        let leaves = State::ALL.map(DisplayFrame::Synthetic).into_iter();
        let leaves = leaves.chain([DisplayFrame::ThreadExited, DisplayFrame::NoFrames]);
        let frames: Vec<DisplayFrame> = real.chain(leaves).collect();
        let mut sorted: Vec<String> = frames.iter().copied().map(name).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let row = |frame| {
            let name = name(frame);
            sorted.partition_point(|other| *other < name) as u32
        };
        let (real, leaves) = frames.split_at(profile.frames.len());
        Self {
            by_frame: real.iter().copied().map(row).collect(),
            by_leaf: leaves.iter().map(|&leaf| (leaf, row(leaf))).collect(),
            sorted,
        }
    }
}

fn as_written(name: &str) -> String {
    // The separator of frames can't be escaped.
    function_name(name).replace(';', ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_profile::TestProfile;

    #[test]
    fn lines_without_end_are_refused_and_deep_stacks_are_not() {
        let deep = TestProfile::cpu()
            .with(&["f"; 100_000], 1, State::Running, 7)
            .with(&["f"], 1, State::GcMarking, 5);
        let mut written = Vec::new();
        let expected = 199_999 + 14;
        assert!(write_within(expected, &deep.profile, &mut written).is_ok());
        let lines: Vec<_> = written.split(|byte| *byte == b'\n').collect();
        assert_eq!(lines[0], b"f;[GC marking] 5");
        assert_eq!(lines[1].len(), 200_001);
        let long = "g".repeat(MAX_KEPT as usize / 2);
        let names = ["f", &long, &long, "h"];
        let test = TestProfile::cpu().with(&names, 1, State::Running, 3);
        let mut long_line = Vec::new();
        assert!(write_within(u64::MAX, &test.profile, &mut long_line).is_ok());
        assert_eq!(long_line, format!("{} 3\n", names.join(";")).as_bytes());
        let error = write_within(expected - 1, &deep.profile, &mut std::io::sink());
        assert!(matches!(error, Err(FormatError::TooLarge { .. })));
    }
}
