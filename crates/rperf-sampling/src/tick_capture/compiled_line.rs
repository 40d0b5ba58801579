//! The line that compiled code is at. It doesn't store its program counter as it goes, so
//! the VM can't tell. But its guards can: each one jumps, if what it assumes doesn't hold,
//! to an exit, which stores the program counter of the guard's instruction in the control
//! frame and returns to the interpreter. So the next guard from the machine instruction
//! at hand tells the line, but for instructions without guards at the end of a line.
//!
//! In the signal handler of the tick, on the interrupted thread. All that is read of the
//! VM's own data is checked before it is believed; what can't be found out is line 0. So
//! is the line of all compiled code where the form of that data isn't known, and on other
//! processors than x86-64 and arm64.

use super::guards::{self, Machine};
use super::{CodeMap, Form, Registers};
use rperf_vm::{FrameCode, FrameLayout, MayFault, VmFrames, tells_line};
use std::iter;
use std::ops::Range;

/// Entries that are remembered.
const REMEMBERED: usize = 1 << 10;

/// Faults in a row after which nothing is read any more.
const FAULTS: u32 = 8;

/// Rows of the native stack in which a return address is looked for.
const ROWS: usize = 1 << 10;

/// How often the map of code may be read, in ns.
const MAP_INTERVAL_NS: u64 = 1_000_000_000;

/// A machine instruction of compiled code, with what it looked like, and the program
/// counter there; 0 if it couldn't be found out.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    instruction: usize,
    bytes: u64,
    program_counter: usize,
}

/// Finds lines of compiled code.
#[derive(Debug)]
pub struct CompiledLines {
    /// Where the VM has its data: the session has looked whether it does. `None`: no line of compiled
    /// code is known.
    layout: Option<FrameLayout>,
    /// How machine code is read. `None`: no line of compiled code is known, either.
    machine: Option<&'static Machine>,
    map: CodeMap,
    map_read_ns: u64,
    /// Code was seen that the map lacks.
    lacks_code: bool,
    known: Box<[Known]>,
    /// The execution context that was seen last; 0 if none was.
    context: usize,
    /// Searches that have begun since one came to its end: a fault ends it.
    begun: u32,
}

impl CompiledLines {
    /// Nothing is known yet. For a VM whose data is where `layout` says, if that is known.
    pub fn new(layout: Option<FrameLayout>) -> Self {
        guards::prepare();
        Self {
            layout,
            machine: guards::MACHINE,
            map: CodeMap::read(),
            map_read_ns: 0,
            lacks_code: false,
            known: vec![Known::default(); REMEMBERED].into(),
            context: 0,
            begun: 0,
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of_val(&*self.known)
    }

    /// Reads the map of code anew if it lacks some: a compiler was turned on. With the
    /// GVL, not in the handler.
    pub fn update_map(&mut self, now_ns: u64) {
        if self.lacks_code && now_ns.saturating_sub(self.map_read_ns) >= MAP_INTERVAL_NS {
            (self.map, self.map_read_ns) = (CodeMap::read(), now_ns);
            self.lacks_code = false;
        }
    }

    /// The line of the topmost frame, or 0 if it isn't known; `None` if it is not compiled
    /// code that runs, so that what the VM tells counts. In the handler; may fault.
    pub fn line(&mut self, vm: &impl VmFrames, registers: &Registers) -> Option<u32> {
        let at = registers.instruction;
        let Some(code) = self.map.compiled_around(at) else {
            self.lacks_code |= self.map.lacks(at);
            return None;
        };
        self.guarded(|lines| lines.search(vm, registers, at, &code))
    }

    /// Whether compiled code has put a frame on top of the stack that the VM doesn't know yet: it would
    /// be taken for another one. In the handler; may fault.
    pub fn is_beginning(&self, vm: &impl VmFrames, registers: &Registers) -> bool {
        let late = self.layout.and_then(|layout| layout.late);
        let late = late.filter(|_| vm.fills_frames_late());
        let (Some(late), Some(machine)) = (late, self.machine) else {
            return false;
        };
        let at = registers.instruction;
        let code = self
            .map
            .compiled_around(at)
            .filter(|_| self.is_on_top(registers));
        code.is_some_and(|code| guards::begins_frame(machine, at, &code, late.place))
    }

    /// Whether compiled code runs for the frame on top of the stack. In the handler; may fault.
    fn is_on_top(&self, registers: &Registers) -> bool {
        let Registers { context, frame, .. } = *registers;
        let are_addresses = |word: usize| word != 0 && word.is_multiple_of(size_of::<usize>());
        let Some(layout) = self
            .layout
            .filter(|_| are_addresses(context) && are_addresses(frame))
        else {
            return false;
        };
        // SAFETY: compiled code holds the execution context and the frame in these registers; where it
        // doesn't, the words are compared before they are believed. The handler is ready for faults.
        unsafe { read(context + layout.frame_in_context) == frame }
    }

    /// Whether the line that the VM tells of the topmost frame counts, which isn't one that runs
    /// compiled code. In the handler; may fault.
    pub fn is_told(&self, vm: &impl VmFrames) -> bool {
        tells_line(self.layout.as_ref(), vm)
    }

    /// The line of the topmost frame, whose compiled code has called the C function that runs; or
    /// 0. In the handler; may fault.
    pub fn line_of_call(&mut self, vm: &impl VmFrames, registers: &Registers) -> u32 {
        let line = self.guarded(|lines| {
            let (return_address, is_stored) = lines.innermost_call(vm, registers)?;
            if is_stored {
                return Some(vm.line());
            }
            // C functions may use the registers for something else, which can't be read.
            let keeps_registers = registers.context == lines.context;
            let code = lines.map.compiled_around(return_address)?;
            keeps_registers.then(|| lines.search(vm, registers, return_address, &code))?
        });
        line.unwrap_or(0)
    }

    /// Where the innermost call from compiled code returns to, and whether its program
    /// counter is stored.
    fn innermost_call(&self, vm: &impl VmFrames, registers: &Registers) -> Option<(usize, bool)> {
        let (layout, machine) = (self.layout.as_ref()?, self.machine?);
        let form = Form::of(vm, layout, 0);
        let on_stack = (0..ROWS).map(|row| {
            // SAFETY: the stack of the thread. May fault beyond its end.
            unsafe { read(registers.stack + row * size_of::<usize>()) }
        });
        iter::once(registers.link).chain(on_stack).find_map(|word| {
            let address = word & machine.address;
            let code = self.map.compiled_around(address)?;
            let is_stored = guards::stores_program_counter_for(machine, address, &code, form)?;
            Some((address, is_stored))
        })
    }

    /// What `search` finds; nothing any more if it has faulted too often.
    fn guarded(&mut self, search: impl FnOnce(&mut Self) -> Option<u32>) -> Option<u32> {
        if self.begun >= FAULTS {
            return Some(0);
        }
        self.begun += 1;
        let line = search(self);
        self.begun = 0;
        line
    }

    fn search(
        &mut self,
        vm: &impl VmFrames,
        registers: &Registers,
        at: usize,
        code: &Range<usize>,
    ) -> Option<u32> {
        let (Some(layout), Some(machine)) = (self.layout, self.machine) else {
            return Some(0);
        };
        if !self.is_on_top(registers) {
            // The frame on top is another one, of a method of C.
            return None;
        }
        self.context = registers.context;
        // SAFETY: the handler is ready for faults.
        let memory = unsafe { MayFault::new() };
        let frame_code = layout.code_of(vm, &memory, registers.frame);
        layout.note_late_frame(vm, frame_code.as_ref());
        let Some(frame_code) = frame_code else {
            return Some(0);
        };
        let form = Form::of(vm, &layout, frame_code.iseq);
        let program_counter = self.program_counter_at(vm, machine, at, code, form, &frame_code);
        if program_counter == 0 || !frame_code.has(program_counter) {
            return Some(0);
        }
        // SAFETY: it is the code of the frame that runs, and has the program counter.
        Some(unsafe { frame_code.line_at(vm, program_counter) })
    }

    /// The program counter at a machine instruction in `code`, that of a frame; 0 if it can't be found
    /// out.
    fn program_counter_at(
        &mut self,
        vm: &impl VmFrames,
        machine: &Machine,
        instruction: usize,
        code: &Range<usize>,
        form: Form,
        frame_code: &FrameCode,
    ) -> usize {
        // SAFETY: it is code that runs just now. May fault where it ends.
        let bytes = unsafe { (instruction as *const u64).read_unaligned() };
        let known = &mut self.known[instruction % REMEMBERED];
        // Code may be thrown away, and other code be in its place.
        if (known.instruction, known.bytes) != (instruction, bytes) {
            let are_alike = |one, other| {
                // SAFETY: it is the code of the frame that runs, and has both.
                let line = |it| unsafe { frame_code.line_at(vm, it) };
                frame_code.has(one) && frame_code.has(other) && line(one) == line(other)
            };
            let found = guards::program_counter_at(machine, instruction, code, form, are_alike);
            *known = Known {
                instruction,
                bytes,
                program_counter: found.unwrap_or(0),
            };
        }
        known.program_counter
    }
}

/// # Safety
/// A word can be read there, or the caller is ready for a fault.
unsafe fn read(address: usize) -> usize {
    // SAFETY: by this function's contract.
    unsafe { (address as *const usize).read_volatile() }
}

#[cfg(test)]
mod tests {
    use super::guards::{ARM64, X86_64};
    use super::*;
    use rperf_vm::VmThread;
    use rperf_vm::fake::{FakeVm, LAYOUT};

    /// A frame of a VM whose compiled code is at an instruction with a guard.
    struct Program {
        machine: &'static Machine,
        /// In words, as instructions of arm64 are.
        code: Vec<u32>,
        instructions: Vec<usize>,
        /// Type and size, and the instructions.
        body: Box<[usize; 2]>,
        iseq: Box<[usize; 3]>,
        frame: Box<[usize; 3]>,
        context: Box<[usize; 3]>,
    }

    impl Program {
        /// Code of x86-64. The guard leads to an exit that stores the address of instruction `left_at`.
        fn new(left_at: usize) -> Self {
            Self::with(&X86_64, left_at, |address| {
                // `add r8, rax; jo +1; ret; mov r11, address; mov [r13], r11; ret`
                let mut code = vec![0x4c, 0x01, 0xc0, 0x0f, 0x80, 1, 0, 0, 0, 0xc3, 0x49, 0xbb];
                code.extend(address.to_le_bytes());
                code.extend([0x4d, 0x89, 0x5d, 0x00, 0xc3]);
                let words = code.chunks(4).map(|bytes| {
                    let byte = |place: usize| bytes.get(place).copied().unwrap_or(0x90);
                    u32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
                });
                words.collect()
            })
        }

        /// Code of arm64, with a guard as in `new`.
        fn of_arm64(left_at: usize) -> Self {
            Self::with(&ARM64, left_at, |address| {
                // `adds x1, x1, x9; b.vs +8; ret`, `movz x11`, three times `movk x11`,
                // `stur x11, [x19]; ret`
                let mut code = vec![0xab09_0021, 0x5400_0046, 0xd65f_03c0];
                for part in 0..4 {
                    let load = if part == 0 { 0xd280_000b } else { 0xf280_000b };
                    let bits = (address >> (16 * part)) as u32 & 0xffff;
                    code.push(load | part << 21 | bits << 5);
                }
                code.extend([0xf800_026b, 0xd65f_03c0]);
                code
            })
        }

        fn with(
            machine: &'static Machine,
            left_at: usize,
            code: impl FnOnce(usize) -> Vec<u32>,
        ) -> Self {
            let instructions = vec![0; 8];
            let mut code = code(instructions[left_at..].as_ptr() as usize);
            // The decoder and the comparison of code read some bytes at once.
            code.extend([0x9090_9090; 4]);
            let body = Box::new([instructions.len() << 32, instructions.as_ptr() as usize]);
            let iseq = Box::new([0, 0, body.as_ptr() as usize]);
            let frame = Box::new([instructions.as_ptr() as usize, 0, iseq.as_ptr() as usize]);
            let context = Box::new([0, 0, frame.as_ptr() as usize]);
            Self {
                machine,
                code,
                instructions,
                body,
                iseq,
                frame,
                context,
            }
        }

        fn lines(&self) -> CompiledLines {
            let code = self.code.as_ptr_range();
            CompiledLines {
                machine: Some(self.machine),
                map: CodeMap::of_compiled(code.start as usize..code.end as usize),
                ..CompiledLines::new(Some(LAYOUT))
            }
        }

        fn registers(&self) -> Registers {
            Registers {
                instruction: self.code.as_ptr() as usize,
                stack: 0,
                link: 0,
                context: self.context.as_ptr() as usize,
                frame: self.frame.as_ptr() as usize,
                was_waiting: false,
            }
        }

        /// A VM whose line is the low half of the instruction's address.
        fn vm(&self) -> FakeVm {
            FakeVm::new(VmThread(8), &[(1, 0)])
        }
    }

    #[test]
    fn the_vm_is_asked_for_the_line_of_the_guarded_instruction() {
        for machine in [Program::new(3), Program::of_arm64(3)] {
            let line = machine.lines().line(&machine.vm(), &machine.registers());
            let guarded = machine.instructions[3..].as_ptr() as usize;
            assert_eq!(line, Some(guarded as u32));
            let stored = machine.instructions.as_ptr() as usize;
            assert_eq!(machine.frame[0], stored, "the frame stays as it is");
        }
    }

    #[test]
    fn a_call_from_compiled_code_may_be_known_by_a_register() {
        // The second instruction becomes `bl`: the call returns to what leads to the exit.
        let mut machine = Program::of_arm64(3);
        machine.code.splice(0..0, [0xab09_0021, 0x9400_0001]);
        let called = Registers {
            instruction: 8,
            link: machine.code[2..].as_ptr() as usize,
            ..machine.registers()
        };
        let vm = machine.vm();
        let mut lines = machine.lines();
        assert_eq!(
            lines.line_of_call(&vm, &called),
            0,
            "whose registers aren't known"
        );
        assert!(lines.line(&vm, &machine.registers()).is_some());
        let guarded = machine.instructions[3..].as_ptr() as usize as u32;
        assert_eq!(lines.line_of_call(&vm, &called), guarded);
        let signed = Registers {
            link: called.link | 0x5a << 48,
            ..called
        };
        assert_eq!(lines.line_of_call(&vm, &signed), guarded);
    }

    #[test]
    fn where_machine_code_is_not_read_no_line_is_told() {
        let machine = Program::new(3);
        let mut lines = CompiledLines {
            machine: None,
            ..machine.lines()
        };
        assert_eq!(lines.line(&machine.vm(), &machine.registers()), Some(0));
        assert_eq!(lines.line_of_call(&machine.vm(), &machine.registers()), 0);
    }

    #[test]
    fn of_an_unknown_vm_no_line_of_compiled_code_is_told() {
        let (machine, vm) = (Program::new(3), FakeVm::new(VmThread(8), &[(1, 7)]));
        let mut lines = CompiledLines {
            layout: None,
            ..machine.lines()
        };
        assert_eq!(lines.line(&vm, &machine.registers()), Some(0));
        assert_eq!(lines.line_of_call(&vm, &machine.registers()), 0);
        let elsewhere = Registers {
            instruction: 8,
            ..machine.registers()
        };
        assert_eq!(lines.line(&vm, &elsewhere), None);
        assert!(lines.is_told(&vm));
        vm.fills_frames_late.set(true);
        assert!(!lines.is_told(&vm), "it may be one of long ago");
    }

    #[test]
    fn what_does_not_fit_together_is_not_believed() {
        let (mut machine, vm) = (Program::new(3), FakeVm::new(VmThread(8), &[(1, 0)]));
        let elsewhere = Registers {
            instruction: 8,
            ..machine.registers()
        };
        assert_eq!(
            machine.lines().line(&vm, &elsewhere),
            None,
            "no compiled code"
        );
        let other_frame = Registers {
            frame: machine.iseq.as_ptr() as usize,
            was_waiting: false,
            ..machine.registers()
        };
        assert_eq!(machine.lines().line(&vm, &other_frame), None);
        machine.body[0] = 2 << 32;
        let line = machine.lines().line(&vm, &machine.registers());
        assert_eq!(
            line,
            Some(0),
            "the program counter is beyond the frame's code"
        );
    }
}
