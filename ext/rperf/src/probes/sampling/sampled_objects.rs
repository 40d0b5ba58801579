//! New objects in a session that samples them: some are drawn, each with its stack. The hook is there
//! for some of the objects only, as the VM takes most of what it costs: it comes and goes at events
//! that come anyway. On the threads of the main Ractor, with the GVL.

use crate::ruby::event_hook::can_remove_internal;
use crate::ruby::frames::{RubyVm, take_ruby_stack};
use crate::ruby::made_objects;
use crate::ruby::object_hook::{NewObject, ObjectHook, OnDrawnObject};
use crate::ruby::threads::RubyThread;
use crate::ruby::version::{are_frames_late, disable_collections};
use crate::running::sampling::{SamplingSession, catching, counting_session};
use crate::running::{label_set, roots};
use rperf_sampling::objects::{Countdown, ObjectSampler, SampledObject, Switch};
use rperf_vm::{Gvl, clock};

static HOOK: ObjectHook = ObjectHook::on_drawn::<Drawn>();

/// The bytes until the next sample. It doesn't end while objects aren't told: then the hook, where it
/// has to stay, returns at once.
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
    made_objects::prepare();
    let now_ns = clock::monotonic_ns();
    let made = made_objects::count().unwrap_or(0);
    ObjectSampler::new(now_ns, max_overhead, made, now_ns)
}

/// Time counts from here on.
pub fn add(gvl: &Gvl<'_>, session: &SamplingSession) {
    if let Some(sampler) = &session.sampled_objects
        && let Some(mut sampler) = sampler.borrow(gvl)
    {
        let gap = sampler.next_gap();
        COUNTDOWN.set(gap);
        if gap.is_some() || !can_come_and_go() {
            HOOK.add();
        }
    }
}

/// Removes the hook, if it is there and can be removed.
pub fn remove() {
    COUNTDOWN.set(None);
    HOOK.remove();
}

/// A piece of a collection has ended on the calling thread. In that hook.
pub fn collected(gvl: &Gvl<'_>) {
    if let Some(session) = counting_session(gvl) {
        event(gvl, session);
    }
}

/// The calling thread has got the GVL. In that hook, where the VM's scheduler has its lock: nothing can
/// be done there that waits for other Ractors.
pub fn resumed(gvl: &Gvl<'_>) {
    if let Some(session) = counting_session(gvl).filter(|_| can_come_and_go()) {
        event(gvl, session);
    }
}

#[inline]
fn event(gvl: &Gvl<'_>, session: &SamplingSession) {
    let Some(sampler) = &session.sampled_objects else {
        return;
    };
    if let Some(mut sampler) = sampler.borrow(gvl)
        && let Some(switch) = made_objects::count().and_then(|made| sampler.event(made))
    {
        turn(&mut sampler, switch);
    }
}

#[cold]
fn turn(sampler: &mut ObjectSampler, switch: Switch) {
    COUNTDOWN.set(sampler.next_gap());
    match switch {
        // Where it stays, it is there already, but if other Ractors have come in the meantime.
        Switch::On => HOOK.add_in_hook(),
        Switch::Off if can_come_and_go() => HOOK.remove(),
        Switch::Off => {}
    }
}

/// Whether the hook can be added and removed while the program runs. Where ZJIT of 4.1 is on, each
/// time could cost compiled code.
#[inline]
fn can_come_and_go() -> bool {
    can_remove_internal() && disable_collections().is_some() && !are_frames_late()
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
        return COUNTDOWN.set(Some(sampler.pass()));
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
