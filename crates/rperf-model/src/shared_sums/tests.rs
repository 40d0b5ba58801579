//! Readers of shared sums, with whatever happens to them and to the replies.

use super::rows::ROW_CAP;
use super::*;
use crate::{Frame, LabelSet, State, StringId};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A reader, as a client is one.
#[derive(Debug, Clone, Default)]
struct Reader {
    cursor: Cursor,
    strings: Vec<String>,
    frames: Vec<Frame>,
    nodes: Vec<Node>,
    label_sets: Vec<LabelSet>,
    rows: BTreeMap<WeightKey, SumsValues>,
}

impl Reader {
    /// Takes a page in; returns whether there is another one.
    fn take(&mut self, page: Changes) -> bool {
        if page.reset {
            *self = Self::default();
        }
        self.cursor = page.cursor;
        self.strings.extend(page.strings);
        self.frames.extend(page.frames);
        self.nodes.extend(page.nodes);
        self.label_sets.extend(page.label_sets);
        for row in page.rows {
            assert!(
                row.key.node.0 as usize <= self.nodes.len(),
                "nodes come first"
            );
            self.rows.insert(row.key, row.values);
        }
        page.more
    }

    fn read(&mut self, table: &mut SharedSums) {
        while self.take(table.changes(self.cursor)) {}
    }

    /// Sums by the name of the leaf, the thread and the value of the label.
    fn sums(&self) -> BTreeMap<(String, u32, String), SumsValues> {
        let mut sums = BTreeMap::new();
        let text = |id: StringId| self.strings[id.0 as usize].clone();
        for (key, values) in &self.rows {
            let frame = self.frames[self.nodes[key.node.0 as usize - 1].frame.0 as usize];
            let set = &self.label_sets[key.labels.0 as usize];
            let label = set.first().map_or(String::new(), |&(_, value)| text(value));
            let name = (text(frame.name), key.thread, label);
            sums.entry(name)
                .or_insert_with(SumsValues::default)
                .add(*values);
        }
        sums
    }
}

fn values(wall_ns: u64) -> SumsValues {
    SumsValues {
        count: 1,
        wall_ns,
        cpu_ns: wall_ns / 2,
        blame_ns: 0,
    }
}

fn record(table: &mut SharedSums, name: u32, thread: u32, label: u32) {
    let frame = table.frame(&format!("method{name}"), "app.rb", 1);
    let node = Node {
        parent: NodeId::ROOT,
        frame,
        line: 1,
    };
    let node = table.node(node).expect("room");
    let label = format!("{label}");
    let labels = match &*label {
        "0" => table.label_set([]),
        label => table.label_set([("request", label)]),
    };
    let key = WeightKey {
        node,
        thread,
        labels,
        state: State::Running,
    };
    assert!(table.add(key, values(u64::from(name) + 10)));
}

#[test]
fn what_finds_no_room_is_among_the_time_that_is_dropped() {
    let mut table = SharedSums::default();
    table.facts.dropped_ns = 5;
    let labels = table.label_set([]);
    let key = |thread| WeightKey {
        node: NodeId::ROOT,
        thread,
        labels,
        state: State::Running,
    };
    for thread in 0..ROW_CAP as u32 {
        assert!(table.add(key(thread), values(1)));
    }
    assert!(!table.add(key(u32::MAX), values(7)));
    let lost = values(7).wall_ns;
    assert_eq!(table.changes(Cursor::default()).facts.dropped_ns, 5 + lost);
}

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    Record(u32, u32, u32),
    Ends(u32),
    /// A reader reads to the end, one page only, or its reply gets lost.
    Reads(usize),
    ReadsPage(usize),
    Loses(usize),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => (0_u32..30, 1_u32..40, 0_u32..3).prop_map(|(name, thread, label)| Step::Record(name, thread, label)),
        2 => (1_u32..40).prop_map(Step::Ends),
        2 => (0_usize..3).prop_map(Step::Reads),
        1 => (0_usize..3).prop_map(Step::ReadsPage),
        1 => (0_usize..3).prop_map(Step::Loses),
        1 => Just(Step::Clear),
    ];
    proptest::collection::vec(step, 0..300)
}

proptest! {
    #[test]
    fn whatever_gets_lost_all_readers_have_the_same_sums_in_the_end(steps in steps()) {
        let mut table = SharedSums::of(FoldPlan::new(50, NODE_CAP));
        let mut readers = vec![Reader::default(); 3];
        let mut expected: BTreeMap<(String, u32), SumsValues> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Record(name, thread, label) => {
                    record(&mut table, name, thread, label);
                    let sum = expected.entry((format!("method{name}"), label)).or_default();
                    sum.add(values(u64::from(name) + 10));
                }
                Step::Ends(thread) => {
                    table.thread_ended(thread);
                    table.fold_if_many();
                }
                Step::Reads(reader) => readers[reader].read(&mut table),
                Step::ReadsPage(reader) => {
                    let page = table.changes(readers[reader].cursor);
                    readers[reader].take(page);
                }
                Step::Loses(reader) => drop(table.changes(readers[reader].cursor)),
                Step::Clear => {
                    table.clear();
                    expected.clear();
                }
            }
        }
        readers.iter_mut().for_each(|reader| reader.read(&mut table));
        let all: Vec<_> = readers.iter().map(Reader::sums).collect();
        prop_assert_eq!(&all[0], &all[1]);
        prop_assert_eq!(&all[0], &all[2]);
        let mut found: BTreeMap<(String, u32), SumsValues> = BTreeMap::new();
        for ((name, _, label), values) in &all[0] {
            let label = label.parse().unwrap_or(0);
            found.entry((name.clone(), label)).or_default().add(*values);
        }
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn a_cursor_comes_back_from_its_text(numbers in any::<[u64; 8]>(), text in "[0-9.+ -]{0,20}") {
        let [serial, strings, frames, nodes, label_sets, since, until, place] = numbers;
        let cursor = Cursor { serial, strings, frames, nodes, label_sets, since, until, place };
        prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        if let Ok(cursor) = text.parse::<Cursor>() {
            prop_assert_eq!(cursor.to_string().parse(), Ok(cursor));
        }
    }

    #[test]
    fn no_cursor_makes_it_fail(numbers in any::<[u8; 7]>(), is_own in any::<bool>()) {
        let mut table = SharedSums::default();
        (0..20).for_each(|name| record(&mut table, name, 1, name % 3));
        let [strings, frames, nodes, label_sets, since, until, place] = numbers.map(|it| u64::from(it) % 30);
        let serial = if is_own { table.serial } else { 0 };
        let cursor = Cursor { serial, strings, frames, nodes, label_sets, since, until, place };
        let page = table.changes(cursor);
        prop_assert!(is_own || page.reset);
    }
}

#[test]
fn a_reader_gets_only_what_has_changed() {
    let mut table = SharedSums::default();
    (0..100).for_each(|name| record(&mut table, name, 1, 0));
    let mut reader = Reader::default();
    reader.read(&mut table);
    for round in 1..200 {
        record(&mut table, round % 5, 1, 0);
        let page = table.changes(reader.cursor);
        assert_eq!(
            (page.reset, page.rows.len(), page.nodes.len()),
            (false, 1, 0)
        );
        reader.take(page);
        assert_eq!(table.changes(reader.cursor).rows.len(), 0);
    }
    // It was away for longer than changes are listed.
    let mut late = reader.clone();
    for round in 0..300 {
        record(&mut table, round % 5, 1, 0);
        reader.read(&mut table);
    }
    let page = table.changes(late.cursor);
    assert_eq!((page.reset, page.rows.len()), (false, 5));
    late.take(page);
    assert_eq!(late.sums(), reader.sums());
}

#[test]
fn rows_of_ended_threads_are_added_up_however_many_each_has() {
    let mut table = SharedSums::of(FoldPlan::new(200, NODE_CAP));
    for thread in 1..100 {
        (0..50).for_each(|name| record(&mut table, name, thread, 0));
        table.thread_ended(thread);
        table.fold_if_many();
        assert!(table.rows() <= 200, "{}", table.rows());
    }
    let mut reader = Reader::default();
    reader.read(&mut table);
    let counts = reader.rows.values().map(|values| values.count);
    assert_eq!(counts.sum::<u64>(), 99 * 50);
}

#[test]
fn what_is_large_comes_in_pages_and_may_change_in_between() {
    let mut table = SharedSums::default();
    let count = 3 * PAGE_ROWS as u32;
    (0..count).for_each(|name| record(&mut table, name, 1, 0));
    let mut reader = Reader::default();
    let mut pages = 0;
    loop {
        let page = table.changes(reader.cursor);
        let text: usize = page.strings.iter().map(String::len).sum();
        assert!(text <= PAGE_TEXT && page.rows.len() <= PAGE_ROWS && page.nodes.len() <= PAGE_ROWS);
        pages += 1;
        // The first rows change while the others are on their way.
        record(&mut table, pages % 7, 1, 0);
        if !reader.take(page) {
            break;
        }
    }
    assert!(pages > 8, "{pages}");
    reader.read(&mut table);
    let mut other = Reader::default();
    other.read(&mut table);
    assert_eq!(reader.sums(), other.sums());
    assert_eq!(reader.rows.len(), count as usize);
}
