//! The time of collections on its way to the sites of objects, in a session that shares it. With the GVL.

use crate::ruby::counters;
use crate::running::sampling::SamplingSession;
use rperf_sampling::objects::ObjectSampler;
use rperf_vm::Gvl;

/// Makes what is made once per process. Outside of hooks.
pub fn prepare() {
    counters::prepare_live_objects();
}

/// Tells the sampler of collections, if one has begun since it was told: what is sampled next isn't theirs. In the hook
/// on new objects.
#[inline]
pub fn tell_begun(session: &SamplingSession, sampler: &mut ObjectSampler) {
    if session.unshared_gc.has_begun() && sampler.shares_gc() {
        sampler.collected(session.unshared_gc.take());
    }
}

/// Shares all that collections have taken. Right after a look, if objects are followed; outside of hooks.
pub fn share(gvl: &Gvl<'_>, session: &SamplingSession, sampler: &mut ObjectSampler) {
    if sampler.shares_gc() {
        sampler.collected(session.unshared_gc.take());
        sampler.share_gc(counters::live_objects(gvl));
    }
}
