//! What comparisons of our stack with the VM's own have found: with the feature `measure`, where
//! tests of tracing ask for it. Under the GVL.

use rperf_vm::FrameWord;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackCheck {
    /// Stacks that were compared.
    pub compared: u64,
    /// Stacks that weren't equal.
    pub unequal: u64,
    /// The first of them: which frame it was, from the root, and how many there were in the VM's
    /// stack and in ours.
    pub first: Option<(usize, usize, usize)>,
}

impl StackCheck {
    /// Compares two stacks, leaf first.
    pub(crate) fn compare(&mut self, theirs: &[FrameWord], ours: &[FrameWord]) {
        self.compared += 1;
        if theirs != ours {
            self.unequal += 1;
            let equal = theirs.iter().rev().zip(ours.iter().rev());
            let equal = equal.take_while(|(their, our)| their == our).count();
            self.first.get_or_insert((equal, theirs.len(), ours.len()));
        }
    }

    /// For the head of the profile.
    pub(super) fn lines(&self) -> Vec<String> {
        let (compared, unequal) = (self.compared, self.unequal);
        let mut lines = vec![format!("{compared} stacks compared, {unequal} unequal")];
        lines.extend(self.first.map(|(equal, theirs, ours)| {
            format!("the first one from frame {equal} on: {theirs} frames, and not {ours}")
        }));
        lines
    }
}
