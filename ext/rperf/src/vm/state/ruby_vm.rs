//! The VM as the engine asks it, in hooks and in the sampling callback.

use super::frames::RubyVm;
use super::threads::RubyThread;
use super::{label_set, roots};
use rb_sys::VALUE;
use rperf_engine::threads::{SessionId, VmThread};
use rperf_engine::{FrameWord, Gvl, LabelSet, Vm};

impl Vm for RubyVm<'_> {
    fn gvl(&self) -> &Gvl<'_> {
        self.0
    }

    fn current_thread(&self) -> VmThread {
        RubyThread::current(self.0).id()
    }

    fn backtrace_of(&self, thread: VmThread, frames: &mut [FrameWord], lines: &mut [u32]) -> usize {
        // SAFETY: by the trait's contract, the thread is alive.
        let thread = unsafe { RubyThread::from_raw(thread.0 as VALUE) };
        thread.backtrace(frames, lines)
    }

    fn labels_of(&self, thread: VmThread, session: SessionId) -> Option<&LabelSet> {
        // SAFETY: as above.
        label_set::of_thread(session, unsafe { RubyThread::from_raw(thread.0 as VALUE) })
    }

    fn keep_alive(&self, frames: &[FrameWord]) {
        roots::keep_alive(frames);
    }
}
