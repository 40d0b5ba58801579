//! Values with their units, as people read them. Used by all output for people; any
//! thread.

use crate::text::one_line::one_line;
use rperf_model::ValueType;
use rperf_model::numbers::{grouped, signed};

/// How the values of one table are written: all in one unit, so that they compare at a
/// glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scale {
    /// How many of the value's own units make one of the shown.
    divisor: u64,
    decimals: usize,
    unit: String,
}

impl Scale {
    /// The scale for a table of values of this type; `largest` is the largest of them.
    pub fn new(value_type: &ValueType, largest: i64) -> Self {
        let largest = largest.unsigned_abs();
        let unit = value_type.unit.as_str();
        if let Some(ns) = nanoseconds_per(unit) {
            return Self::of_time(ns, largest);
        }
        match bytes_per(unit) {
            Some(bytes) => Self::of_bytes(bytes, largest),
            None if matches!(unit, "count" | "") => Self::plain(""),
            None => Self::plain(unit),
        }
    }

    /// The scale for what one of so many has, with a digit behind the point at least: of counts, too.
    pub fn of_each(value_type: &ValueType, largest: i64, count: u64) -> Self {
        let count = count.max(1);
        let mean = largest.unsigned_abs() / count;
        let scale = Self::new(value_type, signed(mean));
        Self {
            divisor: scale.divisor.saturating_mul(count),
            decimals: scale.decimals.max(1),
            ..scale
        }
    }

    /// The unit that the values are shown in; empty for counts.
    pub fn unit(&self) -> &str {
        &self.unit
    }

    /// `value` without its unit: `1,234.5`. What rounds to 0 has no sign.
    pub fn number(&self, value: i64) -> String {
        let (digits, scaled) = (self.digits(), self.scaled_up(value));
        let sign = if value < 0 && scaled > 0 { "-" } else { "" };
        let whole = grouped(u64::try_from(scaled / digits).unwrap_or(u64::MAX));
        match self.decimals {
            0 => format!("{sign}{whole}"),
            decimals => format!("{sign}{whole}.{:0decimals$}", scaled % digits),
        }
    }

    /// `value` with its unit: `1,234.5 ms`.
    pub fn text(&self, value: i64) -> String {
        match self.unit.as_str() {
            "" => self.number(value),
            unit => format!("{} {unit}", self.number(value)),
        }
    }

    /// The sign in front of a difference, whose text has its own if it is below 0.
    pub fn plus(&self, difference: i64) -> &'static str {
        match difference > 0 && self.scaled_up(difference) > 0 {
            true => "+",
            false => "",
        }
    }

    /// A one with as many zeros as there are decimals.
    fn digits(&self) -> u128 {
        10_u128.pow(self.decimals as u32)
    }

    /// The digits of `value` as it is shown, without its sign.
    fn scaled_up(&self, value: i64) -> u128 {
        let divisor = u128::from(self.divisor);
        // In whole numbers, since a float would not hold all of them.
        (u128::from(value.unsigned_abs()) * self.digits() + divisor / 2) / divisor
    }

    /// Milliseconds, unless all would be next to nothing.
    fn of_time(ns: u64, largest: u64) -> Self {
        match largest.saturating_mul(ns) {
            0 | 1_000_000.. => Self::scaled(1_000_000, ns, 1, "ms"),
            1_000.. => Self::scaled(1_000, ns, 1, "µs"),
            _ => Self::scaled(1, ns, 0, "ns"),
        }
    }

    fn of_bytes(bytes: u64, largest: u64) -> Self {
        const KB: u64 = 1 << 10;
        const MB: u64 = 1 << 20;
        match largest.saturating_mul(bytes) {
            MB.. => Self::scaled(MB, bytes, 2, "MB"),
            KB.. => Self::scaled(KB, bytes, 1, "KB"),
            _ => Self::scaled(1, bytes, 0, "B"),
        }
    }

    /// A unit of `base` basic ones, for values of which each is `own` basic ones.
    fn scaled(base: u64, own: u64, decimals: usize, unit: &str) -> Self {
        if base < own {
            // Seconds and the like are not broken up: they have no finer parts.
            return Self::scaled(own, own, 0, unit_of(own));
        }
        Self {
            divisor: base / own,
            decimals: if base == own { 0 } else { decimals },
            unit: unit.to_string(),
        }
    }

    fn plain(unit: &str) -> Self {
        Self {
            divisor: 1,
            decimals: 0,
            // Anything can be in a file.
            unit: one_line(unit).into_owned(),
        }
    }
}

fn unit_of(ns: u64) -> &'static str {
    match ns {
        1_000_000_000 => "s",
        1_000_000 => "ms",
        1_000 => "µs",
        _ => "ns",
    }
}

/// Whether values in this unit are times.
pub fn nanoseconds_per(unit: &str) -> Option<u64> {
    Some(match unit {
        "nanoseconds" | "nanosecond" | "ns" => 1,
        "microseconds" | "microsecond" | "us" | "µs" => 1_000,
        "milliseconds" | "millisecond" | "ms" => 1_000_000,
        "seconds" | "second" | "s" => 1_000_000_000,
        _ => return None,
    })
}

fn bytes_per(unit: &str) -> Option<u64> {
    Some(match unit {
        "bytes" | "byte" | "b" | "B" => 1,
        "kilobytes" | "kilobyte" | "kb" | "KB" => 1 << 10,
        "megabytes" | "megabyte" | "mb" | "MB" => 1 << 20,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(unit: &str, largest: i64, value: i64) -> String {
        Scale::new(&ValueType::new("x", unit), largest).text(value)
    }

    #[test]
    fn what_each_of_many_has_has_a_digit_behind_the_point() {
        let of = |unit: &str| ValueType::new("x", unit);
        let ms = Scale::of_each(&of("nanoseconds"), 600_000_000, 60);
        assert_eq!(
            (ms.text(600_000_000), ms.text(30_000_000)),
            ("10.0 ms".into(), "0.5 ms".into())
        );
        let counts = Scale::of_each(&of("count"), 90, 60);
        assert_eq!(
            (counts.text(90), counts.text(-30)),
            ("1.5".into(), "-0.5".into())
        );
        let few = Scale::of_each(&of("nanoseconds"), 6_000, 60);
        assert_eq!(few.text(6_000), "100.0 ns");
        let none = Scale::of_each(&of("bytes"), i64::MIN, 0);
        assert!(none.text(1).ends_with("MB"));
    }

    #[test]
    fn times_are_milliseconds_unless_all_are_tiny() {
        assert_eq!(text("nanoseconds", 5_000_000, 1_234_550_000), "1,234.6 ms");
        assert_eq!(text("nanoseconds", 5_000_000, -1_234_000), "-1.2 ms");
        assert_eq!(text("nanoseconds", 0, 0), "0.0 ms");
        assert_eq!(text("nanoseconds", 5_000, 1_234), "1.2 µs");
        assert_eq!(text("nanoseconds", 900, 12), "12 ns");
        assert_eq!(text("microseconds", 2_000, 1_500), "1.5 ms");
        assert_eq!(text("milliseconds", 2_000, 1_500), "1,500 ms");
        assert_eq!(text("seconds", 2_000, 1_500), "1,500 s");
    }

    #[test]
    fn what_rounds_to_zero_has_no_sign() {
        let ms = Scale::new(&ValueType::new("x", "nanoseconds"), 5_000_000);
        let shown = |value| format!("{}{}", ms.plus(value), ms.text(value));
        let values = [-50_000, -49_999, 0, 49_999, 50_000];
        assert_eq!(
            values.map(shown),
            ["-0.1 ms", "0.0 ms", "0.0 ms", "0.0 ms", "+0.1 ms"]
        );
    }

    #[test]
    fn bytes_and_counts_have_their_own_units() {
        assert_eq!(text("bytes", 3 << 20, 3 << 19), "1.50 MB");
        assert_eq!(text("bytes", 2048, 1536), "1.5 KB");
        assert_eq!(text("bytes", 100, 7), "7 B");
        assert_eq!(text("count", 5_000_000, 1_234), "1,234");
        assert_eq!(text("locks", 5, 1_234), "1,234 locks");
        assert_eq!(text("a\n\x1b[31m", 5, 1), "1 a  [31m");
        assert_eq!(
            text("nanoseconds", i64::MAX, i64::MIN),
            "-9,223,372,036,854.8 ms"
        );
    }
}
