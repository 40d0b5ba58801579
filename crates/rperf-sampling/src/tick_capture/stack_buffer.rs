//! A stack, kept so that the frames it shares with the next one stay in slot. Its owner allocates
//! it once: changing it is async-signal-safe.

use rperf_vm::{FrameWord, Stack, equal_from_the_end};

/// A stack, leaf first, at the end of buffers of a fixed size.
#[derive(Debug)]
pub struct StackBuffer {
    frames: Box<[FrameWord]>,
    lines: Box<[u32]>,
    depth: usize,
}

impl StackBuffer {
    /// Room for `max_depth` frames. Zeroed memory comes from the system untouched:
    /// only as much as the deepest stack needs becomes resident.
    pub fn new(max_depth: usize, with_lines: bool) -> Self {
        let lines = if with_lines { max_depth } else { 0 };
        Self {
            frames: vec![0; max_depth].into_boxed_slice(),
            lines: vec![0; lines].into_boxed_slice(),
            depth: 0,
        }
    }

    /// How many frames from the root, with their lines, `stack` has in common with
    /// the one in here.
    #[inline]
    pub fn shared_with(&self, stack: Stack<'_>) -> usize {
        let held = self.stack();
        let frames = equal_from_the_end(held.frames, stack.frames);
        if self.lines.is_empty() {
            return frames;
        }
        frames.min(equal_from_the_end(held.lines, stack.lines))
    }

    /// Keeps `shared` frames from the root and puts `new` others on top of them, leaf
    /// first; `lines` gives nothing for a buffer without lines. Frames that find no
    /// room are left out.
    #[inline]
    pub fn replace_top(
        &mut self,
        shared: usize,
        new: usize,
        frames: impl Iterator<Item = FrameWord>,
        lines: impl Iterator<Item = u32>,
    ) {
        let shared = shared.min(self.depth);
        let new = new.min(self.frames.len() - shared);
        let start = self.frames.len() - shared - new;
        let end = start + new;
        for (slot, frame) in self.frames[start..end].iter_mut().zip(frames) {
            *slot = frame;
        }
        if let Some(slots) = self.lines.get_mut(start..end) {
            for (slot, line) in slots.iter_mut().zip(lines) {
                *slot = line;
            }
        }
        self.depth = shared + new;
    }

    /// Whether another `frames` frames fit on top of `shared` ones.
    #[inline]
    pub fn has_room(&self, shared: usize, frames: usize) -> bool {
        shared + frames <= self.frames.len()
    }

    /// Forgets the stack.
    #[inline]
    pub fn clear(&mut self) {
        self.depth = 0;
    }

    /// The stack.
    #[inline]
    pub fn stack(&self) -> Stack<'_> {
        let start = self.frames.len() - self.depth;
        let lines = self.lines.get(start..).unwrap_or_default();
        Stack {
            frames: &self.frames[start..],
            lines,
            cut: false,
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.frames) + size_of_val(&*self.lines)
    }
}
