//! The tree of dominators without what only the VM sees: which object is above each.

use crate::dominators::{Dominators, ROOT};
use crate::graph::{Graph, NONE};
use crate::names::Names;

/// What is above each place of the tree.
pub struct Above {
    /// The nearest dominator that isn't only the VM's; [`NONE`] if there is none.
    objects: Vec<u32>,
    /// Whether the first thing of the main script's that is on the way there is its local variables.
    of_main_script: Vec<bool>,
}

impl Above {
    /// Finds it, in one pass: dominators come first.
    pub fn of(graph: &Graph, dominators: &Dominators, names: &Names<'_>) -> Self {
        let count = dominators.objects.len();
        let mut above = Above {
            objects: vec![NONE; count],
            of_main_script: vec![false; count],
        };
        for place in 1..count {
            let next = dominators.dominators[place];
            if next == ROOT {
                continue;
            }
            let object = dominators.objects[next as usize];
            let next = next as usize;
            if graph.is_internal(object) {
                let is_variables = names.of_main_script(object);
                above.objects[place] = above.objects[next];
                above.of_main_script[place] = is_variables.unwrap_or(above.of_main_script[next]);
            } else {
                above.objects[place] = object;
            }
        }
        above
    }

    /// The object above the one at a place.
    pub fn object(&self, place: u32) -> Option<u32> {
        let object = self.objects.get(place as usize).copied();
        object.filter(|it| *it != NONE)
    }

    /// Whether the main script's local variables hold the object at a place.
    pub fn is_of_main_script(&self, place: u32) -> bool {
        let is_so = self.of_main_script.get(place as usize).copied();
        is_so.unwrap_or_default()
    }
}
