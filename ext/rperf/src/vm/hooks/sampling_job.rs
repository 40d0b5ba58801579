//! The sampling callback: the VM runs it at a safepoint after a tick, on the
//! thread that holds the GVL, of whichever Ractor gets there first.

use super::gc;
use crate::vm::recording::capture::{self, Whose};
use crate::vm::recording::{epoch, every_thread, running_thread, tick_samples};
use crate::vm::state::frames::RubyFrames;
use crate::vm::state::session::{self, GvlState, RunningSession, counting_session};
use crate::vm::state::threads::RubyThread;
use rperf_engine::threads::GvlPart;
use rperf_engine::{AtWork, CaptureCounters, Gvl, clock};
use std::ffi::c_void;
use std::sync::atomic::Ordering::Relaxed;

/// The callback.
pub unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    // SAFETY: on a thread that runs Ruby code.
    unsafe {
        session::in_main_ractor(|gvl| {
            if let Some(session) = counting_session(gvl)
                && sample(gvl, session)
            {
                epoch::end(gvl);
            }
        });
    }
}

/// Samples the calling thread. Returns whether the epoch is over.
fn sample(gvl: &Gvl<'_>, session: &RunningSession) -> bool {
    let guard = AtWork::begin(gvl);
    let now = clock::monotonic_ns();
    gc::listen(session, now);
    session.ticks.at_safepoint();
    let thread = RubyThread::current(gvl);
    let state = thread.state(&session.new_threads);
    let Some(mut part) = state.gvl_part(gvl) else {
        return false;
    };
    tick_samples::drain(gvl, session, &mut part, &guard);
    let begin = |accounting: &mut rperf_engine::Accounting| accounting.begin_running(now);
    if running_thread::enter(gvl, session, state, &mut part, begin).is_none() {
        return false;
    }
    let ready = state.ready_ns.load(Relaxed);
    let counters = sample_running(gvl, session, thread, &mut part, (now, ready), &guard);
    drop(part);
    every_thread::merge_ended_batch(gvl, session, now);
    let Some(mut state) = session.state(gvl) else {
        return false;
    };
    let engine = &mut state.engine;
    let is_epoch_over = engine.is_epoch_over(now);
    engine.count_capture(counters);
    let spent = clock::monotonic_ns().saturating_sub(now);
    engine.count_sampling(counters.safepoint_stacks, spent);
    if is_epoch_over {
        session.tick_capture.forget_learned(&guard);
    }
    is_epoch_over
}

/// Samples the calling thread, which has been `ready` to run before it ran; its part has an
/// accounting.
fn sample_running(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    thread: RubyThread<'_>,
    part: &mut GvlPart,
    (now, ready): (u64, u64),
    guard: &AtWork<'_>,
) -> CaptureCounters {
    let mut counters = CaptureCounters {
        safepoint_calls: 1,
        ..CaptureCounters::default()
    };
    let Some(accounting) = &mut part.accounting else {
        return counters;
    };
    let tick = session.ticks.last_tick();
    let frames = RubyFrames::new(gvl);
    let learned = session.tick_capture.learn(&frames, accounting.seq(), guard);
    counters.hidden_frames = u64::from(learned.is_some_and(|(_, is_new)| is_new));
    let whose = match learned {
        // The tick's stack, as far as it is there still.
        Some((frames, _)) => Whose::CurrentUpTo(thread, frames),
        None => Whose::Current(thread),
    };
    // Else what is due is of the time before the tick.
    let was_running = accounting.is_running();
    let dues = accounting.sample(now, tick, ready, clock::thread_cpu_ns);
    counters.safepoint_stacks = u64::from(was_running && !dues.is_empty());
    if !dues.is_empty()
        && let Some(mut state) = session.state(gvl)
    {
        let GvlState {
            engine, backtrace, ..
        } = &mut *state;
        let recorded = (accounting, &mut part.last_stack);
        capture::record(
            gvl,
            session,
            (engine, backtrace),
            (now, dues),
            recorded,
            whose,
        );
    }
    counters
}
