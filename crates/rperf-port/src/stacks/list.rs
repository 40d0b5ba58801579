//! The stacks of an answer, each once. Filled on the helper, which takes them; the port's thread makes
//! JSON of them.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Frames that an answer has at most, where each thread has its own: a client takes some millions.
const MOST: usize = 1_000_000;

/// The frames of a stack, the leaf first: which of the names it has, and the line; 0 if there is none.
pub type Stack = Vec<(u32, u32)>;

/// The stacks so far.
#[derive(Debug, Default)]
pub struct StackList {
    stacks: Vec<Stack>,
    /// By their hashes, the places of those that came first with them.
    places: HashMap<u64, u32>,
    hasher: RandomState,
    /// How many frames all threads have together.
    frames: usize,
    left_out: u32,
}

impl StackList {
    /// The stack of one more thread. Returns its place; `None` if it is left out, as there are too many
    /// frames.
    pub fn add(&mut self, stack: Stack) -> Option<u32> {
        let frames = self.frames + stack.len();
        if frames > MOST {
            self.left_out += 1;
            return None;
        }
        self.frames = frames;
        let next = self.stacks.len() as u32;
        let first = *self
            .places
            .entry(self.hasher.hash_one(&stack))
            .or_insert(next);
        if self.stacks.get(first as usize) == Some(&stack) {
            return Some(first);
        }
        // Two may have the same hash: then the second is there as often as it comes.
        self.stacks.push(stack);
        Some(next)
    }

    /// All of them, and how many were left out.
    pub fn finish(self) -> (Vec<Stack>, u32) {
        (self.stacks, self.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_there_once() {
        let mut list = StackList::default();
        let places = [
            vec![(0, 1)],
            vec![(0, 2)],
            vec![],
            vec![(0, 2)],
            vec![(0, 1)],
        ];
        let places = places.map(|stack| list.add(stack));
        assert_eq!(places, [0, 1, 2, 1, 0].map(Some));
        // As if another stack had the same hash.
        list.places.values_mut().for_each(|place| *place = 2);
        assert_eq!(
            [list.add(vec![(0, 1)]), list.add(vec![])],
            [Some(3), Some(2)]
        );
        let stacks = vec![vec![(0, 1)], vec![(0, 2)], vec![], vec![(0, 1)]];
        assert_eq!(list.finish(), (stacks, 0));
    }

    #[test]
    fn no_more_are_kept_than_an_answer_has_room_for() {
        let mut list = StackList::default();
        let places = [MOST / 2, MOST / 2, 1, 0].map(|depth| list.add(vec![(0, 1); depth]));
        assert_eq!(places, [Some(0), Some(0), None, Some(1)]);
        assert_eq!(list.finish().1, 1);
    }
}
