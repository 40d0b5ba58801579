//! Samples of a pprof file that is being written. They are too many to build a message for each.
//! Called by the writer; any thread.

use super::tables::Tables;
use crate::last_stack::LastStacks;
use crate::pprof::labels::{self, escape_key, escape_value};
use crate::pprof::proto;
use prost::Message;
use rperf_model::{LabelSetId, Profile, State, Thread, Weight, WeightKey, label_keys};
use rustc_hash::FxHashMap;

/// Makes samples of weights.
pub(super) struct Samples<'a> {
    profile: &'a Profile,
    thread_names: FxHashMap<u32, &'a str>,
    /// The labels of all samples of a thread, a label set and a state.
    labels: FxHashMap<(u32, LabelSetId, State), Vec<proto::Label>>,
    /// Location ids from the root, the bytes of each back to front: thus all of it
    /// back to front is what a sample has, leaf first.
    last_stacks: LastStacks,
    /// The sample being made; kept for its memory.
    message: OneSample,
}

/// A [`proto::Profile`] with one sample.
#[derive(Clone, PartialEq, Message)]
struct OneSample {
    #[prost(message, optional, tag = "2")]
    sample: Option<PackedSample>,
}

/// A `proto::Sample` whose location ids are encoded already: on the wire they look
/// like bytes.
#[derive(Clone, PartialEq, Message)]
struct PackedSample {
    #[prost(bytes = "vec", tag = "1")]
    location_id: Vec<u8>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<proto::Label>,
}

impl<'a> Samples<'a> {
    pub(super) fn new(profile: &'a Profile) -> Self {
        let name = |thread: &Thread| (thread.seq, profile.strings.get(thread.name));
        Self {
            profile,
            thread_names: profile.threads.iter().map(name).collect(),
            labels: FxHashMap::default(),
            last_stacks: LastStacks::new(),
            message: OneSample::default(),
        }
    }

    /// Appends the sample of `weight` to a [`proto::Profile`] that is encoded.
    pub(super) fn append(
        &mut self,
        weight: Weight<'_>,
        tables: &mut Tables<'_>,
        encoded: &mut Vec<u8>,
    ) {
        let (profile, key) = (self.profile, weight.key);
        let sample = self.message.sample.get_or_insert_default();

        sample.location_id.clear();
        if let Some(leaf) = profile.display_leaf(key) {
            append_varint(tables.location(leaf), &mut sample.location_id);
        }
        let callers = self.last_stacks.bytes(key, &profile.tree, |frame, bytes| {
            let start = bytes.len();
            append_varint(tables.location(frame), bytes);
            bytes[start..].reverse();
        });
        sample.location_id.extend(callers.iter().rev());

        sample.value.clear();
        sample.value.extend(weight.values);

        let thread_name = self.thread_names.get(&key.thread).copied();
        let labels = self
            .labels
            .entry((key.thread, key.labels, key.state))
            .or_insert_with(|| labels_of(key, thread_name.unwrap_or(""), profile, tables));
        sample.label.clone_from(labels);

        // Only a buffer without room makes it fail, and this one grows.
        let _ = self.message.encode(encoded);
    }
}

fn append_varint(id: u64, bytes: &mut Vec<u8>) {
    prost::encoding::encode_varint(id, bytes);
}

fn labels_of(
    key: WeightKey,
    thread_name: &str,
    profile: &Profile,
    tables: &mut Tables<'_>,
) -> Vec<proto::Label> {
    let mut written = vec![proto::Label {
        key: tables.text(label_keys::THREAD_SEQ),
        str: 0,
        num: i64::from(key.thread),
        num_unit: tables.text(labels::THREAD_SEQ_UNIT),
    }];
    let mut write = |key: &str, value: &str| {
        written.push(proto::Label {
            key: tables.text(key),
            str: tables.text(value),
            num: 0,
            num_unit: 0,
        });
    };
    if !thread_name.is_empty() {
        write(label_keys::THREAD, thread_name);
    }
    if let Some((key, value)) = key.state.tag() {
        write(key, value);
    }
    let strings = &profile.strings;
    for &(key, value) in profile.label_sets.get(key.labels) {
        write(
            &escape_key(strings.get(key)),
            escape_value(strings.get(value)),
        );
    }
    written
}
