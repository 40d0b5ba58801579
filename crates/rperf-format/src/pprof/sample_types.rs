//! Which values a sample has in pprof: ours by mode, and what to make of those in
//! other tools' files. Used by writer and reader; any thread.

use crate::ReadError;
use rperf_model::{Mode, State, Values};

/// Type and unit of the values that a profile of `mode` has. Count comes first, as
/// is the custom; the type that is shown by default is named for the mode.
pub(crate) fn of_mode(mode: Mode) -> &'static [(&'static str, &'static str)] {
    match mode {
        Mode::Cpu => &[("samples", "count"), ("cpu", NANOSECONDS)],
        Mode::Wall => &[
            ("samples", "count"),
            ("wall", NANOSECONDS),
            ("cpu", NANOSECONDS),
        ],
    }
}

/// The unit of all our times.
pub(crate) const NANOSECONDS: &str = "nanoseconds";

/// The values for [`of_mode`]. pprof's numbers are signed: larger ones are cut.
pub(crate) fn values_of_mode(values: Values, mode: Mode) -> impl Iterator<Item = i64> {
    let Values {
        count,
        wall_ns,
        cpu_ns,
    } = values;
    let wall_ns = match mode {
        Mode::Cpu => None,
        Mode::Wall => Some(wall_ns),
    };
    let row = [Some(count), wall_ns, Some(cpu_ns)];
    row.into_iter().flatten().map(signed)
}

/// `number`, or the greatest number that pprof can hold.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A frequency that a profile may have; 0, not known, becomes 1.
pub(crate) fn frequency(hz: u64) -> u32 {
    hz.clamp(1, 10_000) as u32
}

/// Where in a sample's values the ones are that we want.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    /// What the profile measures.
    pub mode: Mode,
    len: usize,
    count: Option<usize>,
    wall: Option<TimeColumn>,
    cpu: Option<TimeColumn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeColumn {
    place: usize,
    unit_ns: u64,
}

impl Columns {
    /// Chooses among `types`, pairs of type and unit. Times called `wall` and `cpu`
    /// are taken for what they are; without them the default type, else the last one
    /// is the one to take, as pprof does, and must be a time: of the CPU if its name
    /// says so, else wall time.
    pub(crate) fn choose(types: &[(String, String)], default: &str) -> Result<Self, ReadError> {
        let time = |place: usize| {
            let unit_ns = unit_ns(&types.get(place)?.1)?;
            Some(TimeColumn { place, unit_ns })
        };
        let named = |names: [&str; 2]| {
            let place = types
                .iter()
                .position(|(name, unit)| names.contains(&&**name) && unit_ns(unit).is_some())?;
            time(place)
        };
        let by_type = |wanted: &str| types.iter().position(|(name, _)| name == wanted);
        let by_unit = |wanted: &str| types.iter().position(|(_, unit)| unit == wanted);

        let mut wall = named(["wall", "wall-time"]);
        let mut cpu = named(["cpu", "cpu-time"]);
        if wall.is_none() && cpu.is_none() {
            let place = by_type(default).unwrap_or(types.len().saturating_sub(1));
            let Some(column) = time(place) else {
                return Err(no_time(types));
            };
            if types[place].0.contains("cpu") {
                cpu = Some(column);
            } else {
                wall = Some(column);
            }
        }
        let mode = if wall.is_some() {
            Mode::Wall
        } else {
            Mode::Cpu
        };
        Ok(Self {
            mode,
            len: types.len(),
            count: by_type("samples").or_else(|| by_unit("count")),
            wall,
            cpu,
        })
    }

    /// The values of a sample in `state`. Profiles without a count have one sample
    /// in each row.
    pub(crate) fn values(&self, row: &[i64], state: State) -> Result<Values, ReadError> {
        if row.len() != self.len {
            let (found, wanted) = (row.len(), self.len);
            return Err(ReadError::damaged(format!(
                "a sample has {found} values, but there are {wanted} sample types"
            )));
        }
        let number = |place: usize| {
            u64::try_from(row[place])
                .map_err(|_| ReadError::damaged("a sample has a negative value"))
        };
        let time_ns = |column: Option<TimeColumn>| {
            let Some(column) = column else { return Ok(0) };
            number(column.place).map(|time| time.saturating_mul(column.unit_ns))
        };
        let mut values = Values {
            count: 0,
            wall_ns: time_ns(self.wall)?,
            cpu_ns: time_ns(self.cpu)?,
        };
        // In cpu mode the time of GC is wall time too, which has no column then.
        if self.mode == Mode::Cpu && state.is_gc() {
            values.wall_ns = values.cpu_ns;
        }
        values.count = match self.count {
            Some(place) => number(place)?,
            None => u64::from(!values.is_zero()),
        };
        Ok(values)
    }
}

/// `number` of `unit` in ns, if that is a unit of time.
pub(crate) fn to_ns(number: i64, unit: &str) -> Option<u64> {
    Some(u64::try_from(number).ok()?.saturating_mul(unit_ns(unit)?))
}

fn unit_ns(unit: &str) -> Option<u64> {
    Some(match unit {
        NANOSECONDS | "nanosecond" | "ns" => 1,
        "microseconds" | "microsecond" | "us" | "µs" => 1_000,
        "milliseconds" | "millisecond" | "ms" => 1_000_000,
        "seconds" | "second" | "s" => 1_000_000_000,
        _ => return None,
    })
}

fn no_time(types: &[(String, String)]) -> ReadError {
    let pair = |(name, unit): &(String, String)| format!("{name}/{unit}");
    let found = match types {
        [] => "nothing".to_string(),
        // A few are enough to tell what it is.
        _ => types
            .iter()
            .take(10)
            .map(pair)
            .collect::<Vec<_>>()
            .join(", "),
    };
    ReadError::NoTime { found }
}

#[cfg(test)]
mod tests;
