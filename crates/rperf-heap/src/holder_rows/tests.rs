//! Tests of the rows of holders: beside slow ones, and of many small holders.

use super::*;
use crate::graph::Graph;
use crate::merged;
use crate::test_graphs::{self, any_named_graph};
use proptest::prelude::*;
use rperf_protocol::heap::kind::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// The name, the outer one's name, and the class of a row.
type Key = (String, String, String);

fn rows(known: &Known<'_>, most: usize) -> Vec<Holder> {
    let found = known.all_holders();
    known.holders(&found, &known.nested(&found), most)
}

fn key(row: &Holder) -> Key {
    (row.name.clone(), row.within.clone(), row.class.clone())
}

/// The bytes and objects that go with those of each row, found object by object.
fn slow_sums(known: &Known<'_>) -> BTreeMap<Key, (u64, u64)> {
    let found: BTreeSet<u32> = known.all_holders().into_iter().collect();
    let above = |object: u32| {
        let next = |it: &u32| known.dominators.dominator(*it);
        std::iter::successors(Some(object), next)
    };
    let key = |holder: u32| {
        let outer = above(holder).skip(1).find(|it| found.contains(it));
        let name = |it| known.name_of(known.held(it));
        let class = known.graph.class_name(holder).to_owned();
        (name(holder), outer.map_or_else(String::new, name), class)
    };
    let mut sums: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
    let reached = (0..known.graph.len() as u32).filter(|&it| known.dominators.is_reached(it));
    for object in reached {
        let holders = above(object).filter(|it| found.contains(it));
        let keys: BTreeSet<Key> = holders
            .filter(|it| known.held(*it) != Held::Own)
            .map(key)
            .collect();
        for key in keys {
            let sum = sums.entry(key).or_default();
            sum.0 += known.graph.bytes[object as usize];
            sum.1 += 1;
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn a_row_has_all_that_is_held_by_its_name_once(graph in any_named_graph()) {
        Known::with(&graph, |known| {
            let rows = rows(known, usize::MAX);
            let rows: Vec<&Holder> = rows.iter().filter(|it| it.name != OWN).collect();
            let sums = rows.iter().map(|it| (key(it), (it.retained_bytes, it.objects)));
            let found: BTreeMap<_, _> = sums.collect();
            assert_eq!(found.len(), rows.len(), "rows are told once: {rows:?}");
            assert_eq!(found, slow_sums(known));
            assert!(rows.windows(2).all(|it| it[0].retained_bytes >= it[1].retained_bytes));
        });
    }

    #[test]
    fn rows_have_what_the_tree_has(graph in any_named_graph()) {
        Known::with(&graph, |known| {
            let outer = rows(known, usize::MAX).into_iter().filter(|it| it.within.is_empty());
            let outer: BTreeMap<_, _> = outer
                .map(|it| ((it.name, it.class), (it.retained_bytes, it.objects)))
                .collect();
            let found = known.all_holders();
            let tree = merged::of(known, &known.nested(&found).outermost(&found));
            for row in tree.into_iter().filter(|it| it.parent.is_none() && !it.class.is_empty()) {
                let sum = (row.retained_bytes, row.retained_objects);
                assert_eq!(outer.get(&(row.name, row.class)), Some(&sum));
            }
        });
    }
}

/// A class whose methods hold so many blocks with a text each, and threads of one name with such a block on each
/// stack.
fn blocks(count: u32) -> Graph {
    // 0 is the class; then threads, blocks, and their texts.
    let block = |it: u32| 1 + count + it;
    let of_threads = (0..count).map(|it| vec![block(count + it)]);
    let of_blocks = (0..2 * count).map(|it| vec![block(2 * count + it)]);
    let mut targets = vec![Vec::from_iter((0..count).map(block))];
    targets.extend(of_threads.chain(of_blocks));
    targets.extend((0..2 * count).map(|_| vec![]));
    let roots = Vec::from_iter(0..=count);
    let mut graph = test_graphs::of(&targets, &roots);
    graph.texts = ["", "Sess", "poll"].map(Box::from).to_vec();
    graph.kinds[0] = Kind(Kind::CLASS);
    graph.called = vec![(0, 1)];
    for thread in 1..=count {
        graph.kinds[thread as usize] = Kind(Kind::OBJECT | Kind::THREAD);
        graph.called.push((thread, 2));
    }
    for text in block(2 * count)..block(4 * count) {
        graph.bytes[text as usize] = 2000;
    }
    graph
}

#[test]
fn many_small_holders_of_one_name_are_one_row() {
    let count = 5000;
    let told = |count: u32, most| {
        Known::with(&blocks(count), |known| {
            let rows = rows(known, most).into_iter();
            let row = |it: Holder| (it.name, it.held, it.objects, it.retained_bytes);
            rows.map(row).collect::<Vec<_>>()
        })
    };
    let row = |name: &str| {
        let count = u64::from(count);
        (name.to_owned(), count, 2 * count, 2001 * count)
    };
    let expected = ["class Sess (methods)", "stack of Thread \"poll\""].map(row);
    assert_eq!(told(count, 1000), expected);
    assert_eq!(told(1, 1).len(), 1);
}

#[test]
fn a_row_tells_what_all_of_its_objects_have() {
    Known::with(&blocks(7), |known| {
        let row = &rows(known, 1)[0];
        let step = &row.path[0];
        assert_eq!((step.objects, step.retained_bytes), (7, 7 * 2000));
    });
}

#[test]
fn what_goes_with_another_one_of_its_row_counts_once() {
    // Fibers, each on the stack of the one before it, in an object.
    let count = 6;
    let mut targets = Vec::from_iter((1..2 * count).map(|it| vec![it]));
    targets.push(vec![]);
    let mut graph = test_graphs::of(&targets, &[0]);
    for fiber in (0..2 * count).step_by(2) {
        graph.kinds[fiber as usize] = Kind(Kind::OBJECT | Kind::FIBER);
    }
    Known::with(&graph, |known| {
        let rows = rows(known, 9).into_iter();
        let rows: Vec<_> = rows
            .map(|it| (it.name, it.within, it.held, it.retained_bytes))
            .collect();
        let name = "stack of a Fiber".to_owned();
        let first = (name.clone(), String::new(), 1, 11);
        assert_eq!(rows, [first, (name.clone(), name, 1, 9)]);
    });
}
