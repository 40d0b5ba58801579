//! The stacks taken at ticks: the signal handler takes that of the thread with the GVL into a
//! log, and events that come anyway make samples of what is in it. The handler and the readers
//! of the log are the same thread; [`AtWork`] keeps the handler off while one of the others is
//! at work. Called in the handler, and with the GVL.

use super::at_work::{AtWork, HandlerOff};
use super::compiled_line::CompiledLines;
use super::hidden_frames::{HiddenFrames, Leaf};
use super::log::{TickLog, TickTimes};
use super::{Registers, signal};
use crate::counters::CaptureCounters;
use rperf_vm::{
    Backtrace, FrameLayout, FrameWord, GvlCell, GvlRef, MAX_DEPTH, Stack, VmFrames, clock,
};
use rperf_vm::{Waiters, Waits};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// What the handler writes.
#[derive(Debug)]
pub struct TickCapture {
    captured: GvlCell<Captured>,
    /// Who waits for the GVL, where that is measured.
    waiters: Option<Arc<Waiters>>,
    /// The log isn't empty. Apart from the rest, as the end of each slice asks for it.
    has_ticks: AtomicBool,
    /// The thread whose stacks are in the log.
    owner: AtomicU32,
    /// Stacks that weren't frames of the VM, and time spent in the handler in ns: since
    /// they were counted last.
    unreadable: AtomicU64,
    spent_ns: AtomicU64,
    /// The session is over: the handler takes no stacks any more.
    is_over: AtomicBool,
}

#[derive(Debug)]
struct Captured {
    backtrace: Backtrace,
    log: TickLog,
    hidden: HiddenFrames,
    /// If lines are wanted, or compiled frames are of a kind that must be looked at.
    compiled: Option<CompiledLines>,
}

/// What became of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Drained {
    /// How the stacks were taken, since it was asked last.
    pub counters: CaptureCounters,
    /// Time spent on them, by the handler too, in ns.
    pub spent_ns: u64,
    /// When the log was empty.
    pub now_ns: u64,
}

impl TickCapture {
    /// `merges`: ticks in a row that find the same stack become one sample. `layout`: where the VM
    /// has its data, if that is known. `waiters`: who waits for the GVL, where that is measured. With
    /// the GVL, outside of hooks.
    pub fn new(
        vm: &impl VmFrames,
        with_lines: bool,
        merges: bool,
        layout: Option<FrameLayout>,
        waiters: Option<Arc<Waiters>>,
    ) -> TickCapture {
        TickCapture {
            waiters,
            captured: GvlCell::new(Captured {
                // Lines tell whether the stack is whole.
                backtrace: Backtrace::new(true),
                log: TickLog::new(MAX_DEPTH + 1, with_lines, merges),
                hidden: HiddenFrames::new(vm),
                compiled: (with_lines || layout.is_some_and(|it| it.late.is_some()))
                    .then(|| CompiledLines::new(layout)),
            }),
            has_ticks: AtomicBool::new(false),
            owner: AtomicU32::new(0),
            unreadable: AtomicU64::new(0),
            spent_ns: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// No stacks are taken any more.
    pub fn end(&self) {
        self.is_over.store(true, Relaxed);
    }

    /// Whether no stacks are taken any more. Async-signal-safe.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    /// What the handler writes, for one who keeps it off.
    #[inline]
    fn captured<'a>(&'a self, guard: &'a AtWork<'_>) -> Option<GvlRef<'a, Captured>> {
        self.captured.borrow(guard.gvl())
    }

    /// The handler: takes the stack of the calling thread, which holds the GVL as `seq`,
    /// for the tick at `tick_ns`. Returns whether the sampling callback is needed. If reading
    /// the stack faults, it doesn't return.
    ///
    /// # Safety
    /// On the thread with the GVL, where [`may_take_stack`](super::at_work::may_take_stack)
    /// allows it: nobody further up the stack is at work on this.
    pub unsafe fn take(
        &self,
        vm: &impl VmFrames,
        seq: u32,
        tick_ns: u64,
        registers: &Registers,
    ) -> bool {
        let now_ns = clock::monotonic_ns();
        // SAFETY: by this function's contract.
        let captured = unsafe { &mut *self.captured.as_ptr() };
        if self.owner.load(Relaxed) != seq {
            captured.log.clear();
            self.owner.store(seq, Relaxed);
        }
        let depth = captured.backtrace.take(vm);
        if depth == 0 || tick_ns <= captured.log.last_tick() {
            return false;
        }
        let Some((stack, log)) = captured.stack(vm, seq, depth, registers, &self.unreadable) else {
            return true;
        };
        let shared = log.shared_with(stack);
        let new = stack.frames.len() - shared;
        // SAFETY: from the VM; the handler is ready for faults.
        if !unsafe { vm.are_frames(&stack.frames[..new]) } {
            self.unreadable.fetch_add(1, Relaxed);
            return true;
        }
        let times = TickTimes {
            tick_ns,
            now_ns,
            cpu_ns: clock::thread_cpu_ns(),
            waits: self.waits(tick_ns),
        };
        let is_in = log.push(stack, shared, times, vm.fiber());
        self.has_ticks.store(true, Relaxed);
        let spent = clock::monotonic_ns().saturating_sub(now_ns);
        self.spent_ns.fetch_add(spent, Relaxed);
        // A program without any event, and with ever different stacks.
        !is_in || log.is_filling()
    }

    fn waits(&self, tick_ns: u64) -> Option<Waits> {
        self.waiters.as_ref()?.up_to_in_handler(tick_ns)
    }

    /// Whether there is nothing to make samples of.
    #[inline]
    pub fn is_empty(&self, _: &AtWork<'_>) -> bool {
        !self.has_ticks.load(Relaxed)
    }

    /// Empties the log. If its stacks are of `thread`, `replay` gets them first, and returns of
    /// how many ticks they are.
    pub fn drain(
        &self,
        guard: &AtWork<'_>,
        thread: Option<u32>,
        replay: impl FnOnce(&mut TickLog) -> u64,
    ) -> Option<Drained> {
        let began = clock::monotonic_ns();
        let captured = &mut *self.captured(guard)?;
        self.has_ticks.store(false, Relaxed);
        if thread != Some(self.owner.load(Relaxed)) {
            // Events were missed: the time stays with the thread, and waits for its next tick.
            captured.log.clear();
            return None;
        }
        let counters = CaptureCounters {
            tick_stacks: replay(&mut captured.log),
            unreadable_stacks: self.unreadable.swap(0, Relaxed) + signal::take_unreadable(),
            ..CaptureCounters::default()
        };
        captured.log.clear();
        if let Some(compiled) = &mut captured.compiled {
            compiled.update_map(began);
        }
        let now_ns = clock::monotonic_ns();
        Some(Drained {
            counters,
            spent_ns: self.spent_ns.swap(0, Relaxed) + now_ns.saturating_sub(began),
            now_ns,
        })
    }

    /// At a safepoint: learns the frame that the handler has missed in the stack of thread
    /// `seq`, the calling one, if there was one. Returns how many frames of the stack were
    /// there at the tick, and whether a frame was learned.
    pub fn learn(&self, vm: &impl VmFrames, seq: u32, guard: &AtWork<'_>) -> Option<(usize, bool)> {
        let captured = &mut *self.captured(guard)?;
        if !captured.hidden.has_suspect() {
            return None;
        }
        let depth = captured.backtrace.take(vm);
        captured.hidden.learn(vm, &captured.backtrace, depth, seq)
    }

    /// Lets go of the frames that were learned.
    pub fn forget_learned(&self, guard: &AtWork<'_>) {
        if let Some(mut captured) = self.captured(guard) {
            captured.hidden.forget();
        }
    }

    /// Hands out all words that may be objects, for the garbage collector. Some come several
    /// times, and some are no objects, because a stack was misread.
    ///
    /// # Safety
    /// The conditions are those of [`GvlCell::peek`]. The handler may come: it is kept off. One
    /// that is at work on another thread is waited for.
    pub unsafe fn each_root(&self, mut mark: impl FnMut(FrameWord)) {
        let _guard = HandlerOff::begin();
        signal::wait_for_reader();
        // SAFETY: by this function's contract, and the guard keeps the handler off.
        let captured = unsafe { self.captured.peek() };
        captured.log.frames().for_each(&mut mark);
        captured.hidden.roots().for_each(mark);
    }

    /// Bytes held.
    ///
    /// # Safety
    /// The conditions are those of [`TickCapture::each_root`].
    pub unsafe fn memory(&self) -> usize {
        let _guard = HandlerOff::begin();
        // SAFETY: by this function's contract, and the guard keeps the handler off.
        let captured = unsafe { self.captured.peek() };
        let of_lines = captured.compiled.as_ref().map_or(0, CompiledLines::memory);
        captured.backtrace.memory() + captured.log.memory() + captured.hidden.memory() + of_lines
    }
}

impl Captured {
    /// The stack of `depth` frames that was just taken, completed, and the log; `None` if it
    /// can't be read, or must be learned from at a safepoint.
    fn stack(
        &mut self,
        vm: &impl VmFrames,
        seq: u32,
        depth: usize,
        registers: &Registers,
        unreadable: &AtomicU64,
    ) -> Option<(Stack<'_>, &mut TickLog)> {
        let Captured {
            backtrace,
            log,
            hidden,
            compiled,
        } = self;
        // SAFETY: from the VM; the handler is ready for faults.
        if !unsafe { vm.are_frames(&backtrace.stack(depth).frames[..1]) } {
            unreadable.fetch_add(1, Relaxed);
            return None;
        }
        if compiled
            .as_ref()
            .is_some_and(|it| it.is_beginning(vm, registers))
        {
            return None;
        }
        let leaf = hidden.look(vm, backtrace, depth, seq);
        let mut line = compiled.as_mut().and_then(|it| it.line(vm, registers));
        let stack = match leaf {
            Leaf::Reported => {
                if let (None, Some(compiled)) = (line, compiled) {
                    let (leaf, told) = backtrace.leaf();
                    let is_in_doubt = told == 0 || !compiled.is_told(vm);
                    // SAFETY: it is on the stack: it was just taken.
                    let is_compiled = is_in_doubt && !unsafe { vm.is_c_method(leaf) };
                    line = is_compiled.then(|| compiled.line_of_call(vm, registers));
                }
                if let Some(line) = line {
                    backtrace.set_line_of_leaf(line);
                }
                backtrace.stack(depth)
            }
            Leaf::Hidden(frame) => backtrace.stack_with_leaf(frame, line.unwrap_or(0), depth),
            Leaf::Unknown(suspect) => {
                hidden.ask(suspect);
                return None;
            }
        };
        Some((stack, log))
    }
}
