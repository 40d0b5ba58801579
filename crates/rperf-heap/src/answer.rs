//! What is told of a graph.

use crate::dominators::Dominators;
use crate::file::{ClassRow, HeapFacts, HeapFile, PathRow, Sum};
use crate::graph::{Graph, NONE};
use crate::holders::Known;
use crate::names::Names;
use crate::paths::Paths;
use crate::tree::Tree;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Classes, holders and paths that are kept.
const MOST: usize = 1000;

/// What only the VM sees is one row.
const OF_VM: &str = "(VM: methods, compiled code, internals)";

/// All that is told. `class`: the paths to the instances of the class of this name, too.
pub fn of(graph: &Graph, facts: HeapFacts, class: Option<&str>) -> HeapFile {
    let dominators = Dominators::of(graph);
    let tree = Tree::of(&dominators);
    let names = Names::of(graph);
    let paths = Paths::of(graph);
    let known = Known {
        graph,
        dominators: &dominators,
        tree: &tree,
        names: &names,
        paths: &paths,
    };
    let mut file = HeapFile {
        whole: graph.is_whole,
        references: graph.targets.len() as u64,
        classes: classes(&known),
        holders: known.holders(MOST),
        paths: class.map(|it| paths_to(&known, it)),
        ..HeapFile::of(facts)
    };
    for object in 0..graph.len() as u32 {
        let bytes = graph.bytes[object as usize];
        file.total.add(bytes);
        if !dominators.is_reached(object) {
            file.unreferenced.add(bytes);
        }
    }
    file
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// A row for each class.
fn classes(known: &Known<'_>) -> Vec<ClassRow> {
    let graph = known.graph;
    let number = |object: u32| match graph.is_internal(object) {
        true => NONE,
        false => graph.classes[object as usize],
    };
    let mut rows: FxHashMap<u32, ClassRow> = FxHashMap::default();
    for object in 0..graph.len() as u32 {
        let row = rows.entry(number(object)).or_default();
        row.objects += 1;
        row.bytes += graph.bytes[object as usize];
    }
    // What goes with an instance that goes with another one counts once.
    let mut within: FxHashMap<u32, u32> = FxHashMap::default();
    let mut open = vec![(0, 0)];
    while let Some((place, next)) = open.last_mut() {
        let place = *place;
        let object = known.dominators.objects[place as usize];
        if *next == 0 && object != NONE {
            let class = number(object);
            let depth = within.entry(class).or_default();
            *depth += 1;
            if *depth == 1
                && let Some(row) = rows.get_mut(&class)
            {
                row.retained_bytes += known.dominators.retained[place as usize];
            }
        }
        match known.tree.below(place).get(*next) {
            Some(&below) => {
                *next += 1;
                open.push((below, 0));
            }
            None => {
                open.pop();
                if object != NONE
                    && let Some(depth) = within.get_mut(&number(object))
                {
                    *depth -= 1;
                }
            }
        }
    }
    by_name(graph, rows)
}

/// Classes of the same name are one row: those without one, and what a program defines again.
fn by_name(graph: &Graph, rows: FxHashMap<u32, ClassRow>) -> Vec<ClassRow> {
    let mut named: FxHashMap<String, ClassRow> = FxHashMap::default();
    for (class, row) in rows {
        let name = match class {
            NONE => OF_VM,
            _ => graph.name(class).unwrap_or("(anonymous class)"),
        };
        let sum = named.entry(name.into()).or_default();
        sum.objects += row.objects;
        sum.bytes += row.bytes;
        sum.retained_bytes += row.retained_bytes;
    }
    let rows = named
        .into_iter()
        .map(|(name, row)| ClassRow { name, ..row });
    let mut rows: Vec<_> = rows.collect();
    rows.sort_unstable_by(|one, other| {
        let key = |row: &ClassRow| (Reverse(row.bytes), Reverse(row.objects));
        key(one)
            .cmp(&key(other))
            .then_with(|| one.name.cmp(&other.name))
    });
    rows.truncate(MOST);
    rows
}

/// A row for each path to instances of the class.
fn paths_to(known: &Known<'_>, class: &str) -> Vec<PathRow> {
    let graph = known.graph;
    let classes: Vec<u32> = graph
        .called
        .iter()
        .filter(|&&(object, name)| {
            graph.kinds[object as usize].is_module() && graph.text(name) == class
        })
        .map(|it| it.0)
        .collect();
    let mut steps: FxHashMap<u32, (Sum, u64)> = FxHashMap::default();
    for object in 0..graph.len() as u32 {
        let is_one = classes.contains(&graph.classes[object as usize]);
        if is_one && known.dominators.is_reached(object) && !graph.is_internal(object) {
            let step = known.paths.of_objects[object as usize];
            let (sum, retained) = steps.entry(step).or_default();
            sum.add(graph.bytes[object as usize]);
            *retained += known.dominators.retained(object);
        }
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
