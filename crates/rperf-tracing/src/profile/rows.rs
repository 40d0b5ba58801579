//! The rows of a traced thread in a profile, and the columns that they have. Outside of hooks, on the
//! thread that asks for the profile.

use rperf_model::OwnColumn::{self, BlockCalls, Calls, Cpu, Overhead, Wall};
use rperf_model::numbers::signed;
use rperf_model::{LabelSetId, NodeId, Profile, State, Thread, WeightKey};
use rustc_hash::FxHashMap;

/// All columns, and those of a profile with times, with CPU time, and without any. Methods and C
/// methods are calls; blocks are apart, as they have the names of their methods.
pub(crate) const COLUMNS: [OwnColumn; 5] = [Calls, Wall, Overhead, BlockCalls, Cpu];
const TIMED: [usize; 4] = [0, 1, 2, 3];
const TIMED_WITH_CPU: [usize; 5] = [0, 1, 2, 3, 4];
const COUNTED: [usize; 2] = [0, 3];

/// A row's values, in the order of [`COLUMNS`].
pub(crate) type Values = [u64; COLUMNS.len()];

/// The places of the [`COLUMNS`] that a profile has.
pub(crate) fn columns(timed: bool, with_cpu: bool) -> &'static [usize] {
    match (timed, with_cpu) {
        (false, _) => &COUNTED,
        (true, false) => &TIMED,
        (true, true) => &TIMED_WITH_CPU,
    }
}

/// What tells a thread's rows apart.
type RowKey = (NodeId, LabelSetId, State);

/// The rows of one thread: several nodes of the traced tree can be one of the profile's.
#[derive(Debug, Default)]
pub(crate) struct ThreadRows(FxHashMap<RowKey, Values>);

impl ThreadRows {
    /// Adds values, unless all are 0.
    pub(crate) fn add(&mut self, key: RowKey, values: Values) {
        if values == Values::default() {
            return;
        }
        let row = self.0.entry(key).or_default();
        for (sum, value) in row.iter_mut().zip(values) {
            *sum = sum.saturating_add(value);
        }
    }

    /// Adds all rows to a profile with these `columns`, for the thread with this number, and its name
    /// if it has one.
    pub(crate) fn add_to(
        self,
        profile: &mut Profile,
        seq: u32,
        name: Option<&str>,
        columns: &[usize],
    ) {
        let mut rows: Vec<_> = self.0.into_iter().collect();
        rows.sort_unstable_by_key(|(key, _)| *key);
        if !rows.is_empty() {
            let name = profile.strings.intern(name.unwrap_or_default());
            profile.threads.push(Thread { seq, name });
        }
        for ((node, labels, state), values) in rows {
            let key = WeightKey {
                node,
                thread: seq,
                labels,
                state,
            };
            let values: Vec<i64> = columns.iter().map(|it| signed(values[*it])).collect();
            if values.iter().any(|value| *value != 0) {
                profile.weights.push(key, &values);
            }
        }
    }
}
