//! What one sample carries, and what sums of samples add up; what a session measures of it, and its row
//! of a profile. Used on the sampling side under the GVL, by the worker, and where a profile is made.

use rperf_model::numbers::signed;
use rperf_model::{Mode, OwnColumn, Schema};

/// A count and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    /// Samples taken.
    pub count: u64,
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
    pub fn add(&mut self, other: Values) {
        self.count = self.count.saturating_add(other.count);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.blame_ns = self.blame_ns.saturating_add(other.blame_ns);
        self.waited_for_ns = self.waited_for_ns.saturating_add(other.waited_for_ns);
    }

    /// Whether all values are 0.
    pub fn is_zero(&self) -> bool {
        *self == Values::default()
    }

    /// Puts the values into the columns of what is `measured`: `row` is what they hold then. A
    /// profile's numbers are signed: larger ones are cut.
    pub(crate) fn fill_row(self, measured: Measured, row: &mut Vec<i64>) {
        let Values {
            count,
            wall_ns,
            cpu_ns,
            blame_ns,
            waited_for_ns,
        } = self;
        let Measured {
            mode,
            blames,
            pairs,
        } = measured;
        row.clear();
        row.push(signed(count));
        if mode == Mode::Wall {
            row.push(signed(wall_ns));
        }
        row.push(signed(cpu_ns));
        if blames {
            row.push(signed(blame_ns));
        }
        if pairs {
            row.push(signed(waited_for_ns));
        }
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
    pub fn schema(self) -> Schema {
        let blame = self.blames.then_some(OwnColumn::GvlBlame);
        let pairs = self.pairs.then_some(OwnColumn::GvlWaitedFor);
        self.mode.schema().with(blame.into_iter().chain(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_value_for_each_column_and_no_number_overflows() {
        let values = Values {
            count: 1,
            wall_ns: u64::MAX,
            cpu_ns: 3,
            blame_ns: 4,
            waited_for_ns: 5,
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
            assert_eq!(measured.schema().len(), expected.len());
        }
    }
}
