//! The accounts of all requests and jobs that have ended, by name: quantiles of each value. Under
//! the GVL.

use crate::{Figures, Value};
use rperf_model::Order;
use rperf_model::Quantiles;
use rustc_hash::FxHashMap;
use std::array;

/// Names that have a summary of their own at most.
pub(crate) const MOST: usize = 1_000;

/// Bytes of a name at most.
pub(crate) const LONGEST: usize = 256;

/// The name of all others.
pub const OTHER: &str = "(other)";

/// The accounts by name.
#[derive(Debug, Default)]
pub struct AccountTable {
    summaries: FxHashMap<Box<str>, Summary>,
}

/// All accounts of one name.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    quantiles: [Quantiles; Value::ALL.len()],
}

/// A value of a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantile {
    /// Its name.
    pub name: &'static str,
    /// The sum of all accounts.
    pub sum: u64,
    /// Half of all reach it at most, nine in ten, and 99 in a hundred: at most 6 % off.
    pub p50: u64,
    /// See `p50`.
    pub p90: u64,
    /// See `p50`.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

impl AccountTable {
    /// Adds an account. Long names are cut.
    pub fn add(&mut self, name: &str, figures: &Figures) {
        let name = cut(name, LONGEST);
        let is_full = self.summaries.len() >= MOST;
        let name = match self.summaries.contains_key(name) {
            false if is_full => OTHER,
            _ => name,
        };
        if let Some(summary) = self.summaries.get_mut(name) {
            summary.add(figures);
        } else {
            let summary = self.summaries.entry(name.into()).or_default();
            summary.add(figures);
        }
    }

    /// All names and their summaries, those with the most wall time first.
    pub fn all(&self) -> Vec<(&str, &Summary)> {
        let mut all: Vec<_> = self
            .summaries
            .iter()
            .map(|(name, it)| (&**name, it))
            .collect();
        all.order_by_key(|(name, it)| (u64::MAX - it.of(Value::Wall).sum(), *name));
        all
    }
}

/// The begin of `text`: as much as `longest` bytes have room for.
pub(crate) fn cut(text: &str, longest: usize) -> &str {
    let mut ends = (0..=longest.min(text.len())).rev();
    let end = ends.find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

impl Summary {
    fn add(&mut self, figures: &Figures) {
        for (value, quantiles) in Value::ALL.into_iter().zip(&mut self.quantiles) {
            quantiles.add(figures.value(value));
        }
    }

    /// How many accounts there are.
    pub fn count(&self) -> u64 {
        self.of(Value::Wall).count()
    }

    /// Each value.
    pub fn values(&self) -> [Quantile; Value::ALL.len()] {
        array::from_fn(|index| {
            let of = &self.quantiles[index];
            Quantile {
                name: Value::ALL[index].name(),
                sum: of.sum(),
                p50: of.quantile(500),
                p90: of.quantile(900),
                p99: of.quantile(990),
                max: of.max(),
            }
        })
    }

    fn of(&self, value: Value) -> &Quantiles {
        &self.quantiles[value as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(wall_ns: u64) -> Figures {
        Figures {
            wall_ns,
            suspended_ns: wall_ns / 2,
            ..Figures::default()
        }
    }

    #[test]
    fn accounts_of_one_name_are_added_and_the_longest_names_come_first() {
        let mut table = AccountTable::default();
        for wall_ns in [1, 2, 3] {
            table.add("short", &took(wall_ns));
        }
        table.add("long", &took(7));
        let all = table.all();
        let names: Vec<_> = all.iter().map(|(name, it)| (*name, it.count())).collect();
        assert_eq!(names, [("long", 1), ("short", 3)]);
        let [wall, ..] = all[1].1.values();
        let expected = Quantile {
            name: "wall_ns",
            sum: 6,
            p50: 2,
            p90: 3,
            p99: 3,
            max: 3,
        };
        assert_eq!(wall, expected);
        let suspended = all[0]
            .1
            .values()
            .into_iter()
            .find(|it| it.name == "suspended_ns");
        assert_eq!(suspended.map(|it| it.sum), Some(3));
    }

    #[test]
    fn long_names_are_cut_where_a_character_ends() {
        let mut table = AccountTable::default();
        table.add(&"é".repeat(1_000), &took(1));
        table.add(&format!("a{}", "é".repeat(1_000)), &took(1));
        let mut lengths: Vec<_> = table.all().iter().map(|(name, _)| name.len()).collect();
        lengths.sort_unstable();
        assert_eq!(lengths, [LONGEST - 1, LONGEST]);
    }

    #[test]
    fn further_names_share_one_summary() {
        let mut table = AccountTable::default();
        for number in 0..MOST + 5 {
            table.add(&format!("/{number}"), &took(1));
        }
        table.add("/0", &took(1));
        let all = table.all();
        assert_eq!(all.len(), MOST + 1);
        let count = |name| all.iter().find(|it| it.0 == name).map(|it| it.1.count());
        assert_eq!((count(OTHER), count("/0")), (Some(5), Some(2)));
    }
}
