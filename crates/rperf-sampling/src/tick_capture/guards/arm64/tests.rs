//! Tests of what is read of machine code for arm64: all of its instructions are real ones.

use super::*;
use crate::tick_capture::guards::tests::{AFTER_CALL, HERE, in_record};
use crate::tick_capture::guards::{begins_frame, program_counter_at};

/// `adds x1, x1, x9`; `bl` of the next instruction; `blr x16`; `br x16`; `stur x11, [x19]`
const ADD: u32 = 0xab09_0021;
const CALL_NEXT: u32 = 0x9400_0001;
const CALL_X16: u32 = 0xd63f_0200;
const JUMP_X16: u32 = 0xd61f_0200;
const STORE_X11: u32 = 0xf800_026b;
/// `stp x29, x30, [sp, #-16]!`; `mov x29, sp`; `stur x29, [x19, #48]`; `sub x19, x19, #56`
const SAVE: u32 = 0xa9bf_7bfd;
const SET_UP: u32 = 0x9100_03fd;
const STORE_PLACE: u32 = 0xf803_027d;
const NEXT_FRAME: u32 = 0xd100_e273;
/// `ldr x11` of the word after the next instruction
const LOAD_OBJECT: u32 = 0x5800_004b;

/// `movz`, and `movk` as often as it takes.
fn constant(register: u32, value: u64) -> Vec<u32> {
    let bits = |part: u32| (value >> (16 * part)) as u32 & 0xffff;
    let more = (1..4).filter(|part| value >> (16 * part) != 0);
    let more = more.map(|part| 0xf280_0000 | part << 21 | bits(part) << 5 | register);
    let first = 0xd280_0000 | bits(0) << 5 | register;
    [first].into_iter().chain(more).collect()
}

fn store(value: u64) -> Vec<u32> {
    [constant(11, value), vec![STORE_X11]].concat()
}

fn exit(value: u64) -> Vec<u32> {
    [store(value), vec![RETURN | 30 << 5]].concat()
}

fn jump(instructions: i32) -> u32 {
    0x1400_0000 | instructions as u32 & 0x03ff_ffff
}

fn branch_if_overflow(instructions: i32) -> u32 {
    0x5400_0006 | (instructions as u32 & 0x7_ffff) << 5
}

/// Code in one block: some, and behind it what its address makes.
fn after(first: &[u32], rest: impl FnOnce(u64) -> Vec<u32>) -> Vec<u32> {
    let mut code = Vec::with_capacity(64);
    code.extend(first);
    code.extend(rest(code.as_ptr() as u64));
    code
}

fn range(code: &[u32]) -> Range<usize> {
    let range = code.as_ptr_range();
    range.start as usize..range.end as usize
}

/// What is found at the instruction of this number.
fn found_at(number: usize, parts: &[&[u32]], form: Form) -> Option<u64> {
    let code = parts.concat();
    let range = range(&code);
    let at = range.start + number * SIZE;
    program_counter_at(&ARM64, at, &range, form, |_, _| false).map(|it| it as u64)
}

fn found(parts: &[&[u32]]) -> Option<u64> {
    found_at(0, parts, Form::InFrame)
}

#[test]
fn instructions_are_told_apart() {
    let stores = |base, distance, from| Effect::Stores {
        base,
        distance,
        word: Word::Of(from),
    };
    let part = |register, bits, shift| Effect::Part {
        register,
        bits,
        shift,
    };
    let constant = |register, value| Effect::Constant { register, value };
    for (word, effect) in [
        (0xd282_010b, constant(11, 0x1008)),
        (0x5280_0480, constant(0, 36)),
        (0xf2aa_aaab, part(11, 0x5555, 16)),
        (0xf2ef_ffeb, part(11, 0x7fff, 48)),
        (STORE_X11, stores(19, 0, 11)),
        (0xf900_1a6b, stores(19, 48, 11)),
        (0xf81f_83af, stores(29, -8, 15)),
        (0xf800_02ab, stores(21, 0, 11)),
        (0xf81f_0fe1, Effect::Nothing), // str x1, [sp, #-16]!
        (SAVE, Effect::Nothing),
        (0xfc00_0260, Effect::Nothing),        // stur d0, [x19]
        (0xb800_026b, Effect::Nothing),        // stur w11, [x19]
        (0xf841_07e1, Effect::Overwrites(1)),  // ldr x1, [sp], #16
        (0xf840_026b, Effect::Overwrites(11)), // ldur x11, [x19]
        (0xaa10_03eb, Effect::Overwrites(11)), // mov x11, x16
        (0x9280_010b, Effect::Overwrites(11)), // mov x11, #-9
        (NEXT_FRAME, Effect::Overwrites(19)),
        (0xa8c1_7bfd, Effect::OverwritesSome), // ldp x29, x30, [sp], #16
        (0xc811_fdf0, Effect::OverwritesSome), // stlxr w17, x16, [x15]
    ] {
        let code = [word];
        let range = range(&code);
        let expected = Instruction {
            next: range.end,
            flow: Flow::Next,
            effect,
        };
        assert_eq!(decode(range.start, &range), Some(expected), "{word:x}");
    }
}

#[test]
fn where_code_goes_on_is_told() {
    for (word, flow_from) in [
        (
            0x5400_0046_u32,
            (|at| Flow::Branch(at + 8)) as fn(usize) -> Flow,
        ), // b.vs
        (0x54ff_ffc1, |at| Flow::Branch(at - 8)),  // b.ne
        (0xb400_0081, |at| Flow::Branch(at + 16)), // cbz x1
        (0x35ff_ff81, |at| Flow::Branch(at - 16)), // cbnz w1
        (0x3600_0101, |at| Flow::Branch(at + 32)), // tbz w1, #0
        (0xb7ff_ff01, |at| Flow::Branch(at - 32)), // tbnz x1, #63
        (0x1400_0010, |at| Flow::Jump(at + 64)),
        (0x17ff_ffff, |at| Flow::Jump(at - 4)),
        (0x9400_0100, |at| Flow::Call(Some(at + 1024))),
        (JUMP_X16, |_| Flow::JumpBy(16)),
        (CALL_X16, |_| Flow::CallBy(16)),
        (0xd65f_03c0, |_| Flow::Return),
        (0xd503_201f, |_| Flow::Next),      // nop
        (0xd420_0000, |_| Flow::Elsewhere), // brk
        (0xd400_0001, |_| Flow::Elsewhere), // svc
    ] {
        let code = [word];
        let range = range(&code);
        let decoded = decode(range.start, &range).map(|it| it.flow);
        assert_eq!(decoded, Some(flow_from(range.start)), "{word:x}");
    }
    let none = [0];
    assert_eq!(decode(range(&none).start, &range(&none)), None, "no code");
    let code = [ADD];
    let range = range(&code);
    assert_eq!(decode(range.start + 2, &range), None, "amid an instruction");
    assert_eq!(decode(range.end, &range), None, "the end of the code");
}

#[test]
fn the_exit_of_the_next_guard_has_the_instruction_at_hand() {
    let near = [branch_if_overflow(2), RETURN];
    assert_eq!(found(&[&[ADD], &near, &exit(HERE)]), Some(HERE + 8));
    let conditions = [0xb400_0041, 0x3600_0041, 0xb7f8_0041];
    for condition in conditions {
        let near = [condition, RETURN];
        assert_eq!(found(&[&[ADD], &near, &exit(HERE)]), Some(HERE + 8));
    }
}

#[test]
fn a_jump_that_a_branch_leads_over_is_taken_if_its_condition_does_not_hold() {
    let exit = exit(HERE);
    // `b.vc` over `b` to the exit
    let far = [branch_if_overflow(2) | 1, jump(2), RETURN];
    assert_eq!(found(&[&[ADD], &far, &exit]), Some(HERE + 8));
    // The same to other code, which is no guard.
    let other = [branch_if_overflow(2) | 1, jump(4 + exit.len() as i32)];
    let guard = [ADD, branch_if_overflow(2), RETURN];
    let code: [&[u32]; 4] = [&other, &guard, &exit, &store(AFTER_CALL)];
    assert_eq!(found(&code), Some(HERE + 8));
    // By a register, where the exit is anywhere.
    let by_register = |exit| {
        let address = constant(16, exit);
        let over = branch_if_overflow(2 + address.len() as i32) | 1;
        [&[over], &address[..], &[JUMP_X16, RETURN]].concat()
    };
    let code = after(&exit, by_register);
    let (range, start) = (range(&code), exit.len());
    let found = |number: usize| {
        let at = range.start + number * SIZE;
        program_counter_at(&ARM64, at, &range, Form::InFrame, |_, _| false)
    };
    assert_eq!(found(start), Some(HERE as usize + 8));
    let jump = code.len() - 2;
    assert_eq!(found(jump), Some(HERE as usize + 8), "the exit is taken");
}

#[test]
fn what_is_stored_before_a_call_is_after_its_instruction_already() {
    let code = [&store(AFTER_CALL)[..], &[CALL_NEXT, RETURN]];
    let stores = code[0].len();
    for number in 0..stores {
        let found = found_at(number, &code, Form::InFrame);
        assert_eq!(found, Some(AFTER_CALL), "from instruction {number} on");
    }
    assert_eq!(found_at(stores, &code, Form::InFrame), None, "after it");
}

#[test]
fn another_value_is_not_taken_for_the_constant() {
    let constant = constant(11, HERE);
    // `mov x11, x16`; a call; a load of two registers; the constant of another register
    for between in [0xaa10_03eb, CALL_X16, 0xa8c1_7bfd, 0xd280_000f] {
        let code: [&[u32]; 3] = [&constant, &[between, STORE_X11], &[RETURN]];
        assert_eq!(found(&code), None, "{between:x}");
    }
    let other_place: [&[u32]; 2] = [&constant, &[0xf900_1a6b, RETURN]];
    assert_eq!(found(&other_place), None);
    let unknown: [&[u32]; 1] = [&[ADD, 0xf2aa_aaab, STORE_X11, RETURN]];
    assert_eq!(found(&unknown), None, "a part of one alone");
}

#[test]
fn an_object_amid_the_code_is_no_code() {
    let object = [LOAD_OBJECT, JUMP_OVER_WORD, 0xdead_beef, 0x7fff];
    let next = [branch_if_overflow(2), RETURN];
    let code: [&[u32]; 5] = [&object, &[ADD], &object, &next, &exit(HERE)];
    for number in [0, 1, 4, 5, 6] {
        assert_eq!(found_at(number, &code, Form::InFrame), Some(HERE + 8));
    }
    // What is stored after it is no exit's.
    let code: [&[u32]; 4] = [&object, &store(AFTER_CALL), &object, &[CALL_NEXT, RETURN]];
    assert_eq!(found(&code), Some(AFTER_CALL));
}

/// A record's program counter and instruction sequence.
static RECORD: [usize; 2] = [0x5555_0000_3008, 0x7777_0000_0010];

#[test]
fn before_a_call_the_program_counter_may_be_in_a_record() {
    let record = constant(15, (&raw const RECORD).addr() as u64);
    // `stur x15, [x29, #-8]`
    let code: [&[u32]; 2] = [&record, &[0xf81f_83af, CALL_NEXT, RETURN]];
    let form = in_record(RECORD[1]);
    assert_eq!(found_at(0, &code, form), Some(RECORD[0] as u64));
    assert_eq!(found_at(0, &code, in_record(8)), None, "of another frame");
    assert_eq!(found(&code), None);
    let guard = [branch_if_overflow(2), RETURN];
    let in_exit: [&[u32]; 3] = [&guard, &store(HERE), &[CALL_NEXT, RETURN]];
    assert_eq!(found_at(0, &in_exit, form), Some(HERE + 8));
    assert_eq!(found(&in_exit), None, "another branch");
}

#[test]
fn a_return_address_tells_whether_the_program_counter_is_stored() {
    let record = [constant(15, HERE), vec![0xf81f_83af]].concat();
    for (store, form, expected) in [
        (&record, in_record(0), true),
        (&record, Form::InFrame, false),
        (&store(HERE), Form::InFrame, true),
        (&store(HERE), in_record(0), false),
    ] {
        for call in [CALL_NEXT, CALL_X16] {
            let object = [LOAD_OBJECT, JUMP_OVER_WORD, 0, 0];
            let code = [&[ADD][..], store, &object, &[call, ADD]].concat();
            let range = range(&code);
            let stores = |address| stores_before_call(address, &range, form);
            assert_eq!(stores(range.end - SIZE), Some(expected), "{form:?}");
            assert_eq!(stores(range.end), None, "no return address");
            assert_eq!(stores(range.end - SIZE + 1), None, "no instruction");
        }
    }
}

#[test]
fn a_frame_begins_until_its_record_is_known() {
    let begins = |code: &[u32]| begins_frame(&ARM64, range(code).start, &range(code), 48);
    assert!(begins(&[SAVE, SET_UP, STORE_PLACE, RETURN]));
    assert!(begins(&[CALL_NEXT, SAVE, SET_UP, STORE_PLACE, RETURN]));
    let callee = [SAVE, SET_UP, STORE_PLACE, RETURN];
    let code = after(&callee, |callee| {
        [constant(16, callee), vec![CALL_X16]].concat()
    });
    let caller = range(&code[callee.len()..]).start;
    assert!(begins_frame(&ARM64, caller, &range(&code), 48));
    assert!(!begins(&[RETURN, SET_UP, STORE_PLACE]), "before it");
    assert!(!begins(&[SET_UP, ADD, RETURN]), "after it");
    let before = [NEXT_FRAME, CALL_NEXT, SET_UP, STORE_PLACE, RETURN];
    assert!(!begins(&before), "the frame isn't on top yet");
    assert!(!begins(&[jump(0)]), "a circle");
}
