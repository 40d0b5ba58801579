//! Which frames are blocks of a method: the VM shows them as the method. How many blocks are around
//! a frame shows in the environments that its control frame leads to. They are read past the VM's
//! functions, by a layout that was checked. With the GVL, and in the signal handler of a tick.

mod digest;

use crate::ids::FrameWord;
use crate::vm::{FrameLayout, LateFrames, Memory, VmFrames};

/// A frame's word tells so many blocks at most: those around it, in its last bits, which an object's
/// address doesn't need.
const MOST_BLOCKS: usize = 7;

/// Environments at most that are followed from one frame.
const MOST_ENVIRONMENTS: usize = 256;

/// Frames of C at most above the topmost one of Ruby.
const MOST_FRAMES_OF_C: usize = 8;

const WORD: usize = size_of::<usize>();

/// What the last bits of an environment's address are for: the VM marks pointers by them.
const POINTER_MARK: usize = 3;

/// The object that a frame's word stands for, whatever blocks are around the frame.
#[inline]
pub const fn object_of(frame: FrameWord) -> FrameWord {
    frame & !MOST_BLOCKS
}

/// How many blocks of its method are around a frame: 0 for the method itself, 1 for code in a block, 2
/// for code in a block in that. More than 7 count as 7.
#[inline]
pub const fn blocks_around(frame: FrameWord) -> usize {
    frame & MOST_BLOCKS
}

/// The word of the frame of a `method` that has so many blocks around it.
#[inline]
pub fn within_blocks(method: FrameWord, blocks: usize) -> FrameWord {
    object_of(method) | blocks.min(MOST_BLOCKS)
}

impl FrameLayout {
    /// Notes in `frames`, the topmost ones of the thread with this `context` as the VM shows them,
    /// how many blocks are around each. Returns whether all are as the control frames tell: those
    /// from the first on that isn't stay as they are.
    pub fn mark_blocks(
        &self,
        vm: &impl VmFrames,
        memory: &impl Memory,
        context: usize,
        frames: &mut [FrameWord],
    ) -> bool {
        self.mark(vm, memory, context, frames).is_some()
    }

    #[inline]
    fn mark(
        &self,
        vm: &impl VmFrames,
        memory: &impl Memory,
        context: usize,
        frames: &mut [FrameWord],
    ) -> Option<()> {
        let field = |offset: usize| memory.word(context.checked_add(offset)?);
        let stack = field(self.stack)?;
        let end = stack.checked_add(field(self.stack_size)?.checked_mul(WORD)?)?;
        let mut rest = field(self.frame_in_context)?;
        let late = self.late.filter(|_| vm.fills_frames_late());
        for frame in frames {
            let blocks = loop {
                if !(stack..end).contains(&rest) || !rest.is_multiple_of(WORD) {
                    return None;
                }
                let blocks = self.blocks_of_frame(memory, late, rest, *frame)?;
                rest += self.frame_size;
                if let Some(blocks) = blocks {
                    break blocks;
                }
            };
            *frame = within_blocks(*frame, blocks);
        }
        Some(())
    }

    /// How many blocks are around the topmost frame of Ruby of the thread with this `context`, whatever
    /// backtraces have of it: of one outside of methods, all that there are.
    pub fn blocks_around_top(&self, memory: &impl Memory, context: usize) -> Option<usize> {
        let mut frame = memory.word(context.checked_add(self.frame_in_context)?)?;
        for _ in 0..MOST_FRAMES_OF_C {
            let environment = memory.word(frame.checked_add(self.blocks.environment)?)?;
            let flags = memory.word(environment)?;
            if flags & self.blocks.is_c == 0 {
                let counted = self.count(memory, environment, flags, |_, _| Some(false));
                return counted.map(|(blocks, _)| blocks.min(MOST_BLOCKS));
            }
            frame = frame.checked_add(self.frame_size)?;
        }
        None
    }

    /// How many blocks are around a control frame, which backtraces have as `shown`; `Some(None)` if
    /// they leave it out, and `None` if words don't fit together.
    #[inline]
    fn blocks_of_frame(
        &self,
        memory: &impl Memory,
        late: Option<LateFrames>,
        frame: usize,
        shown: FrameWord,
    ) -> Option<Option<usize>> {
        let environment = memory.word(frame.checked_add(self.blocks.environment)?)?;
        let flags = memory.word(environment)?;
        if flags & self.blocks.is_c != 0 {
            let is_shown = self.is_shown_c_method(memory, environment, flags, shown)?;
            return Some(is_shown.then_some(0));
        }
        let code = self.stored(memory, late, frame)?;
        if code.program_counter == 0 {
            return Some(None);
        }
        let blocks = self.blocks_in_method(memory, environment, flags, shown)?;
        match blocks {
            None if code.iseq == shown => Some(Some(0)),
            None => None,
            blocks => Some(blocks),
        }
    }

    /// How many blocks are around an environment within `method`; `Some(None)` if it isn't that
    /// method's.
    #[inline]
    fn blocks_in_method(
        &self,
        memory: &impl Memory,
        innermost: usize,
        flags: usize,
        method: FrameWord,
    ) -> Option<Option<usize>> {
        let is_its_own = |environment: usize, is_outermost| {
            let entry = memory.word(environment.checked_sub(self.blocks.method_before)?)?;
            Some(entry == method || is_outermost && self.is_in_variables(memory, entry, method)?)
        };
        let (blocks, is_in_method) = self.count(memory, innermost, flags, is_its_own)?;
        Some(is_in_method.then_some(blocks))
    }

    /// Counts the blocks from an environment outwards: up to the first that is sought, which `is_sought`
    /// says of an environment that may be the outermost, or to the end. Also whether it was found.
    #[inline]
    fn count(
        &self,
        memory: &impl Memory,
        innermost: usize,
        flags: usize,
        is_sought: impl Fn(usize, bool) -> Option<bool>,
    ) -> Option<(usize, bool)> {
        let (mut environment, mut flags, mut blocks) = (innermost, flags, 0);
        for _ in 0..MOST_ENVIRONMENTS {
            blocks += usize::from(flags & self.blocks.kinds == self.blocks.block);
            let is_outermost = flags & self.blocks.is_outermost != 0;
            let is_found = is_sought(environment, is_outermost)?;
            if is_found || is_outermost {
                return Some((blocks, is_found));
            }
            (environment, flags) = self.around(memory, environment)?;
        }
        None
    }

    /// Whether backtraces have the frame of C with this environment as `shown`.
    fn is_shown_c_method(
        &self,
        memory: &impl Memory,
        innermost: usize,
        flags: usize,
        shown: FrameWord,
    ) -> Option<bool> {
        let of_shown = self.blocks_in_method(memory, innermost, flags, shown)?;
        if of_shown.is_none() || flags & self.blocks.kinds == self.blocks.c_call {
            return Some(of_shown.is_some());
        }
        // A block of C belongs to the method that has made it, which may be one of Ruby.
        let definition = memory.word(shown.checked_add(self.blocks.definition)?)?;
        let kind = memory.half_word(definition)? & self.blocks.definition_kinds;
        Some(kind == self.blocks.c_method)
    }

    /// The environment around another one, and its flags.
    fn around(&self, memory: &impl Memory, environment: usize) -> Option<(usize, usize)> {
        let outer = memory.word(environment.checked_sub(self.blocks.outer_before)?)?;
        let outer = outer & !POINTER_MARK;
        (outer != 0).then_some((outer, memory.word(outer)?))
    }

    /// Whether an object holds special variables, and this method entry, in whose place it is.
    fn is_in_variables(
        &self,
        memory: &impl Memory,
        object: usize,
        method: FrameWord,
    ) -> Option<bool> {
        if object == 0 {
            return Some(false);
        }
        let kind = (memory.word(object)? >> self.blocks.object_kind) & 15;
        let is_such = kind == self.blocks.special_variables;
        Some(is_such && memory.word(object.checked_add(WORD)?)? == method)
    }
}

#[cfg(test)]
mod tests;
