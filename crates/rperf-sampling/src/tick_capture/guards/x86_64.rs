//! What YJIT and ZJIT make for x86-64 (`backend/x86_64` in their sources).

use super::super::Form;
use super::machine::{Effect, Flow, Instruction, LONGEST, Machine, Word};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, OpKind, Register};
use std::ops::Range;

pub static X86_64: Machine = Machine {
    frame: Register::R13 as u8,
    stack: Register::RBP as u8,
    address: usize::MAX,
    decode,
    // Where an instruction ends, the one before can't be told.
    constant_before: |_, _| None,
    stores_before_call,
};

fn decode(at: usize, code: &Range<usize>) -> Option<Instruction> {
    let length = LONGEST.min(code.end - at);
    // SAFETY: it is memory of a compiler's. Where no code is yet it may fault, for which the handler
    // is ready.
    let bytes = unsafe { std::slice::from_raw_parts(at as *const u8, length) };
    let next = Decoder::with_ip(64, bytes, at as u64, DecoderOptions::NONE).decode();
    if next.is_invalid() {
        return None;
    }
    let target = next.near_branch_target() as usize;
    let flow = match next.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::Call => Flow::Call(Some(target)),
        FlowControl::IndirectCall => Flow::Call(None),
        FlowControl::ConditionalBranch => Flow::Branch(target),
        FlowControl::UnconditionalBranch => Flow::Jump(target),
        FlowControl::Return => Flow::Return,
        _ => Flow::Elsewhere,
    };
    Some(Instruction {
        next: next.next_ip() as usize,
        flow,
        effect: effect(&next),
    })
}

fn effect(of: &iced_x86::Instruction) -> Effect {
    let stores = |word| Effect::Stores {
        base: of.memory_base() as u8,
        distance: of.memory_displacement64() as i64,
        word,
    };
    let is_in_memory = of.op0_kind() == OpKind::Memory && of.memory_index() == Register::None;
    let register = of.op0_register().full_register() as u8;
    match of.code() {
        Code::Mov_rm64_r64 if is_in_memory => stores(Word::Of(of.op1_register() as u8)),
        Code::Mov_rm64_imm32 if is_in_memory => stores(Word::Constant(of.immediate(1) as usize)),
        Code::Mov_r64_imm64 | Code::Mov_r32_imm32 => Effect::Constant {
            register,
            value: of.immediate(1) as usize,
        },
        _ if of.op0_kind() == OpKind::Register => Effect::Overwrites(register),
        _ => Effect::Nothing,
    }
}

/// How far before a call its program counter is stored, in bytes: arguments are put in their places in
/// between.
const BEFORE_CALL: usize = 128;

fn stores_before_call(address: usize, code: &Range<usize>, form: Form) -> Option<bool> {
    let start = code.start.max(address.saturating_sub(BEFORE_CALL));
    // SAFETY: as in `decode`.
    let before = unsafe { std::slice::from_raw_parts(start as *const u8, address - start) };
    // `call` with a distance, or of a register.
    let is_call = match before {
        [.., 0xe8, _, _, _, _] => true,
        [.., 0xff, register] => (0xd0..=0xd7).contains(register),
        _ => false,
    };
    // `mov register, constant; mov [r13], register`, or `mov [rbp - a few words], register`: both
    // have 0x45 for the base, which r13 has with another prefix.
    let stores = |bytes: &[u8]| match *bytes {
        [0x48 | 0x49, load, .., prefix, 0x89, base, distance] => {
            let from = load.wrapping_sub(0xb8);
            let prefix_of = |base_prefix: u8| base_prefix | (bytes[0] & 1) << 2;
            let is_stored = match form {
                Form::InFrame => prefix == prefix_of(0x49) && distance == 0,
                Form::InRecord { .. } => prefix == prefix_of(0x48) && (distance as i8) < 0,
            };
            from < 8 && base == 0x45 | from << 3 && is_stored
        }
        _ => false,
    };
    is_call.then(|| before.windows(STORE).any(stores))
}

/// Bytes of instructions that store a constant.
const STORE: usize = 14;
