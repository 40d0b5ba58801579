//! Tests of the merged tree: beside a slow one, and where it is cut.

use super::*;
use crate::graph::{Graph, Root};
use crate::test_graphs::{self, any_named_graph};
use proptest::prelude::*;
use rperf_protocol::heap::kind::Kind;
use std::collections::BTreeMap;

fn outermost(known: &Known<'_>) -> Vec<u32> {
    let holders = known.all_holders();
    known.nested(&holders).outermost(&holders)
}

fn rows(graph: &Graph, most: usize, deepest: u32) -> Vec<TreeRow> {
    Known::with(graph, |known| {
        within(known, &outermost(known), most, deepest)
    })
}

/// Names and classes from the holder down.
type Way = Vec<(String, String)>;

/// The way to each row, and what it has.
fn ways(rows: &[TreeRow]) -> BTreeMap<Way, (u64, u64)> {
    let mut ways: Vec<Way> = Vec::new();
    for row in rows {
        let above = row.parent.map(|it| ways[it as usize].clone());
        let mut way = above.unwrap_or_default();
        way.push((row.name.clone(), row.class.clone()));
        ways.push(way);
    }
    let mut sums = BTreeMap::new();
    for (way, row) in ways.into_iter().zip(rows) {
        let before = sums.insert(way, (row.objects, row.bytes));
        assert_eq!(before, None, "rows are told once: {rows:?}");
    }
    sums
}

/// The ways, found object by object from what dominates each.
fn slow_ways(known: &Known<'_>) -> BTreeMap<Way, (u64, u64)> {
    let graph = known.graph;
    let mut sums: BTreeMap<Way, (u64, u64)> = BTreeMap::new();
    let reached = (0..graph.len() as u32).filter(|&it| known.dominators.is_reached(it));
    for object in reached {
        let mut chain = Vec::new();
        let mut next = Some(object);
        while let Some(object) = next {
            if !graph.is_internal(object) {
                chain.insert(0, object);
            }
            next = known.dominators.dominator(object);
        }
        let is_outer = |it: &u32| !graph.is_place(*it);
        let outer = chain.iter().position(is_outer);
        let way = match outer.map(|it| (known.held(chain[it]), &chain[it..])) {
            None => vec![(OF_NOBODY.into(), String::new())],
            Some((Held::Own, _)) => vec![("rperf".into(), String::new())],
            Some((held, chain)) => {
                let class = |object: u32| graph.class_name(object).to_owned();
                let mut way = vec![(known.name_of(held), class(chain[0]))];
                for pair in chain.windows(2) {
                    let named = graph.references(pair[0]).find(|it| it.target == pair[1]);
                    let name = named.map_or("", |it| graph.text(it.name));
                    let step = (name.to_owned(), class(pair[1]));
                    let is_next = way.len() > 1 && !name.is_empty() && way.last() == Some(&step);
                    if !is_next {
                        way.push(step);
                    }
                }
                way
            }
        };
        let sum = sums.entry(way).or_default();
        sum.0 += 1;
        sum.1 += graph.bytes[object as usize];
    }
    sums
}

/// Each row has its own and what those below have, and all together have all.
fn check_sums(known: &Known<'_>, rows: &[TreeRow]) {
    let mut sums: Vec<_> = rows.iter().map(|it| (it.objects, it.bytes)).collect();
    let mut all = (0, 0);
    for (number, row) in rows.iter().enumerate().rev() {
        assert_eq!(
            sums[number],
            (row.retained_objects, row.retained_bytes),
            "{rows:?}"
        );
        let sum = match row.parent {
            Some(parent) => &mut sums[parent as usize],
            None => &mut all,
        };
        assert!(row.parent.is_none_or(|it| (it as usize) < number));
        sum.0 += row.retained_objects;
        sum.1 += row.retained_bytes;
    }
    let dominators = known.dominators;
    assert_eq!(
        all,
        (u64::from(dominators.counts[0]), dominators.retained[0])
    );
}

/// Rows come behind the one above, before the next one on its level, and the biggest first.
fn check_order(rows: &[TreeRow]) {
    let mut way: Vec<u32> = Vec::new();
    let mut last: BTreeMap<Option<u32>, &TreeRow> = BTreeMap::new();
    for (number, row) in rows.iter().enumerate() {
        while way.last() != row.parent.as_ref() {
            assert!(way.pop().is_some(), "{rows:?}");
        }
        way.push(number as u32);
        if let Some(before) = last.insert(row.parent, row) {
            let is_cut = row.rest || before.retained_bytes >= row.retained_bytes;
            assert!(!before.rest && is_cut, "{rows:?}");
        }
    }
}

fn depth(rows: &[TreeRow]) -> u32 {
    let mut depths: Vec<u32> = Vec::new();
    for row in rows {
        let above = row.parent.map_or(0, |it| depths[it as usize]);
        depths.push(above + 1);
    }
    depths.into_iter().max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn it_has_each_object_where_it_is_held(graph in any_named_graph()) {
        Known::with(&graph, |known| {
            let rows = within(known, &outermost(known), MOST, u32::MAX);
            assert!(rows.iter().all(|it| !it.rest));
            let mut found = ways(&rows);
            // Those that other rows have all of are there for these.
            found.retain(|_, sum| sum.0 > 0);
            assert_eq!(found, slow_ways(known), "{rows:?}");
            check_sums(known, &rows);
            check_order(&rows);
        });
    }

    #[test]
    fn what_is_cut_is_in_the_rest(graph in any_named_graph(), most in 3_usize..20, deepest in 2_u32..8) {
        Known::with(&graph, |known| {
            let rows = within(known, &outermost(known), most, deepest);
            check_sums(known, &rows);
            check_order(&rows);
            assert!(rows.len() <= most && depth(&rows) <= deepest, "{rows:?}");
            let all = ways(&within(known, &outermost(known), MOST, u32::MAX));
            for way in ways(&rows).into_keys() {
                let is_rest = way.last() == Some(&Default::default());
                assert!(is_rest || all.contains_key(&way), "{way:?}");
            }
        });
    }
}

/// A global variable with a list of so many nodes, each of which has a text.
fn list(count: u32) -> Graph {
    let node = |it: u32| match it + 2 < 2 * count {
        true => vec![it + 2, it + 1],
        false => vec![it + 1],
    };
    let targets = (0..2 * count).map(|it| match it % 2 {
        0 => node(it),
        _ => vec![],
    });
    let mut targets: Vec<Vec<u32>> = targets.collect();
    let class = targets.len() as u32;
    targets.extend([vec![], vec![]]);
    let mut graph = test_graphs::of(&targets, &[class, class + 1]);
    graph.texts = ["", "@next", "$list", "Node", "String"]
        .map(Box::from)
        .to_vec();
    graph.roots.push(Root {
        category: 0,
        target: 0,
        variable: 2,
    });
    graph.called = vec![(class, 3), (class + 1, 4)];
    for object in 0..2 * count {
        graph.classes[object as usize] = class + object % 2;
        if object % 2 == 0 && object + 2 < 2 * count {
            graph.names[graph.starts[object as usize] as usize] = 1;
        }
    }
    for class in &mut graph.kinds[class as usize..] {
        *class = Kind(Kind::CLASS);
    }
    graph
}

#[test]
fn the_nodes_of_a_list_are_one_row() {
    let rows = rows(&list(100_000), MOST, DEEPEST);
    let told: Vec<_> = rows
        .iter()
        .map(|it| (it.parent, &*it.name, &*it.class, it.objects))
        .collect();
    let expected = [
        (None, "$list", "Node", 1),
        (Some(0), "@next", "Node", 99_999),
        (Some(1), "", "String", 99_999),
        (Some(0), "", "String", 1),
        (None, OF_NOBODY, "", 2),
    ];
    assert_eq!(told, expected);
}

#[test]
fn a_long_list_without_names_is_cut_where_it_is_deep() {
    let mut graph = list(100_000);
    graph.names.fill(0);
    let rows = rows(&graph, MOST, DEEPEST);
    assert_eq!(depth(&rows), DEEPEST);
    let rest = rows.iter().find(|it| it.rest).expect("a rest");
    // The last level has the rest alone.
    let shown = u64::from(DEEPEST - 1 + DEEPEST - 2);
    assert_eq!(rest.objects, 200_000 - shown);
}

#[test]
fn many_groups_are_cut_to_the_biggest() {
    // Each has a class of its own.
    let count = 50_000_u32;
    let mut targets = vec![Vec::from_iter(1..=count)];
    targets.extend((0..2 * count).map(|_| vec![]));
    let roots: Vec<u32> = std::iter::once(0).chain(count + 1..=2 * count).collect();
    let mut graph = test_graphs::of(&targets, &roots);
    graph.texts.push("$all".into());
    graph.roots[0].variable = 1;
    for object in 1..=count {
        graph.classes[object as usize] = count + object;
        graph.bytes[object as usize] = 10 * u64::from(object);
        graph.kinds[(count + object) as usize] = Kind(Kind::CLASS);
        graph.texts.push(format!("C{object}").into());
        graph.called.push((count + object, object + 1));
    }
    let rows = rows(&graph, MOST, DEEPEST);
    assert!((MOST - 1..=MOST).contains(&rows.len()), "{}", rows.len());
    let shown: Vec<_> = rows[1..4].iter().map(|it| &*it.class).collect();
    assert_eq!(shown, ["C50000", "C49999", "C49998"]);
    let rests: Vec<_> = rows.iter().filter(|it| it.rest).collect();
    assert_eq!(rests.len(), 1, "{rests:?}");
    Known::with(&graph, |known| check_sums(known, &rows));
}

#[test]
fn nothing_has_no_rows() {
    assert_eq!(rows(&test_graphs::of(&[vec![]], &[]), MOST, DEEPEST), []);
}
