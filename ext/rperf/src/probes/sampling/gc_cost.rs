//! The time of collections on its way to the sites of objects, in a session that shares it. With the GVL.

use crate::ruby::gc_hook::is_marking;
use crate::ruby::version::ractors_have_heaps;
use crate::ruby::{counters, gc_cause};
use crate::running::sampling::SamplingSession;
use rperf_sampling::objects::{GcTimes, ObjectSampler};
use rperf_sampling::other_ractors;
use rperf_vm::Gvl;

/// Makes what is made once per process. Returns whether this VM tells of its collections what is needed to share their
/// time. With the GVL, outside of hooks.
pub fn prepare() -> bool {
    gc_cause::prepare();
    counters::prepare_live_objects() && gc_cause::is_known()
}

/// Tells the sampler of collections, if one has begun since it was told: what is sampled next isn't theirs.
/// So many have begun in all: the time of those between sections isn't told, nor, by some VMs, that of other
/// Ractors', but they have taken what was sampled before. In the hook on new objects.
#[inline]
pub fn tell_begun(session: &SamplingSession, sampler: &mut ObjectSampler, collections: u64) {
    if sampler.has_collected(collections) || session.gc.unshared.has_begun() && sampler.shares_gc()
    {
        sampler.collected(GcTimes {
            has_begun: true,
            ..session.gc.unshared.take()
        });
    }
}

/// Shares all that collections have taken, if it is shared at all, as [`share`].
pub fn share_all(gvl: &Gvl<'_>, session: &SamplingSession, has_looked: bool) {
    let sampler = session.sums.sampled_objects.as_ref();
    if let Some(mut sampler) = sampler.and_then(|it| it.borrow(gvl)) {
        share(gvl, session, &mut sampler, has_looked);
    }
}

/// Shares all that collections have taken, as it has to be in a profile. After a look if objects are followed;
/// `has_looked`: there was memory for it. Outside of hooks.
pub fn share(
    gvl: &Gvl<'_>,
    session: &SamplingSession,
    sampler: &mut ObjectSampler,
    has_looked: bool,
) {
    if sampler.shares_gc() {
        sampler.collected(session.gc.unshared.take());
        // Where Ractors have heaps of their own, what was marked may be in any of them.
        let is_one_heap = !(ractors_have_heaps() && other_ractors());
        let is_known = has_looked && is_one_heap;
        let live = is_known.then(|| counters::live_objects(gvl, is_marking()));
        sampler.share_gc(live.flatten());
    }
}
