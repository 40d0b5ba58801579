//! The shortest paths from the roots. Each path to an object leads over all that dominate it, so the shortest
//! one does. Where there is a choice, a path by constants, variables of classes and global variables is the best
//! one, then come variables of threads and fibers, then methods, and stacks last, because a stack may hold what
//! nobody uses any more.

use crate::dominators::Dominators;
use crate::graph::{Graph, NONE};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Steps of a path at most, as they are kept; what lies deeper counts to its last one.
const DEEPEST: u16 = 64;

/// How good references are on a path: those that objects have, and what classes call by a name.
const PROPER: usize = 0;
/// References of what only the VM sees, such as a block's variables.
const OF_VM: usize = 1;
/// What threads and fibers call by a name.
const STORED: usize = 2;
/// What classes have without a name, and the VM's roots.
const METHODS: usize = 3;
/// What is on stacks.
const STACKS: usize = 4;

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
    /// The steps that lead to fibers, for those that no thread or stack has to hold.
    to_fibers: FxHashMap<u32, u32>,
}

/// What is to be visited.
struct Candidate {
    object: u32,
    from: u32,
    name: u32,
}

impl Paths {
    /// Finds them.
    pub fn of(graph: &Graph, dominators: &Dominators) -> Self {
        let mut paths = Paths {
            steps: Vec::new(),
            of_objects: vec![NONE; graph.len()],
            depths: Vec::new(),
            known: FxHashMap::default(),
            to_fibers: FxHashMap::default(),
        };
        // By the worst reference of each path.
        let mut open: [VecDeque<Candidate>; STACKS + 1] = Default::default();
        // The VM itself may hold the classes on ways that say nothing.
        let named = graph.called.iter().map(|it| it.0);
        let classes = named.filter(|&it| graph.kinds[it as usize].is_module());
        let classes = classes.filter(|&it| dominators.is_reached(it));
        open[PROPER].extend(classes.map(|object| Candidate {
            object,
            from: NONE,
            name: 0,
        }));
        for root in &graph.roots {
            let is_named = root.variable > 0 || graph.is_place(root.target);
            open[if is_named { PROPER } else { METHODS }].push_back(Candidate {
                object: root.target,
                from: NONE,
                name: root.variable,
            });
        }
        while let Some(worst) = open.iter().position(|it| !it.is_empty())
            && let Some(next) = open[worst].pop_front()
        {
            if paths.of_objects[next.object as usize] != NONE {
                continue;
            }
            paths.enter(graph, &next, worst);
            let from = next.object;
            for reference in graph.references(from) {
                if paths.of_objects[reference.target as usize] == NONE {
                    let rank = rank(graph, from, reference.name).max(worst);
                    open[rank].push_back(Candidate {
                        object: reference.target,
                        from,
                        name: reference.name,
                    });
                }
            }
        }
        paths
    }

    fn enter(&mut self, graph: &Graph, next: &Candidate, worst: usize) {
        let before = match next.from {
            NONE => NONE,
            from => self.of_objects[from as usize],
        };
        self.of_objects[next.object as usize] = if graph.is_place(next.object) {
            let is_held = graph.kinds[next.object as usize].is_fiber() && worst < STORED;
            if is_held && before != NONE {
                self.to_fibers.insert(next.object, before);
            }
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

    /// The first two steps of those from the root to this one.
    pub fn first_two(&self, step: u32) -> Option<(Step, Option<Step>)> {
        let mut first = *self.steps.get(step as usize)?;
        let mut second = None;
        while first.before != NONE {
            second = Some(first);
            first = self.steps[first.before as usize];
        }
        Some((first, second))
    }

    /// The step that leads to a fiber, if something proper does.
    pub fn to_fiber(&self, fiber: u32) -> Option<u32> {
        self.to_fibers.get(&fiber).copied()
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

/// How good a reference is on a path.
fn rank(graph: &Graph, from: u32, name: u32) -> usize {
    let kind = graph.kinds[from as usize];
    let is_of_thread = kind.is_thread() || kind.is_fiber();
    match name {
        0 if is_of_thread => STACKS,
        0 if kind.is_module() => METHODS,
        0 if graph.is_internal(from) => OF_VM,
        _ if is_of_thread => STORED,
        _ => PROPER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{self, Asked};
    use crate::file::{HeapFacts, HeapFile};
    use crate::test_graphs;
    use rperf_protocol::heap::kind::Kind;

    const TEXTS: [&str; 9] = [
        "", "Object", "KEPT", "[:a]", "worker", "String", "Array", "FIBER", "vm",
    ];

    /// A graph with the class Object (0), the classes String (1) and Array (2), which Object alone holds, a thread (3)
    /// and a fiber (4), which are roots, an Array (5) and a String (6). References are pairs of a name and an object.
    fn graph(references: [&[(u32, u32)]; 7]) -> Graph {
        let targets: Vec<Vec<u32>> = (references.iter())
            .map(|it| it.iter().map(|it| it.1).collect())
            .collect();
        // The VM holds Object on a way that says nothing.
        let mut graph = test_graphs::of(&targets, &[3, 7]);
        graph.names = references
            .iter()
            .flat_map(|it| it.iter().map(|it| it.0))
            .collect();
        graph.texts = TEXTS.map(Box::from).to_vec();
        graph.kinds[..3].fill(Kind(Kind::CLASS));
        graph.kinds[3] = Kind(Kind::OBJECT | Kind::THREAD);
        graph.kinds[4] = Kind(Kind::OBJECT | Kind::FIBER);
        graph.classes = vec![NONE, NONE, NONE, 0, 0, 2, 1];
        graph.called = vec![(0, 1), (1, 5), (2, 6), (3, 4)];
        // What only the VM has.
        graph.kinds.push(Kind(Kind::IMEMO));
        graph.classes.push(NONE);
        graph.bytes.push(1);
        graph.targets.push(0);
        graph.names.push(0);
        graph.starts.push(graph.targets.len() as u32);
        graph
    }

    fn told(graph: &Graph) -> HeapFile {
        let asked = Asked {
            class: Some("String"),
            tree: false,
        };
        answer::of(graph, HeapFacts::default(), asked)
    }

    /// How the String is held, as a holder and on a path.
    fn held(references: [&[(u32, u32)]; 7]) -> (String, String) {
        let file = told(&graph(references));
        let holder = file.holders.iter().find(|it| it.class == "String");
        let path = &file.paths.expect("paths")[0];
        let steps = path.steps.iter().map(|it| format!(" > {} {}", it.1, it.0));
        (
            holder.map_or("", |it| &it.name).to_owned(),
            format!("{}{}", path.holder, steps.collect::<String>()),
        )
    }

    const CLASSES: &[(u32, u32)] = &[(5, 1), (6, 2)];

    #[test]
    fn a_constant_comes_before_variables_of_threads_and_fibers_and_these_before_stacks() {
        let object = [(2, 5), (7, 4), (5, 1), (6, 2)];
        // KEPT has the String in an Array; the thread and the fiber have it directly.
        let all = held([&object, &[], &[], &[(3, 6)], &[(3, 6)], &[(0, 6)], &[]]);
        assert_eq!(
            all,
            ("KEPT and others".into(), "KEPT >  Array >  String".into())
        );
        let stack = held([&object, &[], &[], &[(0, 6)], &[], &[(0, 6)], &[]]);
        assert_eq!(
            stack,
            ("KEPT and others".into(), "KEPT >  Array >  String".into())
        );
        // A fiber's variable has the Array, a thread's stack the String.
        let object = [(7, 4), (5, 1), (6, 2)];
        let fiber = held([&object, &[], &[], &[(0, 6)], &[(3, 5)], &[(0, 6)], &[]]);
        let expected = (
            "[:a] of FIBER and others",
            "[:a] of FIBER >  Array >  String",
        );
        assert_eq!(fiber, (expected.0.into(), expected.1.into()));
        // Nobody but a stack.
        let stack = held([CLASSES, &[], &[], &[(0, 6)], &[], &[], &[]]);
        let stack_of = "stack of Thread \"worker\"";
        assert_eq!(stack, (stack_of.into(), format!("{stack_of} >  String")));
    }

    #[test]
    fn the_names_of_constants_come_first() {
        let object = [(2, 6), (5, 1), (6, 2)];
        let (holder, path) = held([&object, &[], &[], &[(3, 6)], &[], &[], &[]]);
        assert_eq!(holder, "KEPT, Thread \"worker\"[:a]");
        assert_eq!(path, "KEPT >  String");
    }

    #[test]
    fn a_fiber_is_called_after_what_holds_it() {
        // A constant holds an Array with the fiber; so does a word on the thread's stack, with the fiber itself.
        let object = [(2, 5), (5, 1), (6, 2)];
        let (holder, path) = held([&object, &[], &[], &[(0, 4)], &[(3, 6)], &[(0, 4)], &[]]);
        assert_eq!(holder, "[:a] of a Fiber in KEPT");
        assert_eq!(path, "[:a] of a Fiber in KEPT >  String");
        let (holder, _) = held([CLASSES, &[], &[], &[(0, 4)], &[(3, 6)], &[], &[]]);
        assert_eq!(holder, "[:a] of a Fiber of Thread \"worker\"");
    }

    #[test]
    fn what_is_shared_is_one_row_for_all_objects_of_a_class() {
        let object = [(2, 5), (5, 1), (6, 2)];
        let array = [(0, 4), (0, 6)];
        let mut graph = graph([&object, &[], &[], &array, &[], &array, &[]]);
        // A second String in place of the fiber.
        graph.kinds[4] = graph.kinds[6];
        graph.classes[4] = graph.classes[6];
        let file = told(&graph);
        let strings = file.holders.iter().filter(|it| it.class == "String");
        let strings: Vec<_> = strings
            .map(|it| (&*it.name, it.objects, it.retained_bytes))
            .collect();
        assert_eq!(strings, [("KEPT and others", 2, 2)]);
    }

    #[test]
    fn a_holder_within_another_one_says_so() {
        let object = [(2, 5), (5, 1), (6, 2)];
        let file = told(&graph([&object, &[], &[], &[], &[(3, 6)], &[(0, 4)], &[]]));
        let rows = file.holders.iter().filter(|it| it.retained_bytes > 0);
        let rows: Vec<_> = rows
            .map(|it| (&*it.name, it.retained_bytes, &*it.within))
            .collect();
        assert_eq!(
            rows,
            [("KEPT", 3, ""), ("[:a] of a Fiber in KEPT", 1, "KEPT")]
        );
    }
}
