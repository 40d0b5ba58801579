//! The profile's ids for what samples have: label sets, with what is known of a request or without, and
//! nodes, in an op or not.

use crate::collect::packed_labels::PackedLabels;
use crate::collect::sample_key::SampleKey;
use rperf_model::frame_kind::OP;
use rperf_model::label_keys::{GC_CAUSE, LATENCY, REQUEST};
use rperf_model::{GcCause, LabelSetId, LatencyClass, Node, NodeId, Profile, RequestId, WeightKey};
use rperf_vm::{LabelTexts, OpNumber, RequestNumber};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The names of what samples have numbers of.
#[derive(Debug, Clone, Copy, Default)]
pub struct SessionNames<'a> {
    /// The label sets, from number 1.
    pub label_sets: &'a [LabelTexts],
    /// The names of ops, from number 1.
    pub ops: &'a [Arc<str>],
    /// The word of [`RequestId`] for the session's requests.
    pub request_word: u32,
}

/// What a label set has besides: the class of its request, which one that is, if it is told apart, and why
/// a collection ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Further {
    plain: LabelSetId,
    class: Option<LatencyClass>,
    request: RequestNumber,
    gc: Option<GcCause>,
}

/// The ids.
pub(super) struct ProfileIds<'a> {
    plain: Vec<LabelSetId>,
    further: FxHashMap<Further, LabelSetId>,
    names: SessionNames<'a>,
}

impl<'a> ProfileIds<'a> {
    /// Adds the label sets; number 0 is the empty one.
    pub(super) fn add(profile: &mut Profile, names: SessionNames<'a>) -> Self {
        let mut plain = vec![LabelSetId::default()];
        plain.extend(names.label_sets.iter().map(|set| {
            let pairs = set.iter().map(|(key, value)| {
                let key = profile.strings.intern(key);
                (key, profile.strings.intern(value))
            });
            let pairs = pairs.collect();
            profile.label_sets.intern(pairs)
        }));
        Self {
            plain,
            further: FxHashMap::default(),
            names,
        }
    }

    /// The key with ids in place of numbers, of `request` if it is told apart. An op is the leaf of the
    /// stack.
    pub(super) fn of(
        &mut self,
        profile: &mut Profile,
        key: SampleKey,
        request: RequestNumber,
    ) -> WeightKey {
        let PackedLabels { number, op, class } = PackedLabels::of(key.labels);
        let further = Further {
            plain: self.plain[number.0 as usize],
            class,
            request,
            gc: key.gc,
        };
        let labels = match (class, key.gc) {
            (None, None) => further.plain,
            _ => {
                let word = self.names.request_word;
                let known = self.further.entry(further);
                *known.or_insert_with(|| further.add(profile, word))
            }
        };
        let node = self.node(profile, key.node, op);
        SampleKey { node, ..key }.row(labels)
    }

    fn node(&self, profile: &mut Profile, node: NodeId, op: OpNumber) -> NodeId {
        let row = usize::from(op.0).checked_sub(1);
        let Some(name) = row.and_then(|row| self.names.ops.get(row)) else {
            return node;
        };
        let frame = profile
            .frames
            .intern_named(&mut profile.strings, name, OP, 0);
        profile.tree.intern(Node {
            parent: node,
            frame,
            line: 0,
        })
    }
}

impl Further {
    /// Adds the label set; the requests are of the session with this word.
    fn add(self, profile: &mut Profile, session: u32) -> LabelSetId {
        let mut pairs = profile.label_sets.get(self.plain).to_vec();
        let mut add = |key, value: &str| {
            let key = profile.strings.intern(key);
            pairs.push((key, profile.strings.intern(value)));
        };
        if let Some(class) = self.class {
            add(LATENCY, class.name());
        }
        if let (Some(_), number @ 1..) = (self.class, self.request.0) {
            add(REQUEST, &RequestId { session, number }.to_string());
        }
        if let Some(cause) = self.gc {
            add(GC_CAUSE, cause.name());
        }
        profile.label_sets.intern(pairs)
    }
}
