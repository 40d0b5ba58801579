//! The sampling callback: the VM runs it at a safepoint after a tick, on the
//! thread that holds the GVL, of whichever Ractor gets there first.

use super::capture::{VmStack, Whose};
use super::leaf::StackAtTick;
use super::running_thread::{self, EventRecorder};
use super::thread_state::ThreadState;
use super::{Inner, Live, PROCESS, Process, epoch, guarded_in_main_ractor, labels, thread_hook};
use rperf_engine::{Accounting, SessionRecorder, clock};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Relaxed, Ordering::SeqCst};

/// Ended threads that are left until they are folded in together.
const EXITED_BATCH: usize = 32;

/// Registers the callback, once per process. With the GVL.
pub fn preregister() -> rb_sys::rb_postponed_job_handle_t {
    // SAFETY: the callback is valid for ever and takes no data.
    unsafe { rb_sys::rb_postponed_job_preregister(0, Some(on_safepoint), ptr::null_mut()) }
}

/// Asks for the callback. Async-signal-safe; from any native thread.
pub fn trigger() {
    if let Some(process) = PROCESS.get() {
        // SAFETY: the handle is valid; the call only sets atomics of the VM.
        unsafe { rb_sys::rb_postponed_job_trigger(process.job) };
    }
}

/// The callback runs, on the thread with the main Ractor's GVL.
static AT_WORK: AtomicBool = AtomicBool::new(false);

/// Whether the callback runs. For the signal handler on the same thread.
pub fn is_at_work() -> bool {
    AT_WORK.load(SeqCst)
}

unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    guarded_in_main_ractor(at_work);
}

fn at_work(process: &Process, live: &'static Live) {
    let _at_work = AtWork::begin();
    sample(process, live);
}

/// Makes the sample of a tick whose stack is there already, rather than at the next
/// safepoint. With the GVL, outside of hooks.
pub fn sample_what_is_caught() {
    guarded_in_main_ractor(|process, live| {
        if live.slot.is_filled() {
            at_work(process, live);
        }
    });
}

/// Sets the flag for as long as it lives; also if the callback panics.
struct AtWork {
    /// Another callback is further up the stack.
    nested: bool,
}

impl AtWork {
    fn begin() -> AtWork {
        let nested = AT_WORK.swap(true, SeqCst);
        AtWork { nested }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.store(self.nested, SeqCst);
    }
}

fn sample(process: &Process, live: &'static Live) {
    live.ticks.at_safepoint();
    let now = clock::monotonic_ns();
    // SAFETY: this is a Ruby thread with the GVL.
    let thread = unsafe { rb_sys::rb_thread_current() };
    let state = thread_hook::state_of(process, live, thread);
    // SAFETY: the callback holds the main Ractor's GVL, and `state` is this
    // thread's own.
    let part = unsafe { state.gvl_part() };
    // SAFETY: the callback runs on a Ruby thread that holds the GVL, nothing below
    // releases it, and callbacks don't run inside a borrow of the session.
    let entered = unsafe {
        running_thread::enter(live, state, part, |accounting| {
            accounting.begin_running(now);
        })
    };
    let Some((accounting, last_stack)) = entered else {
        return;
    };
    // SAFETY: this is the sampling callback.
    let at_tick = unsafe { live.slot.take() };
    let tick = at_tick.as_ref().map(StackAtTick::tick_ns);
    let tick = tick.unwrap_or_else(|| live.ticks.last_tick());
    let ready = state.ready_ns.load(Relaxed);
    // SAFETY: as above; the last stack is this thread's own.
    let mut recorder = unsafe { EventRecorder::for_tick(live, now, last_stack, at_tick.as_ref()) };
    accounting.sample(now, tick, ready, clock::thread_cpu_ns, &mut recorder);
    drop(at_tick);
    // SAFETY: as above.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    if live.exited_threads.load(Relaxed) >= EXITED_BATCH {
        fold_exited(live, &mut inner, now);
    }
    let is_epoch_over = inner.session.is_epoch_over(now);
    live.slot.count_for(&mut inner.session);
    inner
        .session
        .count_sampling(1, clock::monotonic_ns().saturating_sub(now));
    drop(inner);
    if is_epoch_over {
        epoch::end(live);
    }
}

/// A thread that is accounted, with what is needed to record at its stack.
pub struct AccountedThread<'a, 'r> {
    pub accounting: &'a mut Accounting,
    pub state: &'a ThreadState,
    pub is_current: bool,
    pub recorder: &'a mut SessionRecorder<'r, VmStack<'r>>,
}

/// Calls `act` for the threads that have an accounting and are alive, of which `which`
/// makes sure. With the session's cell borrowed.
pub fn for_each_thread(
    live: &Live,
    inner: &mut Inner,
    now: u64,
    which: impl Fn(&Accounting) -> bool,
    mut act: impl FnMut(AccountedThread<'_, '_>),
) {
    // SAFETY: a Ruby thread with the GVL.
    let current = unsafe { rb_sys::rb_thread_current() };
    let Inner {
        session,
        threads,
        scratch,
        ..
    } = inner;
    for state in threads.iter() {
        // SAFETY: the GVL is held and no other reference to the part exists.
        let part = unsafe { state.gvl_part() };
        let Some(accounting) = part.accounting.as_mut().filter(|it| which(it)) else {
            continue;
        };
        let is_current = state.thread == current;
        let labels = labels::of_thread(live, state.thread);
        let source = VmStack::new(scratch, running_thread::whose(state, is_current));
        let recorder = &mut session.recorder(now, &mut part.last_stack, labels, source);
        act(AccountedThread {
            accounting,
            state,
            is_current,
            recorder,
        });
    }
}

/// Takes in threads that have been announced, and accounts those that ended.
/// With the session's cell borrowed.
pub fn fold_exited(live: &Live, inner: &mut Inner, now: u64) {
    live.new_threads.take_into(&mut inner.threads);
    let exited = |state: &ThreadState| state.exited.load(Acquire);
    let folded = fold_ended(inner, now, exited);
    live.exited_threads.fetch_sub(folded, Relaxed);
}

/// Accounts the threads that have ended, and lets go of their states, which nobody
/// else may have. Returns how many there were. With the session's cell borrowed.
pub fn fold_ended(inner: &mut Inner, now: u64, has_ended: impl Fn(&ThreadState) -> bool) -> usize {
    let Inner {
        session,
        threads,
        scratch,
        ..
    } = inner;
    let before = threads.len();
    threads.retain(|state| {
        let ended = has_ended(state);
        if ended {
            finish(state, session, scratch, now);
        }
        !ended
    });
    before - threads.len()
}

/// Accounts a thread that has ended.
fn finish(
    state: &ThreadState,
    session: &mut rperf_engine::Session,
    scratch: &mut super::capture::Scratch,
    now: u64,
) {
    // SAFETY: the GVL is held (the session's cell is borrowed), and the thread
    // has ended, so nobody else looks at its state.
    let part = unsafe { state.gvl_part() };
    if let Some(accounting) = &mut part.accounting {
        let source = VmStack::new(scratch, Whose::Current(None));
        // Not known if its EXITED was missed.
        let cpu = state
            .exited
            .load(Acquire)
            .then(|| state.exit_cpu_ns.load(Relaxed));
        session.finish_thread(now, accounting, cpu, &mut part.last_stack, source);
    }
}
