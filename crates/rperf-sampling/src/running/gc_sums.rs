//! What the collections of a session took. In hooks: nothing is allocated.

use super::collections::CollectionCounts;
use crate::objects::UnsharedGc;
use rperf_model::Mode;
use rperf_vm::GcWork;

/// The sums of collections: each piece of their work is added to both.
#[derive(Debug, Default)]
pub struct GcSums {
    /// What they took, by cause.
    pub by_cause: CollectionCounts,
    /// Their time until it is shared among the sites of objects, if it is.
    pub unshared: UnsharedGc,
}

impl GcSums {
    /// Adds a piece of work, in a session of this mode.
    #[inline]
    pub(super) fn add(&self, work: &GcWork, mode: Mode) {
        self.by_cause.add(work);
        self.unshared.add(work, mode);
    }
}
