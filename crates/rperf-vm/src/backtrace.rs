//! Where a backtrace is taken to: frames and lines as the VM gives them, allocated before, for
//! use in hooks and in the signal handler.

use crate::call_tree::Stack;
use crate::ids::FrameWord;
use crate::vm::VmFrames;

/// Frames of a backtrace at most. The default VM stack of a thread (1 MB) holds
/// some 11,000; of deeper ones the frames nearest to the leaf are kept.
pub const MAX_DEPTH: usize = 16_384;

/// A buffer for backtraces. Before the leaf there is room for one frame more.
#[derive(Debug)]
pub struct Backtrace {
    frames: Vec<FrameWord>,
    /// Empty if lines are not wanted.
    lines: Vec<u32>,
}

impl Backtrace {
    /// An empty one.
    pub fn new(with_lines: bool) -> Self {
        Self::with_room(MAX_DEPTH, with_lines)
    }

    /// An empty one for `depth` frames.
    pub fn with_room(depth: usize, with_lines: bool) -> Self {
        // Zeroed memory comes from the system untouched: only what the deepest
        // stack needs is ever resident.
        let lines = if with_lines { depth + 1 } else { 0 };
        Self {
            frames: vec![0; depth + 1],
            lines: vec![0; lines],
        }
    }

    /// Frames that there is room for.
    #[inline]
    fn most(&self) -> usize {
        self.frames.len() - 1
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of_val(self.frames.as_slice()) + size_of_val(self.lines.as_slice())
    }

    /// Takes the calling thread's backtrace; returns its depth. Async-signal-safe.
    #[inline]
    pub fn take(&mut self, vm: &impl VmFrames) -> usize {
        let most = self.most();
        let (frames, lines) = self.room();
        vm.backtrace(frames, lines).min(most)
    }

    /// Where frames go, and their lines unless these are not wanted.
    #[inline]
    pub fn room(&mut self) -> (&mut [FrameWord], &mut [u32]) {
        let lines = self.lines.get_mut(1..).unwrap_or_default();
        (&mut self.frames[1..], lines)
    }

    /// The backtrace, which has `depth` frames.
    #[inline]
    pub fn stack(&self, depth: usize) -> Stack<'_> {
        self.rows(1, depth)
    }

    /// The part of a backtrace of `depth` frames that is nearest to the root: so many
    /// frames of it.
    #[inline]
    pub fn stack_up_to(&self, frames: usize, depth: usize) -> Stack<'_> {
        let frames = frames.min(depth);
        self.rows(1 + depth - frames, frames)
    }

    /// The backtrace with `leaf` on top; its line is 0 if it isn't known.
    #[inline]
    pub fn stack_with_leaf(&mut self, leaf: FrameWord, line: u32, depth: usize) -> Stack<'_> {
        self.frames[0] = leaf;
        if let Some(first) = self.lines.first_mut() {
            *first = line;
        }
        self.rows(0, depth + 1)
    }

    /// Corrects the line of the topmost frame that was taken.
    #[inline]
    pub fn set_line_of_leaf(&mut self, line: u32) {
        if let Some(leaf) = self.lines.get_mut(1) {
            *leaf = line;
        }
    }

    /// The topmost frame that was taken, and its line or 0.
    #[inline]
    pub fn leaf(&self) -> (FrameWord, u32) {
        (self.frames[1], self.lines.get(1).copied().unwrap_or(0))
    }

    /// The frame `row` rows below the topmost one.
    #[inline]
    pub fn frame(&self, row: usize) -> Option<FrameWord> {
        self.frames.get(1 + row).copied()
    }

    #[inline]
    fn rows(&self, first: usize, depth: usize) -> Stack<'_> {
        Stack {
            frames: &self.frames[first..first + depth],
            lines: self.lines.get(first..first + depth).unwrap_or_default(),
            cut: depth >= self.most(),
        }
    }
}
