//! Frames: the methods, blocks and scripts that stacks are made of. Any thread, no I/O.

pub(crate) mod code_path;
pub mod frame_kind;

use crate::{StringId, Strings};
use rustc_hash::FxHashMap;

/// Index of a frame in [`Frames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FrameId(pub u32);

/// A method, block, or top-level script. Two frames with the same content are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// Qualified name: `Integer#times`, `block in <main>`.
    pub name: StringId,
    /// Path as Ruby gives it, or a marker such as `<C method>` or `<GVL>`.
    pub path: StringId,
    /// Line of the definition, or 0 where none is known.
    pub first_line: u32,
}

/// A table of unique frames.
#[derive(Debug, Clone, Default)]
pub struct Frames {
    table: Vec<Frame>,
    index: FxHashMap<Frame, FrameId>,
}

impl Frames {
    /// The id of `frame`, which is added if it is new.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        *self.index.entry(frame).or_insert_with(|| {
            self.table.push(frame);
            FrameId(self.table.len() as u32 - 1)
        })
    }

    /// The id of the frame with these texts, which are added to `strings` if they are new.
    pub fn intern_named(
        &mut self,
        strings: &mut Strings,
        name: &str,
        path: &str,
        first_line: u32,
    ) -> FrameId {
        self.intern(Frame {
            name: strings.intern(name),
            path: strings.intern(path),
            first_line,
        })
    }

    /// The id of `frame`, if it is there.
    pub fn find(&self, frame: &Frame) -> Option<FrameId> {
        self.index.get(frame).copied()
    }

    /// The frame with this id.
    pub fn get(&self, id: FrameId) -> Option<&Frame> {
        self.table.get(id.0 as usize)
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes held, or nearly so.
    pub fn memory(&self) -> usize {
        self.len() * size_of::<Frame>() + crate::memory::of_map(&self.index)
    }

    /// Whether there is no frame.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// All frames with their ids.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, &Frame)> {
        self.table
            .iter()
            .enumerate()
            .map(|(row, frame)| (FrameId(row as u32), frame))
    }
}
