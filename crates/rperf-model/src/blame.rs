//! Waits for the GVL that no stack is to blame for: they have frames of their own, so that blame adds up
//! to all waits. Used where a profile is made of what was collected. Any thread, no I/O.

use crate::frames::frame_kind::{HAND_OVER_FRAME, UNKNOWN_HOLDER_FRAME};
use crate::labels::label_keys::RACTOR;
use crate::{LabelSetId, Node, NodeId, OwnColumn, Profile, State, WeightKey};

impl Profile {
    /// Adds the waits for the GVL that no stack is to blame for: as `[GVL holder unknown]` those in
    /// other Ractors and `unknown_ns` more (or less), as `[GVL hand-over]` `hand_over_ns`. For profiles with
    /// the column, once.
    pub fn add_unheld_waits(&mut self, unknown_ns: i64, hand_over_ns: u64) {
        let columns = [OwnColumn::Wall, OwnColumn::GvlBlame].map(|it| self.schema.find_own(it));
        let [Some(wall), Some(blame)] = columns else {
            return;
        };
        let waits = self.weights.iter();
        let waits = waits.filter(|weight| weight.key.state == State::GvlWait);
        let of_others = waits
            .filter(|weight| self.is_of_other_ractor(weight.key.labels))
            .fold(0_i64, |sum, weight| sum.saturating_add(weight.value(wall)));
        let rows = [
            (UNKNOWN_HOLDER_FRAME, unknown_ns.saturating_add(of_others)),
            (HAND_OVER_FRAME, hand_over_ns.try_into().unwrap_or(i64::MAX)),
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

    fn node_at_root(&mut self, frame: (&str, &str)) -> NodeId {
        let (name, path) = frame;
        let frame = self.frames.intern_named(&mut self.strings, name, path, 0);
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

    #[test]
    fn waits_without_a_holder_that_is_known_have_frames() {
        let schema = Mode::Wall.schema().with([OwnColumn::GvlBlame]);
        let mut test = TestProfile::new(schema);
        let none = LabelSetId::default();
        let ractor = test.labels(&[("%ractor", "2")]);
        for (labels, state, wall) in [
            (none, State::GvlWait, 100),
            (ractor, State::GvlWait, 30),
            (ractor, State::GvlBlocked, 1_000),
        ] {
            test.add(&["read"], 1, labels, state, wall);
        }
        let row = |name: &str, ns| (name.to_string(), ns);
        for (unknown, hand_over, expected) in [
            (
                25,
                40,
                vec![row("[GVL holder unknown]", 55), row("[GVL hand-over]", 40)],
            ),
            (0, 0, vec![row("[GVL holder unknown]", 30)]),
        ] {
            let mut profile = test.profile.clone();
            profile.add_unheld_waits(unknown, hand_over);
            assert_eq!(unheld(&profile), expected);
        }
    }

    #[test]
    fn without_the_column_nothing_is_added() {
        let mut test = TestProfile::wall();
        test.add(&["read"], 1, LabelSetId::default(), State::GvlWait, 5);
        let before = test.profile.weights.len();
        test.profile.add_unheld_waits(7, 7);
        assert_eq!(test.profile.weights.len(), before);
    }
}
