//! Tests of the call graph.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{node, schema};
use rperf_model::{LabelSetId, State, WeightKey};
use std::collections::{BTreeMap, BTreeSet};

const TIME: Column = Column(1);

fn graph_of(test: &TestProfile, limits: GraphLimits) -> CallGraph {
    CallGraph::of(&test.profile, TIME, NodeKind::Function, limits)
}

/// Name, self, total.
fn nodes(graph: &CallGraph) -> Vec<(&str, i64, i64)> {
    let nodes = graph.nodes.iter();
    nodes
        .map(|node| {
            (
                node.function.name.as_str(),
                node.self_value,
                node.total_value,
            )
        })
        .collect()
}

/// `caller > callee`, with dots for a residual edge, and the value.
fn edges(graph: &CallGraph) -> Vec<(String, i64)> {
    let name = |node: usize| graph.nodes[node].function.name.as_str();
    let edges = graph.edges.iter();
    edges
        .map(|edge| {
            let arrow = if edge.is_residual { ".." } else { ">" };
            let text = format!("{} {arrow} {}", name(edge.caller), name(edge.callee));
            (text, edge.value)
        })
        .collect()
}

fn owned(edges: &[(&str, i64)]) -> Vec<(String, i64)> {
    let edges = edges.iter();
    edges
        .map(|&(text, value)| (text.to_string(), value))
        .collect()
}

#[test]
fn functions_are_there_once_and_recursion_counts_once() {
    let test = TestProfile::wall()
        .with(&["main", "fib", "fib", "fib"], 1, State::Running, 30)
        .with(&["main", "fib", "add"], 1, State::Running, 10)
        .with(&["main"], 1, State::GvlBlocked, 5);
    let graph = graph_of(&test, GraphLimits::NONE);
    assert_eq!((graph.total, graph.counts_calls), (45, false));
    assert_eq!(
        nodes(&graph),
        [
            ("main", 0, 45),
            ("fib", 30, 40),
            ("add", 10, 10),
            ("[GVL blocked]", 5, 5)
        ]
    );
    assert_eq!(
        edges(&graph),
        owned(&[
            ("main > fib", 40),
            ("fib > fib", 30),
            ("fib > add", 10),
            ("main > [GVL blocked]", 5)
        ])
    );
    assert_eq!(graph.cut, Cut::default());
    assert!(graph.nodes.iter().all(|node| node.calls.is_none()));
}

#[test]
fn small_functions_are_cut_and_what_they_lead_to_stays_connected() {
    let test = TestProfile::wall()
        .with(&["main", "small", "work"], 1, State::Running, 2)
        .with(&["main", "direct", "work"], 1, State::Running, 50)
        .with(&["main", "tiny", "alone"], 1, State::Running, 3)
        .with(&["main", "tiny"], 1, State::Running, 1)
        .with(&["main", "direct"], 1, State::Running, 44);
    let limits = GraphLimits {
        least_node: 3,
        ..GraphLimits::NONE
    };
    let graph = graph_of(&test, limits);
    assert_eq!(
        nodes(&graph),
        [
            ("main", 0, 100),
            ("direct", 44, 94),
            ("work", 52, 52),
            ("tiny", 1, 4),
            ("alone", 3, 3)
        ]
    );
    // The way from main to work by "small" is there by "direct", too.
    assert_eq!(
        edges(&graph),
        owned(&[
            ("main > direct", 94),
            ("direct > work", 50),
            ("main > tiny", 4),
            ("tiny > alone", 3)
        ])
    );
    assert_eq!((graph.cut.small_nodes, graph.cut.further_nodes), (1, 0));
    let limits = GraphLimits { nodes: 3, ..limits };
    let graph = graph_of(&test, limits);
    assert_eq!((graph.cut.small_nodes, graph.cut.further_nodes), (1, 2));
}

#[test]
fn chains_of_wrappers_go_first_where_there_are_too_many() {
    let wrapped = ["main", "wrap 1", "wrap 2", "wrap 3", "route", "show"];
    let test = TestProfile::wall()
        .with(&wrapped, 1, State::Running, 60)
        .with(&[&wrapped[..5], &["index"]].concat(), 1, State::Running, 40);
    let limits = GraphLimits {
        nodes: 4,
        ..GraphLimits::NONE
    };
    let graph = graph_of(&test, limits);
    assert_eq!(
        edges(&graph),
        owned(&[
            ("main .. route", 100),
            ("route > show", 60),
            ("route > index", 40)
        ])
    );
}

#[test]
fn calls_are_counted_by_node_and_by_caller() {
    let types = [("calls", "count"), ("wall", "nanoseconds")];
    let mut test = TestProfile::new(schema(&types, 1));
    for (names, state, calls, ns) in [
        (&["main"][..], State::Running, 1, 10),
        (&["main", "fib"], State::Running, 2, 20),
        (&["main", "fib", "fib"], State::Running, 6, 30),
        (&["main", "fib", "fib"], State::GvlWait, 0, 5),
        (&["main", "load"], State::Running, 0, 7),
        (&["main", "load", "fib"], State::Running, 1, 1),
        (&["main", "empty"], State::Running, 4, 0),
    ] {
        let frames: Vec<_> = names.iter().map(|&name| (name, "a.rb", 1, 2)).collect();
        let key = WeightKey {
            node: node(&mut test.profile, &frames),
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        test.profile.weights.push(key, &[calls, ns]);
    }
    let graph = graph_of(&test, GraphLimits::NONE);
    assert!(graph.counts_calls);
    let calls = graph.nodes.iter();
    let calls: Vec<_> = calls
        .map(|node| (&*node.function.name, node.calls))
        .collect();
    assert_eq!(
        calls,
        [
            ("main", Some(1)),
            ("fib", Some(9)),
            ("load", None),
            ("[GVL wait]", None),
            ("empty", Some(4))
        ]
    );
    let calls: Vec<_> = graph.edges.iter().map(|edge| edge.calls).collect();
    let texts: Vec<_> = edges(&graph).into_iter().map(|(text, _)| text).collect();
    assert_eq!(
        texts
            .iter()
            .map(String::as_str)
            .zip(calls)
            .collect::<Vec<_>>(),
        [
            ("main > fib", Some(2)),
            ("fib > fib", Some(6)),
            ("main > load", None),
            ("fib > [GVL wait]", None),
            ("load > fib", Some(1)),
            ("main > empty", Some(4))
        ]
    );
}

#[test]
fn nodes_are_classes_or_the_methods_of_each_thread() {
    let test = TestProfile::wall()
        .with(
            &["<main>", "Order#total", "block in Order#total"],
            1,
            State::Running,
            30,
        )
        .with(&["<main>", "Order#total"], 2, State::Running, 10)
        .with(&["Order#total"], 0, State::Running, 5)
        .with(&[], 2, State::GvlBlocked, 2);
    let of = |kind| CallGraph::of(&test.profile, TIME, kind, GraphLimits::NONE);
    let classes = of(NodeKind::Class);
    assert_eq!(
        nodes(&classes),
        [
            ("Order", 45, 45),
            ("<main>", 0, 40),
            ("[GVL blocked]", 2, 2)
        ]
    );
    assert_eq!(
        edges(&classes),
        owned(&[("<main> > Order", 40), ("Order > Order", 30)])
    );
    assert_eq!(
        nodes(&of(NodeKind::File)),
        [("a.rb", 45, 45), ("<GVL>", 2, 2)]
    );

    let threads = of(NodeKind::FunctionOfThread);
    let thread_of = |node: &GraphNode| node.thread.clone().expect("each has its thread");
    let shown = threads.nodes.iter();
    let shown: Vec<_> = shown
        .map(|node| {
            (
                thread_of(node),
                node.function.name.as_str(),
                node.total_value,
            )
        })
        .collect();
    let one = || "thread 1: thread 1".to_string();
    let two = || "thread 2: thread 2".to_string();
    assert_eq!(
        shown,
        [
            (one(), "<main>", 30),
            (one(), "Order#total", 30),
            (one(), "block in Order#total", 30),
            (two(), "<main>", 10),
            (two(), "Order#total", 10),
            ("(ended threads)".to_string(), "Order#total", 5),
            (two(), "[GVL blocked]", 2),
        ]
    );
    assert!(
        threads
            .edges
            .iter()
            .all(|edge| { threads.nodes[edge.caller].thread == threads.nodes[edge.callee].thread })
    );
    assert_eq!(threads.total, 47);
}

/// Functions of a stack, root first, the state, and a value.
type Stack = (Vec<usize>, bool, i64);

fn stacks() -> impl Strategy<Value = Vec<Stack>> {
    vec((vec(0..6_usize, 0..7), any::<bool>(), -20..100_i64), 0..25)
}

fn profile(stacks: &[Stack]) -> TestProfile {
    let names = ["a", "b", "c", "d", "e", "f"];
    let mut test = TestProfile::wall();
    for (functions, is_waiting, value) in stacks {
        let functions: Vec<_> = functions.iter().map(|&it| names[it]).collect();
        let state = if *is_waiting {
            State::GvlWait
        } else {
            State::Running
        };
        test.add(&functions, 1, LabelSetId(0), state, *value);
    }
    test
}

/// Caller and callee; value, and whether the edge is a residual one.
type Edges = BTreeMap<(String, String), (i64, bool)>;

/// The graph as it is defined: stack by stack.
fn by_definition(
    test: &TestProfile,
    kept: &BTreeSet<&str>,
) -> (BTreeMap<String, (i64, i64)>, Edges) {
    let mut nodes: BTreeMap<String, (i64, i64)> = BTreeMap::new();
    let mut edges = Edges::new();
    let profile = &test.profile;
    for row in profile.weights.iter() {
        let value = row.value(TIME);
        let stack = profile.display_stack(row.key);
        let mut stack: Vec<_> = stack.map(|frame| profile.frame_text(frame).name).collect();
        if let Some(leaf) = stack.first().filter(|leaf| kept.contains(**leaf)) {
            nodes.entry(leaf.to_string()).or_default().0 += value;
        }
        stack.reverse();
        let left: Vec<_> = (0..stack.len())
            .filter(|&index| kept.contains(stack[index]))
            .collect();
        for name in left
            .iter()
            .map(|&index| stack[index])
            .collect::<BTreeSet<_>>()
        {
            nodes.entry(name.to_string()).or_default().1 += value;
        }
        let mut seen = BTreeSet::new();
        for pair in left.windows(2) {
            let names = (stack[pair[0]].to_string(), stack[pair[1]].to_string());
            let edge = edges.entry(names.clone()).or_insert((0, true));
            edge.1 &= pair[1] > pair[0] + 1;
            if seen.insert(names) {
                edge.0 += value;
            }
        }
    }
    nodes.retain(|_, values| *values != (0, 0));
    edges.retain(|_, (value, _)| *value != 0);
    (nodes, edges)
}

proptest! {
    #[test]
    fn sums_are_those_of_the_stacks(
        stacks in stacks(), least in 0..60_u64, most in 0..8_usize,
    ) {
        let test = profile(&stacks);
        let limits = GraphLimits { nodes: most, least_node: least, least_edge: 0 };
        let graph = graph_of(&test, limits);
        let kept = graph.nodes.iter().map(|node| node.function.name.as_str());
        let (nodes, edges) = by_definition(&test, &kept.collect());
        let found = graph.nodes.iter().map(|node| {
            (node.function.name.clone(), (node.self_value, node.total_value))
        });
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), nodes);
        let name = |node: usize| graph.nodes[node].function.name.clone();
        let found: BTreeMap<_, _> = graph.edges.iter().map(|edge| {
            ((name(edge.caller), name(edge.callee)), (edge.value, edge.is_residual))
        }).collect();
        for (names, value) in &found {
            prop_assert_eq!(edges.get(names), Some(value));
        }
        // What is not there leads where other edges lead.
        for ((caller, callee), (_, is_residual)) in &edges {
            let edge = (caller.clone(), callee.clone());
            prop_assert!(found.contains_key(&edge) || *is_residual);
            prop_assert!(leads(&found, caller, callee));
        }
    }

    #[test]
    fn a_cut_graph_has_the_sums_of_the_whole_one(
        stacks in stacks(), least in 0..60_u64, most in 0..8_usize, least_edge in 0..60_u64,
    ) {
        let test = profile(&stacks);
        let whole = graph_of(&test, GraphLimits::NONE);
        let limits = GraphLimits { nodes: most, least_node: least, least_edge };
        let graph = graph_of(&test, limits);
        prop_assert!(graph.nodes.len() <= most);
        prop_assert!(graph.nodes.iter().all(|node| whole.nodes.contains(node)));
        let cut = graph.cut.small_nodes + graph.cut.further_nodes;
        prop_assert_eq!(graph.nodes.len() + cut, whole.nodes.len());
        let own: i64 = whole.nodes.iter().map(|node| node.self_value).sum();
        prop_assert_eq!(own, whole.total);
        for node in &graph.nodes {
            prop_assert!(node.total_value.unsigned_abs() >= least);
        }
        // A node to which something leads keeps an edge to it.
        let (_, edges) = by_definition(
            &test, &graph.nodes.iter().map(|node| node.function.name.as_str()).collect(),
        );
        for (index, node) in graph.nodes.iter().enumerate() {
            let name = &node.function.name;
            let had = edges.keys().any(|(caller, callee)| callee == name && caller != name);
            let has = graph.edges.iter().any(|edge| edge.callee == index && edge.caller != index);
            prop_assert_eq!(had, has, "{}", name);
        }
    }

    #[test]
    fn equal_profiles_have_equal_graphs(
        stacks in stacks(), seed in 0..20_usize, most in 0..8_usize, least_edge in 0..60_u64,
    ) {
        let mut other = stacks.clone();
        if !other.is_empty() {
            let half = other.len() / 2;
            other.rotate_left(seed % half.max(1));
        }
        other.reverse();
        let limits = GraphLimits { nodes: most, least_node: 0, least_edge };
        prop_assert_eq!(graph_of(&profile(&stacks), limits), graph_of(&profile(&other), limits));
    }
}

/// Whether one can get from the one to the other.
fn leads(edges: &Edges, caller: &str, callee: &str) -> bool {
    let mut reached = BTreeSet::from([caller.to_string()]);
    loop {
        let next: Vec<_> = edges
            .keys()
            .filter(|(from, to)| reached.contains(from) && !reached.contains(to))
            .map(|(_, to)| to.clone())
            .collect();
        if next.is_empty() {
            return reached.contains(callee);
        }
        reached.extend(next);
    }
}
