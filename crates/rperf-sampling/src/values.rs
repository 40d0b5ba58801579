//! What one sample carries, and what sums of samples add up; what a session measures of it, and its row
//! of a profile. Used on the sampling side under the GVL, by the worker, and where a profile is made.

use rperf_model::numbers::signed;
use rperf_model::{Mode, OwnColumn, Schema};

/// A count and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// Samples taken.
    pub count: u64,
    /// What they stand for.
    pub times: Times,
}

/// What a sample stands for, or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// Wall time in ns.
    pub wall_ns: u64,
    /// CPU time in ns. In cpu mode that of GC is its wall time: GC time is wall time
    /// always.
    pub cpu_ns: u64,
    /// Time in ns that other threads have waited for the GVL while this one had it, where that is
    /// measured.
    pub blame_ns: u64,
    /// Time in ns for which a request has waited for the GVL while this stack, mostly another thread's,
    /// had it, where that is measured.
    pub waited_for_ns: u64,
}

impl Values {
    /// Adds `other`, saturating.
    #[inline]
    pub fn add(&mut self, other: Values) {
        self.count = self.count.saturating_add(other.count);
        self.times.add(other.times);
    }

    /// Whether all values are 0.
    pub fn is_zero(&self) -> bool {
        *self == Values::default()
    }

    /// The values of the columns of what is `measured`. A new column is a line here.
    fn columns(self, measured: Measured) -> impl Iterator<Item = (OwnColumn, u64)> {
        let Times {
            wall_ns,
            cpu_ns,
            blame_ns,
            waited_for_ns,
        } = self.times;
        let columns = [
            (OwnColumn::Samples, self.count, true),
            (OwnColumn::Wall, wall_ns, measured.mode == Mode::Wall),
            (OwnColumn::Cpu, cpu_ns, true),
            (OwnColumn::GvlBlame, blame_ns, measured.blames),
            (OwnColumn::GvlWaitedFor, waited_for_ns, measured.pairs),
        ];
        let columns = columns.into_iter();
        columns.filter_map(|(column, value, is_there)| is_there.then_some((column, value)))
    }

    /// Puts the values into the columns of what is `measured`: `row` is what they hold then. A
    /// profile's numbers are signed: larger ones are cut.
    pub(crate) fn fill_row(self, measured: Measured, row: &mut Vec<i64>) {
        row.clear();
        row.extend(self.columns(measured).map(|(_, value)| signed(value)));
    }
}

impl Times {
    /// So much of the time that `mode` is about, and no other.
    pub const fn of(mode: Mode, ns: u64) -> Self {
        let (wall_ns, cpu_ns) = match mode {
            Mode::Wall => (ns, 0),
            Mode::Cpu => (0, ns),
        };
        Self {
            wall_ns,
            cpu_ns,
            blame_ns: 0,
            waited_for_ns: 0,
        }
    }

    /// Adds `other`, saturating.
    #[inline]
    pub fn add(&mut self, other: Times) {
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.blame_ns = self.blame_ns.saturating_add(other.blame_ns);
        self.waited_for_ns = self.waited_for_ns.saturating_add(other.waited_for_ns);
    }

    /// Whether all are 0.
    pub fn is_zero(&self) -> bool {
        *self == Times::default()
    }

    /// The time that `mode` is about: its weight, in ns.
    pub fn weight_ns(&self, mode: Mode) -> u64 {
        match mode {
            Mode::Cpu => self.cpu_ns,
            Mode::Wall => self.wall_ns,
        }
    }
}

/// What a session measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measured {
    /// What the weights are.
    pub mode: Mode,
    /// Waits for the GVL are charged to the thread that has it (wall mode).
    pub blames: bool,
    /// Waits of requests are charged to what had the GVL, under the request's labels.
    pub pairs: bool,
}

impl Measured {
    /// The columns of a profile.
    ///
    /// # Panics
    ///
    /// Never: the mode's column is one of them.
    pub fn schema(self) -> Schema {
        let columns = Values::default().columns(self).map(|(column, _)| column);
        Schema::of(columns, self.mode.column()).expect("the mode's column is one of them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column_and_no_number_overflows() {
        let values = Values {
            count: 1,
            times: Times {
                wall_ns: u64::MAX,
                cpu_ns: 3,
                blame_ns: 4,
                waited_for_ns: 5,
            },
        };
        let mut row = vec![9];
        for (mode, blames, pairs, expected) in [
            (Mode::Wall, true, true, &[1, i64::MAX, 3, 4, 5][..]),
            (Mode::Wall, true, false, &[1, i64::MAX, 3, 4]),
            (Mode::Wall, false, false, &[1, i64::MAX, 3]),
            (Mode::Cpu, false, false, &[1, 3]),
        ] {
            let measured = Measured {
                mode,
                blames,
                pairs,
            };
            values.fill_row(measured, &mut row);
            assert_eq!(row, expected);
            let schema = measured.schema();
            assert_eq!(schema.len(), expected.len());
            // Clients know the columns of a mode without the others.
            let of_mode = mode.schema();
            assert_eq!(schema.types()[..of_mode.len()], *of_mode.types());
            assert_eq!(schema.default_column(), of_mode.default_column());
        }
    }
}
