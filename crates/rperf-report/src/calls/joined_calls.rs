//! The counts of a traced run beside the times of a sampled one, joined by method: sampled times are
//! those of the program at full speed, and traced counts are exact. Called by `rperf report
//! --counts`; any thread.

use crate::calls::Calls;
use crate::matching::{Matched, MethodKey, match_methods};
use crate::stack::groups::Function;
use crate::text::code_paths::CodePaths;
use crate::top::{By, Top};
use rperf_model::numbers::{grouped, percent};
use rperf_model::{FrameKind, Profile, State};
use std::collections::BTreeSet;

/// The calls of a traced profile, by the rows of another one.
#[derive(Debug)]
pub struct JoinedCalls {
    /// The calls.
    pub calls: Calls,
    /// Rows that are in both.
    pub matched: usize,
    /// How many of these were found by their names, as their paths mean something else.
    pub moved: usize,
    /// Rows of the sampled profile that the trace has no calls of, but for states.
    pub not_counted: usize,
    /// What these have for themselves.
    pub not_counted_value: i64,
    /// Whether methods of C are among them.
    pub lacks_c_methods: bool,
    /// Rows of the trace that the other profile doesn't have.
    pub not_sampled: usize,
    /// The calls of these, of methods and of blocks.
    pub not_sampled_calls: i64,
}

impl JoinedCalls {
    /// The calls of `trace` for the rows of `sampled`; `None` if it counts none.
    pub fn of(trace: &Profile, sampled: &Profile, by: &By) -> Option<Self> {
        let counted = Calls::counted_in(trace, by)?;
        let top = Top::of(sampled, sampled.schema.default_column(), by);
        let rows: Vec<_> = top
            .rows
            .iter()
            .filter(|row| {
                State::from_synthetic_frame(&row.function.name, &row.function.path).is_none()
            })
            .collect();
        let counted_rows: Vec<&Function> = counted.functions().into_iter().collect();
        let ours = keys(rows.iter().map(|row| &row.function), sampled);
        let theirs = keys(counted_rows.iter().copied(), trace);
        let found = match_methods(
            &ours.iter().collect::<Vec<_>>(),
            &theirs.iter().collect::<Vec<_>>(),
        );
        let mut joined = Self {
            calls: Calls::default(),
            matched: 0,
            moved: 0,
            not_counted: 0,
            not_counted_value: 0,
            lacks_c_methods: false,
            not_sampled: 0,
            not_sampled_calls: 0,
        };
        let mut taken = BTreeSet::new();
        for (row, found) in rows.into_iter().zip(found) {
            let function = &row.function;
            match found {
                Some((place, matched)) => {
                    taken.insert(place);
                    joined.matched += 1;
                    joined.moved += usize::from(matched != Matched::Path);
                    joined.calls.add(function, &counted, counted_rows[place]);
                }
                None => {
                    joined.not_counted += 1;
                    let value = &mut joined.not_counted_value;
                    *value = value.saturating_add(row.self_value);
                    joined.lacks_c_methods |= FrameKind::of(&function.path) == FrameKind::CMethod;
                }
            }
        }
        joined.not_sampled = counted_rows.len() - taken.len();
        joined.not_sampled_calls = counted.sum().saturating_sub(joined.calls.sum());
        Some(joined)
    }

    /// How well the two fit together, in lines; `whole` is what shares are of.
    pub fn lines(&self, noun: &str, whole: i64) -> Vec<String> {
        let mut lines = vec![format!(
            "Matched: {} {noun} that both have{}",
            grouped(self.matched as i64),
            match self.moved {
                0 => String::new(),
                number => format!(", {} of them at another path", grouped(number as i64)),
            }
        )];
        if self.not_counted > 0 {
            let share = percent(self.not_counted_value, whole);
            let hint = match self.lacks_c_methods {
                true => "; methods of C have calls with 'rperf trace --calls count-all'",
                false => "",
            };
            lines.push(format!(
                "Without calls: {} {noun}, with {share:.1}% of the values{hint}",
                grouped(self.not_counted as i64)
            ));
        }
        if self.not_sampled > 0 {
            lines.push(format!(
                "Without samples: {} {noun}, with {} calls",
                grouped(self.not_sampled as i64),
                grouped(self.not_sampled_calls)
            ));
        }
        lines
    }
}

/// What rows of `profile` are known by in others.
fn keys<'a>(rows: impl Iterator<Item = &'a Function>, profile: &Profile) -> Vec<MethodKey> {
    let paths = CodePaths::of(profile);
    rows.map(|function| MethodKey::of(function, &paths))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::test_support::{self, TestFrame};
    use rperf_model::{LabelSetId, WeightKey, WeightTable};

    fn trace(rows: &[(TestFrame<'_>, i64, i64)]) -> Profile {
        let types = [("calls", "count"), ("block_calls", "count")];
        let mut profile = Profile::new(test_support::schema(&types, 0));
        let mut table = WeightTable::new(2);
        for (frame, calls, block_calls) in rows {
            let key = WeightKey {
                node: test_support::node(&mut profile, &[*frame]),
                thread: 0,
                labels: LabelSetId(0),
                state: State::Running,
            };
            table.add(key, &[*calls, *block_calls]);
        }
        profile.weights = table.into_weights();
        profile
    }

    #[test]
    fn methods_are_joined_moved_and_path_or_by_a_name_that_is_the_only_one() {
        let sampled = TestProfile::wall()
            .with(&["main", "same"], 1, State::Running, 60)
            .with(&["main", "moved"], 1, State::Running, 30)
            .with(&["main", "twice"], 1, State::Running, 10)
            .with(&["main"], 1, State::GvlBlocked, 5)
            .profile;
        let trace = trace(&[
            (("same", "a.rb", 1, 0), 7, 0),
            (("moved", "other/a.rb", 1, 0), 0, 3),
            (("twice", "b.rb", 1, 0), 1, 0),
            (("twice", "c.rb", 1, 0), 2, 1),
            (("unseen", "a.rb", 1, 0), 100, 11),
        ]);
        let joined = JoinedCalls::of(&trace, &sampled, &By::Function).expect("it counts");
        let function = |name: &str| Function {
            name: name.into(),
            path: "a.rb".into(),
            short_path: "a.rb".into(),
        };
        assert_eq!(joined.calls.calls(&function("same")), Some(7));
        assert_eq!(joined.calls.block_calls_text(&function("moved")), "3");
        assert_eq!(joined.calls.calls(&function("twice")), None);
        assert_eq!(
            joined.lines("methods", 105),
            [
                "Matched: 2 methods that both have, 1 of them at another path",
                "Without calls: 2 methods, with 9.5% of the values",
                "Without samples: 3 methods, with 115 calls",
            ]
        );
    }

    #[test]
    fn a_profile_without_calls_has_none_to_join() {
        let sampled = TestProfile::wall().profile;
        assert!(JoinedCalls::of(&sampled, &sampled, &By::Function).is_none());
    }
}
