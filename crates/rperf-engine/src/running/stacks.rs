//! Samples at the stack that a thread has now.

use super::{GvlState, RunningSession};
use crate::accounting::{Accounting, Dues};
use crate::backtrace::Backtrace;
use crate::call_tree::{LastStack, Stack};
use crate::clock;
use crate::recording::Position;
use crate::session::Session;
use crate::threads::ThreadState;
use crate::vm::Vm;

/// Whose backtrace to take.
#[derive(Debug, Clone, Copy)]
pub(super) enum Whose {
    /// The calling thread's.
    Current,
    /// So many frames of the calling thread's, from the root.
    CurrentUpTo(usize),
    /// Another thread's.
    Other,
}

/// An accounting, and the stack of its thread at the last capture.
pub(super) type Recorded<'a> = (&'a mut Accounting, &'a mut LastStack);

impl Backtrace {
    /// Takes the calling thread's backtrace, with the line of its leaf: at a safepoint or in a
    /// hook.
    pub fn take_complete(&mut self, vm: &impl Vm) -> Stack<'_> {
        let depth = self.take(vm);
        if depth > 0 {
            self.complete_line_of_leaf(vm);
        }
        self.stack(depth)
    }
}

/// Records the `dues` of `thread` at its stack, with the labels of its present fiber.
pub(super) fn record(
    vm: &impl Vm,
    session: &RunningSession,
    (engine, backtrace): (&mut Session, &mut Backtrace),
    (thread, whose): (&ThreadState, Whose),
    (now, dues): (u64, Dues),
    (accounting, last): Recorded<'_>,
) {
    let stack = dues.needs_stack().then(|| match whose {
        Whose::Current => backtrace.take_complete(vm),
        Whose::CurrentUpTo(frames) => {
            let depth = backtrace.take_complete(vm).frames.len();
            backtrace.stack_up_to(frames, depth)
        }
        Whose::Other => {
            let read = |frames: &mut [_], lines: &mut [_]| // SAFETY: the callers only pass threads that are alive.
                unsafe { vm.backtrace_of(thread.thread, frames, lines) };
            let depth = backtrace.take_by(read);
            backtrace.stack(depth)
        }
    });
    let position = Position {
        stack,
        last,
        labels: session.labels_of(vm, thread),
    };
    let new_frames = engine.record(now, accounting, dues, position);
    // SAFETY: they are of the stack that was just taken.
    unsafe { vm.keep_alive(new_frames) };
}

impl GvlState {
    /// What recording needs.
    pub(super) fn tables(&mut self) -> (&mut Session, &mut Backtrace) {
        (&mut self.engine, &mut self.backtrace)
    }
}

impl RunningSession {
    /// Records at the stack of `thread`, the calling one, what an event at `now` has made due:
    /// most make nothing due, and don't come here.
    #[cold]
    pub(super) fn record(
        &self,
        vm: &impl Vm,
        thread: &ThreadState,
        due: (u64, Dues),
        recorded: Recorded<'_>,
    ) {
        if let Some(mut state) = self.state(vm.gvl()) {
            let started = clock::monotonic_ns();
            let (engine, backtrace) = state.tables();
            let whose = (thread, Whose::Current);
            record(vm, self, (engine, backtrace), whose, due, recorded);
            engine.count_sampling(0, clock::monotonic_ns().saturating_sub(started));
        }
    }
}
