//! How often methods were called, in profiles whose calls were traced: for the tables of methods.
//! Used by text reports and `rperf report`; any thread.

use crate::stack::groups::Function;
use crate::top::{By, Top};
use rperf_model::OwnColumn::{self, BlockCalls};
use rperf_model::numbers::{counted, grouped};
use rperf_model::{NodeId, Profile};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

pub(crate) mod call_costs;
pub(crate) mod call_diff;
pub(crate) mod joined_calls;

/// The calls of each row of a table.
#[derive(Debug, Default)]
pub struct Calls {
    calls: FxHashMap<Function, i64>,
    block_calls: FxHashMap<Function, i64>,
}

impl Calls {
    /// The calls of `profile`, by what its rows are; `None` if it counts none, or counts nothing
    /// but them.
    pub fn of(profile: &Profile, by: &By) -> Option<Self> {
        match profile.schema.default_type().unit == "count" {
            true => None,
            false => Self::counted_in(profile, by),
        }
    }

    /// The calls of any profile that counts calls, whatever it is about.
    pub(crate) fn counted_in(profile: &Profile, by: &By) -> Option<Self> {
        let schema = &profile.schema;
        let column = schema.calls()?;
        let sums = |column| {
            let rows = Top::of(profile, column, by).rows.into_iter();
            let rows = rows.map(|row| (row.function, row.self_value));
            rows.filter(|(_, calls)| *calls != 0).collect()
        };
        Some(Self {
            calls: sums(column),
            block_calls: schema.find_own(BlockCalls).map(sums).unwrap_or_default(),
        })
    }

    /// All rows of which calls were counted.
    pub(crate) fn functions(&self) -> BTreeSet<&Function> {
        self.calls.keys().chain(self.block_calls.keys()).collect()
    }

    /// All calls, of methods and of blocks.
    pub(crate) fn sum(&self) -> i64 {
        let numbers = self.calls.values().chain(self.block_calls.values());
        numbers.fold(0, |sum, number| sum.saturating_add(*number))
    }

    /// Takes in what `others` have of the row `theirs`, as the calls of `function`.
    pub(crate) fn add(&mut self, function: &Function, others: &Self, theirs: &Function) {
        for (ours, others) in [
            (&mut self.calls, &others.calls),
            (&mut self.block_calls, &others.block_calls),
        ] {
            ours.extend(others.get(theirs).map(|calls| (function.clone(), *calls)));
        }
    }

    /// The calls of a row, if any were counted.
    pub fn calls(&self, function: &Function) -> Option<i64> {
        self.calls.get(function).copied()
    }

    /// The calls of a row, or those of blocks where there are no others: of a block.
    pub fn calls_or_block_calls(&self, function: &Function) -> Option<i64> {
        self.calls(function)
            .or_else(|| self.block_calls.get(function).copied())
    }

    /// The calls of a row as text.
    pub fn calls_text(&self, function: &Function) -> String {
        text(self.calls(function))
    }

    /// How often blocks of a row were called, as text.
    pub fn block_calls_text(&self, function: &Function) -> String {
        text(self.block_calls.get(function).copied())
    }
}

/// What was not counted is unknown, and not 0.
fn text(calls: Option<i64>) -> String {
    calls.map_or_else(|| "-".into(), grouped)
}

/// Whether the values are numbers or bytes of objects, and none of these has a caller: beside samples,
/// objects have the method that made them alone.
pub fn has_objects_without_callers(profile: &Profile) -> bool {
    let column = profile.schema.default_column();
    // Other tools have further columns of this kind.
    let is_of_objects = profile.schema.default_type().name.starts_with("alloc_");
    let has_caller = |node| {
        let node = profile.tree.get(node);
        node.is_some_and(|node| node.parent != NodeId::ROOT)
    };
    let mut rows = profile.weights.iter();
    is_of_objects
        && !profile.schema.is_traced()
        && !rows.any(|row| row.value(column) != 0 && has_caller(row.key.node))
}

/// Whether the values that are shown are numbers of calls, which a trace has counted one by one.
pub fn shows_calls(profile: &Profile) -> bool {
    let shown = profile.schema.default_own();
    profile.schema.is_traced() && matches!(shown, Some(OwnColumn::Calls | BlockCalls))
}

/// All calls of a profile that counts them, of methods and of blocks.
pub fn call_count(profile: &Profile) -> Option<i64> {
    call_counts(profile).map(|(calls, block_calls)| calls.saturating_add(block_calls))
}

/// The calls as text for people, those of blocks by themselves: `1,234 calls, 56 calls of blocks`.
/// `of` comes behind the calls.
pub fn calls_text(profile: &Profile, of: &str) -> Option<String> {
    let (calls, block_calls) = call_counts(profile)?;
    let of_blocks = match block_calls {
        0 => String::new(),
        number => format!(", {} of blocks", counted(number, "call")),
    };
    Some(format!("{}{of}{of_blocks}", counted(calls, "call")))
}

/// The calls of methods, and those of blocks.
fn call_counts(profile: &Profile) -> Option<(i64, i64)> {
    let schema = &profile.schema;
    let calls = schema.find_own(OwnColumn::Calls);
    let calls = calls.filter(|it| schema.types()[it.0].unit == OwnColumn::Calls.unit())?;
    let block_calls = schema.find_own(BlockCalls);
    let block_calls = block_calls.map_or(0, |column| profile.sum(column));
    Some((profile.sum(calls), block_calls))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::{self, TestFrame};
    use rperf_model::{LabelSetId, State, WeightKey, WeightTable};

    const MAIN: TestFrame<'_> = ("<main>", "app.rb", 1, 0);
    const WORK: TestFrame<'_> = ("Object#work", "app.rb", 2, 0);

    fn profile(default: usize) -> Profile {
        let types = [
            ("calls", "count"),
            ("wall", "nanoseconds"),
            ("block_calls", "count"),
        ];
        let mut profile = Profile::new(test_support::schema(&types, default));
        let mut table = WeightTable::new(3);
        for (frames, values) in [
            (&[MAIN][..], [0, 5, 0]),
            (&[MAIN, WORK], [1_000, 7, 0]),
            (&[MAIN, WORK, WORK], [0, 2, 30]),
        ] {
            let key = WeightKey {
                node: test_support::node(&mut profile, frames),
                thread: 0,
                labels: LabelSetId(0),
                state: State::Running,
            };
            table.add(key, &values);
        }
        profile.weights = table.into_weights();
        profile
    }

    #[test]
    fn calls_are_by_method_and_those_not_counted_are_unknown() {
        let profile = profile(1);
        let calls = Calls::of(&profile, &By::Function).expect("it counts them");
        let function = |name: &str| Function {
            name: name.into(),
            path: "app.rb".into(),
            short_path: "app.rb".into(),
        };
        assert_eq!(calls.calls(&function("Object#work")), Some(1_000));
        assert_eq!(calls.calls_text(&function("Object#work")), "1,000");
        assert_eq!(calls.block_calls_text(&function("Object#work")), "30");
        assert_eq!(calls.calls_text(&function("<main>")), "-");
        assert_eq!(call_count(&profile), Some(1_030));
        let text = calls_text(&profile, " of 2 processes");
        let expected = "1,000 calls of 2 processes, 30 calls of blocks";
        assert_eq!(text.as_deref(), Some(expected));
    }

    #[test]
    fn a_profile_about_calls_needs_no_further_column() {
        assert!(Calls::of(&profile(0), &By::Function).is_none());
        let sampled = Profile::new(test_support::wall_schema());
        assert!(Calls::of(&sampled, &By::Function).is_none());
        assert_eq!(call_count(&sampled), None);
    }
}
