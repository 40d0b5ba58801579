//! The tree of dominators from the top down.

use crate::dominators::Dominators;
use crate::graph::{Graph, NONE};

/// What each place of the tree dominates directly.
pub struct Tree {
    starts: Vec<u32>,
    below: Vec<u32>,
}

impl Tree {
    /// Turns it over.
    pub fn of(dominators: &Dominators) -> Self {
        let count = dominators.objects.len();
        let mut starts = vec![0_u32; count + 1];
        for &above in dominators.dominators.iter().skip(1) {
            starts[above as usize] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut below = vec![0; sum as usize];
        for (place, &above) in dominators.dominators.iter().enumerate().skip(1).rev() {
            let start = &mut starts[above as usize];
            *start -= 1;
            below[*start as usize] = place as u32;
        }
        Tree { starts, below }
    }

    /// The places below one.
    pub fn below(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.below[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    /// Visits all places, each before those below it, and again after those: then with true.
    pub fn walk(&self, mut visit: impl FnMut(u32, bool)) {
        let mut open = vec![(0, 0)];
        visit(0, false);
        while let Some((place, next)) = open.last_mut() {
            let place = *place;
            if let Some(&below) = self.below(place).get(*next) {
                *next += 1;
                visit(below, false);
                open.push((below, 0));
            } else {
                visit(place, true);
                open.pop();
            }
        }
    }

    /// Adds the objects below one that aren't only the VM's: below those, what they dominate. `open` is empty.
    pub fn visible_below(
        &self,
        graph: &Graph,
        dominators: &Dominators,
        place: u32,
        open: &mut Vec<u32>,
        found: &mut Vec<u32>,
    ) {
        open.push(place);
        while let Some(place) = open.pop() {
            for &below in self.below(place) {
                let object = dominators.objects[below as usize];
                match object != NONE && graph.is_internal(object) {
                    true => open.push(below),
                    false => found.push(object),
                }
            }
        }
    }
}
