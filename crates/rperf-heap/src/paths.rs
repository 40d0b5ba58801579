//! The shortest paths from the roots. Each path to an object leads over all that dominate it, so the shortest
//! one does. Where there is a choice, a path by names is better than one over methods, and that better than
//! one from a stack, which may hold what nobody uses any more.

use crate::graph::{Graph, NONE};
use crate::names::is_place;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Steps of a path at most, as they are kept; what lies deeper counts to its last one.
const DEEPEST: u16 = 64;

/// A step of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// What comes before: the number of a step; [`NONE`] for the first one.
    pub before: u32,
    /// An object of this step: the place of names, if it is the first one.
    pub example: u32,
    /// The name by which the object before refers to it; 0 for none.
    pub name: u32,
}

/// The steps on which all objects are held: those of the same class by the same name are one.
pub struct Paths {
    /// The steps.
    pub steps: Vec<Step>,
    /// The step of each object; [`NONE`] for those that aren't reached.
    pub of_objects: Vec<u32>,
    /// How deep each step is.
    depths: Vec<u16>,
    /// By the step before, class and name.
    known: FxHashMap<(u32, u32, u32), u32>,
}

/// What is to be visited.
struct Candidate {
    object: u32,
    from: u32,
    name: u32,
}

impl Paths {
    /// Finds them.
    pub fn of(graph: &Graph) -> Self {
        let mut paths = Paths {
            steps: Vec::new(),
            of_objects: vec![NONE; graph.len()],
            depths: Vec::new(),
            known: FxHashMap::default(),
        };
        // By names, over methods, from stacks.
        let mut open: [VecDeque<Candidate>; 3] = Default::default();
        for root in &graph.roots {
            let rank = usize::from(root.variable == 0 && !is_place(graph, root.target));
            open[rank].push_back(Candidate {
                object: root.target,
                from: NONE,
                name: root.variable,
            });
        }
        while let Some(next) = open.iter_mut().find_map(VecDeque::pop_front) {
            if paths.of_objects[next.object as usize] != NONE {
                continue;
            }
            paths.enter(graph, &next);
            let from = next.object;
            for reference in graph.references(from) {
                if paths.of_objects[reference.target as usize] == NONE {
                    open[rank(graph, from, reference.name)].push_back(Candidate {
                        object: reference.target,
                        from,
                        name: reference.name,
                    });
                }
            }
        }
        paths
    }

    fn enter(&mut self, graph: &Graph, next: &Candidate) {
        let before = match next.from {
            NONE => NONE,
            from => self.of_objects[from as usize],
        };
        self.of_objects[next.object as usize] = if is_place(graph, next.object) {
            // The path begins anew.
            self.step(NONE, next.object, next.object, NONE)
        } else if graph.is_internal(next.object) && before != NONE {
            before
        } else {
            let class = graph.classes[next.object as usize];
            self.step(before, class, next.object, next.name)
        };
    }

    fn step(&mut self, before: u32, class: u32, example: u32, name: u32) -> u32 {
        let depth = match before {
            NONE => 0,
            _ => self.depths[before as usize] + 1,
        };
        let key = (before, class, name);
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        if depth > DEEPEST {
            return before;
        }
        let number = self.steps.len() as u32;
        // The next one of a list is the same step.
        self.known.insert(key, number);
        if before != NONE {
            self.known.insert((number, class, name), number);
        }
        self.depths.push(depth);
        self.steps.push(Step {
            before,
            example,
            name,
        });
        number
    }

    /// The first step of those from the root to this one.
    pub fn first(&self, step: u32) -> Option<Step> {
        let mut first = *self.steps.get(step as usize)?;
        while first.before != NONE {
            first = self.steps[first.before as usize];
        }
        Some(first)
    }

    /// The steps from the root to this one.
    pub fn to(&self, step: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut next = step;
        while next != NONE {
            let step = self.steps[next as usize];
            steps.push(step);
            next = step.before;
        }
        steps.reverse();
        steps
    }
}

/// How good a reference is on a path: 0 is best.
fn rank(graph: &Graph, from: u32, name: u32) -> usize {
    let kind = graph.kinds[from as usize];
    match name {
        0 if kind.is_thread() || kind.is_fiber() => 2,
        0 if kind.is_module() || graph.is_internal(from) => 1,
        _ => 0,
    }
}
