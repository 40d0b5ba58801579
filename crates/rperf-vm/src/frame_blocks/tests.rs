//! Made-up control frames and environments.

use super::*;
use crate::ids::VmThread;
use crate::stack_digest::StackDigest;
use crate::vm::LateFramesFound;
use crate::vm::fake::{BLOCKS, FakeVm, LAYOUT};
use std::cell::Cell;
use std::collections::HashMap;

const CONTEXT: usize = 0x1000;
const STACK: usize = 0x2000;
const STACK_WORDS: usize = 0x200;

const METHOD: usize = 0x100 | BLOCKS.is_outermost;
const BLOCK: usize = 0x200;
const OTHER: usize = 0;
const C: usize = BLOCKS.is_c;
/// How definitions of methods of Ruby are numbered.
const RUBY: u32 = 0;

/// Words at made-up addresses.
#[derive(Default)]
struct Words {
    at: HashMap<usize, usize>,
    /// The last address that was given to something.
    last: Cell<usize>,
    /// The frame that was pushed last.
    top: usize,
}

impl Memory for Words {
    fn word(&self, address: usize) -> Option<usize> {
        self.at.get(&address).copied()
    }

    fn half_word(&self, address: usize) -> Option<u32> {
        self.word(address).map(|word| word as u32)
    }
}

impl Words {
    fn new() -> Self {
        let mut words = Self {
            top: STACK + STACK_WORDS * WORD,
            last: Cell::new(0x10_0000),
            ..Self::default()
        };
        words.at.insert(CONTEXT + LAYOUT.stack, STACK);
        words.at.insert(CONTEXT + LAYOUT.stack_size, STACK_WORDS);
        words
    }

    fn place(&self) -> usize {
        self.last.set(self.last.get() + 0x100);
        self.last.get()
    }

    fn object(&mut self, kind: usize, second: usize) -> usize {
        let object = self.place();
        self.at.insert(object, kind << BLOCKS.object_kind);
        self.at.insert(object + WORD, second);
        object
    }

    fn method(&mut self, kind: u32) -> usize {
        let definition = self.place();
        self.at.insert(definition, 0xf0 | kind as usize);
        let method = self.object(6, 0);
        self.at.insert(method + BLOCKS.definition, definition);
        method
    }

    fn environment(&mut self, flags: usize, entry: usize, outer: usize) -> usize {
        let environment = self.place();
        self.at.insert(environment, flags);
        self.at.insert(environment - BLOCKS.method_before, entry);
        // The VM marks pointers by their last bit.
        self.at.insert(environment - BLOCKS.outer_before, outer | 1);
        environment
    }

    /// A frame at this program counter, 0 for none.
    fn push(&mut self, environment: usize, program_counter: usize, iseq: usize) {
        self.top -= LAYOUT.frame_size;
        self.at
            .insert(self.top + LAYOUT.program_counter, program_counter);
        self.at.insert(self.top + LAYOUT.iseq, iseq);
        self.at.insert(self.top + BLOCKS.environment, environment);
        self.at.insert(CONTEXT + LAYOUT.frame_in_context, self.top);
    }

    fn mark(&self, layout: &FrameLayout, frames: &[FrameWord]) -> (bool, Vec<FrameWord>) {
        let vm = FakeVm::new(VmThread(8), &[]);
        vm.fills_frames_late.set(true);
        let mut frames = frames.to_vec();
        let fits = layout.mark_blocks(&vm, self, CONTEXT, &mut frames);
        (fits, frames)
    }
}

/// `<main>` calls a method, which calls `each` of C with a block, which calls `each` with a block in
/// that, where an exception is rescued.
struct Program {
    words: Words,
    /// The frames as the VM shows them, leaf first.
    frames: [FrameWord; 7],
    method: usize,
    outer_block: usize,
}

fn program() -> Program {
    let mut words = Words::new();
    let (main, code) = (words.object(7, 0), words.object(7, 0));
    let (method, each) = (words.method(RUBY), words.method(BLOCKS.c_method));
    let variables = words.object(BLOCKS.special_variables, method);
    let top = words.environment(OTHER | BLOCKS.is_outermost, 0, 0);
    let own = words.environment(METHOD, variables, 0);
    let of_each = words.environment(C | BLOCKS.c_call | BLOCKS.is_outermost, each, 0);
    let reference = words.object(1, 0);
    let outer = words.environment(BLOCK, reference, own);
    let inner = words.environment(BLOCK, 0, outer);
    let rescue = words.environment(OTHER, 0, inner);
    let of_block_of_c = words.environment(C, 0, own);
    words.push(top, 8, main);
    words.push(own, 8, code);
    words.push(of_each, 0, 0);
    words.push(outer, 8, code);
    // Neither a block function of C in a method of Ruby nor a frame that hasn't begun is shown.
    words.push(of_block_of_c, 0, 0);
    words.push(of_each, 0, 0);
    words.push(inner, 0, code);
    words.push(inner, 8, code);
    words.push(rescue, 8, code);
    Program {
        frames: [method, method, each, method, each, method, main],
        words,
        method,
        outer_block: outer,
    }
}

#[test]
fn blocks_are_told_from_their_methods() {
    let Program { words, frames, .. } = program();
    let (fits, marked) = words.mark(&LAYOUT, &frames);
    assert!(fits);
    let blocks: Vec<_> = marked.iter().map(|word| blocks_around(*word)).collect();
    assert_eq!(blocks, [2, 2, 0, 1, 0, 0, 0]);
    let objects: Vec<_> = marked.iter().map(|word| object_of(*word)).collect();
    assert_eq!(objects, frames);
    let (fits, marked) = words.mark(&LAYOUT, &frames[..2]);
    assert!(fits && marked.iter().all(|word| blocks_around(*word) == 2));
}

#[test]
fn blocks_around_the_topmost_frame_of_ruby_are_told_whatever_backtraces_have_of_it() {
    let Program {
        mut words, method, ..
    } = program();
    let around_top = |words: &Words| LAYOUT.blocks_around_top(words, CONTEXT);
    assert_eq!(around_top(&words), Some(2), "a rescue clause in two blocks");
    let own = words.environment(METHOD, method, 0);
    let block = words.environment(BLOCK, 0, own);
    let of_c = words.environment(C | BLOCKS.c_call | BLOCKS.is_outermost, method, 0);
    for (environment, blocks) in [(own, 0), (block, 1), (of_c, 1)] {
        words.push(environment, 0, 0);
        assert_eq!(around_top(&words), Some(blocks));
    }
    words.at.insert(block - BLOCKS.outer_before, 1);
    assert_eq!(around_top(&words), None, "an environment leads nowhere");
}

#[test]
fn a_word_tells_seven_blocks_at_most() {
    let mut program = program();
    let mut environment = program.outer_block;
    for depth in 2..12 {
        environment = program.words.environment(BLOCK, 0, environment);
        program.words.push(environment, 8, 0x5000);
        let (fits, marked) = program.words.mark(&LAYOUT, &[program.method]);
        assert!(fits);
        assert_eq!(
            (object_of(marked[0]), blocks_around(marked[0])),
            (program.method, depth.min(7))
        );
    }
}

#[test]
fn a_method_that_a_block_defines_is_its_code() {
    let Program {
        mut words,
        outer_block,
        ..
    } = program();
    let (by_block, code) = (words.method(4), words.object(7, 0));
    let environment = words.environment(BLOCK, by_block, outer_block);
    words.push(environment, 8, code);
    assert_eq!(words.mark(&LAYOUT, &[code]), (true, vec![code]));
}

#[test]
fn what_is_not_as_the_control_frames_tell_stays_as_it_is() {
    let Program {
        mut words, frames, ..
    } = program();
    for wrong in 0..frames.len() {
        let mut other = frames;
        other[wrong] += 0x10_0000;
        let (fits, marked) = words.mark(&LAYOUT, &other);
        assert!(!fits);
        assert_eq!(marked[wrong..], other[wrong..]);
    }
    let more = [&frames[..], &[8]].concat();
    assert!(!words.mark(&LAYOUT, &more).0, "the stack ends");
    for offset in [BLOCKS.environment, LAYOUT.program_counter] {
        let mut lost = program().words;
        lost.at.remove(&(words.top + offset));
        assert!(!lost.mark(&LAYOUT, &frames).0, "a word leads nowhere");
    }
    let innermost = words.at[&(words.top + BLOCKS.environment)];
    words.at.insert(innermost - BLOCKS.outer_before, 1);
    assert!(
        !words.mark(&LAYOUT, &frames).0,
        "an environment is on its way to the heap"
    );
    words
        .at
        .insert(innermost - BLOCKS.outer_before, innermost | 1);
    assert!(
        !words.mark(&LAYOUT, &frames).0,
        "environments that go round in a circle"
    );
}

#[test]
fn frames_that_are_filled_late_have_their_code_in_records() {
    static FOUND: LateFramesFound = LateFramesFound::none();
    let late = LateFrames {
        place: 6 * WORD,
        c_method: 1,
        program_counter: 0,
        iseq: WORD,
        found: &FOUND,
    };
    let layout = FrameLayout {
        late: Some(late),
        ..LAYOUT
    };
    let Program {
        mut words, method, ..
    } = program();
    let code = words.object(7, 0);
    let own = words.environment(METHOD, method, 0);
    let block = words.environment(BLOCK, 0, own);
    let unknown = words.method(4);
    let of_unknown = words.environment(BLOCK, unknown, own);
    for (environment, stale) in [(of_unknown, 0), (block, 0), (block, 8)] {
        words.push(environment, stale, 0);
        let (record, slot) = (words.place(), words.place());
        words.at.insert(record, 8);
        words.at.insert(record + WORD, code);
        words.at.insert(slot, record);
        words.at.insert(words.top + late.place, slot + WORD);
    }
    let in_block = within_blocks(method, 1);
    let found = words.mark(&layout, &[method, method, code]);
    assert_eq!(found, (true, vec![in_block, in_block, code]));
    words.at.insert(words.top + late.place, late.c_method);
    let found = words.mark(&layout, &[method, code]);
    assert_eq!(
        found,
        (true, vec![in_block, code]),
        "the topmost frame isn't there yet"
    );
}

/// The program in a method of C that it has called from its innermost block.
fn waiting_program() -> Program {
    let mut program = program();
    let sleep = program.words.method(BLOCKS.c_method);
    let flags = C | BLOCKS.c_call | BLOCKS.is_outermost;
    let environment = program.words.environment(flags, sleep, 0);
    program.words.push(environment, 0, 0);
    program
}

fn digest(words: &Words, layout: &FrameLayout, collections: u64) -> Option<StackDigest> {
    let vm = FakeVm::new(VmThread(8), &[]);
    vm.fills_frames_late.set(true);
    layout.digest(&vm, words, CONTEXT, collections)
}

#[test]
fn digests_are_equal_as_long_as_backtraces_are() {
    let mut program = waiting_program();
    let words = &mut program.words;
    let known = digest(words, &LAYOUT, 3).expect("a stack");
    let again = |words: &Words| digest(words, &LAYOUT, 3);
    assert_eq!(again(words), Some(known));
    assert_ne!(digest(words, &LAYOUT, 4), Some(known), "objects have moved");

    // A frame of C has no program counter: the word is left from another one.
    let top = words.top;
    words.at.insert(top + LAYOUT.program_counter, 0x77);
    assert_eq!(again(words), Some(known));
    let size = LAYOUT.frame_size;
    let frames = (STACK + STACK_WORDS * WORD - top) / size;
    for frame in (0..frames).map(|row| top + row * size) {
        let environment = words.at[&(frame + BLOCKS.environment)];
        let flags = words.at[&environment];
        words.at.insert(environment, flags ^ 0x100);
        assert_ne!(again(words), Some(known), "another kind");
        words.at.insert(environment, flags);

        let mut fields = vec![environment - BLOCKS.method_before];
        if flags & BLOCKS.is_c == 0 {
            fields.extend([frame + LAYOUT.program_counter, frame + LAYOUT.iseq]);
        }
        for field in fields {
            let word = words.at[&field];
            for other in [word + 8, word ^ 1 << 40, 0x9999] {
                words.at.insert(field, other);
                assert_ne!(again(words), Some(known), "{field:x}");
            }
            words.at.insert(field, word);
        }
    }
    assert_eq!(again(words), Some(known));

    let mut with_codes = |codes: [usize; 2]| {
        for (row, code) in codes.into_iter().enumerate() {
            let frame = top + (row + 1) * size;
            words.at.insert(frame + LAYOUT.iseq, code);
        }
        digest(words, &LAYOUT, 3)
    };
    assert_ne!(with_codes([0x5000, 0x6000]), with_codes([0x6000, 0x5000]));
    words
        .at
        .insert(CONTEXT + LAYOUT.frame_in_context, top + 4 * size);
    assert!(
        again(words).is_some_and(|it| it != known),
        "it has returned"
    );
}

#[test]
fn there_is_no_digest_where_control_frames_do_not_tell_all() {
    let of_ruby = program().words;
    assert_eq!(digest(&of_ruby, &LAYOUT, 3), None, "code of Ruby on top");
    let mut words = waiting_program().words;
    let late = FrameLayout {
        late: Some(LateFrames {
            place: 6 * WORD,
            c_method: 1,
            program_counter: 0,
            iseq: WORD,
            found: {
                static FOUND: LateFramesFound = LateFramesFound::none();
                &FOUND
            },
        }),
        ..LAYOUT
    };
    assert_eq!(digest(&words, &late, 3), None, "frames are filled late");
    for wrong in [STACK - WORD, STACK + STACK_WORDS * WORD, words.top + 1] {
        let right = words.at.insert(CONTEXT + LAYOUT.frame_in_context, wrong);
        assert_eq!(digest(&words, &LAYOUT, 3), None, "no frame of this stack");
        words
            .at
            .extend(right.map(|it| (CONTEXT + LAYOUT.frame_in_context, it)));
    }
    let block = words.at[&(words.top + LAYOUT.frame_size + BLOCKS.environment)];
    words.at.insert(block - BLOCKS.outer_before, block | 1);
    assert_eq!(digest(&words, &LAYOUT, 3), None, "environments in a circle");
}
