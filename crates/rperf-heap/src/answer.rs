//! What is told of a graph.

use crate::file::{ClassRow, HeapFacts, HeapFile, PathRow, Sum};
use crate::graph::{Graph, NONE};
use crate::holders::Known;
use crate::merged;
use crate::sites;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// Holders and paths that are kept at most.
pub const MOST: usize = 1000;

/// What only the VM sees is one row.
const OF_VM: &str = "(VM: methods, compiled code, internals)";

/// What is asked for beside what is always told.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The paths to the instances of the class of this name, and the sites of these alone.
    pub class: Option<&'a str>,
    /// The tree of dominators.
    pub tree: bool,
}

/// All that is told, with all classes.
pub fn of(graph: &Graph, facts: HeapFacts, asked: Asked<'_>) -> HeapFile {
    Known::with(graph, |known| of_known(known, facts, asked))
}

fn of_known(known: &Known<'_>, facts: HeapFacts, asked: Asked<'_>) -> HeapFile {
    let graph = known.graph;
    let holders = known.all_holders();
    let nested = known.nested(&holders);
    let outermost = nested.outermost(&holders);
    let mut file = HeapFile {
        whole: graph.is_whole,
        references: graph.targets.len() as u64,
        classes: classes(known),
        holders: known.holders(&holders, &nested, MOST),
        tree: asked.tree.then(|| merged::of(known, &outermost)),
        paths: asked.class.map(|it| paths_to(known, it)),
        sites: sites::of(known, &of_classes(known), asked.class),
        ..HeapFile::of(facts)
    };
    for object in 0..graph.len() as u32 {
        let bytes = graph.bytes[object as usize];
        file.total.add(bytes);
        if !known.dominators.is_reached(object) {
            file.unreferenced.add(bytes);
        }
    }
    file
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// The objects of each class that something refers to, by its name, if there are samples of them.
fn of_classes<'a>(known: &Known<'a>) -> FxHashMap<&'a str, Sum> {
    let graph = known.graph;
    let mut sums: FxHashMap<u32, Sum> = FxHashMap::default();
    if graph.sampled.session.is_some() {
        let reached = (0..graph.len() as u32).filter(|&it| known.dominators.is_reached(it));
        for object in reached.map(|it| it as usize) {
            let sum = sums.entry(graph.classes[object]).or_default();
            sum.add(graph.bytes[object]);
        }
    }
    let mut named: FxHashMap<&str, Sum> = FxHashMap::default();
    for (class, sum) in sums {
        let all = named.entry(graph.name_of_class(class)).or_default();
        all.objects += sum.objects;
        all.bytes = all.bytes.saturating_add(sum.bytes);
    }
    named
}

/// A row for each name of classes: those without one are one row, as are those that a program defines again.
fn classes(known: &Known<'_>) -> Vec<ClassRow> {
    let graph = known.graph;
    let mut rows: Vec<ClassRow> = Vec::new();
    let mut named: FxHashMap<&str, u32> = FxHashMap::default();
    let mut of_classes: FxHashMap<u32, u32> = FxHashMap::default();
    let of_objects = (0..graph.len() as u32).map(|object| {
        let class = match graph.is_internal(object) {
            true => NONE,
            false => graph.classes[object as usize],
        };
        let number = *of_classes.entry(class).or_insert_with(|| {
            let name = match class {
                NONE => OF_VM,
                _ => graph.name(class).unwrap_or("(anonymous class)"),
            };
            *named.entry(name).or_insert_with(|| {
                let name = name.into();
                rows.push(ClassRow {
                    name,
                    ..ClassRow::default()
                });
                rows.len() as u32 - 1
            })
        });
        let row = &mut rows[number as usize];
        row.objects += 1;
        row.bytes = row.bytes.saturating_add(graph.bytes[object as usize]);
        if !known.dominators.is_reached(object) {
            row.unreferenced.add(graph.bytes[object as usize]);
        }
        number
    });
    let of_objects: Vec<u32> = of_objects.collect();
    for (number, bytes) in retained(known, |object| Some(of_objects[object as usize])) {
        rows[number as usize].retained_bytes = bytes;
    }
    rows.sort_unstable_by(|one, other| {
        let key = |row: &ClassRow| (Reverse(row.bytes), Reverse(row.objects));
        key(one)
            .cmp(&key(other))
            .then_with(|| one.name.cmp(&other.name))
    });
    rows
}

/// What would go with the objects of each row. What goes with one that goes with another one of the same row
/// counts once.
fn retained(known: &Known<'_>, row_of: impl Fn(u32) -> Option<u32>) -> FxHashMap<u32, u64> {
    let mut sums: FxHashMap<u32, u64> = FxHashMap::default();
    let mut within: FxHashMap<u32, u32> = FxHashMap::default();
    known.tree.walk(|place, is_left| {
        let object = known.dominators.objects[place as usize];
        let Some(row) = Some(object).filter(|it| *it != NONE).and_then(&row_of) else {
            return;
        };
        let depth = within.entry(row).or_default();
        if is_left {
            *depth -= 1;
            return;
        }
        *depth += 1;
        if *depth == 1 {
            let sum = sums.entry(row).or_default();
            *sum = sum.saturating_add(known.dominators.retained[place as usize]);
        }
    });
    sums
}

/// A row for each path to instances of the class.
fn paths_to(known: &Known<'_>, class: &str) -> Vec<PathRow> {
    let graph = known.graph;
    let is_named = |&&(object, name): &&(u32, u32)| {
        graph.kinds[object as usize].is_module() && graph.text(name) == class
    };
    let classes: FxHashSet<u32> = graph
        .called
        .iter()
        .filter(is_named)
        .map(|it| it.0)
        .collect();
    let step_of = |object: u32| {
        let is_one = classes.contains(&graph.classes[object as usize])
            && known.dominators.is_reached(object)
            && !graph.is_internal(object);
        is_one.then(|| known.paths.of_objects[object as usize])
    };
    let mut steps: FxHashMap<u32, (Sum, u64)> = FxHashMap::default();
    for object in 0..graph.len() as u32 {
        if let Some(step) = step_of(object) {
            let (sum, _) = steps.entry(step).or_default();
            sum.add(graph.bytes[object as usize]);
        }
    }
    for (step, bytes) in retained(known, step_of) {
        steps.entry(step).or_default().1 = bytes;
    }
    let mut rows: Vec<_> = steps.into_iter().collect();
    rows.sort_unstable_by_key(|&(step, (sum, retained))| {
        (Reverse(retained), Reverse(sum.objects), step)
    });
    rows.truncate(MOST);
    let rows = rows.into_iter().map(|(step, (sum, retained_bytes))| {
        let (holder, steps) = known.path(step);
        PathRow {
            holder,
            steps,
            objects: sum.objects,
            bytes: sum.bytes,
            retained_bytes,
        }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_graphs;
    use rperf_protocol::heap::kind::Kind;

    fn told(graph: &Graph) -> HeapFile {
        let asked = Asked {
            class: Some("Node"),
            tree: true,
        };
        of(graph, HeapFacts::default(), asked)
    }

    /// A list of so many nodes, each of 10 bytes, behind two classes of the name Node, which take turns.
    fn list(count: u32) -> Graph {
        let next = |it: u32| {
            if it == count + 1 {
                vec![]
            } else {
                vec![it + 1]
            }
        };
        let mut targets = vec![vec![], vec![]];
        targets.extend((2..count + 2).map(next));
        let mut graph = test_graphs::of(&targets, &[0, 1, 2]);
        graph.texts = ["", "Node"].map(Box::from).to_vec();
        graph.called = vec![(0, 1), (1, 1)];
        for class in 0..2 {
            graph.kinds[class] = Kind(Kind::CLASS);
            graph.classes[class] = NONE;
        }
        for node in 2..count + 2 {
            graph.classes[node as usize] = node / 2 % 2;
            graph.bytes[node as usize] = 10;
        }
        graph
    }

    #[test]
    fn a_class_knows_which_of_its_objects_nothing_refers_to() {
        let mut graph = list(10);
        // The sixth refers to none: those behind it are garbage.
        let last = graph.starts[7] as usize;
        let behind = graph.targets.len() - last;
        graph.targets.truncate(last);
        graph.names.truncate(last);
        for start in &mut graph.starts[8..] {
            *start = last as u32;
        }
        let file = told(&graph);
        let row = file.classes.iter().find(|it| it.name == "Node");
        let row = row.expect("a row");
        assert_eq!((row.objects, row.unreferenced), (10, file.unreferenced));
        assert!(behind > 0 && row.unreferenced.objects == 4, "{row:?}");
        assert_eq!(row.unreferenced.bytes, 40);
    }

    #[test]
    fn a_list_retains_each_of_its_nodes_once() {
        let count = 10_000;
        let mut graph = list(count);
        let of_class = |file: &HeapFile| {
            let row = file.classes.iter().find(|it| it.name == "Node");
            row.expect("a row").retained_bytes
        };
        assert_eq!(of_class(&told(&graph)), 10 * u64::from(count));
        for class in &mut graph.classes[2..] {
            *class = 0;
        }
        let file = told(&graph);
        assert_eq!(of_class(&file), 10 * u64::from(count));
        let paths = file.paths.expect("paths");
        let objects: u64 = paths.iter().map(|it| it.objects).sum();
        assert_eq!(objects, u64::from(count));
        assert!(
            (paths.iter()).all(|it| it.retained_bytes <= 10 * u64::from(count)),
            "{paths:?}"
        );
        assert_eq!(paths[0].retained_bytes, 10 * u64::from(count));
    }
}
