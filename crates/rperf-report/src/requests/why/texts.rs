//! What is asked of a profile about requests: labels, classes and places. Used by all that tell of slow requests.

use super::slowest;
use crate::rows::tags::label;
use crate::stack::places::Places;
use rperf_model::label_keys::{JOB, LATENCY};
use rperf_model::{LabelSetId, LatencyClass, Profile, RequestSums, Requests};
use rustc_hash::{FxHashMap, FxHashSet};

/// Places that are told of a state, and holders of the GVL.
pub(super) const SITES: usize = 3;

/// Both classes that are compared: typical requests, and the tail.
pub(super) fn classes(requests: &Requests) -> [RequestSums; 2] {
    [LatencyClass::Typical, LatencyClass::Tail].map(|class| requests.class(class))
}

/// The keys of the labels by which requests and jobs were judged.
pub(crate) fn judged_keys(profile: &Profile) -> FxHashSet<&str> {
    profile.requests.iter().map(|it| &*it.key).collect()
}

/// Whether what has these labels was judged as a request: a job that a request runs is a part of that.
pub(crate) fn is_in_request(profile: &Profile, keys: &FxHashSet<&str>, set: LabelSetId) -> bool {
    let mut others = keys.iter().filter(|key| **key != JOB);
    others.any(|key| label(profile, set, key).is_some())
}

/// Texts of a profile: its labels and its places.
pub(super) struct Texts<'a> {
    pub(super) profile: &'a Profile,
    pub(super) places: Places<'a>,
    /// The values of `%request` that samples have, each with whether the request is of the tail.
    pub(super) request_labels: FxHashMap<&'a str, bool>,
}

impl<'a> Texts<'a> {
    /// The texts of `profile`.
    pub(super) fn of(profile: &'a Profile) -> Self {
        Self {
            profile,
            places: Places::of(profile),
            request_labels: slowest::labels(profile),
        }
    }

    /// The label under `key`.
    pub(super) fn label(&self, set: LabelSetId, key: &str) -> Option<&'a str> {
        label(self.profile, set, key)
    }

    /// The class of a sample of one of these requests.
    pub(super) fn class_of(
        &self,
        set: LabelSetId,
        requests: &Requests,
        keys: &FxHashSet<&str>,
    ) -> Option<LatencyClass> {
        let is_theirs = self.label(set, &requests.key) == Some(&*requests.name);
        if !is_theirs || (requests.key == JOB && is_in_request(self.profile, keys, set)) {
            return None;
        }
        let class = self.label(set, LATENCY)?;
        LatencyClass::ALL.into_iter().find(|it| it.name() == class)
    }
}
