//! The slowest requests of an endpoint: what each took, and its label, if it is on samples.

use rperf_model::label_keys::REQUEST;
use rperf_model::{Profile, Requests, Slowest};

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowRequest {
    /// What it took.
    pub took: Slowest,
    /// The value of its label `%request`; `None` if no sample has it.
    pub label: Option<String>,
}

/// The slowest of `requests`, the slowest one first.
pub(super) fn slowest(profile: &Profile, requests: &Requests) -> Vec<SlowRequest> {
    let is_on_samples = |label: &String| {
        let pair = (profile.strings.find(REQUEST), profile.strings.find(label));
        let (Some(key), Some(value)) = pair else {
            return false;
        };
        let mut sets = profile.label_sets.iter();
        sets.any(|set| set.contains(&(key, value)))
    };
    let request = |took: &Slowest| SlowRequest {
        took: *took,
        label: Some(took.id.to_string()).filter(|it| took.id.is_known() && is_on_samples(it)),
    };
    requests.slowest.iter().map(request).collect()
}
