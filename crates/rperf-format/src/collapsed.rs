//! Collapsed stacks: `root;caller;leaf value`, one line for each stack, for
//! flamegraph.pl, speedscope and the like. The value is that of the profile's default
//! column, in its unit. Written only; any thread.

use crate::FormatError;
use crate::last_stack::LastStacks;
use rperf_model::{DisplayFrame, Profile, State};
use rperf_report::one_line::function_name;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Write;

/// Writes the stacks of `profile`, in order of their frames' names. Stacks that
/// differ only in lines, thread or labels are one.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let names = Names::of(profile);
    let mut stacks: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
    let mut last_stacks = LastStacks::new();
    let column = profile.schema.default_column();
    for weight in profile.weights.iter() {
        let value = weight.value(column);
        if value == 0 {
            continue;
        }
        let append = |frame, key: &mut Vec<u8>| key.extend(names.row(frame));
        let callers = last_stacks.bytes(weight.key, &profile.tree, append);
        let mut key = callers.to_vec();
        if let Some(leaf) = profile.display_leaf(weight.key) {
            append(leaf, &mut key);
        }
        let sum = stacks.entry(key).or_default();
        *sum = sum.saturating_add(value);
    }
    // In a difference of two profiles they can cancel out.
    for (key, value) in stacks.into_iter().filter(|(_, value)| *value != 0) {
        for (depth, row) in key.chunks_exact(ROW_LEN).enumerate() {
            if depth > 0 {
                output.write_all(b";")?;
            }
            output.write_all(names.get(row).as_bytes())?;
        }
        writeln!(output, " {value}")?;
    }
    Ok(())
}

const ROW_LEN: usize = size_of::<u32>();

/// The names of functions, to be told by their rows, which are much shorter.
struct Names<'a> {
    profile: &'a Profile,
    /// As written, in order.
    sorted: Vec<String>,
    /// By the name that the function really has.
    rows: FxHashMap<&'a str, u32>,
}

impl<'a> Names<'a> {
    fn of(profile: &'a Profile) -> Self {
        let real = profile.frames.iter();
        let frames = real
            .map(|(frame, _)| DisplayFrame::Real { frame, line: 0 })
            .chain(State::ALL.map(DisplayFrame::Synthetic))
            .chain([DisplayFrame::ThreadExited, DisplayFrame::NoFrames]);
        let mut rows: FxHashMap<&str, u32> = frames
            .map(|frame| (profile.frame_text(frame).name, 0))
            .collect();
        let mut sorted: Vec<String> = rows.keys().map(|name| as_written(name)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        for (name, row) in &mut rows {
            let written = as_written(name);
            *row = sorted.partition_point(|other| *other < written) as u32;
        }
        Self {
            profile,
            sorted,
            rows,
        }
    }

    /// The row of a frame's name; as bytes these have the order of the names.
    fn row(&self, frame: DisplayFrame) -> [u8; ROW_LEN] {
        let name = self.profile.frame_text(frame).name;
        self.rows.get(name).copied().unwrap_or(0).to_be_bytes()
    }

    fn get(&self, row: &[u8]) -> &str {
        let row = row.iter().fold(0, |row, byte| row << 8 | *byte as usize);
        &self.sorted[row]
    }
}

fn as_written(name: &str) -> String {
    // The separator of frames can't be escaped.
    function_name(name).replace(';', ":")
}
