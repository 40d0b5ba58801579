//! The slowest requests of an endpoint: what each took, and its label, if it is on samples.

use crate::rows::tags::label;
use rperf_model::label_keys::{LATENCY, REQUEST};
use rperf_model::{LatencyClass, Profile, Requests, Slowest};
use rustc_hash::{FxHashMap, FxHashSet};

/// A request among the slowest of its endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRequest {
    /// What it took.
    pub took: Slowest,
    /// The value of its label `%request`; `None` if no sample has it.
    pub label: Option<String>,
    /// Whether it is of the tail, as its samples say.
    pub is_of_tail: bool,
}

/// The labels of requests that samples have, each with whether the request is of the tail.
pub(super) fn labels(profile: &Profile) -> FxHashMap<&str, bool> {
    let mut labels = FxHashMap::default();
    if profile.strings.find(REQUEST).is_none() {
        return labels;
    }
    let used: FxHashSet<_> = profile.weights.iter().map(|row| row.key.labels).collect();
    for set in used {
        if let Some(request) = label(profile, set, REQUEST) {
            let is_of_tail = label(profile, set, LATENCY) == Some(LatencyClass::Tail.name());
            *labels.entry(request).or_default() |= is_of_tail;
        }
    }
    labels
}

/// The slowest of `requests`, the slowest one first; samples have these `labels`.
pub(super) fn slowest(labels: &FxHashMap<&str, bool>, requests: &Requests) -> Vec<SlowRequest> {
    let request = |took: &Slowest| {
        let label = took.id.to_string();
        let is_of_tail = labels.get(label.as_str()).copied();
        SlowRequest {
            took: *took,
            label: is_of_tail.map(|_| label),
            is_of_tail: is_of_tail.unwrap_or(false),
        }
    };
    requests.slowest.iter().map(request).collect()
}
