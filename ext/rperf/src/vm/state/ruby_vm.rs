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

    fn backtrace_of(&self, thread: VmThread, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        live(thread).backtrace(frames, lines)
    }

    fn labels_of(&self, thread: VmThread, session: SessionId) -> Option<&LabelSet> {
        label_set::of_thread(session, live(thread))
    }

    fn keep_alive(&self, frames: &[FrameWord]) {
        roots::keep_alive(frames);
    }
}

/// The Ruby thread, which is alive by the contract of [`Vm`].
fn live<'g>(thread: VmThread) -> RubyThread<'g> {
    // SAFETY: by this function's description.
    unsafe { RubyThread::from_vm(thread) }
}
