//! Totals of a profile over all and by state. Used by `rperf stat` and by reports; any
//! thread.

use crate::rows::states::{StateRow, state_rows};
use rperf_model::{Column, Profile, State};

/// The sums of a profile's weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// All values in the column asked for.
    pub value: i64,
    /// All samples; 0 if the profile does not count them.
    pub samples: i64,
    /// The value of each row, in the order of [`StateRow::ALL`].
    rows: [i64; StateRow::ALL.len()],
}

impl Totals {
    /// The totals of the values in `column`.
    pub fn of(profile: &Profile, column: Column) -> Self {
        let samples = profile.schema.samples();
        let mut totals = Self {
            value: 0,
            samples: 0,
            rows: [0; StateRow::ALL.len()],
        };
        let row = state_rows(profile);
        for weight in profile.weights.iter() {
            let value = weight.value(column);
            let count = samples.map_or(0, |column| weight.value(column));
            let sum = &mut totals.rows[row(weight.key).index()];
            *sum = sum.saturating_add(value);
            totals.value = totals.value.saturating_add(value);
            totals.samples = totals.samples.saturating_add(count);
        }
        totals
    }

    /// The values in one state.
    pub fn state(&self, state: State) -> i64 {
        self.row(StateRow::Of(state))
    }

    /// The values that count as this.
    pub fn row(&self, row: StateRow) -> i64 {
        self.rows[row.index()]
    }
}
