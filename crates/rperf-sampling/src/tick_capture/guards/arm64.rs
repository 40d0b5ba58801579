//! What YJIT and ZJIT make for arm64 (`backend/arm64` in their sources). An instruction is a word of 32
//! bits, and puts at most 16 bits of a constant into a register (`emit_load_value`).

use super::super::Form;
use super::machine::{Constant, Effect, Flow, Instruction, Machine, Register, Word};
use super::walk::{WORD, Walk};
use std::cell::Cell;
use std::ops::Range;

pub static ARM64: Machine = Machine {
    frame: 19,
    stack: 29,
    // What is above is where a C library that has return addresses signed puts the signature.
    address: (1 << 48) - 1,
    decode,
    constant_before,
    stores_before_call,
};

/// Bytes of an instruction.
const SIZE: usize = 4;

/// Instructions that a constant takes at most.
const PARTS: usize = 4;

/// `b` past a word of 64 bits.
const JUMP_OVER_WORD: u32 = 0x1400_0003;
/// `br`, `blr` and `ret`, but for the register.
const JUMP_BY: u32 = 0xd61f_0000;
const CALL_BY: u32 = 0xd63f_0000;
const RETURN: u32 = 0xd65f_0000;

fn decode(at: usize, code: &Range<usize>) -> Option<Instruction> {
    let word = word_at(at, code)?;
    let branch = target_of_branch(word, at);
    // To places farther away leads a jump, and the opposite condition leads over it.
    let far = branch.and_then(|over| Some((over, jump_between(at + SIZE, over, code)?)));
    // An object of Ruby's is amid the code, which loads it and jumps over it.
    let is_over = |at: usize| word_at(at, code) == Some(JUMP_OVER_WORD);
    let loads = |at: usize| word_at(at, code).is_some_and(loads_after_next);
    let (next, flow, effect) = match (far, branch) {
        (Some((over, far)), _) => (over, Flow::Branch(far), Effect::Nothing),
        (None, Some(target)) => (at + SIZE, Flow::Branch(target), Effect::Nothing),
        _ if loads(at) && is_over(at + SIZE) => (at + 2 * SIZE + WORD, Flow::Next, effect(word)?),
        _ if is_over(at) && loads(at.wrapping_sub(SIZE)) => {
            (at + SIZE + WORD, Flow::Next, Effect::Nothing)
        }
        _ => (at + SIZE, flow(word, at), effect(word)?),
    };
    Some(Instruction { next, flow, effect })
}

/// The instruction at an address, if it is one in `code`.
fn word_at(at: usize, code: &Range<usize>) -> Option<u32> {
    let is_in = at.is_multiple_of(SIZE) && at >= code.start && at.checked_add(SIZE)? <= code.end;
    // SAFETY: it is memory of a compiler's. Where no code is yet it may fault, for which the handler
    // is ready.
    is_in.then(|| unsafe { (at as *const u32).read_volatile() })
}

/// Where code goes on, but for branches.
fn flow(word: u32, at: usize) -> Flow {
    match word & 0xffff_fc1f {
        _ if is_jump(word) => Flow::Jump(target(word, at, 0, 26)),
        _ if is_call(word) => Flow::Call(Some(target(word, at, 0, 26))),
        JUMP_BY => Flow::JumpBy(register(word, 5)),
        CALL_BY => Flow::CallBy(register(word, 5)),
        RETURN => Flow::Return,
        // `brk` and calls of the system
        _ if word & 0xff00_0000 == 0xd400_0000 => Flow::Elsewhere,
        _ => Flow::Next,
    }
}

/// What an instruction does that is no branch; `None` if it is none.
fn effect(word: u32) -> Option<Effect> {
    if let Some(part) = part_of_constant(word) {
        return Some(part);
    }
    let stores = |distance| Effect::Stores {
        base: register(word, 5),
        distance,
        word: Word::Of(register(word, 0)),
    };
    let overwrites = Effect::Overwrites(register(word, 0));
    let is_of_vectors = word & 0x0400_0000 != 0;
    let is_access = word & 0x0a00_0000 == 0x0800_0000;
    Some(match word >> 27 & 7 {
        // `udf`, as where there is no code
        _ if word >> 16 == 0 => return None,
        _ if is_jump(word) || matches!(word & 0xffff_fc1f, JUMP_BY | RETURN) => Effect::Nothing,
        // After a call other registers have other values.
        _ if is_call(word) || word & 0xffff_fc1f == CALL_BY => Effect::OverwritesSome,
        // `stur`, and `str` with a distance in words
        _ if word & 0xffe0_0c00 == 0xf800_0000 => stores(signed(word, 12, 9)),
        _ if word & 0xffc0_0000 == 0xf900_0000 => stores((word >> 10 & 0xfff) as i64 * 8),
        _ if is_access && is_of_vectors => Effect::Nothing,
        // Of one register, and of two: other stores, and loads.
        7 if is_access && word & 0x00c0_0000 == 0 => Effect::Nothing,
        7 if is_access => overwrites,
        5 if is_access && word & 0x0040_0000 == 0 => Effect::Nothing,
        // `ldr` of a word amid the code
        3 if is_access => overwrites,
        _ if is_access => Effect::OverwritesSome,
        _ => overwrites,
    })
}

/// The constant that `movz` puts into a register, or the part of one that `movk` puts there.
fn part_of_constant(word: u32) -> Option<Effect> {
    let (register, bits) = (register(word, 0), (word >> 5) as u16);
    let shift = (word >> 21 & 3) * 16;
    // Of 64 and 32 bits; `movk` of 64.
    match word & 0xff80_0000 {
        0xd280_0000 | 0x5280_0000 => Some(Effect::Constant {
            register,
            value: usize::from(bits) << shift,
        }),
        0xf280_0000 => Some(Effect::Part {
            register,
            bits,
            shift,
        }),
        _ => None,
    }
}

fn constant_before(at: usize, code: &Range<usize>) -> Option<Constant> {
    let mut of = None;
    let (mut value, mut known) = (0, 0);
    for number in 1..=PARTS {
        let word = word_at(at.checked_sub(number * SIZE)?, code)?;
        // What comes later counts.
        match part_of_constant(word)? {
            Effect::Part {
                register,
                bits,
                shift,
            } if of.is_none_or(|it| it == register) => {
                of = Some(register);
                value |= usize::from(bits) << shift & !known;
                known |= usize::from(u16::MAX) << shift;
            }
            Effect::Constant {
                register,
                value: first,
            } if of.is_none_or(|it| it == register) => {
                return Some((register, value | first & !known));
            }
            _ => return None,
        }
    }
    None
}

/// Where a branch leads if its condition holds.
fn target_of_branch(word: u32, at: usize) -> Option<usize> {
    // `b.cond`; `cbz` and `cbnz`; `tbz` and `tbnz`
    let is_by_flags = word & 0xff00_0010 == 0x5400_0000;
    match word & 0x7e00_0000 {
        _ if is_by_flags => Some(target(word, at, 5, 19)),
        0x3400_0000 => Some(target(word, at, 5, 19)),
        0x3600_0000 => Some(target(word, at, 5, 14)),
        _ => None,
    }
}

/// Where the jump leads that is all there is from `first` to `end`.
fn jump_between(first: usize, end: usize, code: &Range<usize>) -> Option<usize> {
    if !(first + SIZE..=first + (PARTS + 1) * SIZE).contains(&end) {
        return None;
    }
    let last = end - SIZE;
    let word = word_at(last, code)?;
    if last == first {
        return is_jump(word).then(|| target(word, last, 0, 26));
    }
    // The constant begins at `first`, and nothing is between it and the jump.
    let is_part = |at| {
        matches!(
            part_of_constant(word_at(at, code)?),
            Some(Effect::Part { .. })
        )
        .then_some(())
    };
    (first + SIZE..last).step_by(SIZE).try_for_each(is_part)?;
    let (by, address) = constant_before(last, &(first..last))?;
    (word == JUMP_BY | u32::from(by) << 5).then_some(address)
}

/// `b`
fn is_jump(word: u32) -> bool {
    word & 0xfc00_0000 == 0x1400_0000
}

/// `bl`
fn is_call(word: u32) -> bool {
    word & 0xfc00_0000 == 0x9400_0000
}

/// `ldr` of the word after the next instruction.
fn loads_after_next(word: u32) -> bool {
    word & 0xffff_ffe0 == 0x5800_0040
}

/// The register whose number begins at this bit.
fn register(word: u32, lowest: u32) -> Register {
    (word >> lowest & 0x1f) as Register
}

/// The number with a sign in so many bits from this one on.
fn signed(word: u32, lowest: u32, bits: u32) -> i64 {
    i64::from((word << (32 - lowest - bits)) as i32 >> (32 - bits))
}

/// The address that is so many instructions away as the number in these bits says.
fn target(word: u32, at: usize, lowest: u32, bits: u32) -> usize {
    at.wrapping_add_signed(signed(word, lowest, bits) as isize * SIZE as isize)
}

/// How far before a call its program counter is stored, in bytes: arguments are put in their places in
/// between.
const BEFORE_CALL: usize = 256;

fn stores_before_call(address: usize, code: &Range<usize>, form: Form) -> Option<bool> {
    let call = word_at(address.checked_sub(SIZE)?, code)?;
    if !is_call(call) && call & 0xffff_fc1f != CALL_BY {
        return None;
    }
    let start = code.start.max(address.saturating_sub(BEFORE_CALL));
    let budget = Cell::new(BEFORE_CALL / SIZE);
    let mut walk = Walk::new(&ARM64, form, start, &budget);
    while walk.at < address {
        match walk.next(code) {
            Some(next) if walk.stored_in_place(&next).is_some() => return Some(true),
            Some(_) => {}
            // An object's word, or the middle of it.
            None => walk.at += SIZE,
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests;
