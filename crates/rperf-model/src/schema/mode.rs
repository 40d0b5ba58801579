//! The modes of sampling, and the columns that profiles in them have. Used by sessions, by shared
//! sums and by those who watch them. Any thread, no I/O.

use crate::{OwnColumn, Schema};

/// The name of the mode of sessions that trace calls, which takes no samples.
pub const TRACE: &str = "trace";

/// What a sampling session measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// CPU time of each thread.
    #[default]
    Cpu,
    /// Wall time of each thread, with the CPU time used beside it.
    Wall,
}

impl Mode {
    /// The column that the mode is about.
    pub const fn column(self) -> OwnColumn {
        match self {
            Mode::Cpu => OwnColumn::Cpu,
            Mode::Wall => OwnColumn::Wall,
        }
    }

    /// Its name, which is that of its column.
    pub const fn name(self) -> &'static str {
        self.column().name()
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Mode> {
        let mut modes = [Mode::Cpu, Mode::Wall].into_iter();
        modes.find(|mode| mode.name() == name)
    }

    /// The columns of a profile in this mode. The count comes first, as is the custom; the default
    /// column is that of the mode.
    ///
    /// # Panics
    ///
    /// Never: the default is one of the columns.
    pub fn schema(self) -> Schema {
        use OwnColumn::{Cpu, Samples, Wall};
        let columns: &[OwnColumn] = match self {
            Mode::Cpu => &[Samples, Cpu],
            Mode::Wall => &[Samples, Wall, Cpu],
        };
        Schema::of(columns.iter().copied(), self.column()).expect("the default is one of them")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_modes_and_to_the_default_column() {
        for mode in [Mode::Cpu, Mode::Wall] {
            assert_eq!(Mode::from_name(mode.name()), Some(mode));
            assert_eq!(mode.schema().default_type().name, mode.name());
        }
        assert_eq!(Mode::from_name("real"), None);
    }
}
