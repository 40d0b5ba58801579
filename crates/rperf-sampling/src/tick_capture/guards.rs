//! Reads the machine code that YJIT and ZJIT make for x86-64, as far as it tells where in
//! Ruby's code it is. Each of their guards is a conditional jump to an exit, which stores
//! the program counter of the guarded instruction in the control frame and returns to the
//! interpreter (`gen_exit` in YJIT's `codegen.rs`, `compile_exits` in ZJIT's `lir.rs`).
//! Before a call the program counter is stored, too: in the control frame, or in a record whose
//! address goes into the native stack (`gen_write_jit_frame` in ZJIT's `codegen.rs`).
//! Called in the signal handler, which is ready for faults; allocates nothing after [`prepare`].

mod search;

use super::Form;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};
use std::cell::Cell;
use std::ops::Range;

pub use search::program_counter_at;

/// Instructions that are looked at on the way to a guard, and in an exit.
const MOST: usize = 64;

/// The longest instruction in bytes.
const LONGEST: usize = 15;

/// What compiled code holds its control frame in. The frame begins with the program counter.
const FRAME: Register = Register::R13;

/// What compiled code addresses the native stack by, where it puts records there.
const STACK: Register = Register::RBP;

/// Constants below are no addresses of records.
const LEAST_ADDRESS: usize = 1 << 16;

/// An instruction of Ruby's, in bytes of the program counter.
const WORD: usize = size_of::<usize>();

/// Has the decoder make its tables.
pub fn prepare() {
    let ret = [0xc3; LONGEST];
    let budget = Cell::new(1);
    let mut walk = Walk::alone(ret.as_ptr() as usize, &budget);
    let range = ret.as_ptr_range();
    walk.next(&(range.start as usize..range.end as usize));
}

/// Whether the code that goes on at this instruction has put a frame on top, and stores only now where
/// the frame's record is, the word `place` of the control frame: until then nothing tells what the
/// frame is.
pub fn begins_frame(instruction: usize, code: &Range<usize>, place: usize) -> bool {
    let budget = Cell::new(BEGINNING);
    let mut walk = Walk::alone(instruction, &budget);
    loop {
        let Some(next) = walk.next(code) else {
            return false;
        };
        let is_store = next.code() == Code::Mov_rm64_r64
            && next.memory_base() == FRAME
            && next.memory_index() == Register::None
            && next.op1_register() == STACK;
        if is_store && next.memory_displacement64() == place as u64 {
            return true;
        }
        match next.flow_control() {
            FlowControl::Next if next.op0_register() == FRAME => return false,
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::UnconditionalBranch => {
                walk.at = next.near_branch_target() as usize;
            }
            _ => return false,
        }
    }
}

/// Instructions at most from the one that puts a frame on top to the end of its beginning.
const BEGINNING: usize = 24;

/// How far before a call its program counter is stored, in bytes: arguments are put in
/// their places in between.
const BEFORE_CALL: usize = 128;

/// Whether the call that returns to this address in `code` has its program counter stored
/// before it; `None` if it is no return address.
pub fn stores_program_counter_for(address: usize, code: &Range<usize>, form: Form) -> Option<bool> {
    let start = code.start.max(address.saturating_sub(BEFORE_CALL));
    // SAFETY: as in `Walk::next`.
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

/// The program counter that an exit to the interpreter stores: that of the instruction of
/// Ruby's that the interpreter goes on with. `None` if there is no exit. For a walk that has come to
/// a jump there.
fn exit(address: usize, code: &Range<usize>, from: &Walk<'_>) -> Option<usize> {
    let mut walk = from.aside(address);
    let mut found = None;
    loop {
        let next = walk.next(code)?;
        found = found.or(walk.left_at(&next));
        match next.flow_control() {
            FlowControl::Next => {}
            // Only exits store it in the control frame; some have the method compiled anew.
            FlowControl::Call | FlowControl::IndirectCall
                if matches!(walk.form, Form::InRecord { .. }) && found.is_some() =>
            {
                return found;
            }
            FlowControl::Return => return found,
            // Exits have a common end.
            FlowControl::UnconditionalBranch if found.is_some() => return found,
            // Other code, which only goes to an exit: its program counter isn't that of the jump.
            FlowControl::UnconditionalBranch if matches!(walk.form, Form::InRecord { .. }) => {
                return None;
            }
            FlowControl::UnconditionalBranch => walk.at = next.near_branch_target() as usize,
            // An exit decides nothing and calls nobody.
            _ => return None,
        }
    }
}

/// What a walk comes to, instruction by instruction.
enum Step {
    /// Code that goes on with the next one.
    Plain(Instruction),
    /// A guard, whose exit stores this program counter.
    Guard(usize),
    /// Code that may go on at this address instead.
    Branch(usize),
    /// Code that goes on at this address.
    Jump(usize),
    /// Code that goes on in the interpreter, by an exit that stores this program counter.
    Exit(usize),
}

/// Machine instructions one after the other.
struct Walk<'b> {
    form: Form,
    at: usize,
    left: usize,
    /// What is left for all walks of a search.
    budget: &'b Cell<usize>,
    /// A constant, and the register that has it.
    constant: Option<(Register, usize)>,
}

impl<'b> Walk<'b> {
    /// Without records.
    fn alone(at: usize, budget: &'b Cell<usize>) -> Self {
        Self {
            form: Form::InFrame,
            at,
            left: MOST,
            budget,
            constant: None,
        }
    }

    /// A walk elsewhere in the same code.
    fn aside(&self, at: usize) -> Self {
        Self {
            at,
            left: MOST,
            constant: None,
            ..*self
        }
    }

    /// The next instruction, unless it is outside of `code`, or there were too many.
    fn next(&mut self, code: &Range<usize>) -> Option<Instruction> {
        self.left = self.left.checked_sub(1)?;
        self.budget.set(self.budget.get().checked_sub(1)?);
        if !code.contains(&self.at) {
            return None;
        }
        let length = LONGEST.min(code.end - self.at);
        // SAFETY: it is memory of a compiler's. Where no code is yet it may fault, for
        // which the handler is ready.
        let bytes = unsafe { std::slice::from_raw_parts(self.at as *const u8, length) };
        let next = Decoder::with_ip(64, bytes, self.at as u64, DecoderOptions::NONE).decode();
        self.at = next.next_ip() as usize;
        (!next.is_invalid()).then_some(next)
    }

    /// The next instruction and what it does; `None` also if code doesn't go on there.
    fn step(&mut self, code: &Range<usize>) -> Option<Step> {
        let next = self.next(code)?;
        let target = next.near_branch_target() as usize;
        match next.flow_control() {
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {
                Some(Step::Plain(next))
            }
            FlowControl::ConditionalBranch => Some(match exit(target, code, self) {
                Some(left_at) => Step::Guard(left_at + WORD),
                None => Step::Branch(target),
            }),
            FlowControl::UnconditionalBranch => Some(match exit(target, code, self) {
                Some(left_at) => Step::Exit(left_at + WORD),
                None => Step::Jump(target),
            }),
            _ => None,
        }
    }

    /// The program counter that `next` stores before a call, if it does.
    fn stored_by(&mut self, next: &Instruction) -> Option<usize> {
        let Form::InRecord { late, iseq } = self.form else {
            return self.left_at(next);
        };
        let distance = next.memory_displacement64() as i64;
        let is_record = (i64::from(i8::MIN)..0).contains(&distance);
        let record = self.constant_stored_by(next, STACK, is_record)?;
        if record < LEAST_ADDRESS || !record.is_multiple_of(WORD) {
            return None;
        }
        // SAFETY: the handler is ready for faults. Other constants lead to other words.
        unsafe {
            let word = |offset: usize| ((record + offset) as *const usize).read_volatile();
            (word(late.iseq) == iseq).then(|| word(late.program_counter))
        }
    }

    /// The program counter that `next` stores in the control frame, if it does.
    fn left_at(&mut self, next: &Instruction) -> Option<usize> {
        let is_first_word = next.memory_displacement64() == 0;
        self.constant_stored_by(next, FRAME, is_first_word)
    }

    /// The constant that `next` stores by the register `base`, if it does. `is_place`: that is the
    /// place where it is looked for.
    fn constant_stored_by(
        &mut self,
        next: &Instruction,
        base: Register,
        is_place: bool,
    ) -> Option<usize> {
        let to_frame = next.op0_kind() == OpKind::Memory
            && next.memory_base() == base
            && next.memory_index() == Register::None
            && is_place;
        let register = next.op0_register().full_register();
        match next.code() {
            Code::Mov_rm64_r64 if to_frame => {
                let from = next.op1_register();
                return self.constant.filter(|it| it.0 == from).map(|it| it.1);
            }
            Code::Mov_rm64_imm32 if to_frame => return Some(next.immediate(1) as usize),
            Code::Mov_r64_imm64 | Code::Mov_r32_imm32 => {
                self.constant = Some((register, next.immediate(1) as usize));
            }
            _ if next.op0_kind() == OpKind::Register
                && self.constant.is_some_and(|it| it.0 == register) =>
            {
                self.constant = None;
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_vm::{LateFrames, LateFramesFound};

    /// Program counters: of the instruction at hand, and of one that calls.
    pub(super) const HERE: u64 = 0x5555_0000_1000;
    pub(super) const AFTER_CALL: u64 = 0x5555_0000_2008;

    /// `mov r11, constant; mov [r13], r11`
    pub(super) fn store(constant: u64) -> Vec<u8> {
        let mut code = vec![0x49, 0xbb];
        code.extend(constant.to_le_bytes());
        code.extend([0x4d, 0x89, 0x5d, 0x00]);
        code
    }

    /// `jo` to so many bytes after it.
    pub(super) fn jump_if_overflow(distance: i32) -> Vec<u8> {
        let mut code = vec![0x0f, 0x80];
        code.extend(distance.to_le_bytes());
        code
    }

    pub(super) fn jump(distance: i32) -> Vec<u8> {
        let mut code = vec![0xe9];
        code.extend(distance.to_le_bytes());
        code
    }

    pub(super) const ADD: [u8; 3] = [0x4c, 0x01, 0xc0];
    pub(super) const RET: [u8; 1] = [0xc3];
    const CALL_NEXT: [u8; 5] = [0xe8, 0, 0, 0, 0];
    /// `mov r11, rax`
    const OVERWRITE: [u8; 3] = [0x49, 0x89, 0xc3];

    fn program_counter(parts: &[&[u8]]) -> Option<u64> {
        let code = parts.concat();
        let range = code.as_ptr_range();
        let range = range.start as usize..range.end as usize;
        program_counter_at(range.start, &range, Form::InFrame, |_, _| false).map(|it| it as u64)
    }

    #[test]
    fn the_exit_of_the_next_guard_has_the_instruction_at_hand() {
        let code: [&[u8]; 5] = [
            &ADD,
            &jump_if_overflow(RET.len() as i32),
            &RET,
            &store(HERE),
            &RET,
        ];
        assert_eq!(program_counter(&code), Some(HERE + 8));
    }

    #[test]
    fn what_is_stored_before_a_call_is_after_its_instruction_already() {
        let code: [&[u8]; 3] = [&store(AFTER_CALL), &CALL_NEXT, &RET];
        assert_eq!(program_counter(&code), Some(AFTER_CALL));
    }

    #[test]
    fn a_jump_to_other_code_is_no_guard_and_jumps_are_followed() {
        let branch = [&store(AFTER_CALL)[..], &CALL_NEXT, &RET].concat();
        let exit = [&store(HERE)[..], &RET].concat();
        let code: [&[u8]; 6] = [
            &jump_if_overflow(5),
            &jump(branch.len() as i32),
            &branch,
            &ADD,
            &jump_if_overflow(0),
            &exit,
        ];
        assert_eq!(program_counter(&code), Some(HERE + 8));
    }

    #[test]
    fn exits_may_share_their_end() {
        let code: [&[u8]; 6] = [
            &jump_if_overflow(RET.len() as i32),
            &RET,
            &store(HERE),
            &jump(1),
            &RET,
            &RET,
        ];
        assert_eq!(program_counter(&code), Some(HERE + 8));
    }

    #[test]
    fn without_a_guard_nothing_is_found() {
        assert_eq!(program_counter(&[&ADD, &RET]), None);
        assert_eq!(program_counter(&[&ADD]), None, "the end of the code");
        assert_eq!(program_counter(&[&jump(-5)]), None, "a circle");
        let not_stored = store(HERE);
        let (constant, stored) = not_stored.split_at(10);
        let code: [&[u8]; 4] = [constant, &OVERWRITE, stored, &RET];
        assert_eq!(program_counter(&code), None, "another value is stored");
        let elsewhere = [0x4d, 0x89, 0x5d, 0x08];
        assert_eq!(program_counter(&[constant, &elsewhere, &RET]), None);
    }

    /// A record's program counter and instruction sequence.
    static RECORD: [usize; 2] = [0x5555_0000_3008, 0x7777_0000_0010];

    static FOUND: LateFramesFound = LateFramesFound::none();

    pub(super) fn in_record(iseq: usize) -> Form {
        let late = LateFrames {
            place: 48,
            c_method: 1,
            program_counter: 0,
            iseq: WORD,
            found: &FOUND,
        };
        Form::InRecord { late, iseq }
    }

    pub(super) fn at(parts: &[&[u8]], form: Form) -> Option<usize> {
        let code = parts.concat();
        let range = code.as_ptr_range();
        let range = range.start as usize..range.end as usize;
        program_counter_at(range.start, &range, form, |_, _| false)
    }

    /// `mov r11, record; mov [rbp - 16], r11`
    fn store_record(record: usize) -> Vec<u8> {
        let mut code = vec![0x49, 0xbb];
        code.extend(record.to_le_bytes());
        code.extend([0x4c, 0x89, 0x5d, 0xf0]);
        code
    }

    #[test]
    fn before_a_call_the_program_counter_may_be_in_a_record() {
        let record = (&raw const RECORD).addr();
        let code = [&store_record(record)[..], &CALL_NEXT, &RET];
        assert_eq!(at(&code, in_record(RECORD[1])), Some(RECORD[0]));
        assert_eq!(at(&code, in_record(8)), None, "that of another frame");
        assert_eq!(at(&code, Form::InFrame), None);
        let small = [&store_record(0x800)[..], &CALL_NEXT, &RET];
        assert_eq!(at(&small, in_record(8)), None, "another constant");
        // What goes into the control frame is what an exit leaves there.
        let in_frame = [&store(AFTER_CALL)[..], &CALL_NEXT, &RET];
        assert_eq!(at(&in_frame, in_record(8)), None);
        let exit: [&[u8]; 5] = [&jump_if_overflow(1), &RET, &store(HERE), &CALL_NEXT, &RET];
        assert_eq!(at(&exit, in_record(8)), Some(HERE as usize + 8));
        assert_eq!(at(&exit, Form::InFrame), None, "another branch");
    }

    #[test]
    fn a_return_address_tells_whether_the_record_is_stored() {
        let record = (&raw const RECORD).addr();
        for (store, form, expected) in [
            (store_record(record), in_record(0), true),
            (store_record(record), Form::InFrame, false),
            (store(HERE), Form::InFrame, true),
            (store(HERE), in_record(0), false),
        ] {
            let code = [&store[..], &CALL_NEXT].concat();
            let range = code.as_ptr_range();
            let range = range.start as usize..range.end as usize;
            let stored = stores_program_counter_for(range.end, &range, form);
            assert_eq!(stored, Some(expected), "{form:?}");
        }
    }

    #[test]
    fn a_frame_begins_until_its_record_is_known() {
        /// `mov [r13 + 48], rbp`
        const STORE_PLACE: [u8; 4] = [0x49, 0x89, 0x6d, 0x30];
        /// `push rbp; mov rbp, rsp`
        const SET_UP: [u8; 4] = [0x55, 0x48, 0x89, 0xe5];
        /// `sub r13, 56`
        const NEXT_FRAME: [u8; 4] = [0x49, 0x83, 0xed, 0x38];
        let begins = |parts: &[&[u8]]| {
            let code = parts.concat();
            let range = code.as_ptr_range();
            let range = range.start as usize..range.end as usize;
            begins_frame(range.start, &range, 48)
        };
        assert!(begins(&[&SET_UP, &STORE_PLACE, &RET]));
        assert!(begins(&[&CALL_NEXT, &SET_UP, &STORE_PLACE, &RET]));
        assert!(!begins(&[&RET, &SET_UP, &STORE_PLACE]), "before it");
        assert!(!begins(&[&SET_UP, &ADD, &RET]), "after it");
        let before = [&NEXT_FRAME[..], &CALL_NEXT, &SET_UP, &STORE_PLACE, &RET];
        assert!(!begins(&before), "the frame isn't on top yet");
        assert!(!begins(&[&jump(-5)]), "a circle");
    }
}
