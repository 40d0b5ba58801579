//! What arrives in the sums, whatever becomes of the rows on the way.

use super::super::{Extent, Scope};
use super::*;
use rperf_model::shared_sums::{Cursor, SharedSums, SumsFacts, SumsValues};
use rperf_model::{Column, LabelSetId, Mode, Node, NodeId, Profile, State};
use rperf_protocol::delta::Freshness;

const FRESHNESS: Freshness = Freshness {
    is_fresh: true,
    clock_ns: 0,
};

fn page(changes: Changes) -> Delta {
    let freshness = FRESHNESS;
    let delta = Delta { changes, freshness };
    Delta::from_bytes(&delta.to_bytes()).expect("a page")
}

fn key(node: NodeId) -> WeightKey {
    WeightKey {
        node,
        thread: 1,
        labels: LabelSetId::default(),
        state: State::Running,
    }
}

fn wall(wall_ns: u64) -> SumsValues {
    SumsValues {
        count: 1,
        wall_ns,
        cpu_ns: 0,
        blame_ns: 0,
    }
}

/// Sums with a program of which nothing is known.
fn empty() -> Sums {
    let mut sums = Sums::default();
    sums.add_process(7, "app");
    sums
}

/// A program and those who watch it.
struct Way {
    table: SharedSums,
    sums: Sums,
    cursor: Cursor,
}

impl Way {
    fn new() -> Self {
        let mut table = SharedSums::default();
        (table.facts.mode, table.facts.start_ns) = (Mode::Wall, 1);
        Way {
            table,
            sums: empty(),
            cursor: Cursor::default(),
        }
    }

    /// The node of a stack, its root first, with names, first lines and lines.
    fn node(&mut self, stack: &[(&str, u32, u32)]) -> NodeId {
        let mut parent = NodeId::ROOT;
        for (depth, &(name, first_line, line)) in stack.iter().enumerate() {
            let frame = self.table.frame(name, "a.rb", first_line);
            let node = Node {
                parent,
                frame,
                line,
            };
            match self.table.node(node) {
                Some(node) => parent = node,
                None => {
                    let leaf = self.table.frame(stack[stack.len() - 1].0, "a.rb", 1);
                    assert!(depth > 0);
                    return self.table.folded_leaf(parent, leaf, line);
                }
            }
        }
        parent
    }

    fn add(&mut self, line: u32, thread: u32, wall_ns: u64) {
        let node = self.node(&[("work\u{1b}\u{202e}", 1, line)]);
        let key = WeightKey {
            thread,
            ..key(node)
        };
        assert!(self.table.add(key, wall(wall_ns)));
    }

    fn add_stack(&mut self, names: &[&str], wall_ns: u64) {
        let stack: Vec<_> = names.iter().map(|name| (*name, 1, 0)).collect();
        let key = key(self.node(&stack));
        assert!(self.table.add(key, wall(wall_ns)));
    }

    /// A thread answers for the VM.
    fn add_of_helper(&mut self, thread: u32) {
        let path = "/lib/rperf/live/helper.rb";
        let frame = self.table.frame("Rperf::Helper.rest", path, 1);
        let node = Node {
            parent: NodeId::ROOT,
            frame,
            line: 0,
        };
        let key = WeightKey {
            thread,
            ..key(self.table.node(node).expect("room"))
        };
        assert!(self.table.add(key, wall(1)));
    }

    fn pull(&mut self) {
        loop {
            let changes = self.table.changes(self.cursor);
            let more = changes.more;
            self.cursor = changes.cursor;
            self.sums.take(0, page(changes)).expect("taken");
            if !more {
                return;
            }
        }
    }

    /// All that comes after what is there already counts.
    fn begin(&mut self) {
        self.pull();
        self.sums.begin(0);
    }

    /// The time of a method itself.
    fn own(&self, name: &str) -> u64 {
        let (methods, _) = self.sums.method_times(Scope::Total, None, None);
        let mut methods = methods.iter();
        let found = methods.find(|it| &*self.sums.methods[it.method as usize].name == name);
        found.map_or(0, |it| it.own.run)
    }

    fn total(&self) -> u64 {
        self.sums.node_times(Scope::Total, None, None).all().run
    }

    fn session(&self) -> Option<Profile> {
        self.sums.profile(Extent::Session, None)
    }
}

#[test]
fn what_was_before_is_not_counted_and_all_that_comes_is() {
    let mut way = Way::new();
    way.add(1, 1, 1000);
    way.begin();
    assert_eq!(way.total(), 0);
    way.add(1, 1, 5);
    way.add(2, 2, 7);
    way.pull();
    assert_eq!(way.total(), 12);
    assert_eq!(&*way.sums.methods[0].name, "work  ");
    assert_eq!(way.sums.nodes.len(), 2, "lines are no nodes");
    // The profile begins anew.
    way.table.clear();
    way.table.facts.start_ns = 50;
    way.add(9, 1, 100);
    way.pull();
    assert_eq!(way.total(), 112);
    let session = way.session().expect("one");
    assert_eq!((session.check(), session.sum(Column(1))), (Ok(()), 100));
}

#[test]
fn stacks_that_are_folded_meanwhile_count_once() {
    let mut way = Way::new();
    way.table = SharedSums::new(200);
    (way.table.facts.mode, way.table.facts.start_ns) = (Mode::Wall, 1);
    way.add_stack(&["main", "old", "leaf 1"], 1_000);
    way.begin();
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
    let session = way.session().expect("one");
    assert_eq!(session.check(), Ok(()));
    assert_eq!(session.sum(Column(1)) as u64, 1_000 + way.total());
}

#[test]
fn threads_that_are_added_up_stay_what_they_were() {
    let mut way = Way::new();
    way.begin();
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
    assert!(way.sums.rows.len() < 20_000, "{}", way.sums.rows.len());
}

#[test]
fn what_is_only_looked_at_is_let_go_when_it_comes_anew() {
    let mut way = Way::new();
    way.add(1, 1, 5);
    way.pull();
    assert_eq!(way.session().expect("one").sum(Column(1)), 5);
    way.table.clear();
    way.pull();
    assert!(way.session().is_none());
    assert_eq!((way.sums.methods.len(), way.sums.rows.len()), (0, 0));
    way.add(2, 1, 7);
    way.pull();
    assert_eq!(way.session().expect("one").sum(Column(1)), 7);
}

#[test]
fn a_page_that_comes_twice_counts_once() {
    let mut way = Way::new();
    way.begin();
    way.add(1, 1, 5);
    let changes = way.table.changes(way.cursor);
    for _ in 0..2 {
        way.sums.take(0, page(changes.clone())).ok();
    }
    assert_eq!(way.total(), 5);
}

#[test]
fn time_without_room_counts_once_too() {
    let mut way = Way::new();
    way.begin();
    way.add(1, 1, 5);
    way.pull();
    // As if there were no room for the row's labels.
    way.sums.intake.readings[0].label_sets = vec![None];
    for more in [7, 8] {
        way.add(2, 2, more);
        way.pull();
    }
    assert_eq!(way.total(), 20);
    assert_eq!((way.sums.rows.len(), way.sums.labels.len()), (2, 2));
    assert_eq!(&*way.sums.labels[1][0].0, super::super::MORE);
    // There is room by now.
    way.sums.intake.readings[0].label_sets = vec![Some(0)];
    way.add(2, 2, 9);
    way.pull();
    assert_eq!(way.total(), 29);
    way.table.clear();
    (way.table.facts.mode, way.table.facts.start_ns) = (Mode::Wall, 1);
    way.add(2, 2, 3);
    way.pull();
    assert_eq!(way.own("work  "), way.total());
}

#[test]
fn the_thread_that_answers_is_left_out() {
    let mut way = Way::new();
    let rest = way
        .table
        .frame("Rperf::Helper.rest", "/lib/rperf/live/helper.rb", 1);
    let sleep = way.table.frame("Kernel.sleep", "<C method>", 0);
    let mut node = |parent, frame| {
        let line = 0;
        let node = Node {
            parent,
            frame,
            line,
        };
        way.table.node(node).expect("room")
    };
    let rest = node(NodeId::ROOT, rest);
    let in_rest = node(rest, sleep);
    let own = node(NodeId::ROOT, sleep);
    let of_thread = |node, thread| WeightKey {
        thread,
        ..key(node)
    };
    way.begin();
    // What it does elsewhere may be known before.
    way.table.add(of_thread(own, 2), wall(1));
    way.pull();
    for key in [of_thread(in_rest, 2), of_thread(own, 2), of_thread(own, 1)] {
        way.table.add(key, wall(1));
    }
    way.pull();
    assert_eq!(way.total(), 1);
    let session = way.session().expect("one");
    let seqs: Vec<_> = session.threads.iter().map(|it| it.seq).collect();
    assert_eq!((session.sum(Column(1)), seqs), (1, vec![1]));
}

#[test]
fn threads_of_earlier_sessions_are_not_left_out() {
    let mut way = Way::new();
    way.begin();
    way.add(1, 2, 30);
    way.pull();
    way.sums.set_mark();
    way.add(1, 2, 20);
    way.pull();
    for (start_ns, knows_it_later) in [(50, false), (60, true)] {
        way.table.clear();
        way.table.facts.start_ns = start_ns;
        way.add(1, 2, 7);
        if knows_it_later {
            way.pull();
            assert_eq!(way.total(), 57);
        }
        way.add_of_helper(2);
        way.pull();
        let since = way.sums.node_times(Scope::SinceMark, None, None);
        assert_eq!((way.total(), since.all().run), (50, 20));
        assert!(way.session().is_none());
    }
}

#[test]
fn time_of_earlier_sessions_stays_in_another_mode() {
    let mut way = Way::new();
    way.begin();
    way.add(1, 1, 30);
    way.pull();
    way.table.clear();
    (way.table.facts.mode, way.table.facts.start_ns) = (Mode::Cpu, 50);
    let node = way.node(&[("work", 1, 1)]);
    let values = SumsValues {
        cpu_ns: 7,
        ..wall(0)
    };
    assert!(way.table.add(key(node), values));
    way.pull();
    assert_eq!(way.total(), 37);
    way.sums.set_mark();
    assert!(way.table.add(key(node), values));
    way.pull();
    let since = way.sums.node_times(Scope::SinceMark, None, None);
    assert_eq!((way.total(), since.all().run), (44, 7));
}

#[test]
fn a_profile_has_all_that_has_come() {
    let mut way = Way::new();
    assert!(way.session().is_none(), "nothing is known");
    let node = way.node(&[("Order#total\u{1b}", 3, 4)]);
    let labels = way.table.label_set([("k", "v")]);
    let key = WeightKey {
        labels,
        ..key(node)
    };
    let values = SumsValues {
        count: 1,
        wall_ns: 7,
        cpu_ns: 6,
        blame_ns: 0,
    };
    (way.table.facts.start_ns, way.table.facts.as_of_ns) = (5, 30);
    way.table.facts.dropped_ns = 90;
    way.table.add(key, values);
    way.begin();
    let (table, sums) = (&mut way.table, &mut way.sums);
    table.add(key, values);
    (table.facts.as_of_ns, table.facts.dropped_ns) = (50, 99);
    sums.directories.roots = vec!["/app".into()];
    way.pull();
    way.sums.end_interval(0, 20, 0);
    for (extent, duration_ns, dropped_ns, expected) in [
        (Extent::Session, 45, 99, [2, 14, 12]),
        (Extent::Watched, 20, 9, [1, 7, 6]),
    ] {
        let profile = way.sums.profile(extent, None).expect("one");
        assert_eq!(profile.check(), Ok(()));
        let meta = &profile.meta;
        assert_eq!(
            (meta.duration_ns, meta.counters.dropped_ns),
            (duration_ns, dropped_ns)
        );
        assert_eq!(
            (&*meta.program, &*meta.roots),
            ("app", &["/app".to_string()][..])
        );
        let sums = [0, 1, 2].map(|column| profile.sum(Column(column)));
        assert_eq!((profile.weights.len(), sums), (1, expected));
        let frame = profile.frames.get(FrameId(0)).expect("a frame");
        let node = profile.tree.get(NodeId(1)).expect("a node");
        assert_eq!(
            (frame.first_line, node.line, profile.threads[0].seq),
            (3, 4, 1)
        );
        assert_eq!(profile.strings.get(frame.name), "Order#total\u{1b}");
        assert_eq!(profile.label_sets.len(), 2);
    }
    way.sums.set_mark();
    assert!(way.sums.profile(Extent::SinceMark, None).is_none());
    way.sums.processes[0].facts.mode = Mode::Cpu;
    let profile = way.session().expect("one");
    assert_eq!((profile.schema.len(), profile.sum(Column(1))), (2, 12));
}

mod hostile;
