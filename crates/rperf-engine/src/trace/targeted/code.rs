//! The code of methods that blocks define: their frames show it alone, and several of them can
//! share it. So they are told by class and name, and it is kept beside. Under the GVL, at events.

use crate::call_tree::FrameWord;
use crate::trace::event::TraceVm;
use crate::trace::tree::TracedFrame;
use rustc_hash::FxHashMap;

/// By class and name.
#[derive(Debug, Default)]
pub(super) struct Code {
    by_method: FxHashMap<TracedFrame, FrameWord>,
    new: Vec<FrameWord>,
}

impl Code {
    /// The frame of a method that has just begun, and which the VM shows as `word`.
    #[inline]
    pub(super) fn frame_of(&mut self, vm: &impl TraceVm, word: FrameWord) -> TracedFrame {
        if word != 0
            && vm.is_bare_code(word)
            && let Some((method, word_of_class)) = vm.method_of_code()
        {
            let frame = TracedFrame {
                word: word_of_class,
                method,
            };
            self.keep(frame, word);
            return frame;
        }
        TracedFrame { word, method: 0 }
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
