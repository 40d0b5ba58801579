//! The columns of sums of time, by state and with objects, which several tables of RPV1 have. Called by
//! those who write such a table; any thread.

use super::columns::Columns;
use rperf_model::numbers::signed;
use rperf_model::{OpSums, SuiteSums};

/// The columns of time, in nanoseconds: all, and in each state.
const TIMES: [&str; 6] = ["wall", "running", "gvl_wait", "blocked", "gc", "suspended"];

/// Objects that aren't known.
const UNKNOWN: i64 = -1;

/// Sums of time.
pub(super) trait Timed {
    /// The sums of time, one for each of [`TIMES`].
    fn times(&self) -> [u64; 6];
    /// The objects that were made, if that is known.
    fn objects(&self) -> Option<u64>;
}

macro_rules! timed {
    ($sums:ty) => {
        impl Timed for $sums {
            fn times(&self) -> [u64; 6] {
                [
                    self.wall_ns,
                    self.running_ns,
                    self.gvl_wait_ns,
                    self.blocked_ns,
                    self.gc_ns,
                    self.suspended_ns,
                ]
            }

            fn objects(&self) -> Option<u64> {
                self.objects
            }
        }
    };
}
timed!(OpSums);
timed!(SuiteSums);

/// Writes the columns of `rows` in `table`.
pub(super) fn write<T: Timed>(columns: &mut Columns, table: &str, rows: &[&T]) {
    for (place, column) in TIMES.into_iter().enumerate() {
        let times = rows.iter().map(|it| signed(it.times()[place]));
        columns.signed(&format!("{table}/{column}"), times);
    }
    let objects = rows.iter().map(|it| it.objects().map_or(UNKNOWN, signed));
    columns.signed(&format!("{table}/objects"), objects);
}
