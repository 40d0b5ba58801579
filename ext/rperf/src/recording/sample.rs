//! Samples of what an event has made due: in hooks and in the sampling callback, and for every
//! thread at the end of a section or a session. With the GVL; no collection runs in between.

use crate::ruby::frames::{RubyVm, take_complete};
use crate::ruby::threads::RubyThread;
use crate::running::{label_set, roots};
use rperf_sampling::{AtWork, FollowUp, RunningSession, Wanted, WantedStack};
use rperf_vm::Gvl;

/// Does what is left to do.
#[inline]
pub fn complete(gvl: &Gvl<'_>, session: &RunningSession, follow_up: FollowUp<'_>) {
    match follow_up {
        FollowUp::None => {}
        FollowUp::Record(wanted) => record(gvl, session, wanted),
        FollowUp::KeepAlive(new_frames) => {
            roots::keep_alive(&new_frames);
            drop(new_frames);
            correct_labels(gvl, session);
        }
    }
}

/// Notes the labels of the calling thread's present fiber, if those of any have been noted: the
/// VM says nothing of a switch in which an exception comes.
fn correct_labels(gvl: &Gvl<'_>, session: &RunningSession) {
    let thread = RubyThread::current(gvl);
    if let Some(state) = thread.known_state(gvl).filter(|it| it.knows_fiber()) {
        session.note_labels(gvl, state, label_set::noted(gvl, thread));
    }
}

/// Records what is due.
#[cold]
pub fn record(gvl: &Gvl<'_>, session: &RunningSession, mut wanted: Wanted<'_>) {
    let Some(mut backtrace) = session.backtrace(gvl) else {
        return;
    };
    // SAFETY: the engine wants samples of threads only that are alive.
    let thread = unsafe { RubyThread::from_vm(wanted.thread) };
    let vm = RubyVm::new(gvl);
    let is_known = session.knows_stack(gvl, &mut wanted, || vm.digest_of(thread));
    let stack = match wanted.stack {
        _ if is_known => None,
        WantedStack::None => None,
        WantedStack::Current(frames) => {
            let depth = take_complete(vm, &mut backtrace);
            Some(backtrace.stack_up_to(frames, depth))
        }
        WantedStack::Other => {
            let (frames, lines) = backtrace.room();
            let depth = thread.backtrace(vm, frames, lines);
            Some(backtrace.stack(depth))
        }
    };
    let labels = label_set::of_thread(gvl, thread);
    roots::keep_alive(&session.record(gvl, wanted, stack, labels));
}

/// Makes samples of the stacks that ticks have taken of the calling thread.
pub fn drain_ticks(gvl: &Gvl<'_>, session: &RunningSession, guard: &AtWork<'_>) {
    if let Some(state) = RubyThread::current(gvl).known_state(gvl) {
        complete(gvl, session, session.drain_ticks(gvl, state, guard));
    }
}
