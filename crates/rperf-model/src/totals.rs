//! Totals of a profile: over all, by state, and by function; `lines`: by line. All are
//! of one column of values.
//! Used by the text report and by `rperf stat`. Any thread, no I/O.

mod lines;

pub use lines::{LineTotals, Lines};

use crate::{Column, DisplayFrame, Profile, State, Weight};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// What the values in one column of a profile add up to. All sums saturate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// All values.
    pub value: i64,
    /// One entry for each state, in the order of [`State::ALL`].
    pub states: [StateTotals; State::ALL.len()],
    /// One entry for each function that is shown in any stack, in no order that
    /// means anything: see [`Totals::flat`] and [`Totals::cumulative`].
    pub functions: Vec<FunctionTotals>,
}

/// What the values in one state add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StateTotals {
    /// The state.
    pub state: State,
    /// The values.
    pub value: i64,
}

/// What the values of one function add up to.
///
/// A function is told by name and path, as it is printed: methods of the same name
/// defined twice in one file are one function. The synthetic leaves
/// (`[GVL blocked]` and so on) are functions too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionTotals {
    /// Qualified name.
    pub name: String,
    /// Path, or a marker such as `<C method>`.
    pub path: String,
    /// Of the stacks that have it as their leaf.
    pub self_value: i64,
    /// Of the stacks that have it anywhere, each stack once.
    pub total_value: i64,
}

impl Totals {
    /// The totals of `profile` in `column`.
    pub fn of(profile: &Profile, column: Column) -> Self {
        let mut value: i64 = 0;
        let mut states = State::ALL.map(|state| StateTotals { state, value: 0 });
        let mut functions = Functions::default();
        for weight in profile.weights.iter() {
            let added = weight.value(column);
            value = value.saturating_add(added);
            let state = &mut states[weight.key.state as usize].value;
            *state = state.saturating_add(added);
            functions.add(profile, weight, added);
        }
        Self {
            value,
            states,
            functions: functions.totals,
        }
    }

    /// The totals of one state.
    pub fn state(&self, state: State) -> &StateTotals {
        &self.states[state as usize]
    }

    /// Functions with values of their own, largest first.
    pub fn flat(&self) -> Vec<&FunctionTotals> {
        self.sorted_by(|function| function.self_value)
    }

    /// Functions with values of their own or of their callees, largest first.
    pub fn cumulative(&self) -> Vec<&FunctionTotals> {
        self.sorted_by(|function| function.total_value)
    }

    /// Equal ones are in order of their own values, then of the names, so that reports
    /// of equal profiles are equal. Negative values, of which a difference of profiles
    /// has many, stand where positive ones would.
    fn sorted_by(&self, value: impl Fn(&FunctionTotals) -> i64) -> Vec<&FunctionTotals> {
        let with_value = self.functions.iter().filter(|row| value(row) != 0);
        let mut functions: Vec<_> = with_value.collect();
        functions.sort_by_key(|function| {
            let (value, own) = (value(function), function.self_value);
            (
                Reverse((value.unsigned_abs(), own.unsigned_abs())),
                &function.name,
                &function.path,
            )
        });
        functions
    }
}

/// Functions in the making.
#[derive(Default)]
struct Functions<'a> {
    totals: Vec<FunctionTotals>,
    rows: FxHashMap<DisplayFrame, usize>,
    rows_by_text: FxHashMap<(&'a str, &'a str), usize>,
    /// For each function the number of the last stack that had it.
    seen_in: Vec<u64>,
    stacks: u64,
}

impl<'a> Functions<'a> {
    fn add(&mut self, profile: &'a Profile, weight: Weight<'_>, value: i64) {
        self.stacks += 1;
        for (depth, frame) in profile.display_stack(weight.key).enumerate() {
            let row = self.row(profile, frame);
            let function = &mut self.totals[row];
            if depth == 0 {
                function.self_value = function.self_value.saturating_add(value);
            }
            // A recursive function is in the stack again, but its values count once.
            if self.seen_in[row] != self.stacks {
                self.seen_in[row] = self.stacks;
                function.total_value = function.total_value.saturating_add(value);
            }
        }
    }

    fn row(&mut self, profile: &'a Profile, frame: DisplayFrame) -> usize {
        if let Some(&row) = self.rows.get(&frame) {
            return row;
        }
        let text = profile.frame_text(frame);
        let row = *self
            .rows_by_text
            .entry((text.name, text.path))
            .or_insert_with(|| {
                self.seen_in.push(0);
                self.totals.push(FunctionTotals {
                    name: text.name.to_string(),
                    path: text.path.to_string(),
                    self_value: 0,
                    total_value: 0,
                });
                self.totals.len() - 1
            });
        self.rows.insert(frame, row);
        row
    }
}

#[cfg(test)]
mod tests;
