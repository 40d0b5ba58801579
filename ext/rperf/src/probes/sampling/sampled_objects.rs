//! New objects in a session that samples them: some are drawn, each with its stack. On the threads of the
//! main Ractor, with the GVL.

use crate::ruby::frames::{RubyVm, take_ruby_stack};
use crate::ruby::object_hook::{NewObject, ObjectHook, OnDrawnObject};
use crate::ruby::threads::RubyThread;
use crate::running::sampling::{SamplingSession, catching, counting_session};
use crate::running::{label_set, roots};
use rperf_sampling::objects::{Countdown, ObjectSampler, SampledObject};
use rperf_vm::{Gvl, clock};

static HOOK: ObjectHook = ObjectHook::on_drawn::<Drawn>();

/// The bytes until the next sample. It doesn't end while nothing counts: then the hook, where it has to stay,
/// returns at once.
static COUNTDOWN: Countdown = Countdown::stopped();

struct Drawn;

impl OnDrawnObject for Drawn {
    const COUNTDOWN: &'static Countdown = &COUNTDOWN;

    fn drawn(gvl: &Gvl<'_>, object: Option<NewObject>) {
        COUNTDOWN.set(None);
        if let Some(session) = counting_session(gvl) {
            catching(session, || sample(gvl, session, object));
        }
    }
}

/// A sampler of objects for a new session.
pub fn sampler(max_overhead: u32) -> ObjectSampler {
    let now_ns = clock::monotonic_ns();
    ObjectSampler::new(now_ns, max_overhead, now_ns)
}

/// Time counts from here on.
pub fn add(gvl: &Gvl<'_>, session: &SamplingSession) {
    if let Some(sampler) = &session.sampled_objects
        && let Some(mut sampler) = sampler.borrow(gvl)
    {
        COUNTDOWN.set(Some(sampler.next_gap()));
        HOOK.add();
    }
}

/// Removes the hook, if it is there and can be removed.
pub fn remove() {
    COUNTDOWN.set(None);
    HOOK.remove();
}

fn sample(gvl: &Gvl<'_>, session: &SamplingSession, object: Option<NewObject>) {
    let Some(mut sampler) = session
        .sampled_objects
        .as_ref()
        .and_then(|it| it.borrow(gvl))
    else {
        return;
    };
    let Some(object) = object else {
        return COUNTDOWN.set(Some(sampler.next_gap()));
    };
    let began_ns = clock::monotonic_ns();
    let mut backtrace = session.backtrace(gvl);
    let stack = backtrace.as_mut();
    let stack = stack.map(|backtrace| take_ruby_stack(RubyVm::new(gvl), backtrace));
    let object = SampledObject {
        bytes: object.bytes,
        class: object.class,
        thread: session.ticks.holder_seq(),
        stack,
        labels: label_set::of_thread(gvl, RubyThread::current(gvl)),
    };
    let gap = sampler.add(object, began_ns, clock::monotonic_ns());
    COUNTDOWN.set(Some(gap));
    roots::keep_sampled_alive(&mut sampler);
}
