//! The comparison of our stack with the VM's own, whole, at random events: a session does it only
//! where tests of tracing ask for it. Under the GVL.

use super::event::TraceVm;
use super::tracer::Tracer;
use crate::call_tree::FrameWord;

/// What the comparisons have found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackCheck {
    /// Stacks that were compared.
    pub compared: u64,
    /// Those that weren't equal.
    pub unequal: u64,
    /// The first of them: which frame it was, from the root, and how many there were in the VM's
    /// stack and in ours.
    pub first: Option<(usize, usize, usize)>,
}

impl Tracer {
    /// From here on stacks are compared, many times more often than the hook's time is looked at.
    pub fn check_stacks(&mut self) {
        self.check = Some(StackCheck::default());
    }

    /// Compares the stacks, if they are to be: the VM's but for the topmost `skipped` frames, which
    /// are about to go. Where methods of C have events, their frames come later, and blocks of C
    /// repeat them: there the frames of Ruby are compared.
    #[cold]
    pub fn compare_stacks(&mut self, vm: &impl TraceVm, skipped: usize) {
        let Some(check) = &mut self.check else {
            return;
        };
        let found = vm.frames(&mut self.room);
        let Some(fiber) = self.fibers.get(self.fiber) else {
            return;
        };
        if found == self.room.len() {
            return;
        }
        let without_c = self.level.c_methods;
        let counts = |word: &FrameWord| *word != 0 && !(without_c && vm.is_c_method(*word));
        let theirs = self.room[skipped.min(found)..found].iter().copied();
        let theirs: Vec<_> = theirs.filter(counts).collect();
        let ours: Vec<_> = fiber.shown().filter(counts).collect();
        check.compared += 1;
        if theirs != ours {
            check.unequal += 1;
            let equal = theirs.iter().rev().zip(ours.iter().rev());
            let equal = equal.take_while(|(their, our)| their == our).count();
            check.first.get_or_insert((equal, theirs.len(), ours.len()));
        }
    }
}
