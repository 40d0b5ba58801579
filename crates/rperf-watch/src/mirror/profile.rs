//! The session that is watched as a profile, up to now.

use super::Mirror;
use rperf_model::{Frame, LabelSet, Mode, Node, NodeId, Profile, StringId, Thread, WeightKey};
use std::collections::BTreeSet;

impl Mirror {
    /// All rows; `None` if there are none, or of a mode that isn't known. Threads have no names.
    pub fn profile(&self) -> Option<Profile> {
        let mode = self.facts.sampling()?;
        let mut profile = Profile::new(mode.schema());
        let strings: Vec<StringId> = {
            let strings = self.strings.iter();
            strings.map(|it| profile.strings.intern(it)).collect()
        };
        let string = |id: StringId| strings[id.0 as usize];
        let mut nodes = vec![NodeId::ROOT];
        for node in &self.nodes {
            let frame = self.frames[node.frame.0 as usize];
            let frame = profile.frames.intern(Frame {
                name: string(frame.name),
                path: string(frame.path),
                ..frame
            });
            nodes.push(profile.tree.intern(Node {
                parent: nodes[node.parent.0 as usize],
                frame,
                line: node.line,
            }));
        }
        let sets = self.label_sets.iter().map(|set| {
            let set = set.iter().map(|&(key, value)| (string(key), string(value)));
            profile.label_sets.intern(set.collect::<LabelSet>())
        });
        let sets: Vec<_> = sets.collect();
        let mut seqs = BTreeSet::new();
        for (key, values) in self.rows() {
            let numbers = [values.count, values.wall_ns, values.cpu_ns];
            let [count, wall, cpu] = numbers.map(|it| i64::try_from(it).unwrap_or(i64::MAX));
            let key = WeightKey {
                node: nodes[key.node.0 as usize],
                labels: sets.get(key.labels.0 as usize).copied().unwrap_or_default(),
                ..key
            };
            match mode {
                Mode::Cpu => profile.weights.push(key, &[count, cpu]),
                Mode::Wall => profile.weights.push(key, &[count, wall, cpu]),
            }
            // Thread 0 has the time of threads that have ended.
            seqs.insert(key.thread);
        }
        let name = profile.strings.intern("");
        let seqs = seqs.into_iter().filter(|seq| *seq > 0);
        profile.threads = seqs.map(|seq| Thread { seq, name }).collect();
        let facts = &self.facts;
        profile.meta.duration_ns = facts.as_of_ns.saturating_sub(facts.start_ns);
        profile.meta.frequency = facts.frequency;
        profile.meta.counters.dropped_ns = facts.dropped_ns;
        (!profile.weights.is_empty()).then_some(profile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Column;
    use rperf_model::shared_sums::{Cursor, SharedSums, SumsValues};
    use rperf_model::{LabelSetId, State};
    use rperf_protocol::delta::{Delta, Freshness};

    #[test]
    fn it_has_all_rows_in_the_columns_of_the_mode() {
        let mut table = SharedSums::default();
        table.facts.mode = "wall".into();
        (table.facts.start_ns, table.facts.as_of_ns) = (5, 30);
        let frame = table.frame("Order#total", "order.rb", 3);
        let node = Node {
            parent: NodeId::ROOT,
            frame,
            line: 4,
        };
        let key = WeightKey {
            node: table.node(node).expect("room"),
            thread: 1,
            labels: LabelSetId::default(),
            state: State::Running,
        };
        let values = SumsValues {
            count: 1,
            wall_ns: 7,
            cpu_ns: 6,
        };
        let mut mirror = Mirror::default();
        assert!(mirror.profile().is_none(), "nothing is known");
        table.add(key, values);
        let freshness = Freshness {
            is_fresh: true,
            clock_ns: 0,
        };
        let changes = table.changes(Cursor::default());
        mirror.take(Delta { changes, freshness }).expect("a page");
        let profile = mirror.profile().expect("one");
        assert!(profile.check().is_ok());
        assert_eq!(profile.meta.duration_ns, 25);
        let rows: Vec<_> = profile.weights.iter().collect();
        let sums = [0, 1, 2].map(|column| rows[0].value(Column(column)));
        assert_eq!((rows.len(), sums), (1, [1, 7, 6]));
        assert_eq!(profile.threads[0].seq, 1);
        mirror.facts.mode = "cpu".into();
        let profile = mirror.profile().expect("one");
        assert_eq!((profile.schema.len(), profile.sum(Column(1))), (2, 6));
        mirror.facts.mode = "trace".into();
        assert!(mirror.profile().is_none());
    }
}
