//! The machine code of a processor, as far as it tells where in Ruby's code it is. Its functions run in
//! the signal handler, which is ready for faults; they allocate nothing.

use super::super::Form;
use std::ops::Range;

/// A register, by its number.
pub type Register = u8;

/// A register, and the constant that it has.
pub type Constant = (Register, usize);

/// The longest instruction of any processor, in bytes.
pub const LONGEST: usize = 15;

/// What compilers make of Ruby's code for a processor, and how it is read.
#[derive(Debug)]
pub struct Machine {
    /// What compiled code holds its control frame in. The frame begins with the program counter.
    pub frame: Register,
    /// The bits of a return address that count: others may have its signature.
    pub address: usize,
    /// What compiled code addresses the native stack by, where it puts records there.
    pub stack: Register,
    /// The instruction at an address in a range of code; `None` if it is none.
    pub decode: fn(usize, &Range<usize>) -> Option<Instruction>,
    /// The register that the instructions right before this one have put a constant into, or part of
    /// it, and its value so far.
    pub constant_before: fn(usize, &Range<usize>) -> Option<Constant>,
    /// See [`stores_program_counter_for`](super::stores_program_counter_for).
    pub stores_before_call: fn(usize, &Range<usize>, Form) -> Option<bool>,
}

/// A machine instruction, or some that are one step of the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// Where the next one is.
    pub next: usize,
    /// Where code goes on.
    pub flow: Flow,
    /// What it does to registers and memory.
    pub effect: Effect,
}

/// Where code goes on after an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// With the next one.
    Next,
    /// With the next one, after the code at this address, if that is known.
    Call(Option<usize>),
    /// With the next one, after the code that a register leads to.
    CallBy(Register),
    /// With the next one, or at this address.
    Branch(usize),
    /// At this address.
    Jump(usize),
    /// Where a register leads to.
    JumpBy(Register),
    /// Where the code was called.
    Return,
    /// Elsewhere.
    Elsewhere,
}

/// What an instruction does to registers and memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that counts.
    Nothing,
    /// Puts a constant into a register.
    Constant {
        /// The register.
        register: Register,
        /// The constant.
        value: usize,
    },
    /// Puts 16 bits of a constant into a register, so many bits up, and leaves the others.
    Part {
        /// The register.
        register: Register,
        /// The bits.
        bits: u16,
        /// How many are below them.
        shift: u32,
    },
    /// Puts something else into a register.
    Overwrites(Register),
    /// Puts something else into several registers.
    OverwritesSome,
    /// Stores a word.
    Stores {
        /// The register with the address.
        base: Register,
        /// What is added to it.
        distance: i64,
        /// What is stored.
        word: Word,
    },
}

/// A word that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// The word of a register.
    Of(Register),
    /// A constant.
    Constant(usize),
}
