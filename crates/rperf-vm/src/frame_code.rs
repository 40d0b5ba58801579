//! The code of the VM's frames, read past its functions, and whether they are as they are thought to
//! be: a session believes a layout only if the stack of the thread that begins it reads as the VM
//! itself tells it. On that thread, with the GVL; frames are also read in the signal handler of a
//! tick.

use crate::ids::FrameWord;
use crate::vm::{Checked, FrameLayout, LateFrames, MayFault, Memory, Unknown, VmFrames};
use std::ops::Range;

/// Frames of Ruby at most that are compared with what the VM tells.
const COMPARED: usize = 8;

/// Frames at most among which these are looked for.
const NEAR: usize = 64;

const WORD: usize = size_of::<usize>();

/// Frames at most that tell a place apart, and how many of them are of Ruby.
const FRAMES_OF_PLACE: usize = 8;
const RUBY_FRAMES_OF_PLACE: usize = 3;

/// Instruction words that a method has at most, in a layout that is believed.
const LONGEST_CODE: usize = 1 << 24;

/// The code of a frame of Ruby.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameCode {
    /// The program counter that is stored. That of a compiled frame on top may be any word.
    stored: usize,
    /// The instruction sequence, an object of the VM.
    pub iseq: FrameWord,
    /// Its instructions.
    instructions: Range<usize>,
    /// All of it is from the record of a compiler that fills control frames late.
    is_late: bool,
}

impl FrameCode {
    /// Whether this program counter belongs to the code: of one of its instructions, or their end.
    #[inline]
    pub fn has(&self, program_counter: usize) -> bool {
        let Range { start, end } = self.instructions;
        program_counter.is_multiple_of(WORD) && (start..=end).contains(&program_counter)
    }

    /// The line at this program counter, which belongs to the code; 0 if the VM has none. It is
    /// the line of the instruction before, because the program counter is that of the next one.
    ///
    /// # Safety
    /// The conditions are those of [`VmFrames::line_at`].
    pub unsafe fn line_at(&self, vm: &impl VmFrames, program_counter: usize) -> u32 {
        let words = (program_counter - self.instructions.start) / WORD;
        // SAFETY: by this function's contract.
        unsafe { vm.line_at(self.iseq, words.saturating_sub(1)) }
    }
}

/// What a control frame, or its record, has of its code.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stored {
    pub(crate) program_counter: usize,
    pub(crate) iseq: FrameWord,
    is_late: bool,
}

impl FrameLayout {
    /// What a control frame has stored of its code: nothing, if it is one of C that compiled code has
    /// made. `late`: some may have records.
    pub(crate) fn stored(
        &self,
        memory: &impl Memory,
        late: Option<LateFrames>,
        frame: usize,
    ) -> Option<Stored> {
        let word = |base: usize, offset: usize| memory.word(base.checked_add(offset)?);
        let place = match late {
            Some(late) => word(frame, late.place)?,
            None => 0,
        };
        Some(match late.filter(|_| place != 0) {
            Some(late) if place == late.c_method => Stored::default(),
            Some(late) => {
                let record = memory.word(place.checked_sub(WORD)?)?;
                Stored {
                    program_counter: word(record, late.program_counter)?,
                    iseq: word(record, late.iseq)?,
                    is_late: true,
                }
            }
            None => Stored {
                program_counter: word(frame, self.program_counter)?,
                iseq: word(frame, self.iseq)?,
                is_late: false,
            },
        })
    }

    /// A number for where the thread with this `context` is in the program: of the program counters of
    /// its topmost frames of Ruby, and the number of those of C among them. It is good for nothing else,
    /// because the program counters of compiled code may be older ones.
    #[inline]
    pub fn place(&self, memory: &impl Memory, context: usize) -> Option<usize> {
        let field = |offset: usize| memory.word(context.checked_add(offset)?);
        let stack = field(self.stack)?;
        let end = stack.checked_add(field(self.stack_size)?.checked_mul(WORD)?)?;
        let mut frame = field(self.frame_in_context)?;
        let (mut place, mut of_ruby) = (0_usize, 0);
        for row in 0..FRAMES_OF_PLACE {
            if of_ruby == RUBY_FRAMES_OF_PLACE || !(stack..end).contains(&frame) {
                break;
            }
            let program_counter = memory.word(frame.checked_add(self.program_counter)?)?;
            if program_counter != 0 {
                place = place.rotate_left(7) ^ program_counter.wrapping_add(row);
                of_ruby += 1;
            }
            frame = frame.checked_add(self.frame_size)?;
        }
        (of_ruby > 0).then_some(place)
    }

    /// Whether the topmost frame of the thread with this `context` has a program counter of its own code.
    /// A compiled method that has just been called may have none yet: there is a word of an older frame,
    /// for which the VM must not look up a line. Not for a frame of a C method.
    pub fn is_top_placed(
        &self,
        vm: &impl VmFrames,
        memory: &impl Memory,
        context: usize,
    ) -> Option<bool> {
        let frame = memory.word(context.checked_add(self.frame_in_context)?)?;
        let code = self.code_of(vm, memory, frame)?;
        Some(code.has(code.stored))
    }

    /// The code of a control frame; `None` for one of a C method, and where words don't fit together.
    pub fn code_of(
        &self,
        vm: &impl VmFrames,
        memory: &impl Memory,
        frame: usize,
    ) -> Option<FrameCode> {
        let word = |base: usize, offset: usize| memory.word(base.checked_add(offset)?);
        let late = self.late.filter(|_| vm.fills_frames_late());
        let Stored {
            program_counter,
            iseq,
            is_late,
        } = self.stored(memory, late, frame)?;
        if iseq == 0 || !iseq.is_multiple_of(WORD) {
            return None;
        }
        let body = word(iseq, self.body)?;
        let size = memory.half_word(body.checked_add(self.size)?)? as usize;
        let start = word(body, self.encoded)?;
        let fits = start.is_multiple_of(WORD) && (1..LONGEST_CODE).contains(&size);
        let code = FrameCode {
            stored: program_counter,
            iseq,
            instructions: start..start.checked_add(size * WORD)?,
            is_late,
        };
        fits.then_some(code)
    }

    /// Whether the topmost frame of the calling thread may be one of a compiler that fills control
    /// frames late: its record has the last line that was stored. In the signal handler, which is
    /// ready for faults.
    fn may_be_late(&self, vm: &impl VmFrames) -> bool {
        let Some(late) = self.late else {
            return false;
        };
        // SAFETY: the handler is ready for faults.
        let memory = unsafe { MayFault::new() };
        let context = vm.context();
        let top = (context != 0).then(|| memory.word(context + self.frame_in_context));
        let place = top.flatten().and_then(|top| memory.word(top + late.place));
        late.found.are_in_doubt() || place.is_none_or(|it| it != 0 && it != late.c_method)
    }

    /// A tick has interrupted compiled code whose frame is on top, with this code: it tells whether
    /// late frames are as this says. In the signal handler, which is ready for faults.
    pub fn note_late_frame(&self, vm: &impl VmFrames, code: Option<&FrameCode>) {
        let is_sought = |late: &LateFrames| vm.fills_frames_late() && !late.found.fit();
        let Some(late) = self.late.filter(is_sought) else {
            return;
        };
        // SAFETY: the handler is ready for faults.
        let fits = code
            .is_some_and(|it| it.is_late && it.has(it.stored) && unsafe { vm.is_code(it.iseq) });
        late.found.note(fits);
    }

    /// Looks whether the fields are where this says: then the topmost frames of Ruby of the calling
    /// thread have the lines that the VM tells. Not in hooks.
    pub fn check(&self, vm: &impl VmFrames) -> Result<(), Unknown> {
        self.check_by(vm, Checked::new().as_ref())
    }

    /// Checks the layout by this memory, if there is any.
    fn check_by(&self, vm: &impl VmFrames, memory: Option<&impl Memory>) -> Result<(), Unknown> {
        let memory = memory.ok_or(Unknown::Access)?;
        match self.fits_in(vm, memory) {
            Some(true) => Ok(()),
            _ => Err(Unknown::Form),
        }
    }

    /// `None` if a word leads nowhere.
    fn fits_in(&self, vm: &impl VmFrames, memory: &impl Memory) -> Option<bool> {
        let context = vm.context();
        if context == 0 {
            return None;
        }
        let field = |offset: usize| memory.word(context.checked_add(offset)?);
        let stack = field(self.stack)?;
        let end = stack.checked_add(field(self.stack_size)?.checked_mul(WORD)?)?;
        let mut rest = field(self.frame_in_context)?;
        let (mut frames, mut lines) = ([0; NEAR], [0; NEAR]);
        let found = vm.backtrace(&mut frames, &mut lines);
        let told = frames.iter().zip(lines).take(found);
        // SAFETY: they are on the stack.
        let of_ruby = told.filter(|(frame, _)| !unsafe { vm.is_c_method(**frame) });
        let mut compared = 0;
        for (_, line) in of_ruby.take(COMPARED) {
            let mut is_told = false;
            while !is_told {
                if !(stack..end).contains(&rest) || !rest.is_multiple_of(WORD) {
                    return Some(false);
                }
                is_told = self.has_line(vm, memory, rest, line);
                rest += self.frame_size;
            }
            compared += 1;
        }
        Some(compared > 0)
    }

    /// Whether a control frame is at this line.
    fn has_line(&self, vm: &impl VmFrames, memory: &impl Memory, frame: usize, line: u32) -> bool {
        self.code_of(vm, memory, frame)
            .filter(|code| code.has(code.stored) && memory.word(code.iseq).is_some())
            // SAFETY: the object's first word can be read. One of this kind, whose code has the
            // frame's program counter, is an instruction sequence, and the place is in it.
            .is_some_and(|code| unsafe {
                vm.is_code(code.iseq) && code.line_at(vm, code.stored) == line
            })
    }
}

/// Whether the line counts that the VM tells of the topmost frame, which isn't one of a C method. In
/// the signal handler, which is ready for faults.
pub fn tells_line(layout: Option<&FrameLayout>, vm: &impl VmFrames) -> bool {
    !vm.fills_frames_late() || layout.is_some_and(|layout| !layout.may_be_late(vm))
}

#[cfg(test)]
mod tests;
