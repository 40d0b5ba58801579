//! Where the VM's own structures have the fields that are read past its functions. The bridge says
//! it; `frame_code.rs` reads them, and looks whether they are really there.

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
}

/// Frames of a compiler that fills control frames late: a word of the control frame says where the
/// native stack has the address of a record with the frame's code.
#[derive(Debug, Clone, Copy)]
pub struct LateFrames {
    /// Whether the compiler is on. Async-signal-safe.
    pub is_on: fn() -> bool,
    /// That word, in a control frame. The address is right before the place that it names.
    pub place: usize,
    /// The value of that word in frames of C methods, which have no record.
    pub c_method: usize,
    /// The program counter, in a record.
    pub program_counter: usize,
    /// The instruction sequence, in a record.
    pub iseq: usize,
}
