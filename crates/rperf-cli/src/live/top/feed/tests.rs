//! What arrives in the store, whatever becomes of the rows on the way.

use super::*;
use rperf_model::shared_sums::SharedSums;
use rperf_model::{Node, NodeId, State};
use rperf_protocol::delta::{Delta, Freshness};
use rperf_top::store::Scope;

struct Way {
    table: SharedSums,
    mirror: Mirror,
    feed: Feed,
}

impl Way {
    fn new() -> Self {
        let mut table = SharedSums::default();
        table.facts.mode = "wall".into();
        table.facts.start_ns = 1;
        let store = SharedStore::default();
        lock(&store).add_process(7, "app");
        Way {
            table,
            mirror: Mirror::default(),
            feed: Feed {
                store,
                process: 0,
                methods: Vec::new(),
                nodes: vec![0],
                labels: Vec::new(),
                earlier: None,
                counts: false,
                is_pulling: false,
            },
        }
    }

    fn add(&mut self, line: u32, thread: u32, wall_ns: u64) {
        let frame = self.table.frame("work\u{1b}", "a.rb", 1);
        let node = Node {
            parent: NodeId::ROOT,
            frame,
            line,
        };
        let key = WeightKey {
            node: self.table.node(node).expect("room"),
            thread,
            labels: LabelSetId::default(),
            state: State::Running,
        };
        let values = SumsValues {
            count: 1,
            wall_ns,
            cpu_ns: 0,
        };
        assert!(self.table.add(key, values));
    }

    /// A stack, its root first.
    fn add_stack(&mut self, stack: &[&str], wall_ns: u64) {
        let mut parent = NodeId::ROOT;
        for (depth, name) in stack.iter().enumerate() {
            let frame = self.table.frame(name, "a.rb", 1);
            let line = 0;
            let node = Node {
                parent,
                frame,
                line,
            };
            match self.table.node(node) {
                Some(node) => parent = node,
                None => {
                    let leaf = self.table.frame(stack[stack.len() - 1], "a.rb", 1);
                    assert!(depth > 0);
                    parent = self.table.folded_leaf(parent, leaf, line);
                    break;
                }
            }
        }
        let key = WeightKey {
            node: parent,
            thread: 1,
            labels: LabelSetId::default(),
            state: State::Running,
        };
        let values = SumsValues {
            count: 1,
            wall_ns,
            cpu_ns: 0,
        };
        assert!(self.table.add(key, values));
    }

    /// The time of a method itself.
    fn own(&self, name: &str) -> u64 {
        let store = lock(&self.feed.store);
        let is_its =
            |node: u32| &*store.methods[store.nodes[node as usize].method as usize].name == name;
        let rows = store.rows.iter().filter(|row| row.key.node > 0);
        rows.filter(|row| is_its(row.key.node))
            .map(|row| row.total)
            .sum()
    }

    fn pull(&mut self) {
        loop {
            let changes = self.table.changes(self.mirror.cursor());
            let more = changes.more;
            if changes.reset {
                self.feed.reset(&self.mirror);
            }
            let freshness = Freshness {
                is_fresh: true,
                clock_ns: 0,
            };
            let grown = self
                .mirror
                .take(Delta { changes, freshness })
                .expect("taken");
            self.feed.grown(&self.mirror, &grown);
            if !more {
                return self.feed.end(&self.mirror);
            }
        }
    }

    fn total(&self) -> u64 {
        let store = lock(&self.feed.store);
        store.sums(Scope::Total, None, None).all().run
    }
}

#[test]
fn what_was_before_is_not_counted_and_all_that_comes_is() {
    let mut way = Way::new();
    way.add(1, 1, 1000);
    way.pull();
    way.feed.note(&way.mirror, &News::Begins);
    way.add(1, 1, 5);
    way.add(2, 2, 7);
    way.pull();
    assert_eq!(way.total(), 12);
    assert_eq!(&*lock(&way.feed.store).methods[0].name, "work ");
    // The profile begins anew.
    way.table.clear();
    way.table.facts.start_ns = 50;
    way.add(9, 1, 100);
    way.pull();
    assert_eq!(way.total(), 112);
}

#[test]
fn stacks_that_are_folded_meanwhile_count_once() {
    let mut way = Way::new();
    way.table = SharedSums::new(200);
    way.table.facts.mode = "wall".into();
    way.table.facts.start_ns = 1;
    way.add_stack(&["main", "old", "leaf 1"], 1_000);
    way.pull();
    way.feed.note(&way.mirror, &News::Begins);
    let (mut times, mut folds) = ([0; 3], 0);
    for number in 0_u64..400 {
        let leaf = number as usize % 3;
        let names = [
            format!("a{}", number % 7),
            format!("b{number}"),
            format!("leaf {leaf}"),
        ];
        let stack: Vec<&str> = ["main"]
            .into_iter()
            .chain(names.iter().map(String::as_str))
            .collect();
        way.add_stack(&stack, number + 1);
        times[leaf] += number + 1;
        if number % 5 == 0 {
            folds += usize::from(way.table.fold_stacks_if_full().is_some());
            way.pull();
        }
    }
    way.pull();
    assert!(folds > 2, "{folds} folds");
    for (leaf, time) in times.into_iter().enumerate() {
        assert_eq!(way.own(&format!("leaf {leaf}")), time);
    }
    assert_eq!(way.total(), times.iter().sum::<u64>());
}

#[test]
fn threads_that_are_added_up_stay_what_they_were() {
    let mut way = Way::new();
    way.pull();
    way.feed.note(&way.mirror, &News::Begins);
    // So many rows that the table adds up those of threads that have ended.
    for thread in 1..=70_000 {
        way.add(thread % 3, thread, 2);
    }
    way.pull();
    for thread in 1..=60_000 {
        way.table.thread_ended(thread);
    }
    way.table.fold_if_many();
    way.add(1, 70_000, 3);
    way.add(1, 1, 4);
    way.pull();
    assert_eq!(way.total(), 140_007);
    let store = lock(&way.feed.store);
    assert!(store.rows.len() < 20_000, "{}", store.rows.len());
}
