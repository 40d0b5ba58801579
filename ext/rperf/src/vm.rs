//! The bridge to the VM: sessions, hooks and the sampling callback. It turns the
//! VM's events into calls of the engine and keeps policy out.
//!
//! Which thread may touch what:
//! - [`Live`]'s cell: only a thread that holds the main Ractor's GVL.
//! - A [`thread_state::ThreadState`]: its GVL part likewise; READY and EXITED run
//!   without the GVL and touch its atomics only.
//! - Hooks make no Ruby object, raise nothing, and take no lock that can wait.

mod alive;
mod api;
mod backtrace;
mod capture;
mod compiled_line;
mod epoch;
mod fiber_hook;
mod fork;
mod gc_hook;
mod gvl_cell;
mod hidden_frames;
mod labels;
mod measure;
mod native_thread;
mod others_ready;
mod ractor;
mod resolve;
mod running_thread;
mod sampling_job;
mod section;
mod snapshot;
mod switch_hook;
mod thread_hook;
mod thread_state;
mod tick_capture;
mod tick_guard;

use crate::vm::gvl_cell::GvlCell;
use crate::vm::thread_state::{NewThreads, ThreadState};
use magnus::{Error, RModule, Ruby};
use rperf_engine::{Mode, Session, Ticks};
use rperf_session::settings::Settings;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering::Acquire, Ordering::SeqCst};

/// What is made once per process and kept for ever.
struct Process {
    /// Handle of the sampling callback.
    job: rb_sys::rb_postponed_job_handle_t,
    /// Key of a thread's [`ThreadState`]; the VM has only 8 such keys.
    thread_key: rb_sys::rb_internal_thread_specific_key_t,
    /// Key whose value is non-null in the main Ractor only.
    main_ractor_key: rb_sys::rb_ractor_local_key_t,
    /// The object that marks the captured frames.
    frame_roots: rb_sys::VALUE,
    labels: labels::Names,
}

// SAFETY: all fields are plain handles; the object is pinned and never freed.
unsafe impl Send for Process {}
// SAFETY: as for Send; nothing is written after creation.
unsafe impl Sync for Process {}

static PROCESS: OnceLock<Process> = OnceLock::new();

/// The session that is running; null if none is. Set and cleared under the main
/// Ractor's GVL, and in a forked child. What it points to is freed only after
/// all hooks have been removed.
static LIVE: AtomicPtr<Live> = AtomicPtr::new(ptr::null_mut());

/// A running session with all that hooks need.
struct Live {
    /// No other session of this process has it.
    number: u64,
    /// The part that needs the GVL.
    inner: GvlCell<Inner>,
    mode: Mode,
    /// The same ticks as the session's, for hooks that need nothing else.
    ticks: Arc<Ticks>,
    /// The stacks that were taken at ticks.
    tick_capture: tick_capture::TickCapture,
    /// Threads seen for the first time, from any thread.
    new_threads: NewThreads,
    /// When threads became ready that were woken by others.
    others_ready: others_ready::OthersReady,
    /// Threads that have ended and can be folded in.
    exited_threads: AtomicUsize,
    sections: section::Sections,
    /// With which it was started.
    settings: Arc<Settings>,
    /// Some fiber has had labels.
    uses_labels: AtomicBool,
    /// Native threads may run several Ruby threads (RUBY_MN_THREADS=1): then the
    /// CPU clock of a thread that is not running can't be told.
    shares_native_threads: bool,
    /// After a panic, and while stopping: callbacks do nothing any more.
    quiet: AtomicBool,
}

struct Inner {
    session: Session,
    #[allow(clippy::vec_box, reason = "the slots of the VM hold their addresses")]
    threads: Vec<Box<ThreadState>>,
    scratch: backtrace::Scratch,
    gc: gc_hook::GcProgress,
}

impl Inner {
    /// Bytes held for the threads that have been taken in.
    fn threads_memory(&self) -> usize {
        let slots = self.threads.capacity() * size_of::<Box<ThreadState>>();
        // SAFETY: with the GVL or in a collection, as for all of `Inner`; the
        // reference ends with the closure.
        let memory = |state: &ThreadState| unsafe { state.gvl_part() }.last_stack.memory();
        let states = self.threads.iter();
        slots
            + states
                .map(|state| size_of::<ThreadState>() + memory(state))
                .sum::<usize>()
    }
}

/// Defines the methods of `Rperf::Native`. On the main thread, once.
pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let frame_roots = capture::new_frame_roots();
    alive::init(ruby);
    let labels = labels::init(ruby, native)?;
    tick_capture::new_root();
    PROCESS.get_or_init(|| Process {
        job: sampling_job::preregister(),
        thread_key: thread_hook::create_key(),
        main_ractor_key: native_thread::mark_main_ractor(),
        frame_roots,
        labels,
    });
    fork::watch();
    measure::init(native)?;
    api::init(native)
}

/// Ends the session that nobody has stopped, as the VM ends: the worker must not
/// outlive it. All else is left to the process' end, as hooks on other threads may
/// be at work on it.
fn end_with_vm() {
    let live = LIVE.swap(ptr::null_mut(), SeqCst);
    // SAFETY: the swap makes this the one who ends the session, and nobody frees it.
    let Some(live) = (unsafe { live.as_ref() }) else {
        return;
    };
    live.quiet.store(true, SeqCst);
    // SAFETY: the VM runs no Ruby code any more, so nobody else borrows it.
    let inner = unsafe { live.inner.try_borrow() };
    // A panic must not unwind into the VM; it has printed its message.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if let Some(mut inner) = inner {
            inner.session.abandon();
        }
    }));
}

/// The running session. With the GVL, on the main Ractor; valid until other threads
/// may run.
fn running() -> Option<&'static Live> {
    // SAFETY: cleared before it is freed, both by `snapshot::stop` with the GVL,
    // which the callers of this hold as well.
    unsafe { LIVE.load(Acquire).as_ref() }
}

/// The running session, if there is one, time counts, and it isn't quiet. For
/// callbacks in the main Ractor, and for thread hooks.
fn live() -> Option<&'static Live> {
    // SAFETY: a session is freed under the main Ractor's GVL, which callbacks of
    // that Ractor hold, and after the thread hook's removal, which waits for
    // hooks on any thread.
    unsafe { LIVE.load(Acquire).as_ref() }
        .filter(|live| live.sections.are_open() && !live.quiet.load(Acquire))
}

/// [`guarded`] for callbacks that run in any Ractor: in others than the main one
/// nothing is touched, as nothing keeps a session alive there.
fn guarded_in_main_ractor(callback: impl FnOnce(&'static Process, &'static Live)) {
    if PROCESS.get().is_some_and(native_thread::in_main_ractor) {
        guarded(callback);
    }
}

/// Runs a callback of the VM. A panic must not unwind into it: sampling ends for
/// this session, the program runs on, and one line says so.
fn guarded(callback: impl FnOnce(&'static Process, &'static Live)) {
    let (Some(process), Some(live)) = (PROCESS.get(), live()) else {
        return;
    };
    if catch_unwind(AssertUnwindSafe(|| callback(process, live))).is_err()
        && !live.quiet.swap(true, SeqCst)
    {
        // Nobody tells the timer any more who runs.
        live.ticks.pause();
        eprintln!("rperf: internal error, sampling has stopped; the program runs on");
    }
}
