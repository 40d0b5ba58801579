//! The changes in how often methods and blocks were called, between two traced profiles. Counts of
//! a program that does the same are equal, so no difference is noise. Called by `rperf diff
//! --calls`; any thread.

use crate::matching::{MethodKey, match_methods};
use crate::stack::groups::{FrameKey, Function, GroupId, Groups};
use crate::text::code_paths::CodePaths;
use rperf_model::{Order, OwnColumn, Profile, Traced};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Why counts can't be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallDiffError {
    /// Calls were not traced.
    #[error("{0} has no calls: 'rperf trace' counts them")]
    NotTraced(&'static str),
    /// The traced calls are not of the same level on both sides.
    #[error(
        "the counts can't be compared: the base was traced with calls {base}, the target with calls {target}"
    )]
    Levels {
        /// How the base was traced.
        base: String,
        /// How the target was.
        target: String,
    },
}

/// How often a method or block was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallChange {
    /// The method or block.
    pub function: Function,
    /// Calls in the base.
    pub base: i64,
    /// Calls in the target.
    pub target: i64,
}

/// The changes between two traces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallDiff {
    /// All calls.
    pub total: CallChange,
    /// All methods and blocks that were called, the largest difference first.
    pub rows: Vec<CallChange>,
    /// Methods that one of the profiles has without a count: nothing can be said of them.
    pub not_counted: Vec<Function>,
}

impl CallChange {
    /// Target less base.
    pub fn delta(&self) -> i64 {
        self.target.saturating_sub(self.base)
    }

    /// The difference in percent of the base, if there is a base.
    pub fn percent(&self) -> Option<f64> {
        (self.base != 0).then(|| self.delta() as f64 * 100.0 / self.base as f64)
    }

    /// Whether there are more calls by more than this.
    pub fn is_above(&self, percent: f64) -> bool {
        let limit = self.base as f64 * (1.0 + percent / 100.0);
        self.delta() > 0 && self.target as f64 > limit
    }
}

impl CallDiff {
    /// The changes from `base` to `target`.
    pub fn of(base: &Profile, target: &Profile) -> Result<Self, CallDiffError> {
        let base_counts = Counts::of(base).ok_or(CallDiffError::NotTraced("the base"))?;
        let target_counts = Counts::of(target).ok_or(CallDiffError::NotTraced("the target"))?;
        let base_counts = base_counts.renamed(&target_counts);
        let levels = [base, target].map(levels);
        if levels[0] != levels[1] {
            let [base, target] = levels.map(|it| it.into_iter().collect::<Vec<_>>().join(" and "));
            return Err(CallDiffError::Levels { base, target });
        }
        let is_unknown = |function: &Function| {
            let is_in = |counts: &Counts| counts.not_counted.contains(function);
            is_in(&base_counts) || is_in(&target_counts)
        };
        let functions: BTreeSet<&Function> = base_counts
            .calls
            .keys()
            .chain(target_counts.calls.keys())
            .collect();
        let (unknown, known): (Vec<&Function>, Vec<&Function>) =
            functions.into_iter().partition(|it| is_unknown(it));
        let rows = known.into_iter().map(|function| CallChange {
            function: function.clone(),
            base: base_counts.of_function(function),
            target: target_counts.of_function(function),
        });
        let mut rows: Vec<CallChange> = rows.collect();
        rows.order_by_key(|row| Reverse(row.delta().unsigned_abs()));
        let sum = |of: fn(&CallChange) -> i64| rows.iter().map(of).fold(0, i64::saturating_add);
        Ok(Self {
            total: CallChange {
                function: Function::default(),
                base: sum(|row| row.base),
                target: sum(|row| row.target),
            },
            rows,
            not_counted: unknown.into_iter().cloned().collect(),
        })
    }
}

/// The calls of a profile.
struct Counts {
    calls: BTreeMap<Function, i64>,
    /// Methods that are in the profile, and of which no call was counted.
    not_counted: BTreeSet<Function>,
    /// What all of these are known by in other profiles.
    keys: BTreeMap<Function, MethodKey>,
}

impl Counts {
    /// `None` if the profile counts no calls.
    fn of(profile: &Profile) -> Option<Self> {
        let column = profile.schema.calls()?;
        let block_column = profile.schema.find_own(OwnColumn::BlockCalls);
        let groups = Groups::new(profile, FrameKey::Method);
        let mut by_node = vec![0_i64; profile.tree.len() + 1];
        for weight in profile.weights.iter() {
            let sum = &mut by_node[weight.key.node.0 as usize];
            let of_blocks = block_column.map_or(0, |column| weight.value(column));
            let count = weight.value(column).saturating_add(of_blocks);
            *sum = sum.saturating_add(count);
        }
        let mut sums: BTreeMap<GroupId, i64> = BTreeMap::new();
        let mut without = BTreeSet::new();
        for (id, node) in profile.tree.iter() {
            let group = groups.of_frame(node.frame);
            let count = by_node[id.0 as usize];
            let sum = sums.entry(group).or_default();
            *sum = sum.saturating_add(count);
            if count == 0 {
                without.insert(group);
            }
        }
        let counted = sums.iter().filter(|(_, count)| **count != 0);
        let calls: BTreeMap<Function, i64> = counted
            .map(|(group, count)| (groups.function(*group), *count))
            .collect();
        let is_without = |group: &GroupId| sums[group] == 0;
        let not_counted = without.into_iter().filter(is_without);
        let not_counted: BTreeSet<Function> =
            not_counted.map(|group| groups.function(group)).collect();
        let paths = CodePaths::of(profile);
        let keys = calls.keys().chain(&not_counted).map(|function| {
            let key = MethodKey::of(function, &paths);
            (function.clone(), key)
        });
        Some(Self {
            keys: keys.collect(),
            calls,
            not_counted,
        })
    }

    /// The counts with the paths of `others`, for methods that both have.
    fn renamed(mut self, others: &Self) -> Self {
        let keys = |counts: &Self| counts.keys.values().cloned().collect::<Vec<_>>();
        let (ours, theirs) = (keys(&self), keys(others));
        let found = match_methods(
            &ours.iter().collect::<Vec<_>>(),
            &theirs.iter().collect::<Vec<_>>(),
        );
        let others: Vec<&Function> = others.keys.keys().collect();
        let functions = std::mem::take(&mut self.keys).into_keys();
        let names: BTreeMap<Function, Function> = functions
            .zip(found)
            .map(|(ours, found)| match found {
                Some((place, _)) => (ours, others[place].clone()),
                None => (ours.clone(), ours),
            })
            .collect();
        let renamed = |function: Function| names.get(&function).cloned().unwrap_or(function);
        let calls = std::mem::take(&mut self.calls).into_iter();
        self.calls = calls
            .map(|(function, count)| (renamed(function), count))
            .collect();
        let not_counted = std::mem::take(&mut self.not_counted).into_iter();
        self.not_counted = not_counted.map(renamed).collect();
        self
    }

    fn of_function(&self, function: &Function) -> i64 {
        self.calls.get(function).copied().unwrap_or(0)
    }
}

/// Which calls were traced, as far as the profile says it: counted and timed ones are the same.
fn levels(profile: &Profile) -> BTreeSet<&'static str> {
    let level = |traced: &Traced| match traced {
        Traced::Calls(level, _) if level.c_methods => Some("all"),
        Traced::Calls(..) => Some("ruby"),
        Traced::Chosen(_) => Some("of chosen methods"),
        Traced::Text(_) => None,
    };
    let mut levels: BTreeSet<_> = profile.meta.tracing().filter_map(level).collect();
    if levels.is_empty() {
        levels.insert("that it doesn't name");
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::{self, TestFrame};
    use rperf_model::{LabelSetId, State, WeightKey, WeightTable};

    const MAIN: TestFrame<'_> = ("<main>", "app.rb", 1, 0);
    const EACH: TestFrame<'_> = ("Array#each", "<C method>", 0, 0);
    const WORK: TestFrame<'_> = ("Object#work", "app.rb", 2, 0);
    const NEW: TestFrame<'_> = ("Object#new", "app.rb", 9, 0);
    const BLOCK: TestFrame<'_> = ("block in Object#work", "app.rb", 2, 0);

    fn profile(level: &str, rows: &[(&[TestFrame<'_>], [i64; 2])]) -> Profile {
        let types = [("calls", "count"), ("block_calls", "count")];
        let mut profile = Profile::new(test_support::schema(&types, 0));
        profile.meta.notes = vec![format!("traced: calls {level}, clock none").into()];
        let mut table = WeightTable::new(2);
        for (frames, values) in rows {
            let key = WeightKey {
                node: test_support::node(&mut profile, frames),
                thread: 0,
                labels: LabelSetId(0),
                state: State::Running,
            };
            table.add(key, values);
        }
        profile.weights = table.into_weights();
        profile
    }

    #[test]
    fn methods_and_blocks_have_their_changes_the_largest_first() {
        let base = profile(
            "ruby",
            &[
                (&[MAIN, WORK], [100, 0]),
                (&[MAIN, EACH, BLOCK], [0, 10]),
                (&[MAIN, EACH, BLOCK, WORK], [100, 0]),
            ],
        );
        let target = profile(
            "count",
            &[
                (&[MAIN, WORK], [190, 0]),
                (&[MAIN, EACH, BLOCK], [0, 40]),
                (&[MAIN, NEW], [3, 0]),
            ],
        );
        let diff = CallDiff::of(&base, &target).expect("both count calls of Ruby");
        let rows: Vec<_> = diff
            .rows
            .iter()
            .map(|row| (row.function.name.as_str(), row.delta()))
            .collect();
        assert_eq!(
            rows,
            [
                ("block in Object#work", 30),
                ("Object#work", -10),
                ("Object#new", 3),
            ]
        );
        assert_eq!((diff.total.base, diff.total.target), (210, 233));
        assert_eq!(diff.not_counted, []);
        assert_eq!(diff.rows[0].percent(), Some(300.0));
        assert_eq!(diff.rows[2].percent(), None);
    }

    #[test]
    fn methods_in_another_directory_are_known_by_a_name_that_is_the_only_one() {
        let moved = |name| (name, "other/app.rb", 2, 0);
        let base = profile("ruby", &[(&[MAIN, WORK], [5, 2]), (&[MAIN, NEW], [1, 0])]);
        let target = profile(
            "ruby",
            &[
                (&[moved("<main>"), moved("Object#work")], [7, 2]),
                (&[moved("<main>"), moved("Object#new")], [1, 0]),
                (
                    &[moved("<main>"), ("Object#new", "third/app.rb", 1, 0)],
                    [2, 0],
                ),
            ],
        );
        let diff = CallDiff::of(&base, &target).expect("both count calls");
        let rows: Vec<_> = diff
            .rows
            .iter()
            .map(|row| (row.function.name.as_str(), row.base, row.target))
            .collect();
        assert_eq!(
            rows,
            [
                ("Object#new", 0, 2),
                ("Object#work", 7, 9),
                ("Object#new", 1, 0),
                ("Object#new", 0, 1),
            ]
        );
    }

    #[test]
    fn limits_are_for_more_calls_only_and_new_ones_are_beyond_any() {
        let change = |base, target| CallChange {
            function: Function::default(),
            base,
            target,
        };
        assert!(change(100, 106).is_above(5.0) && !change(100, 105).is_above(5.0));
        assert!(change(0, 1).is_above(1e9) && !change(0, 0).is_above(0.0));
        assert!(!change(100, 10).is_above(0.0) && change(1_000_000, 1_000_001).is_above(0.0));
    }

    #[test]
    fn what_was_not_counted_on_one_side_is_unknown() {
        let base = profile("all", &[(&[EACH, WORK], [1, 0])]);
        let target = profile("all", &[(&[EACH], [5, 0]), (&[EACH, WORK], [1, 0])]);
        let diff = CallDiff::of(&base, &target).expect("both count calls");
        let names: Vec<_> = diff.not_counted.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((names, diff.total.delta()), (vec!["Array#each"], 0));
    }

    #[test]
    fn only_what_was_counted_alike_is_compared() {
        let [ruby, all] = ["ruby", "count-all"].map(|level| profile(level, &[(&[MAIN], [1, 0])]));
        let sampled = Profile::new(test_support::wall_schema());
        let message = |base, target| CallDiff::of(base, target).expect_err("refused").to_string();
        assert!(message(&ruby, &all).ends_with("with calls ruby, the target with calls all"));
        let mut chosen = profile("ruby", &[(&[MAIN], [1, 0])]);
        chosen.meta.notes = vec!["traced: chosen methods only, clock TSC".into()];
        assert!(message(&ruby, &chosen).ends_with("ruby, the target with calls of chosen methods"));
        let mut unnamed = chosen.clone();
        unnamed.meta.notes.clear();
        assert!(message(&unnamed, &all).contains("with calls that it doesn't name, the target"));
        assert!(message(&ruby, &sampled).starts_with("the target has no calls"));
        assert!(message(&sampled, &ruby).starts_with("the base has no calls"));
    }
}
