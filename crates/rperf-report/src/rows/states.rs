//! What rows count as by state: waits for the GVL that no thread is to blame for count as no state. Used by
//! tables whose rows are states, and by totals; any thread.

use rperf_model::frame_kind::{HAND_OVER_FRAME, UNKNOWN_HOLDER_FRAME};
use rperf_model::{FrameId, Profile, State, WeightKey};

/// What a row counts as by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateRow {
    /// What threads did.
    Of(State),
    /// Waits for the GVL while nobody had it.
    HandOver,
    /// Waits for a GVL of which it isn't known who had it.
    UnknownHolder,
}

impl StateRow {
    /// All of them.
    pub const ALL: [Self; State::ALL.len() + 2] = [
        Self::Of(State::ALL[0]),
        Self::Of(State::ALL[1]),
        Self::Of(State::ALL[2]),
        Self::Of(State::ALL[3]),
        Self::Of(State::ALL[4]),
        Self::HandOver,
        Self::UnknownHolder,
    ];

    /// Its name for people, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(State::Running) => "running",
            Self::Of(State::GvlBlocked) => "GVL blocked",
            Self::Of(State::GvlWait) => "GVL wait",
            Self::Of(State::GcMarking) => "GC marking",
            Self::Of(State::GcSweeping) => "GC sweeping",
            Self::HandOver => "GVL hand-over",
            Self::UnknownHolder => "GVL holder unknown",
        }
    }

    /// Its place in [`StateRow::ALL`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Of(state) => state as usize,
            Self::HandOver => State::ALL.len(),
            Self::UnknownHolder => State::ALL.len() + 1,
        }
    }
}

/// Says it of the rows of `profile`.
pub(crate) fn state_rows(profile: &Profile) -> impl Fn(WeightKey) -> StateRow {
    let text = |id| profile.strings.get(id);
    let mut unheld: Vec<(FrameId, StateRow)> = Vec::new();
    for (id, frame) in profile.frames.iter() {
        match (text(frame.name), text(frame.path)) {
            HAND_OVER_FRAME => unheld.push((id, StateRow::HandOver)),
            UNKNOWN_HOLDER_FRAME => unheld.push((id, StateRow::UnknownHolder)),
            _ => {}
        }
    }
    move |key| {
        let node = profile.tree.get(key.node);
        let found = unheld
            .iter()
            .find(|(frame, _)| node.is_some_and(|node| node.frame == *frame));
        match (key.state, found) {
            (State::Running, Some((_, row))) => *row,
            (state, _) => StateRow::Of(state),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::methods::Methods;
    use crate::top::totals::Totals;
    use crate::top::{By, Sort, Top};
    use rperf_model::test_profile::TestProfile;
    use rperf_model::{LabelSetId, Mode, OwnColumn};

    #[test]
    fn all_have_a_place_and_a_name_of_their_own() {
        for (place, row) in StateRow::ALL.into_iter().enumerate() {
            assert_eq!(row.index(), place);
        }
        for state in State::ALL {
            assert_eq!(StateRow::Of(state), StateRow::ALL[state as usize]);
        }
        let names: std::collections::BTreeSet<_> =
            StateRow::ALL.iter().map(|row| row.name()).collect();
        assert_eq!(names.len(), StateRow::ALL.len());
    }

    #[test]
    fn waits_that_nobody_is_to_blame_for_are_no_running_time() {
        let schema = Mode::Wall.schema().with([OwnColumn::GvlBlame]);
        let blame = schema.find_own(OwnColumn::GvlBlame).expect("a column");
        let mut test = TestProfile::new(schema);
        let none = LabelSetId::default();
        test.add(&["read"], 1, none, State::GvlWait, 500);
        test.add(&["spin"], 2, none, State::Running, 300);
        test.add(&["spin"], 2, none, State::GcMarking, 200);
        let mut profile = test.profile;
        let rows = std::mem::replace(&mut profile.weights, rperf_model::Weights::new(4));
        for row in rows.iter() {
            let mut values = row.values.to_vec();
            values[blame.0] = match row.key.state {
                State::GvlWait => 0,
                _ => row.value(rperf_model::Column(1)),
            };
            profile.weights.push(row.key, &values);
        }
        profile.add_unheld_waits(30, 70);
        let expected = [
            ("running", 300),
            ("GC marking", 200),
            ("GVL hand-over", 70),
            ("GVL holder unknown", 30),
        ];
        let top = Top::of(&profile, blame, &By::State);
        let shown = top.sorted(Sort::SelfValue).into_iter();
        let shown: Vec<_> = shown
            .map(|row| (&*row.function.name, row.self_value))
            .collect();
        assert_eq!((shown, top.total), (expected.to_vec(), 600));
        let methods = Methods::of(&profile, blame, &By::State, Sort::TotalValue);
        let rows = methods.rows.iter().filter(|row| row.total_value != 0);
        let named: Vec<_> = rows
            .map(|row| (&*row.function.name, row.total_value))
            .collect();
        assert_eq!(named, expected);
        let totals = Totals::of(&profile, blame);
        let sums = StateRow::ALL.map(|row| totals.row(row));
        assert_eq!(sums, [300, 0, 0, 200, 0, 70, 30]);
        assert_eq!(totals.value, 600);
    }
}
