//! Waits for the GVL that no stack is to blame for: they have frames of their own, so that blame adds up
//! to all waits. Used where a profile is made of what was collected. Any thread, no I/O.

use crate::frame_kind::{HAND_OVER_FRAME, UNKNOWN_HOLDER_FRAME};
use crate::label_keys::RACTOR;
use crate::{Frame, LabelSetId, Node, NodeId, OwnColumn, Profile, State, WeightKey};

impl Profile {
    /// Adds what blame lacks to all waits for the GVL: `[GVL holder unknown]` for those in other
    /// Ractors and for `unknown_ns` more, `[GVL hand-over]` for the rest. For profiles with both
    /// columns, once.
    pub fn add_unheld_waits(&mut self, unknown_ns: u64) {
        let columns = [OwnColumn::Wall, OwnColumn::GvlBlame].map(|it| self.schema.find_own(it));
        let [Some(wall), Some(blame)] = columns else {
            return;
        };
        let (mut waited, mut of_others, mut blamed) = (0_i64, 0_i64, 0_i64);
        for weight in self.weights.iter() {
            blamed = blamed.saturating_add(weight.value(blame));
            if weight.key.state == State::GvlWait {
                waited = waited.saturating_add(weight.value(wall));
                if self.is_of_other_ractor(weight.key.labels) {
                    of_others = of_others.saturating_add(weight.value(wall));
                }
            }
        }
        let missing = waited.saturating_sub(blamed).max(0);
        let unknown = i64::try_from(unknown_ns).unwrap_or(i64::MAX);
        let unknown = unknown.saturating_add(of_others).min(missing);
        let rows = [
            (UNKNOWN_HOLDER_FRAME, unknown),
            (HAND_OVER_FRAME, missing - unknown),
        ];
        for (frame, ns) in rows.into_iter().filter(|(_, ns)| *ns > 0) {
            let mut row = vec![0; self.schema.len()];
            row[blame.0] = ns;
            let key = WeightKey {
                node: self.node_at_root(frame),
                thread: 0,
                labels: LabelSetId::default(),
                state: State::Running,
            };
            self.weights.push(key, &row);
        }
    }

    fn is_of_other_ractor(&self, labels: LabelSetId) -> bool {
        let mut pairs = self.label_sets.get(labels).iter();
        pairs.any(|(key, _)| self.strings.get(*key) == RACTOR)
    }

    fn node_at_root(&mut self, (name, path): (&str, &str)) -> NodeId {
        let frame = self.frames.intern(Frame {
            name: self.strings.intern(name),
            path: self.strings.intern(path),
            first_line: 0,
        });
        self.tree.intern(Node {
            parent: NodeId::ROOT,
            frame,
            line: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_profile::TestProfile;
    use crate::{DisplayFrame, Mode};

    /// What stacks without a thread of their own are to blame for, by the name of their leaf.
    fn unheld(profile: &Profile) -> Vec<(String, i64)> {
        let blame = profile.schema.find_own(OwnColumn::GvlBlame);
        let rows = profile.weights.iter().filter(|it| it.key.thread == 0);
        let named = rows.map(|row| {
            let node = profile.tree.get(row.key.node).expect("a node");
            let text = profile.frame_text(DisplayFrame::from(node));
            let name = text.name.to_string();
            (name, row.value(blame.expect("a column")))
        });
        named.collect()
    }

    /// A profile of waits of 100 in the main Ractor and 30 in another one, and of `blamed`.
    fn waits(blamed: i64) -> TestProfile {
        let schema = Mode::Wall.schema().with([OwnColumn::GvlBlame]);
        let mut test = TestProfile::new(schema);
        let none = LabelSetId::default();
        let ractor = test.labels(&[("%ractor", "2")]);
        let mut push = |names: &[&str], labels, state, values: [i64; 4]| {
            let key = WeightKey {
                node: test.node(names),
                thread: 1,
                labels,
                state,
            };
            test.profile.weights.push(key, &values);
        };
        push(&["read"], none, State::GvlWait, [1, 100, 0, 0]);
        push(&["read"], ractor, State::GvlWait, [1, 30, 0, 0]);
        push(&["read"], none, State::GvlBlocked, [1, 1_000, 0, 0]);
        push(&["work"], none, State::Running, [1, 500, 500, blamed]);
        test
    }

    #[test]
    fn blame_adds_up_to_all_waits() {
        let row = |name: &str, ns| (name.to_string(), ns);
        for (blamed, unknown, expected) in [
            (
                60,
                0,
                vec![row("[GVL holder unknown]", 30), row("[GVL hand-over]", 40)],
            ),
            (
                60,
                25,
                vec![row("[GVL holder unknown]", 55), row("[GVL hand-over]", 15)],
            ),
            (120, 25, vec![row("[GVL holder unknown]", 10)]),
            (130, 0, vec![]),
            (140, 0, vec![]),
        ] {
            let mut profile = waits(blamed).profile;
            profile.add_unheld_waits(unknown);
            assert_eq!(unheld(&profile), expected, "{blamed} {unknown}");
        }
    }

    #[test]
    fn without_the_column_nothing_is_added() {
        let mut test = TestProfile::wall();
        test.add(&["read"], 1, LabelSetId::default(), State::GvlWait, 5);
        let before = test.profile.weights.len();
        test.profile.add_unheld_waits(7);
        assert_eq!(test.profile.weights.len(), before);
    }
}
