//! Tick capture, on the VM's side: the signal handler takes the stack of the thread
//! that has the GVL into a log, and events that come anyway make samples of what is in
//! it. The handler and the readers of the log are the same thread; [`AtWork`] keeps the
//! handler off while one of the others is at work.

use crate::vm::state::backtrace;
use crate::vm::state::backtrace::{MAX_DEPTH, Scratch};
use crate::vm::recording::capture;
use crate::vm::recording::capture::{TakenStack};
use crate::vm::recording::compiled_line::CompiledLines;
use crate::vm::recording::hidden_frames::{HiddenFrames, Leaf};
use crate::vm::state::thread_state::GvlPart;
use crate::vm::state::tick_guard;
use crate::vm::state::tick_guard::{AtWork};
use crate::vm::hooks::gc as gc_hook;
use crate::vm::state::native_thread;
use crate::vm::hooks::sampling_job;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::{LIVE, Live, Process};
use rb_sys::VALUE;
use rperf_engine::{CaptureCounters, FrameWord, Registers, TickLog, TickTimes, clock};
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};

/// What the handler writes.
pub struct TickCapture {
    captured: UnsafeCell<Captured>,
    /// The seq of the thread whose stacks are in the log.
    owner: AtomicU32,
    /// Stacks that weren't frames of the VM, and time spent in the handler in ns: since
    /// they were counted last.
    unreadable: AtomicU64,
    spent_ns: AtomicU64,
}

struct Captured {
    scratch: Scratch,
    log: TickLog,
    hidden: HiddenFrames,
    /// If lines are wanted.
    compiled: Option<CompiledLines>,
}

// SAFETY: `captured` is used by threads with the GVL only, and there either by the handler
// or under `AtWork`, which keeps the handler off, or in a collection, which does too.
unsafe impl Sync for TickCapture {}

impl TickCapture {
    /// `merges`: ticks in a row that find the same stack become one sample.
    pub fn new(with_lines: bool, merges: bool) -> TickCapture {
        TickCapture {
            captured: UnsafeCell::new(Captured {
                // Lines tell whether the stack is whole.
                scratch: Scratch::new(true),
                log: TickLog::new(MAX_DEPTH + 1, with_lines, merges),
                hidden: HiddenFrames::new(),
                compiled: with_lines.then(CompiledLines::new),
            }),
            owner: AtomicU32::new(0),
            unreadable: AtomicU64::new(0),
            spent_ns: AtomicU64::new(0),
        }
    }

    /// What the handler writes, for one who keeps it off.
    #[allow(clippy::mut_from_ref, reason = "exclusive by the guard")]
    #[inline]
    fn captured(&self, _guard: &AtWork) -> &mut Captured {
        // SAFETY: the guard keeps the handler off, and its owner has the GVL; no other
        // reference outlives a function of this file.
        unsafe { &mut *self.captured.get() }
    }

    /// The handler: takes the stack of the calling thread, which holds the GVL as `seq`,
    /// for the tick at `tick_ns`. Returns whether the sampling callback is needed.
    fn take(&self, seq: u32, tick_ns: u64, registers: &Registers) -> bool {
        let now_ns = clock::monotonic_ns();
        // SAFETY: the handler runs on the thread with the GVL and, as it has been
        // checked, nobody further up its stack is at work on this.
        let Captured {
            scratch,
            log,
            hidden,
            compiled,
        } = unsafe { &mut *self.captured.get() };
        if self.owner.load(Relaxed) != seq {
            log.clear();
            self.owner.store(seq, Relaxed);
        }
        let depth = scratch.take_current().unwrap_or(0);
        if depth == 0 || tick_ns <= log.last_tick() {
            return false;
        }
        if !backtrace::are_frames(&scratch.stack(depth).frames[..1]) {
            self.unreadable.fetch_add(1, Relaxed);
            return true;
        }
        let leaf = hidden.look(scratch, depth, seq);
        let line = compiled.as_mut().and_then(|it| it.line(registers));
        let stack = match leaf {
            Leaf::Told => {
                if let Some(compiled) = compiled {
                    let line = line.or_else(|| {
                        scratch
                            .lacks_line_of_leaf()
                            .then(|| compiled.line_of_call(registers))
                    });
                    if let Some(line) = line {
                        scratch.set_line_of_leaf(line);
                    }
                }
                scratch.stack(depth)
            }
            Leaf::Hidden(frame) => scratch.stack_with_leaf(frame, line.unwrap_or(0), depth),
            Leaf::Unknown(suspect) => {
                hidden.ask(suspect);
                return true;
            }
        };
        let shared = log.shared_with(stack);
        let new = stack.frames.len() - shared;
        if !backtrace::are_frames(&stack.frames[..new]) {
            self.unreadable.fetch_add(1, Relaxed);
            return true;
        }
        let times = TickTimes {
            tick_ns,
            now_ns,
            cpu_ns: clock::thread_cpu_ns(),
        };
        let is_in = log.push(stack, shared, times);
        let spent = clock::monotonic_ns().saturating_sub(now_ns);
        self.spent_ns.fetch_add(spent, Relaxed);
        // A program without any event, and with ever different stacks.
        !is_in || log.is_filling()
    }

    /// Learns the frame that the handler has missed in the stack of thread `seq`, the
    /// calling one, if there was one. Returns how many frames of the stack were there at
    /// the tick, and whether a frame was learned.
    pub fn learn(&self, seq: u32, guard: &AtWork) -> Option<(usize, bool)> {
        let Captured {
            scratch, hidden, ..
        } = self.captured(guard);
        if !hidden.has_suspect() {
            return None;
        }
        let depth = scratch.take_current()?;
        hidden.learn(scratch, depth, seq)
    }

    /// Lets go of the frames that were learned.
    pub fn forget_learned(&self, guard: &AtWork) {
        self.captured(guard).hidden.forget();
    }

    /// What was counted since the last time.
    fn take_counts(&self) -> (CaptureCounters, u64) {
        let counts = CaptureCounters {
            unreadable_stacks: self.unreadable.swap(0, Relaxed) + rperf_engine::take_unreadable(),
            ..CaptureCounters::default()
        };
        (counts, self.spent_ns.swap(0, Relaxed))
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let captured = self.captured(&AtWork::begin());
        let of_lines = captured.compiled.as_ref().map_or(0, CompiledLines::memory);
        captured.scratch.memory() + captured.log.memory() + captured.hidden.memory() + of_lines
    }
}

/// Takes the stack of the calling thread, which holds the GVL as thread `seq`. In the
/// signal handler, at any point of the program.
pub fn take_stack(seq: u32, tick_ns: u64, registers: Registers) {
    if native_thread::other_ractors() {
        // What no stack can be taken for at the tick is for the safepoint.
        sampling_job::trigger();
        return;
    }
    // SAFETY: a session is freed with the GVL, which this thread has, and only after
    // the handlers are gone.
    let live = unsafe { LIVE.load(Acquire).as_ref() };
    let Some(live) = live.filter(|live| !live.quiet.load(Acquire)) else {
        return;
    };
    let needs_callback = if live.ticks.is_collecting() {
        gc_hook::is_over()
    } else if tick_guard::may_take() {
        live.tick_capture.take(seq, tick_ns, &registers) || gc_hook::may_be_silent(tick_ns)
    } else {
        false
    };
    if needs_callback {
        sampling_job::trigger();
    }
}

/// Makes samples of what the log has, all of it from the calling thread, whose part this
/// is and whose fiber has had the labels that are noted there. Whatever ends a slice of
/// its running time, or changes its labels, comes after this.
#[inline]
pub fn drain(live: &Live, part: &mut GvlPart, guard: &AtWork) {
    if !live.tick_capture.captured(guard).log.is_empty() {
        drain_log(live, part, guard);
    }
}

#[cold]
fn drain_log(live: &Live, part: &mut GvlPart, guard: &AtWork) {
    let Captured { log, compiled, .. } = live.tick_capture.captured(guard);
    let accounting = part.accounting.as_mut();
    let labels = part.fiber_labels.as_ref();
    let owner = live.tick_capture.owner.load(Relaxed);
    let Some(accounting) = accounting.filter(|accounting| accounting.seq() == owner) else {
        // Events were missed: the time stays with the thread, and waits for its next tick.
        log.clear();
        return;
    };
    // SAFETY: the guard's owner has the GVL, and nothing below releases it.
    let Some(mut inner) = (unsafe { live.inner.try_borrow() }) else {
        return;
    };
    let began = clock::monotonic_ns();
    let session = &mut inner.session;
    let replayed = session.replay(log, accounting, &mut part.last_stack, labels);
    let ticks = replayed.ticks;
    capture::keep_alive(replayed.new_frames);
    let (mut counts, spent) = live.tick_capture.take_counts();
    counts.tick_stacks = ticks;
    session.count_capture(counts);
    if let Some(compiled) = compiled {
        compiled.update_map(began);
    }
    let now = clock::monotonic_ns();
    session.count_sampling(ticks, spent + now.saturating_sub(began));
    // Its end makes objects, which is for the sampling callback.
    if session.is_epoch_over(now) {
        sampling_job::trigger();
    }
}

/// [`drain`] for the calling thread, a Ruby thread of the main Ractor with the GVL.
pub fn drain_current(process: &Process, live: &Live, guard: &AtWork) {
    if live.tick_capture.captured(guard).log.is_empty() {
        return;
    }
    // SAFETY: a Ruby thread with the GVL.
    let thread = unsafe { rb_sys::rb_thread_current() };
    if let Some(state) = thread_hook::known_state(process, thread) {
        // SAFETY: with the GVL; the callers hold no other reference to the part.
        drain(live, unsafe { state.gvl_part() }, guard);
    }
}

/// Whether all frames of the calling thread's stack are of the form that the handler
/// expects: else this Ruby is one that it doesn't know. With the GVL, outside of hooks.
pub fn knows_frames() -> bool {
    let mut scratch = Scratch::new(false);
    let depth = scratch.take_current().unwrap_or(0);
    depth > 0 && backtrace::are_frames(scratch.stack(depth).frames)
}

struct RootType(rb_sys::rb_data_type_t);
// SAFETY: function pointers and constants, never written.
unsafe impl Sync for RootType {}

/// The VM's view of what the handler has written. It can't run write barriers, so unlike
/// the frame roots this object does without, and is marked in every collection.
static ROOT: RootType = RootType(rb_sys::rb_data_type_t {
    wrap_struct_name: c"rperf tick roots".as_ptr(),
    function: rb_sys::rb_data_type_struct__bindgen_ty_1 {
        dmark: Some(mark),
        dfree: None,
        dsize: None,
        dcompact: None,
        reserved: [ptr::null_mut(); 1],
    },
    parent: ptr::null(),
    data: ptr::null_mut(),
    flags: rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE,
});

/// Makes the object, which lives as long as the process. With the GVL.
pub fn new_root() -> VALUE {
    capture::new_permanent_object(&ROOT.0)
}

/// In GC, on any Ractor's thread.
unsafe extern "C" fn mark(_: *mut c_void) {
    // SAFETY: as in `capture::mark_frames`.
    let Some(live) = (unsafe { LIVE.load(Acquire).as_ref() }) else {
        return;
    };
    // A collection runs only where the holder of the main Ractor's GVL is at a safepoint
    // of the VM: no reader of the log is at work. But objects are also asked for what they
    // refer to (ObjectSpace.reachable_objects_from), when the handler may come.
    let captured = live.tick_capture.captured(&AtWork::begin());
    for frame in captured.log.frames() {
        mark_maybe(frame);
    }
    for object in captured.hidden.roots() {
        mark_maybe(object as FrameWord);
    }
}

/// Marks an object, and pins it; a word that is none, because a stack was misread, is
/// left alone.
fn mark_maybe(word: FrameWord) {
    // SAFETY: in a mark function; takes any word.
    unsafe { rb_sys::rb_gc_mark_maybe(word as VALUE) };
}
