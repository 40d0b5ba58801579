//! Objects that were taken from a session, counted or sampled, on their way to a profile.

use rperf_model::numbers::grouped;
use rperf_model::{Note, Profile};
use rperf_sampling::objects::SampledObjects;
use rperf_vm::{AllocationSums, FrameWord, ResolvedFrame};
use std::sync::Arc;

/// Objects, still with the words of the VM.
pub enum TakenObjects {
    /// Each was counted.
    Counted(AllocationSums),
    /// Sampled objects, and how many more other Ractors have made, as far as the VM tells.
    Sampled(SampledObjects, u64),
}

impl TakenObjects {
    /// A line on those that other Ractors have made.
    pub fn note_on_others(&self) -> Note {
        let line = "objects that other Ractors made are not counted";
        match self {
            // Versions of Ruby that tell none have no number.
            TakenObjects::Sampled(_, count @ 1..) => format!("{line}: {}", grouped(*count)).into(),
            _ => line.into(),
        }
    }

    /// All frames and classes.
    pub fn words(&self) -> &[FrameWord] {
        match self {
            TakenObjects::Counted(sums) => sums.words(),
            TakenObjects::Sampled(sums, _) => sums.words(),
        }
    }

    /// Adds columns for them to `profile`. `names` are those of the words, in their order.
    pub fn add_to(&self, profile: &mut Profile, names: &[Arc<ResolvedFrame>]) {
        match self {
            TakenObjects::Counted(sums) => sums.add_to(profile, names),
            TakenObjects::Sampled(sums, _) => sums.add_to(profile, names),
        }
    }
}
