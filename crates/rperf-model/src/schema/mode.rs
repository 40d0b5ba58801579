//! The modes of sessions, and the columns that sampled profiles have in them. Used by sessions, by shared
//! sums and by those who watch them. Any thread, no I/O.

use crate::{OwnColumn, Schema};
use std::fmt::{Display, Formatter, Result as FmtResult};

/// What a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionMode {
    /// The session takes samples.
    Sampling(Mode),
    /// The session traces calls.
    Trace,
}

impl SessionMode {
    /// All modes.
    pub const ALL: [Self; 3] = [
        Self::Sampling(Mode::Cpu),
        Self::Sampling(Mode::Wall),
        Self::Trace,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sampling(mode) => mode.name(),
            Self::Trace => "trace",
        }
    }

    /// The mode with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }

    /// The mode of its samples, if it takes some.
    pub fn sampling(self) -> Option<Mode> {
        match self {
            Self::Sampling(mode) => Some(mode),
            Self::Trace => None,
        }
    }
}

impl Default for SessionMode {
    fn default() -> Self {
        Self::Sampling(Mode::default())
    }
}

impl From<Mode> for SessionMode {
    fn from(mode: Mode) -> Self {
        Self::Sampling(mode)
    }
}

impl Display for SessionMode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        formatter.write_str(self.name())
    }
}

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
        SessionMode::from_name(name)?.sampling()
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

impl Display for Mode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        formatter.write_str(self.name())
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
        for mode in SessionMode::ALL {
            assert_eq!(SessionMode::from_name(&mode.to_string()), Some(mode));
        }
        let trace = SessionMode::from_name("trace").expect("a mode");
        assert_eq!((trace, trace.sampling()), (SessionMode::Trace, None));
        assert_eq!(
            [Mode::from_name("real"), Mode::from_name("trace")],
            [None; 2]
        );
        assert_eq!(SessionMode::from_name("real"), None);
    }
}
