//! Which method a frame is of: methods are told by class and name, and their code is kept beside.
//! Frames don't tell them: those of methods that blocks define show their code alone, which several
//! can share, and a module's methods have another word for each class and object that has the
//! module. Under the GVL, at events.

use crate::event::TraceVm;
use crate::tree::TracedFrame;
use rperf_vm::FrameWord;
use rustc_hash::FxHashMap;

/// By class and name.
#[derive(Debug, Default)]
pub(super) struct Code {
    by_method: FxHashMap<TracedFrame, FrameWord>,
    new: Vec<FrameWord>,
}

impl Code {
    /// The frame of a method that has just begun, and which the VM shows as `word`; and whether that
    /// is its code alone.
    #[inline]
    pub(super) fn frame_of(&mut self, vm: &impl TraceVm, word: FrameWord) -> (TracedFrame, bool) {
        let is_bare = word != 0 && vm.is_bare_code(word);
        let Some((method, word_of_class)) = vm.method_of_code().filter(|_| word != 0) else {
            return (TracedFrame { word, method: 0 }, is_bare);
        };
        let frame = TracedFrame {
            word: word_of_class,
            method,
        };
        self.keep(frame, word);
        (frame, is_bare)
    }

    /// `word` is the code of this frame.
    pub(super) fn keep(&mut self, frame: TracedFrame, word: FrameWord) {
        if frame.method != 0 && self.by_method.insert(frame, word) != Some(word) {
            self.new.push(word);
        }
    }

    /// The code of a frame.
    pub(super) fn of(&self, frame: TracedFrame) -> FrameWord {
        self.by_method.get(&frame).copied().unwrap_or(frame.word)
    }

    /// All of it.
    pub(super) fn all(&self) -> impl Iterator<Item = FrameWord> {
        self.by_method.values().copied()
    }

    /// What is new since this was asked last.
    pub(super) fn take_new(&mut self) -> impl Iterator<Item = FrameWord> {
        self.new.drain(..)
    }

    /// Whether anything is.
    #[inline]
    pub(super) fn has_new(&self) -> bool {
        !self.new.is_empty()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        self.by_method.capacity() * size_of::<(TracedFrame, FrameWord)>()
    }
}
