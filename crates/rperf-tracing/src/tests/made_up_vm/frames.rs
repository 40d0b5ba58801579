//! The frames of the made-up VM, and its stack as the tracer may ask for it.

use crate::TraceVm;
use rperf_vm::{FrameWord, within_blocks};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Method,
    Block,
    BlockMethod,
    C,
    Body,
    Hidden,
}

#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Its word as the VM shows it: a block has that of its method.
    pub word: FrameWord,
    /// How many blocks are around it.
    pub blocks: usize,
    pub kind: Kind,
    /// A rescue clause of it has begun.
    pub has_rescued: bool,
    /// The tracer was told of it, and a switch of fibers has not made it forget.
    pub is_known: bool,
}

/// How far apart the words of methods are, and those of their other kinds: the last bits are free.
const METHODS: FrameWord = 64;
const KINDS: FrameWord = 8;

impl Frame {
    pub fn new(kind: Kind, number: usize) -> Self {
        let kind_of_word = match kind {
            Kind::Method | Kind::Block => 0,
            Kind::BlockMethod => 1,
            Kind::C => 2,
            Kind::Body => 3,
            Kind::Hidden => 4,
        };
        let word = (number + 1) * METHODS + kind_of_word * KINDS;
        Frame {
            word,
            blocks: usize::from(kind == Kind::Block),
            kind,
            has_rescued: false,
            is_known: false,
        }
    }

    /// The frame's word as the tracer is to know it.
    pub fn marked(&self) -> FrameWord {
        within_blocks(self.word, self.blocks)
    }

    /// A clause of this frame: a frame of its own that is shown as the same.
    pub fn clause(self) -> Option<Frame> {
        let is_ruby = !matches!(self.kind, Kind::C | Kind::Hidden);
        is_ruby.then_some(Frame {
            kind: Kind::Body,
            ..self
        })
    }
}

/// The present stack, as the tracer may ask for it.
pub struct View(pub Vec<Frame>);

fn kind_of(frame: FrameWord) -> usize {
    frame % METHODS / KINDS
}

impl TraceVm for View {
    fn depth(&self) -> u32 {
        self.0.len() as u32
    }

    fn frames(&self, frames: &mut [FrameWord]) -> usize {
        let shown = self
            .0
            .iter()
            .rev()
            .filter(|frame| frame.kind != Kind::Hidden);
        let mut found = 0;
        for (place, frame) in frames.iter_mut().zip(shown) {
            *place = frame.word;
            found += 1;
        }
        found
    }

    fn mark_blocks(&self, frames: &mut [FrameWord]) {
        let shown = self.0.iter().rev().filter(|it| it.kind != Kind::Hidden);
        for (place, frame) in frames.iter_mut().zip(shown) {
            *place = within_blocks(*place, frame.blocks);
        }
    }

    fn is_c_method(&self, frame: FrameWord) -> bool {
        kind_of(frame) == 2
    }

    fn is_called(&self, frame: FrameWord) -> bool {
        kind_of(frame) < 2
    }

    fn is_named_block(&self, frame: FrameWord) -> bool {
        self.is_bare_code(frame)
    }

    fn is_bare_code(&self, frame: FrameWord) -> bool {
        kind_of(frame) == 1
    }
}
