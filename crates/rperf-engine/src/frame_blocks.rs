//! Which frames are blocks of a method: the VM shows them as the method. How many blocks are around
//! a frame shows in the environments that its control frame leads to. They are read past the VM's
//! functions, by a layout that was checked. With the GVL, and in the signal handler of a tick.

use crate::call_tree::FrameWord;
use crate::frame_code::Stored;
use crate::vm::{FrameLayout, LateFrames, Memory, VmFrames};

/// A frame's word tells so many blocks at most: those around it, in its last bits, which an object's
/// address doesn't need.
const MOST_BLOCKS: usize = 7;

/// Environments at most that are followed from one frame.
const MOST_ENVIRONMENTS: usize = 256;

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

/// A frame as backtraces have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shown {
    object: FrameWord,
    blocks: usize,
}

/// What the environments of a frame tell.
struct Environments {
    /// The kind of the frame, with other flags.
    flags: usize,
    /// The method entry; 0 for code outside of methods.
    method: usize,
    /// Those up to where the method entry is.
    blocks: usize,
}

impl FrameLayout {
    /// Notes in `frames`, the topmost ones of the thread with this `context` as the VM shows them,
    /// how many blocks are around each. Returns whether all are as the control frames tell: those
    /// below the first that isn't stay as they are.
    pub fn mark_blocks(
        &self,
        vm: &impl VmFrames,
        memory: &impl Memory,
        context: usize,
        frames: &mut [FrameWord],
    ) -> bool {
        self.mark(vm, memory, context, frames).is_some()
    }

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
            let shown = loop {
                if !(stack..end).contains(&rest) || !rest.is_multiple_of(WORD) {
                    return None;
                }
                let shown = self.shown(memory, late, rest)?;
                rest += self.frame_size;
                if let Some(shown) = shown {
                    break shown;
                }
            };
            if shown.object != *frame {
                return None;
            }
            *frame = within_blocks(shown.object, shown.blocks);
        }
        Some(())
    }

    /// The frame that a backtrace has for a control frame; `Some(None)` if it leaves that out, and
    /// `None` if words don't fit together. As the VM decides it.
    fn shown(
        &self,
        memory: &impl Memory,
        late: Option<LateFrames>,
        frame: usize,
    ) -> Option<Option<Shown>> {
        let blocks = &self.blocks;
        let environment = memory.word(frame.checked_add(blocks.environment)?)?;
        let environments = self.environments(memory, environment)?;
        let definition = match environments.method {
            0 => None,
            method => {
                let definition = memory.word(method.checked_add(blocks.definition)?)?;
                Some(memory.half_word(definition)? & blocks.definition_kinds)
            }
        };
        let is_c = environments.flags & blocks.is_c != 0;
        if !is_c
            && !blocks
                .ruby_kinds
                .contains(&(environments.flags & blocks.kinds))
        {
            return None;
        }
        let code = match is_c {
            true => Stored::default(),
            false => self.stored(memory, late, frame)?,
        };
        let method = Shown {
            object: environments.method,
            blocks: environments.blocks,
        };
        Some(match definition {
            Some(kind) if code.program_counter != 0 && kind == blocks.ruby_method => Some(method),
            _ if code.program_counter != 0 => Some(Shown {
                object: code.iseq,
                blocks: 0,
            }),
            Some(kind) if kind == blocks.c_method => Some(Shown {
                blocks: 0,
                ..method
            }),
            _ => None,
        })
    }

    fn environments(&self, memory: &impl Memory, innermost: usize) -> Option<Environments> {
        let blocks = &self.blocks;
        let flags = memory.word(innermost)?;
        let (mut at, mut here, mut around) = (innermost, flags, 0);
        for _ in 0..MOST_ENVIRONMENTS {
            around += usize::from(here & blocks.kinds == blocks.block);
            let is_outermost = here & blocks.is_outermost != 0;
            let entry = memory.word(at.checked_sub(blocks.method_before)?)?;
            let method = self.method_entry(memory, entry, is_outermost)?;
            if method != 0 || is_outermost {
                return Some(Environments {
                    flags,
                    method,
                    blocks: around,
                });
            }
            at = memory.word(at.checked_sub(blocks.outer_before)?)? & !POINTER_MARK;
            if at == 0 {
                return None;
            }
            here = memory.word(at)?;
        }
        None
    }

    /// The method entry that an environment has; 0 if it has something else.
    fn method_entry(
        &self,
        memory: &impl Memory,
        object: usize,
        may_have_variables: bool,
    ) -> Option<usize> {
        if object == 0 {
            return Some(0);
        }
        let kind = |object| Some((memory.word(object)? >> self.blocks.object_kind) & 15);
        let found = kind(object)?;
        if found == self.blocks.special_variables && may_have_variables {
            let entry = memory.word(object.checked_add(WORD)?)?;
            return self.method_entry(memory, entry, false);
        }
        Some(if found == self.blocks.method_kind {
            object
        } else {
            0
        })
    }
}

#[cfg(test)]
mod tests;
