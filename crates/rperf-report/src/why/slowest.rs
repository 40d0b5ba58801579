//! The slowest requests of an endpoint: what each took, and its label, if it is on samples.

use rperf_model::label_keys::REQUEST;
use rperf_model::{Profile, Requests, Slowest};
use rustc_hash::FxHashSet;

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRequest {
    /// What it took.
    pub took: Slowest,
    /// The value of its label `%request`; `None` if no sample has it.
    pub label: Option<String>,
}

/// The labels of requests that samples have.
pub(super) fn labels(profile: &Profile) -> FxHashSet<&str> {
    let Some(key) = profile.strings.find(REQUEST) else {
        return FxHashSet::default();
    };
    let used: FxHashSet<_> = profile.weights.iter().map(|row| row.key.labels).collect();
    let value = |set| {
        let mut pairs = profile.label_sets.get(set).iter();
        pairs.find(|pair| pair.0 == key).map(|pair| pair.1)
    };
    let values = used.into_iter().filter_map(value);
    values.map(|value| profile.strings.get(value)).collect()
}

/// The slowest of `requests`, the slowest one first; samples have these `labels`.
pub(super) fn slowest(labels: &FxHashSet<&str>, requests: &Requests) -> Vec<SlowRequest> {
    let request = |took: &Slowest| SlowRequest {
        took: *took,
        label: Some(took.id.to_string()).filter(|it| labels.contains(it.as_str())),
    };
    requests.slowest.iter().map(request).collect()
}
