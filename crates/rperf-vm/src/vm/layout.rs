//! Where the VM's own structures have the fields that are read past its functions. The bridge says
//! it; `frame_code.rs` reads them, and looks whether they are really there.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Why something private to the VM isn't known, so that nothing is read past the VM's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unknown {
    /// The VM is of a version that nobody has looked at.
    Version,
    /// The VM isn't of the form that is expected.
    Form,
    /// Nobody can look whether it is: the process gets no pipe.
    Access,
}

/// Offsets, in bytes, of fields in the VM's structures.
#[derive(Debug, Clone, Copy)]
pub struct FrameLayout {
    /// The VM's stack, in an execution context.
    pub stack: usize,
    /// The stack's size in words, in an execution context.
    pub stack_size: usize,
    /// The topmost control frame, in an execution context.
    pub frame_in_context: usize,
    /// The size of a control frame. Its caller's comes right after it.
    pub frame_size: usize,
    /// The program counter, in a control frame.
    pub program_counter: usize,
    /// The instruction sequence, in a control frame.
    pub iseq: usize,
    /// Where both are in frames of a compiler that fills control frames late.
    pub late: Option<LateFrames>,
    /// The body, in an instruction sequence.
    pub body: usize,
    /// The number of instruction words, 32 bits of a body.
    pub size: usize,
    /// The instructions, in a body.
    pub encoded: usize,
    /// What tells blocks from their methods.
    pub blocks: BlockLayout,
}

/// What a frame's environments have of the blocks around it: offsets in bytes, and values.
#[derive(Debug, Clone, Copy)]
pub struct BlockLayout {
    /// The environment, in a control frame. Its first word has flags.
    pub environment: usize,
    /// How far before an environment its method entry is, or what stands in for it.
    pub method_before: usize,
    /// How far before an environment the address of the one around it is.
    pub outer_before: usize,
    /// The flags that tell a frame's kind.
    pub kinds: usize,
    /// The kind of a block.
    pub block: usize,
    /// The kind of a call of a method of C.
    pub c_call: usize,
    /// The flag of frames of C: of such calls, and of blocks that are functions of C.
    pub is_c: usize,
    /// The flag of environments that have none around them.
    pub is_outermost: usize,
    /// Where the flags of an internal object have its kind, in bits.
    pub object_kind: usize,
    /// The kind of an object that holds special variables, and the method entry as its second word.
    pub special_variables: usize,
    /// The definition, in a method entry. Its first bits have its kind.
    pub definition: usize,
    /// The bits of the definition that have its kind.
    pub definition_kinds: u32,
    /// The kind of a method of C.
    pub c_method: u32,
}

/// Frames of a compiler that fills control frames late: a word of the control frame says where the
/// native stack has the address of a record with the frame's code. They are there only if
/// [`VmFrames::fills_frames_late`](super::VmFrames::fills_frames_late).
#[derive(Debug, Clone, Copy)]
pub struct LateFrames {
    /// The word, in a control frame, that names a place in the native stack. The address is right
    /// before that place.
    pub place: usize,
    /// The value of that word in frames of C methods, which have no record.
    pub c_method: usize,
    /// The program counter, in a record.
    pub program_counter: usize,
    /// The instruction sequence, in a record.
    pub iseq: usize,
    /// What ticks have found of such frames.
    pub found: &'static LateFramesFound,
}

/// What ticks that have interrupted compiled code have found of the frames of a compiler that fills
/// them late. The check at a session's start rarely meets one. Async-signal-safe.
#[derive(Debug)]
pub struct LateFramesFound(AtomicU8);

const NONE: u8 = 0;
const FITTING: u8 = 1;
const OTHER: u8 = 2;

impl LateFramesFound {
    /// None was found.
    pub const fn none() -> Self {
        Self(AtomicU8::new(NONE))
    }

    /// A frame was found, and it was as expected, or not. Once one was as expected, all are
    /// believed.
    #[inline]
    pub(crate) fn note(&self, fits: bool) {
        if fits {
            self.0.store(FITTING, Relaxed);
        } else {
            let _ = self.0.compare_exchange(NONE, OTHER, Relaxed, Relaxed);
        }
    }

    /// Whether one was as expected.
    #[inline]
    pub(crate) fn fit(&self) -> bool {
        self.0.load(Relaxed) == FITTING
    }

    /// Whether those that were found were not as expected.
    #[inline]
    pub(crate) fn are_in_doubt(&self) -> bool {
        self.0.load(Relaxed) == OTHER
    }
}
