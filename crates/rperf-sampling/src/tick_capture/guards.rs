//! Reads the machine code that YJIT and ZJIT make, as far as it tells where in Ruby's code it is. Each
//! of their guards is a conditional jump to an exit, which stores the program counter of the guarded
//! instruction in the control frame and returns to the interpreter (`gen_exit` in YJIT's `codegen.rs`,
//! `compile_exits` in ZJIT's `lir.rs`). Before a call the program counter is stored, too: in the control
//! frame, or in a record whose address goes into the native stack (`gen_write_jit_frame` in ZJIT's
//! `codegen.rs`). Called in the signal handler, which is ready for faults; allocates nothing after
//! [`prepare`].

mod arm64;
mod machine;
mod search;
mod walk;
mod x86_64;

use super::Form;
pub use machine::Machine;
use machine::{Effect, Flow, LONGEST, Word};
use std::cell::Cell;
use std::ops::Range;
use walk::Walk;

pub use arm64::ARM64;
pub use search::program_counter_at;
pub use x86_64::X86_64;

/// The machine code of this processor, if it can be read.
pub static MACHINE: Option<&Machine> = if cfg!(target_arch = "x86_64") {
    Some(&X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(&ARM64)
} else {
    None
};

/// Has the decoder make its tables.
pub fn prepare() {
    let code = [0; LONGEST];
    let range = code.as_ptr_range();
    if let Some(machine) = MACHINE {
        (machine.decode)(
            range.start as usize,
            &(range.start as usize..range.end as usize),
        );
    }
}

/// Whether the code that goes on at this instruction has put a frame on top, and stores only now where
/// the frame's record is, the word `place` of the control frame: until then nothing tells what the
/// frame is.
pub fn begins_frame(
    machine: &Machine,
    instruction: usize,
    code: &Range<usize>,
    place: usize,
) -> bool {
    let budget = Cell::new(BEGINNING);
    let mut walk = Walk::new(machine, Form::InFrame, instruction, &budget);
    let stores_place = Effect::Stores {
        base: machine.frame,
        distance: place as i64,
        word: Word::Of(machine.stack),
    };
    loop {
        let Some(next) = walk.next(code) else {
            return false;
        };
        if next.effect == stores_place {
            return true;
        }
        match next.flow {
            Flow::Next if next.effect == Effect::Overwrites(machine.frame) => return false,
            Flow::Next => {}
            Flow::Call(Some(target)) | Flow::Jump(target) => walk.at = target,
            _ => return false,
        }
    }
}

/// Instructions at most from the one that puts a frame on top to the end of its beginning.
const BEGINNING: usize = 24;

/// Whether the call that returns to this address in `code` has its program counter stored
/// before it; `None` if it is no return address.
pub fn stores_program_counter_for(
    machine: &Machine,
    address: usize,
    code: &Range<usize>,
    form: Form,
) -> Option<bool> {
    (machine.stores_before_call)(address, code, form)
}

#[cfg(test)]
mod tests {
    use super::walk::WORD;
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
        program_counter_at(&X86_64, range.start, &range, Form::InFrame, |_, _| false)
            .map(|it| it as u64)
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
        program_counter_at(&X86_64, range.start, &range, form, |_, _| false)
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
            let stored = stores_program_counter_for(&X86_64, range.end, &range, form);
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
            begins_frame(&X86_64, range.start, &range, 48)
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
