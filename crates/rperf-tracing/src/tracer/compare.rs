//! The comparison of our stack with the VM's own, whole, at random events. Under the GVL.

use crate::event::{TraceVm, marked_frames};
use crate::profile::check::StackCheck;
use crate::tracer::Tracer;
use rperf_vm::FrameWord;

impl Tracer {
    /// A tracer whose stacks are compared, many times more often than the hook's time is looked at.
    pub fn with_stack_check(mut self) -> Self {
        self.check = Some(StackCheck::default());
        self
    }

    /// Compares the stacks, if they are to be, at a call, or at a return of a frame that the VM
    /// has still. Where methods of C have events, their frames come later, and blocks of C repeat
    /// them: there the frames of Ruby are compared.
    #[cold]
    pub fn compare_stacks(&mut self, vm: &impl TraceVm, is_return: bool) {
        let Some(check) = &mut self.check else {
            return;
        };
        let Some(fiber) = self.fibers.get_running() else {
            return;
        };
        // An exception of another thread's can come before the event of a call: then nobody has
        // told of what returns, nor asked for the frames below it.
        let is_unknown = fiber.top().is_none_or(|top| top.depth + 1 != vm.depth());
        let found = marked_frames(vm, &mut self.room);
        if is_return && is_unknown || found == self.room.len() {
            return;
        }
        let without_c = self.level.c_methods;
        let counts = |word: &FrameWord| *word != 0 && !(without_c && vm.is_c_method(*word));
        let theirs = self.room[usize::from(is_return).min(found)..found].iter();
        let theirs: Vec<_> = theirs.copied().filter(counts).collect();
        let ours: Vec<_> = fiber.shown().filter(counts).collect();
        check.compare(&theirs, &ours);
    }
}
