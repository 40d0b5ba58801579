//! Levels, such as the objects in use, when two profiles become one: those of different processes are added
//! up, and of two looks at the same processes the later one's stay. Where only some processes are the same, none do.

use crate::{Note, OwnColumn, Profile, Schema, WeightTable};
use std::collections::BTreeSet;

/// Whose levels the merged profile has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Levels {
    /// The levels of both.
    Both,
    /// Only ours, which is the later look.
    Ours,
    /// Only the other's.
    Theirs,
    /// No levels: they would count some processes twice, or leave others out.
    None,
}

impl Levels {
    /// What fits the processes that both profiles have looked at. Profiles of other tools don't say.
    pub(super) fn of(ours: &Profile, theirs: &Profile) -> Self {
        // Whatever comes to such a profile is a part only.
        if [ours, theirs].into_iter().any(lacks_levels) {
            return Self::None;
        }
        let (processes, others) = (processes(ours), processes(theirs));
        if processes.is_disjoint(&others) {
            return Self::Both;
        }
        if processes != others {
            return Self::None;
        }
        let is_later = theirs.meta.end_time_ns() > ours.meta.end_time_ns();
        if is_later { Self::Theirs } else { Self::Ours }
    }
}

/// The processes whose objects in use were looked at.
fn processes(profile: &Profile) -> BTreeSet<&str> {
    let notes = profile.meta.notes.iter();
    let processes = notes.filter_map(|note| match note {
        Note::InUse(process) => Some(&**process),
        _ => None,
    });
    processes.collect()
}

/// Whether levels were left out.
fn lacks_levels(profile: &Profile) -> bool {
    profile.meta.notes.contains(&Note::InUseLeftOut)
}

/// The columns that are levels.
fn levels(schema: &Schema) -> Vec<usize> {
    let types = schema.types().iter().enumerate();
    let levels = types.filter(|(_, it)| it.own().is_some_and(OwnColumn::is_level));
    levels.map(|(row, _)| row).collect()
}

impl Profile {
    /// Whether some of its columns are levels of rperf's own.
    pub(super) fn has_levels(&self) -> bool {
        !processes(self).is_empty() && !levels(&self.schema).is_empty()
    }

    /// Sets all levels to 0, and says so.
    pub(super) fn leave_levels_out(&mut self) {
        self.remove_levels();
        let notes = &mut self.meta.notes;
        notes.retain(|note| !matches!(note, Note::InUse(_) | Note::InUseLeftOut));
        notes.push(Note::InUseLeftOut);
    }

    /// Sets all levels to 0. Rows that have nothing else go.
    pub(super) fn remove_levels(&mut self) {
        let levels = levels(&self.schema);
        let mut weights = WeightTable::new(self.weights.width());
        for weight in self.weights.iter() {
            let mut values = weight.values.to_vec();
            levels.iter().for_each(|&level| values[level] = 0);
            weights.add(weight.key, &values);
        }
        self.weights = weights.into_weights();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::test_profile::TestProfile;
    use crate::{State, WeightKey};

    /// A look at a process that ended at `end_ns`, with so many nanoseconds and objects in use.
    fn look(process: &str, end_ns: u64, cpu: i64, in_use: i64) -> Profile {
        let mut profile = TestProfile::cpu()
            .with(&["a"], 1, State::Running, cpu)
            .profile;
        let (start_ns, width) = (1_000, profile.schema.len());
        profile.schema = profile.schema.with([OwnColumn::ObjectsInUse]);
        let mut weights = WeightTable::new(width + 1);
        let mut key = None;
        for weight in profile.weights.iter() {
            let values = [weight.values, &[0]].concat();
            weights.add(weight.key, &values);
            key = Some(weight.key);
        }
        let key: WeightKey = key.expect("a row");
        let level = |it| if it == width { in_use } else { 0 };
        weights.add(key, &(0..=width).map(level).collect::<Vec<_>>());
        profile.weights = weights.into_weights();
        profile.meta.notes.push(Note::InUse(process.into()));
        (profile.meta.start_time_ns, profile.meta.duration_ns) = (start_ns, end_ns - start_ns);
        profile
    }

    fn sums(profile: &Profile) -> (i64, i64) {
        let level = profile.schema.find_own(OwnColumn::ObjectsInUse);
        let time = profile.schema.default_column();
        (profile.sum(time), profile.sum(level.expect("a level")))
    }

    #[test]
    fn levels_of_different_processes_are_added() {
        let mut both = look("7-a", 2_000, 10, 100);
        both.merge(&look("8-a", 3_000, 5, 30)).expect("alike");
        assert_eq!(sums(&both), (15, 130));
    }

    #[test]
    fn where_some_processes_are_in_both_there_are_no_levels_whatever_the_order() {
        let mut both = look("7-a", 2_000, 10, 100);
        both.merge(&look("8-a", 3_000, 5, 30)).expect("alike");
        let again = look("8-a", 4_000, 1, 40);
        for (mut first, second) in [(both.clone(), &again), (again.clone(), &both)] {
            first.merge(second).expect("alike");
            assert_eq!(sums(&first), (16, 0));
            first.merge(&look("9-a", 5_000, 2, 7)).expect("alike");
            assert_eq!(sums(&first), (18, 0));
            let notes = first.meta.notes.iter();
            let left_out = notes.filter(|it| **it == Note::InUseLeftOut).count();
            let told = processes(&first).len();
            assert_eq!((left_out, told), (1, 0));
            assert!(first.check().is_ok());
        }
    }

    #[test]
    fn of_two_looks_at_a_process_the_later_one_stays() {
        let (early, late) = (look("7-a", 2_000, 10, 100), look("7-a", 3_000, 5, 30));
        for (first, second) in [(&early, &late), (&late, &early)] {
            let mut both = first.clone();
            both.merge(second).expect("alike");
            assert_eq!(sums(&both), (15, 30));
            assert!(both.check().is_ok());
        }
    }

    #[test]
    fn what_came_after_a_look_has_the_later_level() {
        let (early, mut late) = (look("7-a", 2_000, 10, 100), look("7-a", 3_000, 15, 30));
        assert!(late.subtract(&early).is_ok());
        assert_eq!(sums(&late), (5, 30));
    }

    #[test]
    fn profiles_of_other_tools_are_added() {
        let mut both = look("7-a", 2_000, 10, 100);
        both.meta.notes.clear();
        both.merge(&both.clone()).expect("alike");
        assert_eq!(sums(&both), (20, 200));
    }
}
