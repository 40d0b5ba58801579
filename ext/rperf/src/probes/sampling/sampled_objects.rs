//! New objects in a session that samples them: some are drawn, each with its stack. On the threads of the
//! main Ractor, with the GVL.

use super::countdown::COUNTDOWN;
use super::{gc_cost, objects_in_use};
use crate::ruby::frames::{RubyVm, take_ruby_stack};
use crate::ruby::object_hook::{NewObject, ObjectHook, OnDrawnObject};
use crate::ruby::process::collections;
use crate::ruby::threads::RubyThread;
use crate::running::sampling::{SamplingSession, catching, counting_session};
use crate::running::{label_set, roots, session_sums};
use rperf_sampling::objects::{Countdown, Moment, SampledObject};
use rperf_vm::{Gvl, clock};

static HOOK: ObjectHook = ObjectHook::on_drawn::<Drawn>();

struct Drawn;

impl OnDrawnObject for Drawn {
    const COUNTDOWN: &'static Countdown = &COUNTDOWN;

    fn drawn(gvl: &Gvl<'_>, object: Option<NewObject>) {
        COUNTDOWN.set(None);
        if let Some(session) = counting_session(gvl) {
            catching(session, || sample(gvl, session, object));
        }
    }

    fn made_elsewhere() {
        session_sums::note_made_elsewhere();
    }
}

/// Time counts from here on.
pub fn add(gvl: &Gvl<'_>, session: &SamplingSession) {
    if let Some(sampler) = &session.sums.sampled_objects
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

fn moment() -> Moment {
    Moment {
        ns: clock::monotonic_ns(),
        collections: collections(),
    }
}

fn sample(gvl: &Gvl<'_>, session: &SamplingSession, object: Option<NewObject>) {
    let Some(mut sampler) = session
        .sums
        .sampled_objects
        .as_ref()
        .and_then(|it| it.borrow(gvl))
    else {
        return;
    };
    let Some(object) = object else {
        return COUNTDOWN.set(Some(sampler.next_gap()));
    };
    let began = moment();
    gc_cost::tell_begun(session, &mut sampler, began.collections);
    let mut backtrace = session.backtrace(gvl);
    let stack = backtrace.as_mut();
    let stack = stack.map(|backtrace| take_ruby_stack(RubyVm::new(gvl), backtrace));
    let object = SampledObject {
        object: object.word,
        bytes: object.bytes,
        class: object.class,
        thread: session.ticks.holder_seq(),
        stack,
        labels: label_set::of_thread(gvl, RubyThread::current(gvl)),
    };
    let now_ns = clock::monotonic_ns();
    let gap = sampler.add(object, began, now_ns);
    COUNTDOWN.set(Some(gap));
    roots::keep_sampled_alive(&mut sampler);
    objects_in_use::note_held(sampler.held_count(), now_ns);
}
