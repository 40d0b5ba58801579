//! Objects that were taken from a session, counted or sampled, on their way to a profile.

use rperf_model::Profile;
use rperf_sampling::objects::SampledObjects;
use rperf_vm::{AllocationSums, FrameWord, ResolvedFrame};
use std::sync::Arc;

/// Objects, still with the words of the VM.
pub enum TakenObjects {
    /// Each was counted.
    Counted(AllocationSums),
    /// They were sampled.
    Sampled(SampledObjects),
}

impl TakenObjects {
    /// All frames and classes.
    pub fn words(&self) -> &[FrameWord] {
        match self {
            TakenObjects::Counted(sums) => sums.words(),
            TakenObjects::Sampled(sums) => sums.words(),
        }
    }

    /// Adds columns for them to `profile`. `names` are those of the words, in their order.
    pub fn add_to(&self, profile: &mut Profile, names: &[Arc<ResolvedFrame>]) {
        match self {
            TakenObjects::Counted(sums) => sums.add_to(profile, names),
            TakenObjects::Sampled(sums) => sums.add_to(profile, names),
        }
    }
}
