//! Collapsed stacks: `root;caller;leaf weight_ns`, one line for each stack, for
//! flamegraph.pl, speedscope and the like. Written only; any thread.

use crate::FormatError;
use crate::one_line::function_name;
use rperf_model::{Profile, Weight};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes the stacks of `profile`, in order of their text. Stacks that differ only
/// in lines, thread or labels are one.
pub(crate) fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    for weight in &profile.weights {
        let ns = weight.values.weight_ns(profile.meta.mode);
        if ns > 0 {
            let sum = stacks.entry(line(profile, weight)).or_default();
            *sum = sum.saturating_add(ns);
        }
    }
    for (stack, ns) in stacks {
        writeln!(output, "{stack} {ns}")?;
    }
    Ok(())
}

fn line(profile: &Profile, weight: &Weight) -> String {
    let mut frames: Vec<_> = profile.display_stack(weight).collect();
    frames.reverse();
    let mut line = String::new();
    for frame in frames {
        if !line.is_empty() {
            line.push(';');
        }
        // The separator of frames can't be escaped.
        let name = function_name(profile.frame_text(frame).name);
        line.push_str(&name.replace(';', ":"));
    }
    line
}
