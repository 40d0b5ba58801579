//! Machine code, walked through instruction by instruction, with the exits that its guards lead to. In
//! the signal handler; allocates nothing.

use super::super::Form;
use super::machine::{Constant, Effect, Flow, Instruction, Machine, Register, Word};
use std::cell::Cell;
use std::ops::Range;

/// Instructions that are looked at on the way to a guard, and in an exit.
pub const MOST: usize = 64;

/// Constants below are no addresses of records.
pub const LEAST_ADDRESS: usize = 1 << 16;

/// An instruction of Ruby's, in bytes of the program counter.
pub const WORD: usize = size_of::<usize>();

/// The program counter that an exit to the interpreter stores: that of the instruction of
/// Ruby's that the interpreter goes on with. `None` if there is no exit. For a walk that has come to
/// a jump there.
fn exit(address: usize, code: &Range<usize>, from: &Walk<'_>) -> Option<usize> {
    let mut walk = from.aside(address);
    let mut found = None;
    loop {
        let next = walk.next(code)?;
        found = found.or_else(|| walk.left_at(&next));
        match next.flow {
            Flow::Next => {}
            // Only exits store it in the control frame; some have the method compiled anew.
            Flow::Call(_) if matches!(walk.form, Form::InRecord { .. }) && found.is_some() => {
                return found;
            }
            Flow::Return => return found,
            // Exits have a common end.
            Flow::Jump(_) if found.is_some() => return found,
            // Other code, which only goes to an exit: its program counter isn't that of the jump.
            Flow::Jump(_) if matches!(walk.form, Form::InRecord { .. }) => return None,
            Flow::Jump(target) => walk.at = target,
            // An exit decides nothing and calls nobody.
            _ => return None,
        }
    }
}

/// What a walk comes to, instruction by instruction.
pub enum Step {
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
pub struct Walk<'b> {
    pub machine: &'b Machine,
    pub form: Form,
    pub at: usize,
    pub left: usize,
    /// What is left for all walks of a search.
    pub budget: &'b Cell<usize>,
    /// The register that has a constant, and the constant.
    pub constant: Option<Constant>,
}

impl<'b> Walk<'b> {
    /// A walk that begins there.
    pub fn new(machine: &'b Machine, form: Form, at: usize, budget: &'b Cell<usize>) -> Self {
        Self {
            machine,
            form,
            at,
            left: MOST,
            budget,
            constant: None,
        }
    }

    /// A walk elsewhere in the same code.
    fn aside(&self, at: usize) -> Self {
        Self::new(self.machine, self.form, at, self.budget)
    }

    /// The next instruction, unless it is outside of `code`, or there were too many.
    pub fn next(&mut self, code: &Range<usize>) -> Option<Instruction> {
        self.left = self.left.checked_sub(1)?;
        self.budget.set(self.budget.get().checked_sub(1)?);
        if !code.contains(&self.at) {
            return None;
        }
        let mut next = (self.machine.decode)(self.at, code)?;
        self.at = next.next;
        next.flow = match next.flow {
            Flow::JumpBy(register) => self
                .constant_of(register)
                .map_or(Flow::Elsewhere, Flow::Jump),
            Flow::CallBy(register) => Flow::Call(self.constant_of(register)),
            flow => flow,
        };
        match (next.effect, &mut self.constant) {
            (Effect::Constant { register, value }, constant) => {
                *constant = Some((register, value));
            }
            (
                Effect::Part {
                    register,
                    bits,
                    shift,
                },
                Some((it, value)),
            ) if *it == register => {
                let others = !(usize::from(u16::MAX) << shift);
                *value = *value & others | usize::from(bits) << shift;
            }
            (Effect::Overwrites(register), Some((it, _))) if *it != register => {}
            (Effect::Overwrites(_) | Effect::OverwritesSome, constant) => *constant = None,
            _ => {}
        }
        Some(next)
    }

    /// The next instruction and what it does; `None` also if code doesn't go on there.
    pub fn step(&mut self, code: &Range<usize>) -> Option<Step> {
        let next = self.next(code)?;
        match next.flow {
            Flow::Next | Flow::Call(_) => Some(Step::Plain(next)),
            Flow::Branch(target) => Some(match exit(target, code, self) {
                Some(left_at) => Step::Guard(left_at + WORD),
                None => Step::Branch(target),
            }),
            Flow::Jump(target) => Some(match exit(target, code, self) {
                Some(left_at) => Step::Exit(left_at + WORD),
                None => Step::Jump(target),
            }),
            _ => None,
        }
    }

    /// The program counter that `next` stores before a call, if it does.
    pub fn stored_by(&self, next: &Instruction) -> Option<usize> {
        let stored = self.stored_in_place(next)?;
        let Form::InRecord { late, iseq } = self.form else {
            return Some(stored);
        };
        if stored < LEAST_ADDRESS || !stored.is_multiple_of(WORD) {
            return None;
        }
        // SAFETY: the handler is ready for faults. Other constants lead to other words.
        unsafe {
            let word = |offset: usize| ((stored + offset) as *const usize).read_volatile();
            (word(late.iseq) == iseq).then(|| word(late.program_counter))
        }
    }

    /// The constant that `next` stores where compiled code puts the program counter before a call, or
    /// the record with it, if it does.
    pub fn stored_in_place(&self, next: &Instruction) -> Option<usize> {
        match self.form {
            Form::InFrame => self.left_at(next),
            Form::InRecord { .. } => {
                let is_record = |distance| (i64::from(i8::MIN)..0).contains(&distance);
                self.constant_stored_by(next, self.machine.stack, is_record)
            }
        }
    }

    /// The program counter that `next` stores in the control frame, if it does.
    fn left_at(&self, next: &Instruction) -> Option<usize> {
        self.constant_stored_by(next, self.machine.frame, |distance| distance == 0)
    }

    /// The constant that `next` stores by the register `at`, at a distance of which `is_place` holds,
    /// if it does.
    fn constant_stored_by(
        &self,
        next: &Instruction,
        at: Register,
        is_place: impl Fn(i64) -> bool,
    ) -> Option<usize> {
        match next.effect {
            Effect::Stores {
                base,
                distance,
                word,
            } if base == at && is_place(distance) => match word {
                Word::Constant(constant) => Some(constant),
                Word::Of(register) => self.constant_of(register),
            },
            _ => None,
        }
    }

    fn constant_of(&self, register: Register) -> Option<usize> {
        let (it, constant) = self.constant?;
        (it == register).then_some(constant)
    }
}
