//! What a client has of a session that it watches. It takes pages of changes in, which a hostile
//! server may have sent: what a page refers to must be there. On the command's thread.

mod profile;

use rperf_model::shared_sums::{Changes, Cursor, NODE_CAP, SumsFacts, SumsRow, SumsValues};
use rperf_model::{Frame, FrameId, LabelSet, LabelSetId, Node, NodeId, StringId, WeightKey};
use rperf_protocol::delta::{BadDelta, Delta};
use std::collections::{HashMap, HashSet};

/// Rows, strings, frames and label sets that are taken in at most: a port has no more.
const MAX_ROWS: usize = NODE_CAP + 1;
const MAX_STRINGS: usize = 4 * NODE_CAP;

/// Bytes of text.
const MAX_TEXT: usize = 256 << 20;

/// Where the helper's methods are (`lib/rperf/live/helper.rb`), and how their names begin.
const HELPER: (&str, &str) = ("Rperf::Helper.", "rperf/live/helper.rb");

/// The session as far as it is known, without the thread that answers the port.
#[derive(Debug, Default)]
pub struct Mirror {
    /// Facts about it.
    pub facts: SumsFacts,
    cursor: Cursor,
    strings: Vec<String>,
    text: usize,
    frames: Vec<Frame>,
    nodes: Vec<Node>,
    label_sets: Vec<LabelSet>,
    rows: HashMap<WeightKey, SumsValues>,
    /// Whether each node is one of the helper's stacks; and the threads that were seen in them.
    is_helpers: Vec<bool>,
    helpers: HashSet<u32>,
}

impl Mirror {
    /// What is asked for next.
    pub fn cursor(&self) -> Cursor {
        self.cursor
    }

    /// Takes a page in. Returns by how much each row has grown.
    pub fn take(&mut self, delta: Delta) -> Result<Vec<(WeightKey, SumsValues)>, BadDelta> {
        let changes = delta.changes;
        if changes.reset {
            *self = Self::default();
        }
        self.add_tables(&changes)?;
        self.add_text(changes.strings)?;
        self.find_helpers(&changes.rows);
        let mut grown = Vec::with_capacity(changes.rows.len());
        for row in &changes.rows {
            let has_labels = row.key.labels == LabelSetId::default()
                || (row.key.labels.0 as usize) < self.label_sets.len();
            if row.key.node.0 as usize > self.nodes.len() || !has_labels {
                return Err(BadDelta);
            }
            let before = self.rows.insert(row.key, row.values).unwrap_or_default();
            if !self.is_helpers(&row.key) {
                grown.push((row.key, row.values.without(before)));
            }
        }
        if self.rows.len() > MAX_ROWS {
            return Err(BadDelta);
        }
        (self.facts, self.cursor) = (changes.facts, changes.cursor);
        Ok(grown)
    }

    /// All rows.
    pub fn rows(&self) -> impl Iterator<Item = (WeightKey, SumsValues)> + '_ {
        let rows = self.rows.iter().filter(|(key, _)| !self.is_helpers(key));
        rows.map(|(key, values)| (*key, *values))
    }

    fn is_helpers(&self, key: &WeightKey) -> bool {
        let place = (key.node.0 as usize).wrapping_sub(1);
        let is_its = self.is_helpers.get(place).copied().unwrap_or(false);
        is_its || self.helpers.contains(&key.thread)
    }

    /// By the method that its stacks begin with.
    fn find_helpers(&mut self, rows: &[SumsRow]) {
        for number in self.is_helpers.len()..self.nodes.len() {
            let node = self.nodes[number];
            let above = (node.parent.0 as usize).checked_sub(1);
            let is_its = match above {
                Some(parent) => self.is_helpers[parent],
                None => self.frame(node.frame).is_some_and(|(name, path)| {
                    name.starts_with(HELPER.0) && path.ends_with(HELPER.1)
                }),
            };
            self.is_helpers.push(is_its);
        }
        for row in rows {
            let place = (row.key.node.0 as usize).wrapping_sub(1);
            // Thread 0 stands for others, too.
            if row.key.thread > 0 && self.is_helpers.get(place) == Some(&true) {
                self.helpers.insert(row.key.thread);
            }
        }
    }

    /// All nodes but the root, in the order of their numbers, which begin with 1.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// How many label sets there are.
    pub fn label_sets(&self) -> usize {
        self.label_sets.len()
    }

    /// The keys and values of a label set.
    pub fn labels(&self, id: LabelSetId) -> impl Iterator<Item = (&str, &str)> + '_ {
        let set = self.label_sets.get(id.0 as usize).into_iter().flatten();
        let text = |id: StringId| self.strings.get(id.0 as usize).map(String::as_str);
        set.filter_map(move |&(key, value)| Some((text(key)?, text(value)?)))
    }

    /// How many frames there are.
    pub fn frames(&self) -> usize {
        self.frames.len()
    }

    /// The name and the path of a frame.
    pub fn frame(&self, id: FrameId) -> Option<(&str, &str)> {
        let frame = self.frames.get(id.0 as usize)?;
        let text = |id: StringId| self.strings.get(id.0 as usize);
        Some((text(frame.name)?, text(frame.path)?))
    }

    /// The frames of a stack, the leaf first.
    pub fn stack(&self, leaf: NodeId) -> impl Iterator<Item = FrameId> + '_ {
        let node = |id: NodeId| self.nodes.get((id.0 as usize).wrapping_sub(1));
        let nodes = std::iter::successors(node(leaf), move |found| node(found.parent));
        nodes.map(|node| node.frame)
    }

    fn add_text(&mut self, strings: Vec<String>) -> Result<(), BadDelta> {
        self.text += strings.iter().map(String::len).sum::<usize>();
        self.strings.extend(strings);
        match self.text <= MAX_TEXT && self.strings.len() <= MAX_STRINGS {
            true => Ok(()),
            false => Err(BadDelta),
        }
    }

    fn add_tables(&mut self, changes: &Changes) -> Result<(), BadDelta> {
        let strings = self.strings.len() + changes.strings.len();
        let is_text = |id: StringId| (id.0 as usize) < strings;
        for frame in &changes.frames {
            if !is_text(frame.name) || !is_text(frame.path) {
                return Err(BadDelta);
            }
        }
        self.frames.extend(&changes.frames);
        for node in &changes.nodes {
            // Parents come first: so no stack has a circle.
            let is_parent = node.parent.0 as usize <= self.nodes.len();
            if !is_parent || node.frame.0 as usize >= self.frames.len() {
                return Err(BadDelta);
            }
            self.nodes.push(*node);
        }
        for set in &changes.label_sets {
            if !set
                .iter()
                .all(|&(key, value)| is_text(key) && is_text(value))
            {
                return Err(BadDelta);
            }
        }
        self.label_sets.extend(changes.label_sets.iter().cloned());
        let tables = [self.frames.len(), self.nodes.len(), self.label_sets.len()];
        match tables.into_iter().all(|rows| rows <= MAX_ROWS) {
            true => Ok(()),
            false => Err(BadDelta),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rperf_model::State;
    use rperf_model::shared_sums::SharedSums;
    use rperf_protocol::delta::Freshness;

    fn page(changes: Changes) -> Delta {
        let freshness = Freshness {
            is_fresh: true,
            clock_ns: 0,
        };
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

    fn values(wall_ns: u64) -> SumsValues {
        SumsValues {
            count: 1,
            wall_ns,
            cpu_ns: 0,
        }
    }

    #[test]
    fn it_says_by_how_much_rows_have_grown() {
        let (mut table, mut mirror) = (SharedSums::default(), Mirror::default());
        table.facts.mode = "wall".into();
        let frame = table.frame("Order#total", "order.rb", 3);
        let parent = NodeId::ROOT;
        let node = table
            .node(Node {
                parent,
                frame,
                line: 4,
            })
            .expect("room");
        for (more, expected) in [(5, 5), (7, 7)] {
            table.add(key(node), values(more));
            let grown = mirror
                .take(page(table.changes(mirror.cursor())))
                .expect("taken");
            assert_eq!(grown, [(key(node), values(expected))]);
        }
        assert_eq!(
            mirror.rows().collect::<Vec<_>>(),
            [(
                key(node),
                SumsValues {
                    count: 2,
                    ..values(12)
                }
            )]
        );
        let stack: Vec<_> = mirror
            .stack(node)
            .filter_map(|id| mirror.frame(id))
            .collect();
        assert_eq!(stack, [("Order#total", "order.rb")]);
        table.clear();
        let grown = mirror
            .take(page(table.changes(mirror.cursor())))
            .expect("taken");
        assert_eq!(
            (grown.len(), mirror.rows().count(), mirror.frames()),
            (0, 0, 0)
        );
    }

    #[test]
    fn the_thread_that_answers_is_left_out() {
        let (mut table, mut mirror) = (SharedSums::default(), Mirror::default());
        table.facts.mode = "wall".into();
        let rest = table.frame("Rperf::Helper.rest", "/lib/rperf/live/helper.rb", 1);
        let sleep = table.frame("Kernel.sleep", "<C method>", 0);
        let node = |table: &mut SharedSums, parent, frame| {
            let line = 0;
            table
                .node(Node {
                    parent,
                    frame,
                    line,
                })
                .expect("room")
        };
        let rest = node(&mut table, NodeId::ROOT, rest);
        let in_rest = node(&mut table, rest, sleep);
        let own = node(&mut table, NodeId::ROOT, sleep);
        let of_thread = |node, thread| WeightKey {
            thread,
            ..key(node)
        };
        for key in [of_thread(in_rest, 2), of_thread(own, 2), of_thread(own, 1)] {
            table.add(key, values(1));
        }
        let grown = mirror
            .take(page(table.changes(mirror.cursor())))
            .expect("taken");
        let expected = (of_thread(own, 1), values(1));
        assert_eq!(grown, [expected]);
        assert_eq!(mirror.rows().collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn what_refers_to_nothing_is_refused() {
        let frame = |name| Frame {
            name: StringId(name),
            path: StringId(0),
            first_line: 0,
        };
        let node = |parent, frame| Node {
            parent: NodeId(parent),
            frame: FrameId(frame),
            line: 0,
        };
        let good = Changes {
            facts: SumsFacts {
                mode: "wall".into(),
                ..SumsFacts::default()
            },
            strings: vec!["a".into()],
            frames: vec![frame(0)],
            nodes: vec![node(0, 0), node(1, 0)],
            label_sets: vec![vec![], vec![(StringId(0), StringId(0))]],
            rows: vec![SumsRow {
                key: key(NodeId(2)),
                values: values(1),
            }],
            ..Changes::default()
        };
        assert!(Mirror::default().take(page(good.clone())).is_ok());
        let row = |key| {
            vec![SumsRow {
                key,
                values: values(1),
            }]
        };
        let labels = LabelSetId(2);
        for bad in [
            Changes {
                frames: vec![frame(1)],
                ..good.clone()
            },
            Changes {
                nodes: vec![node(1, 0)],
                ..good.clone()
            },
            Changes {
                nodes: vec![node(0, 1)],
                ..good.clone()
            },
            Changes {
                label_sets: vec![vec![(StringId(1), StringId(0))]],
                ..good.clone()
            },
            Changes {
                rows: row(key(NodeId(3))),
                ..good.clone()
            },
            Changes {
                rows: row(WeightKey {
                    labels,
                    ..key(NodeId(1))
                }),
                ..good.clone()
            },
        ] {
            assert_eq!(Mirror::default().take(page(bad)), Err(BadDelta));
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_fail(
            changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let mut table = SharedSums::default();
            let frame = table.frame("a", "b", 1);
            let mut parent = NodeId::ROOT;
            for line in 0..5 {
                parent = table.node(Node { parent, frame, line }).expect("room");
                table.add(key(parent), values(5));
            }
            let changed = table.changes(Cursor::default());
            let facts = SumsFacts { mode: "cpu".into(), ..SumsFacts::default() };
            let freshness = Freshness { is_fresh: true, clock_ns: 0 };
            let mut bytes = Delta { changes: Changes { facts, ..changed }, freshness }.to_bytes();
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let mut mirror = Mirror::default();
            if let Ok(delta) = Delta::from_bytes(&bytes)
                && mirror.take(delta).is_ok()
            {
                for (key, _) in mirror.rows() {
                    prop_assert!(mirror.stack(key.node).all(|frame| mirror.frame(frame).is_some()));
                }
            }
        }
    }
}
