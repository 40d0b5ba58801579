//! The digest of a thread's stack: of what the VM reads of its control frames to tell its backtrace.
//! With the GVL, on the thread itself.

use super::{MOST_ENVIRONMENTS, WORD};
use crate::stack_digest::StackDigest;
use crate::vm::{FrameLayout, Memory, VmFrames};

impl FrameLayout {
    /// The digest of the calling thread's stack, if its topmost frame is of C: of one of Ruby on top,
    /// compiled code leaves the line open. `collections` is the number of garbage collections that have
    /// begun; none is marking. As long as it stays the same, an address is that of the same object: what
    /// is made while a collection marks can be freed by it, all else by a later one only.
    ///
    /// `None` if words don't fit together, or a compiler fills control frames late.
    #[inline]
    pub fn digest(
        &self,
        vm: &impl VmFrames,
        memory: &impl Memory,
        context: usize,
        collections: u64,
    ) -> Option<StackDigest> {
        if self.late.is_some() && vm.fills_frames_late() {
            return None;
        }
        let field = |offset: usize| memory.word(context.checked_add(offset)?);
        let stack = field(self.stack)?;
        let end = stack.checked_add(field(self.stack_size)?.checked_mul(WORD)?)?;
        let top = field(self.frame_in_context)?;
        if !(stack..end).contains(&top) || !top.is_multiple_of(WORD) {
            return None;
        }
        let environment = memory.word(top.checked_add(self.blocks.environment)?)?;
        if memory.word(environment)? & self.blocks.is_c == 0 {
            return None;
        }
        let mut frames = (top..end).step_by(self.frame_size);
        let digest = StackDigest::default().with(collections as usize);
        frames.try_fold(digest, |digest, frame| self.add(memory, digest, frame))
    }

    /// The digest with a further control frame: what it executes, and the method entries of its
    /// environments.
    #[inline]
    fn add(&self, memory: &impl Memory, digest: StackDigest, frame: usize) -> Option<StackDigest> {
        let word = |offset: usize| memory.word(frame.checked_add(offset)?);
        let mut environment = word(self.blocks.environment)?;
        let mut flags = memory.word(environment)?;
        let mut digest = digest;
        if flags & self.blocks.is_c == 0 {
            digest = digest.with(word(self.program_counter)?);
            digest = digest.with(word(self.iseq)?);
        }
        for _ in 0..MOST_ENVIRONMENTS {
            let method = memory.word(environment.checked_sub(self.blocks.method_before)?)?;
            digest = digest.with(flags & self.blocks.kinds).with(method);
            if flags & self.blocks.is_outermost != 0 {
                return Some(digest);
            }
            (environment, flags) = self.around(memory, environment)?;
        }
        None
    }
}
