//! The VM's events as tracing sees them, and what it asks of the VM meanwhile. Used by the bridge's
//! hooks and by [`Tracer`](super::Tracer), under the GVL.

use rperf_vm::FrameWord;

/// What begins, by the event that tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// A method of Ruby: its frame is the topmost.
    Method,
    /// A block: its frame is the topmost.
    Block,
    /// The body of a class or module: its frame is the topmost.
    Class,
    /// A method of C: its frame is not there yet.
    C {
        /// The class that has it.
        owner: usize,
        /// Its name as the VM holds it.
        method: usize,
    },
}

impl Call {
    /// The kind of the frame.
    #[inline]
    pub(crate) fn kind(self) -> TracedKind {
        match self {
            Call::Method => TracedKind::Method,
            Call::Block => TracedKind::Block,
            Call::Class => TracedKind::Class,
            Call::C { .. } => TracedKind::C,
        }
    }
}

/// The kinds of calls whose events cost the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// Methods of Ruby, and bodies of classes.
    Method,
    /// Blocks.
    Block,
    /// Methods of C.
    C,
}

impl CallKind {
    /// All of them.
    pub const ALL: [CallKind; 3] = [CallKind::Method, CallKind::Block, CallKind::C];
}

/// What a node of the traced tree stands for. A method and its own blocks have the same word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum TracedKind {
    /// A method of Ruby.
    Method,
    /// A block.
    Block,
    /// The body of a class or module.
    Class,
    /// A method of C whose call was told.
    C,
    /// Ruby code that no event told of.
    Inserted,
    /// A method of C that no event told of.
    InsertedC,
    /// The root, and what stands for nodes that found no room.
    None,
}

impl TracedKind {
    /// Whether its calls are counted, and by which cost they are corrected.
    #[inline]
    pub(crate) fn counted(self) -> Option<CallKind> {
        match self {
            TracedKind::Method | TracedKind::Class => Some(CallKind::Method),
            TracedKind::Block => Some(CallKind::Block),
            TracedKind::C => Some(CallKind::C),
            TracedKind::Inserted | TracedKind::InsertedC | TracedKind::None => None,
        }
    }

    /// Whether it is a method of C.
    pub(crate) fn is_c(self) -> bool {
        matches!(self, TracedKind::C | TracedKind::InsertedC)
    }
}

/// The VM as the calling thread sees it at an event. No answer makes an object, raises, or takes
/// a lock.
pub trait TraceVm {
    /// How many frames the stack has, with those that are not shown.
    fn depth(&self) -> u32;

    /// Writes the frames that are shown, leaf first, and returns how many there are; no more than
    /// fit. A block is the method that has it.
    fn frames(&self, frames: &mut [FrameWord]) -> usize;

    /// Notes in the topmost frames, as [`TraceVm::frames`] has them, how many blocks are around each,
    /// if that can be told.
    fn mark_blocks(&self, frames: &mut [FrameWord]);

    /// Whether a frame of the stack is a method of C.
    fn is_c_method(&self, frame: FrameWord) -> bool;

    /// Whether a frame of the stack is a method or block of Ruby, so that an event tells of its
    /// end.
    fn is_called(&self, frame: FrameWord) -> bool;

    /// Whether the VM itself shows a frame of the stack as a block: one outside of methods.
    fn is_named_block(&self, frame: FrameWord) -> bool;

    /// Whether a frame of the stack is a piece of code that belongs to no method entry: a method
    /// that a block defines is such.
    fn is_bare_code(&self, frame: FrameWord) -> bool;

    /// The name, as the VM holds it, and the class of the method whose frame is the topmost.
    fn method_of_code(&self) -> Option<(usize, FrameWord)> {
        None
    }
}

/// Writes the frames that are shown, in which blocks are marked, and returns how many there are.
#[inline]
pub(crate) fn marked_frames(vm: &impl TraceVm, frames: &mut [FrameWord]) -> usize {
    let found = vm.frames(frames);
    vm.mark_blocks(&mut frames[..found]);
    found
}
