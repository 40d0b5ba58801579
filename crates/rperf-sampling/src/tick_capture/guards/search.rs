//! Which program counter counts at an instruction of compiled code: that of the next guard, on all ways
//! that may be taken. In the signal handler; allocates nothing.

use super::machine::Machine;
use super::walk::{MOST, Step, Walk};
use crate::tick_capture::Form;
use std::cell::Cell;
use std::ops::Range;

/// The program counter at a machine instruction in `code`, as the VM wants it to tell a
/// line: that after the instruction of Ruby's at hand. `are_alike`: two program counters are of one
/// line.
pub fn program_counter_at(
    machine: &Machine,
    instruction: usize,
    code: &Range<usize>,
    form: Form,
    are_alike: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let search = Search {
        machine,
        instruction,
        code,
        form,
        are_alike,
        left: Cell::new(BUDGET),
    };
    let mut walk = search.walk(instruction, MOST);
    walk.constant = (machine.constant_before)(instruction, code);
    search.program_counter_from(walk, FORKS)
}

/// Instructions that a search may look at in all: some microseconds.
const BUDGET: usize = 1 << 9;

/// Branches after which both ways are looked at, on the way to a guard.
const FORKS: usize = 3;

/// A search for the program counter at an instruction.
struct Search<'c, A> {
    machine: &'c Machine,
    instruction: usize,
    code: &'c Range<usize>,
    form: Form,
    are_alike: A,
    /// Instructions that it may still look at.
    left: Cell<usize>,
}

impl<A: Fn(usize, usize) -> bool> Search<'_, A> {
    /// The program counter of the next guard that `walk` comes to, or of a call before it.
    fn program_counter_from(&self, mut walk: Walk<'_>, forks: usize) -> Option<usize> {
        loop {
            match walk.step(self.code)? {
                Step::Plain(next) => {
                    // Before a call that may raise or look at the stack.
                    if let Some(stored) = walk.stored_by(&next) {
                        return Some(stored);
                    }
                }
                Step::Guard(left_at) | Step::Exit(left_at) => return Some(left_at),
                Step::Jump(target) => walk.at = target,
                Step::Branch(target) => match self.form {
                    Form::InFrame => {}
                    Form::InRecord { .. } => {
                        let ways = [target, walk.at];
                        // What comes after may be of another line, but for the code of a loop.
                        match ways.map(|way| self.leads_back(way)) {
                            [Some(true), Some(false)] => walk.at = target,
                            [Some(false), Some(true)] => {}
                            _ => return self.program_counter_of_both(ways, forks.checked_sub(1)?),
                        }
                    }
                },
            }
        }
    }

    /// The program counter of the next guards on two ways, if they are alike: either way may be taken.
    fn program_counter_of_both(&self, ways: [usize; 2], forks: usize) -> Option<usize> {
        let [one, other] = ways.map(|way| self.program_counter_from(self.walk(way, MOST), forks));
        let are_alike = one? == other? || (self.are_alike)(one?, other?);
        are_alike.then_some(one?)
    }

    /// Whether the code that goes on at `from` comes to the instruction, by branches and back; `None`
    /// if that is too far to tell, or if it goes on in the interpreter, as a way does that was never
    /// taken before.
    fn leads_back(&self, from: usize) -> Option<bool> {
        let mut walk = self.walk(from, AROUND);
        let mut branches = Branches::default();
        let mut is_unsure = false;
        while walk.at != self.instruction {
            let goes_on = match walk.step(self.code) {
                Some(Step::Plain(_) | Step::Guard(_)) => true,
                Some(Step::Branch(target)) => {
                    branches.add(target);
                    true
                }
                Some(Step::Jump(target)) => {
                    branches.add(target);
                    false
                }
                Some(Step::Exit(_)) => {
                    is_unsure = true;
                    false
                }
                None => false,
            };
            if goes_on {
                continue;
            }
            if walk.left == 0 || self.left.get() == 0 {
                return None;
            }
            match branches.next() {
                Some(next) => walk.at = next,
                None => return (!is_unsure && !branches.are_too_many).then_some(false),
            }
        }
        Some(true)
    }

    fn walk(&self, at: usize, most: usize) -> Walk<'_> {
        Walk {
            left: most,
            ..Walk::new(self.machine, self.form, at, &self.left)
        }
    }
}

/// Instructions that are looked at on the way around a loop, and branches on it.
const AROUND: usize = 192;
const BRANCHES: usize = 12;

/// Where branches lead, each of them once.
#[derive(Default)]
struct Branches {
    targets: [usize; BRANCHES],
    known: usize,
    followed: usize,
    are_too_many: bool,
}

impl Branches {
    fn add(&mut self, target: usize) {
        if self.targets[..self.known].contains(&target) {
            return;
        }
        match self.targets.get_mut(self.known) {
            Some(place) => (*place, self.known) = (target, self.known + 1),
            None => self.are_too_many = true,
        }
    }

    /// The next target that wasn't followed yet.
    fn next(&mut self) -> Option<usize> {
        let next = self.targets[..self.known].get(self.followed)?;
        self.followed += 1;
        Some(*next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tick_capture::guards::X86_64;
    use crate::tick_capture::guards::machine::LONGEST;
    use crate::tick_capture::guards::tests::*;

    #[test]
    fn where_code_branches_what_is_in_a_loop_counts() {
        // add; jo out; jo body; exit of another line; ...; body: add; jo exit; jmp to the start
        let other = [&jump_if_overflow(1)[..], &RET, &store(AFTER_CALL), &RET].concat();
        let exit = [&store(HERE)[..], &RET].concat();
        let body = |back: i32| {
            let guard = jump_if_overflow(5);
            [&ADD[..], &guard, &jump(back), &exit].concat()
        };
        let start = [&ADD[..], &jump_if_overflow(other.len() as i32)].concat();
        let whole = -((start.len() + other.len() + ADD.len() + 6 + 5) as i32);
        let looped = [&start[..], &other, &body(whole)];
        assert_eq!(at(&looped, in_record(8)), Some(HERE as usize + 8));
        assert_eq!(at(&looped, Form::InFrame), Some(AFTER_CALL as usize + 8));
        let straight = [&start[..], &other, &body(0)];
        assert_eq!(at(&straight, in_record(8)), None, "it may be either");
    }

    /// A loop that begins with `add; jo`: one way goes on, the other one jumps, and both lead back.
    fn loop_of_two_ways(one: u64, other: u64) -> Vec<u8> {
        let way = |constant: u64, before: usize| {
            let back = -((before + ADD.len() + 6 + 5) as i32);
            let body = [&ADD[..], &jump_if_overflow(5), &jump(back)].concat();
            [&body[..], &store(constant), &RET].concat()
        };
        let head = ADD.len() + 6;
        let first = way(one, head);
        let second = way(other, head + first.len());
        let branch = jump_if_overflow(first.len() as i32);
        [&ADD[..], &branch, &first, &second].concat()
    }

    #[test]
    fn where_both_ways_are_in_a_loop_they_count_if_they_are_alike() {
        let find = |other: u64, are_alike: fn(usize, usize) -> bool| {
            let code = loop_of_two_ways(HERE, other);
            let range = code.as_ptr_range();
            let range = range.start as usize..range.end as usize;
            program_counter_at(&X86_64, range.start, &range, in_record(8), are_alike)
        };
        let here = HERE as usize + 8;
        assert_eq!(find(HERE, |_, _| false), Some(here), "the same");
        assert_eq!(find(AFTER_CALL, |_, _| false), None, "it may be either");
        let found = find(AFTER_CALL, |_, _| true);
        assert!(
            [Some(here), Some(AFTER_CALL as usize + 8)].contains(&found),
            "of one line"
        );
    }

    #[test]
    fn a_loop_may_be_followed_by_another_one() {
        // add; jo next; add; jo exit; jmp to the start; exit; next: add; jo exit; jmp next; exit
        let exit = |constant: u64| [&store(constant)[..], &RET].concat();
        let guarded = |constant: u64, back: usize| {
            let back = -((ADD.len() + 6 + 5 + back) as i32);
            [&ADD[..], &jump_if_overflow(5), &jump(back), &exit(constant)].concat()
        };
        let first = guarded(HERE, ADD.len() + 6);
        let start = [&ADD[..], &jump_if_overflow(first.len() as i32)].concat();
        let code = [&start[..], &first, &guarded(AFTER_CALL, 0)];
        assert_eq!(at(&code, in_record(8)), Some(HERE as usize + 8));
    }

    #[test]
    fn code_does_not_go_on_after_a_jump() {
        // out: add; jmp away; start: add; jo out; add; jo exit; jmp start; exit; away: another line
        let exit = |constant: u64| [&store(constant)[..], &RET].concat();
        let guarded = |constant: u64, end: &[u8]| {
            let guard = jump_if_overflow(end.len() as i32);
            [&ADD[..], &guard, end, &exit(constant)].concat()
        };
        let branch = ADD.len() + 6;
        let inside = guarded(HERE, &jump(-((2 * branch + 5) as i32)));
        let out = [&ADD[..], &jump((branch + inside.len()) as i32)].concat();
        let start = [&ADD[..], &jump_if_overflow(-((out.len() + branch) as i32))].concat();
        let away = guarded(AFTER_CALL, &RET);
        let code = [&out[..], &start, &inside, &away].concat();
        let range = code.as_ptr_range();
        let range = range.start as usize..range.end as usize;
        let at = range.start + out.len();
        let found = program_counter_at(&X86_64, at, &range, in_record(8), |_, _| false);
        assert_eq!(found, Some(HERE as usize + 8));
    }

    #[test]
    fn a_way_that_was_never_taken_is_a_way() {
        // add; jo away; add; jo exit; jmp to the start; exit; away: jmp to its exit; its exit
        let exit = |constant: u64| [&store(constant)[..], &RET].concat();
        let looped = |never: u64| {
            let rest = ADD.len() + 6 + 5 + exit(HERE).len();
            let whole = -((ADD.len() + 6 + ADD.len() + 6 + 5) as i32);
            let start = [&ADD[..], &jump_if_overflow(rest as i32)].concat();
            let body = [&ADD[..], &jump_if_overflow(5), &jump(whole), &exit(HERE)].concat();
            [start, body, jump(0), exit(never)].concat()
        };
        let here = HERE as usize + 8;
        assert_eq!(
            at(&[&looped(AFTER_CALL)], in_record(8)),
            None,
            "of another line"
        );
        assert_eq!(at(&[&looped(HERE)], in_record(8)), Some(here));
    }

    #[test]
    fn a_search_ends_soon_however_many_branches_there_are() {
        let (arms, arm) = (60, 3 * 60 + 1);
        let head = arms * (ADD.len() + 6) + 5;
        let mut code = Vec::new();
        for number in 0..arms {
            code.extend(ADD);
            let here = (number + 1) * (ADD.len() + 6);
            code.extend(jump_if_overflow((head + number * arm - here) as i32));
        }
        code.extend(jump(-(head as i32)));
        for _ in 0..arms {
            code.extend(ADD.repeat(60));
            code.extend(RET);
        }
        code.extend([0x90; LONGEST]);
        let range = code.as_ptr_range();
        let range = range.start as usize..range.end as usize;
        let search = Search {
            machine: &X86_64,
            instruction: range.start,
            code: &range,
            form: in_record(8),
            are_alike: |_, _| false,
            left: Cell::new(BUDGET),
        };
        let walk = search.walk(range.start, MOST);
        assert!(search.program_counter_from(walk, FORKS).is_none());
        assert_eq!(search.left.get(), 0, "it has given up");
    }
}
