//! From what was captured to a profile: node by node, with the names that the
//! bridge has resolved. Called at stop and snapshot, under the GVL.

use crate::call_tree::{CapturedNode, TRUNCATED};
use crate::sample::{Sample, SampleKey};
use crate::session::Snapshot;
use rperf_model::{
    Counters, Frame, FrameId, LabelSetId, Meta, Node, NodeId, Profile, RawSample, StringId, Thread,
    Values, Weight, WeightTable,
};

/// What the bridge knows of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedFrame {
    /// Qualified name.
    pub name: String,
    /// Path, or a marker such as `<C method>`.
    pub path: String,
    /// Line of the definition, or 0.
    pub first_line: u32,
}

/// Builds the profile. `frames` are the resolved frames in the order of the
/// frame table; `program` and `comments` go into its description.
pub fn build_profile(
    snapshot: &Snapshot,
    nodes: &[CapturedNode],
    frames: &[ResolvedFrame],
    program: String,
    comments: Vec<String>,
) -> Profile {
    let mut profile = Profile {
        meta: meta(snapshot, program, comments),
        ..Profile::default()
    };
    let node_map = add_nodes(&mut profile, nodes, frames);
    let row = |key: SampleKey, values: Values| Weight {
        node: node_map
            .get(key.node.0 as usize)
            .copied()
            .unwrap_or(NodeId::ROOT),
        thread: key.thread,
        labels: LabelSetId(key.labels),
        state: key.state,
        values,
    };
    let mut weights = WeightTable::default();
    let collected = &snapshot.collected;
    // Captured order, so that equal runs give equal files.
    let mut sums: Vec<_> = collected.sums.iter().collect();
    sums.sort_unstable_by_key(|(key, _)| (key.node, key.thread, key.labels, key.state));
    sums.into_iter()
        .for_each(|(&key, &values)| weights.add(row(key, values)));
    collected
        .raw
        .iter()
        .for_each(|sample| weights.add(row(sample.key(), sample.values())));
    profile.weights = weights.into_rows();
    if !snapshot.config.aggregate {
        let raw = |sample: &Sample| RawSample {
            time_ns: sample.time_ns.saturating_sub(snapshot.start_ns),
            weight: row(sample.key(), sample.values()),
        };
        profile.raw_samples = Some(collected.raw.iter().map(raw).collect());
    }
    profile.threads = (1..=snapshot.counters.threads)
        .map(|seq| Thread {
            seq,
            name: StringId(0),
        })
        .collect();
    profile
}

/// Adds the frames and nodes; returns the model's node for each captured one,
/// the root included. Several captured nodes can become one: two methods of the
/// VM may have the same name and place.
fn add_nodes(
    profile: &mut Profile,
    nodes: &[CapturedNode],
    frames: &[ResolvedFrame],
) -> Vec<NodeId> {
    let mut intern = |frame: &ResolvedFrame| {
        let name = profile.strings.intern(&frame.name);
        let path = profile.strings.intern(&frame.path);
        profile.frames.intern(Frame {
            name,
            path,
            first_line: frame.first_line,
        })
    };
    let frame_ids: Vec<FrameId> = frames.iter().map(&mut intern).collect();
    let truncated = nodes.iter().any(|node| node.frame == TRUNCATED).then(|| {
        let path = String::from("<rperf>");
        intern(&ResolvedFrame {
            name: "[truncated]".into(),
            path,
            first_line: 0,
        })
    });
    let mut map = vec![NodeId::ROOT];
    for node in nodes {
        let parent = map
            .get(node.parent.0 as usize)
            .copied()
            .unwrap_or(NodeId::ROOT);
        let frame = frame_ids.get(node.frame as usize).copied().or(truncated);
        map.push(match frame {
            Some(frame) => profile.tree.intern(Node {
                parent,
                frame,
                line: node.line,
            }),
            None => parent,
        });
    }
    map
}

fn meta(snapshot: &Snapshot, program: String, comments: Vec<String>) -> Meta {
    let Snapshot {
        config,
        counters,
        dropped,
        collected,
        ..
    } = snapshot;
    let mut lost = *dropped;
    lost.add(collected.lost);
    lost.add(counters.uncaptured);
    Meta {
        mode: config.mode,
        frequency: config.frequency,
        start_time_ns: snapshot.start_time_ns,
        duration_ns: snapshot.end_ns.saturating_sub(snapshot.start_ns),
        program,
        comments,
        counters: Counters {
            trigger_count: snapshot.triggers,
            sampling_count: counters.sampling_count,
            sampling_time_ns: counters.sampling_time_ns,
            detected_thread_count: u64::from(counters.threads),
            dropped_samples: lost.count,
            dropped_ns: lost.weight_ns(config.mode),
            truncated_samples: counters.truncated,
        },
    }
}
