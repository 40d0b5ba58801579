//! The VM as the engine asks it, in hooks and in the sampling callback.

use super::frames::RubyVm;
use super::threads::RubyThread;
use super::{label_set, roots};
use rperf_engine::{FrameWord, Gvl, LabelSet, SessionId, Vm, VmThread};

impl Vm for RubyVm<'_> {
    fn gvl(&self) -> &Gvl<'_> {
        self.0
    }

    fn current_thread(&self) -> VmThread {
        RubyThread::current(self.0).id()
    }

    unsafe fn backtrace_of(
        &self,
        thread: VmThread,
        frames: &mut [FrameWord],
        lines: &mut [u32],
    ) -> usize {
        // SAFETY: by this function's contract.
        unsafe { RubyThread::from_vm(thread) }.backtrace(frames, lines)
    }

    unsafe fn labels_of(&self, thread: VmThread, session: SessionId) -> Option<&LabelSet> {
        // SAFETY: by this function's contract.
        label_set::of_thread(session, unsafe { RubyThread::from_vm(thread) })
    }

    unsafe fn keep_alive(&self, frames: &[FrameWord]) {
        // SAFETY: by this function's contract.
        unsafe { roots::keep_alive(frames) };
    }
}
