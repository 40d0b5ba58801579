//! Made-up stacks of control frames, as the VM has them in its memory.

use super::*;
use crate::ids::VmThread;
use crate::vm::fake::{C_METHODS, FakeVm, IS_CODE, LAYOUT};
use crate::vm::{LateFrames, LateFramesFound};
use std::pin::Pin;

/// Words of a control frame, and which of them says where the frame's record is.
const FRAME: usize = 7;
const PLACE: usize = 6;

static FOUND: LateFramesFound = LateFramesFound::none();

const LATE: LateFrames = LateFrames {
    place: PLACE * WORD,
    c_method: 1,
    program_counter: 0,
    iseq: WORD,
    found: &FOUND,
};

/// Code with eight instruction words.
struct Code {
    instructions: Pin<Box<[usize; 8]>>,
    _body: Pin<Box<[usize; 2]>>,
    iseq: Pin<Box<[usize; 3]>>,
}

impl Code {
    fn new() -> Self {
        let instructions = Box::pin([0; 8]);
        let body = Box::pin([8 << 32, instructions.as_ptr().addr()]);
        let iseq = Box::pin([IS_CODE, 0, body.as_ptr().addr()]);
        Self {
            instructions,
            _body: body,
            iseq,
        }
    }

    /// The program counter while so many words before it are executed.
    fn at(&self, word: usize) -> usize {
        self.instructions[word..].as_ptr().addr()
    }

    /// The line that the made-up VM tells of it.
    fn line(&self, word: usize) -> u32 {
        self.at(word.saturating_sub(1)) as u32
    }

    fn iseq(&self) -> usize {
        self.iseq.as_ptr().addr()
    }
}

/// A thread in a method of C that one of Ruby has called, and that another one.
struct Machine {
    codes: [Code; 2],
    /// From the topmost frame on.
    stack: Box<[usize]>,
    context: Box<[usize; 3]>,
    records: Box<[[usize; 2]; 2]>,
    native_stack: Box<[usize; 2]>,
}

impl Machine {
    fn new() -> Self {
        let codes = [Code::new(), Code::new()];
        let mut stack = vec![0; FRAME * 4].into_boxed_slice();
        for (row, (code, word)) in [(1, (&codes[0], 3)), (2, (&codes[1], 5))] {
            stack[row * FRAME] = code.at(word);
            stack[row * FRAME + 2] = code.iseq();
        }
        let base = stack.as_ptr().addr();
        Self {
            records: Box::new([
                [codes[0].at(4), codes[0].iseq()],
                [codes[1].at(6), codes[1].iseq()],
            ]),
            codes,
            context: Box::new([base, stack.len(), base]),
            stack,
            native_stack: Box::new([0; 2]),
        }
    }

    /// The frames' code is in records, and their own words are those of earlier frames.
    fn late(mut self) -> Self {
        let earlier = self.stack[FRAME * 2..].to_vec();
        for (row, record) in self.records.iter().enumerate() {
            let frame = &mut self.stack[(row + 1) * FRAME..];
            frame[..FRAME].copy_from_slice(&earlier[..FRAME]);
            self.native_stack[row] = record.as_ptr().addr();
            frame[PLACE] = self.native_stack[row..].as_ptr().addr() + WORD;
        }
        self.stack[PLACE] = LATE.c_method;
        self.stack[2] = 8; // of no use either
        self
    }

    /// The thread is in the method of Ruby itself. Returns its frame.
    fn with_second_on_top(&self, vm: &FakeVm) -> usize {
        let second = self.stack[FRAME..].as_ptr().addr();
        let context = Box::leak(Box::new([self.context[0], self.context[1], second]));
        vm.context.set(context.as_ptr().addr());
        second
    }

    fn vm(&self, lines: [u32; 2]) -> FakeVm {
        let vm = FakeVm::new(VmThread(8), &[(C_METHODS, 0), (2, lines[0]), (1, lines[1])]);
        vm.context.set(self.context.as_ptr().addr());
        vm
    }

    /// The lines of the two frames, as the VM tells them.
    fn lines(&self) -> [u32; 2] {
        [self.codes[0].line(3), self.codes[1].line(5)]
    }

    fn late_lines(&self) -> [u32; 2] {
        [self.codes[0].line(4), self.codes[1].line(6)]
    }
}

#[test]
fn a_layout_fits_if_the_stack_reads_as_the_vm_tells_it() {
    let machine = Machine::new();
    let vm = machine.vm(machine.lines());
    assert_eq!(LAYOUT.check(&vm), Ok(()));
    let [first, second] = machine.lines();
    for lines in [[first + 8, second], [first, second + 8], [second, first]] {
        assert_eq!(
            LAYOUT.check(&machine.vm(lines)),
            Err(Unknown::Form),
            "another line"
        );
    }
    vm.set_stack(&[(C_METHODS, 0)]);
    assert_eq!(
        LAYOUT.check(&vm),
        Err(Unknown::Form),
        "there is nothing to compare"
    );
    vm.context.set(0);
    assert_eq!(
        LAYOUT.check(&vm),
        Err(Unknown::Form),
        "nobody knows where the stack is"
    );
}

/// A release to come may move any of them, to where words of all kinds are. (Those of the stack
/// itself only bound what is read.)
#[test]
fn a_field_that_has_moved_is_noticed_and_nothing_faults() {
    type Field = fn(&mut FrameLayout) -> &mut usize;
    let fields: [(&str, Field); 6] = [
        ("frame_in_context", |it| &mut it.frame_in_context),
        ("frame_size", |it| &mut it.frame_size),
        ("program_counter", |it| &mut it.program_counter),
        ("iseq", |it| &mut it.iseq),
        ("body", |it| &mut it.body),
        ("encoded", |it| &mut it.encoded),
    ];
    let machine = Machine::new();
    let vm = machine.vm(machine.lines());
    for (name, field) in fields {
        for moved_by in [WORD, 2 * WORD, 1 << 40] {
            let mut layout = LAYOUT;
            *field(&mut layout) += moved_by;
            assert_eq!(
                layout.check(&vm),
                Err(Unknown::Form),
                "{name} {moved_by} further down"
            );
        }
        let mut layout = LAYOUT;
        let field = field(&mut layout);
        if let Some(earlier) = field.checked_sub(WORD) {
            *field = earlier;
            assert_eq!(
                layout.check(&vm),
                Err(Unknown::Form),
                "{name} a word earlier"
            );
        }
    }
}

#[test]
fn words_that_lead_nowhere_are_noticed() {
    for broken in [0, 8, usize::MAX - 7] {
        let mut machine = Machine::new();
        machine.stack[FRAME + 2] = broken;
        assert_eq!(
            LAYOUT.check(&machine.vm(machine.lines())),
            Err(Unknown::Form)
        );
        let mut machine = Machine::new();
        let lines = machine.lines();
        machine.context[2] = broken;
        assert_eq!(LAYOUT.check(&machine.vm(lines)), Err(Unknown::Form));
    }
}

#[test]
fn nothing_is_believed_that_cannot_be_looked_at() {
    let machine = Machine::new();
    let vm = machine.vm(machine.lines());
    let memory = Checked::new();
    assert_eq!(LAYOUT.check_by(&vm, memory.as_ref()), Ok(()));
    assert_eq!(LAYOUT.check_by(&vm, None::<&Checked>), Err(Unknown::Access));
}

#[test]
fn the_code_of_late_frames_is_in_their_records() {
    let layout = FrameLayout {
        late: Some(LATE),
        ..LAYOUT
    };
    let machine = Machine::new();
    let vm = machine.vm(machine.lines());
    assert_eq!(layout.check(&vm), Ok(()), "the compiler is off");
    vm.fills_frames_late.set(true);
    assert_eq!(
        layout.check(&vm),
        Ok(()),
        "frames of the interpreter have none"
    );
    assert!(tells_line(Some(&layout), &vm));
    assert!(!tells_line(None, &vm), "its frames can't be looked at");
    vm.fills_frames_late.set(false);
    assert!(tells_line(None, &vm));

    let machine = Machine::new().late();
    let vm = machine.vm(machine.late_lines());
    vm.fills_frames_late.set(true);
    assert_eq!(layout.check(&vm), Ok(()));
    assert_eq!(
        LAYOUT.check(&vm),
        Err(Unknown::Form),
        "their own words are old"
    );
    assert!(
        tells_line(Some(&layout), &vm),
        "the frame on top is a method's of C"
    );
    machine.with_second_on_top(&vm);
    assert!(!tells_line(Some(&layout), &vm));
    let moved = FrameLayout {
        late: Some(LateFrames { iseq: 0, ..LATE }),
        ..layout
    };
    assert_eq!(moved.check(&vm), Err(Unknown::Form));
    assert!(!tells_line(Some(&moved), &vm), "whatever its record has");
}

/// A session's check meets no late frame if the program has just begun.
#[test]
fn late_fields_that_have_moved_are_noticed_in_the_first_compiled_code() {
    type Field = fn(&mut LateFrames) -> &mut usize;
    let fields: [(&str, Field); 3] = [
        ("place", |it| &mut it.place),
        ("program_counter", |it| &mut it.program_counter),
        ("iseq", |it| &mut it.iseq),
    ];
    let machine = Machine::new().late();
    let vm = machine.vm(machine.late_lines());
    vm.fills_frames_late.set(true);
    let second = machine.with_second_on_top(&vm);
    let memory = Checked::new().expect("words can be looked at");
    let look = |late: LateFrames| {
        let layout = FrameLayout {
            late: Some(late),
            ..LAYOUT
        };
        layout.note_late_frame(&vm, layout.code_of(&vm, &memory, second).as_ref());
        layout
    };
    for (name, field) in fields {
        let found: &'static _ = Box::leak(Box::new(LateFramesFound::none()));
        let mut late = LateFrames { found, ..LATE };
        let earlier = field(&mut late).checked_sub(WORD);
        *field(&mut late) = earlier.unwrap_or(WORD);
        let layout = look(late);
        assert!(found.are_in_doubt(), "{name}");
        vm.context.set(machine.context.as_ptr().addr());
        assert!(!tells_line(Some(&layout), &vm), "{name}: not even this one");
        machine.with_second_on_top(&vm);
    }
    static RIGHT: LateFramesFound = LateFramesFound::none();
    let late = LateFrames {
        found: &RIGHT,
        ..LATE
    };
    look(late);
    assert!(RIGHT.fit());
    look(LateFrames { iseq: 0, ..late });
    assert!(!RIGHT.are_in_doubt(), "once seen, they are believed");
}

#[test]
fn places_of_a_thread_are_told_apart_as_long_as_it_has_frames_of_ruby() {
    // SAFETY: the made-up machine's words can be read.
    let memory = unsafe { MayFault::new() };
    let mut machine = Machine::new();
    let base = machine.context[0];
    let mut place = |top: usize, words: &[(usize, usize)]| {
        machine.context[2] = base + top * FRAME * WORD;
        for &(word, value) in words {
            machine.stack[word] = value;
        }
        LAYOUT.place(&memory, machine.context.as_ptr().addr())
    };
    let below_c = place(0, &[]).expect("a frame of Ruby is near");
    let in_ruby = place(1, &[]).expect("it is one");
    let in_caller = place(2, &[]).expect("it is one");
    assert!(below_c != in_ruby && in_ruby != in_caller);
    assert_eq!(place(0, &[]), Some(below_c));
    let counter = below_c; // any other one
    assert_ne!(place(1, &[(FRAME, counter)]), Some(in_ruby));
    assert_ne!(place(2, &[(2 * FRAME, counter)]), Some(in_caller));
    assert_eq!(place(3, &[]), None, "there is nothing but C");
    assert_eq!(place(4, &[]), None, "the stack is empty");
}

#[test]
fn a_topmost_frame_has_a_line_only_if_its_program_counter_is_its_own() {
    let memory = Checked::new().expect("words can be looked at");
    let mut machine = Machine::new();
    let vm = machine.vm(machine.lines());
    let is_placed = |machine: &Machine| {
        machine.with_second_on_top(&vm);
        LAYOUT.is_top_placed(&vm, &memory, vm.context.get())
    };
    assert_eq!(is_placed(&machine), Some(true));
    for older in [0, machine.codes[1].at(5), machine.codes[0].at(3) + 1] {
        machine.stack[FRAME] = older;
        assert_eq!(is_placed(&machine), Some(false), "{older:x}");
    }
    vm.context.set(machine.context.as_ptr().addr());
    assert_eq!(
        LAYOUT.is_top_placed(&vm, &memory, vm.context.get()),
        None,
        "a frame of a C method"
    );
}
