//! What a session measures, and the columns that its profiles have. Used by the bridge
//! on Ruby threads and when a profile is made of what was collected; any thread.

use crate::Values;
use rperf_model::{Column, Schema, ValueType};

const COUNT: &str = "count";
const NANOSECONDS: &str = "nanoseconds";

/// What a session measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// CPU time of each thread.
    #[default]
    Cpu,
    /// Wall time of each thread, with the CPU time used beside it.
    Wall,
}

impl Mode {
    /// `"cpu"` or `"wall"`.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Cpu => "cpu",
            Mode::Wall => "wall",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Mode> {
        [Mode::Cpu, Mode::Wall]
            .into_iter()
            .find(|mode| mode.name() == name)
    }

    /// The columns of a profile in this mode. The count comes first, as is the custom;
    /// the default column is named for the mode.
    ///
    /// # Panics
    ///
    /// Never: there is a column for each mode.
    pub fn schema(self) -> Schema {
        let types: Vec<_> = self
            .columns()
            .iter()
            .map(|&(name, unit)| ValueType::new(name, unit))
            .collect();
        Schema::new(types, Column(1)).expect("the time that the mode is about is column 1")
    }

    fn columns(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Mode::Cpu => &[("samples", COUNT), ("cpu", NANOSECONDS)],
            Mode::Wall => &[
                ("samples", COUNT),
                ("wall", NANOSECONDS),
                ("cpu", NANOSECONDS),
            ],
        }
    }

    /// Puts `values` into the columns of this mode: `row` is what they hold then. A
    /// profile's numbers are signed: larger ones are cut.
    pub(crate) fn fill_row(self, values: Values, row: &mut Vec<i64>) {
        let Values {
            count,
            wall_ns,
            cpu_ns,
        } = values;
        let cut = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        row.clear();
        row.push(cut(count));
        if self == Mode::Wall {
            row.push(cut(wall_ns));
        }
        row.push(cut(cpu_ns));
    }
}

impl Values {
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
    use rperf_model::test_support::{cpu_schema, wall_schema};

    #[test]
    fn names_lead_back_to_modes_and_to_the_default_column() {
        for mode in [Mode::Cpu, Mode::Wall] {
            assert_eq!(Mode::from_name(mode.name()), Some(mode));
            assert_eq!(mode.schema().default_type().name, mode.name());
        }
        assert_eq!(Mode::from_name("real"), None);
    }

    #[test]
    fn other_crates_test_with_our_columns() {
        assert_eq!(Mode::Cpu.schema(), cpu_schema());
        assert_eq!(Mode::Wall.schema(), wall_schema());
    }

    #[test]
    fn a_row_has_a_value_for_each_column_and_no_number_overflows() {
        let values = Values {
            count: 1,
            wall_ns: u64::MAX,
            cpu_ns: 3,
        };
        let mut row = vec![9];
        Mode::Wall.fill_row(values, &mut row);
        assert_eq!(row, [1, i64::MAX, 3]);
        Mode::Cpu.fill_row(values, &mut row);
        assert_eq!(row, [1, 3]);
    }
}
