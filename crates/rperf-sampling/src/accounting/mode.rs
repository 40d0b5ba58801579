//! The values of a sample by the mode of the session: its weight, and its row of a profile. Used on
//! Ruby threads and when a profile is made of what was collected; any thread.

use crate::Values;
pub use rperf_model::Mode;

impl Values {
    /// Puts the values into the columns of `mode`: `row` is what they hold then. A profile's numbers
    /// are signed: larger ones are cut.
    pub(crate) fn fill_row(self, mode: Mode, row: &mut Vec<i64>) {
        let Values {
            count,
            wall_ns,
            cpu_ns,
        } = self;
        let cut = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        row.clear();
        row.push(cut(count));
        if mode == Mode::Wall {
            row.push(cut(wall_ns));
        }
        row.push(cut(cpu_ns));
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
        };
        let mut row = vec![9];
        values.fill_row(Mode::Wall, &mut row);
        assert_eq!(row, [1, i64::MAX, 3]);
        values.fill_row(Mode::Cpu, &mut row);
        assert_eq!(row, [1, 3]);
    }
}
