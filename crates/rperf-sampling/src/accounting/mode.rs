//! The values of a sample by what the session measures: its weight, and its row of a profile. Used
//! on Ruby threads and when a profile is made of what was collected; any thread.

use crate::Values;
pub use rperf_model::Mode;
use rperf_model::numbers::signed;
use rperf_model::{OwnColumn, Schema};

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

impl Values {
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
