//! Filters by tags. Called by `filter`; any thread.

use crate::rows::tags::{ThreadNames, tags, without_stack};
use crate::text::pattern::{PatternError, regex};
use crate::text::units::nanoseconds_per;
use regex::Regex;
use rperf_model::{Profile, WeightKey};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Chooses samples by their tags, as pprof's `-tagfocus` does:
///
/// - `key=regex`: the value under this key matches; of several expressions with commas
///   between them one is enough;
/// - `regex`: any tag matches as `key:value`; of several expressions each must;
/// - `key=10:20`, `key=10:`, `key=:20`, `key=10`, with units (`64kb`, `5ms`) or without:
///   the value is a number in this range.
#[derive(Debug, Clone)]
pub struct TagFilter {
    key: Option<String>,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Regexes(Vec<Regex>),
    Range {
        least: Option<f64>,
        most: Option<f64>,
    },
}

impl TagFilter {
    /// The filter that `text` is.
    pub fn new(text: &str) -> Result<Self, PatternError> {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (Some(key.to_string()), value),
            None => (None, text),
        };
        let test = match range(value) {
            Some(range) => range,
            None => Test::Regexes(value.split(',').map(regex).collect::<Result<_, _>>()?),
        };
        Ok(Self { key, test })
    }

    pub(super) fn matches(&self, tags: &[(&str, Cow<'_, str>)]) -> bool {
        let tags: Vec<_> = match &self.key {
            Some(wanted) => tags.iter().filter(|(key, _)| key == wanted).collect(),
            None => tags.iter().collect(),
        };
        match (&self.test, &self.key) {
            (Test::Range { least, most }, _) => tags.iter().any(|(key, value)| {
                number(value, Some(key)).is_some_and(|number| {
                    least.is_none_or(|least| number >= least)
                        && most.is_none_or(|most| number <= most)
                })
            }),
            (Test::Regexes(regexes), Some(_)) => tags
                .iter()
                .any(|(_, value)| regexes.iter().any(|regex| regex.is_match(value))),
            (Test::Regexes(regexes), None) => {
                let texts: Vec<_> = tags
                    .iter()
                    .map(|(key, value)| format!("{key}:{value}"))
                    .collect();
                regexes
                    .iter()
                    .all(|regex| texts.iter().any(|text| regex.is_match(text)))
            }
        }
    }
}

/// The range that `text` is, if it is one.
fn range(text: &str) -> Option<Test> {
    let (least, most) = match text.split_once(':') {
        None => {
            let number = number(text, None)?;
            (Some(number), Some(number))
        }
        Some((least, "")) => (Some(number(least, None)?), None),
        Some(("", most)) => (None, Some(number(most, None)?)),
        Some((least, most)) => (Some(number(least, None)?), Some(number(most, None)?)),
    };
    Some(Test::Range { least, most })
}

/// A number with or without a unit, in the smallest unit of its kind. Without one the
/// tag's key may be one, as with the labels of heap profiles.
fn number(text: &str, key: Option<&str>) -> Option<f64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = digits.find(|digit: char| !digit.is_ascii_digit());
    let end = text.len() - digits.len() + end.unwrap_or(digits.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.parse().ok()?;
    let unit = match (unit, key) {
        ("", Some(key)) => key,
        _ => unit,
    };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "kb" | "kilobyte" | "kilobytes" => 1 << 10,
        "mb" | "megabyte" | "megabytes" => 1 << 20,
        "gb" | "gigabyte" | "gigabytes" => 1 << 30,
        lower => match nanoseconds_per(lower) {
            Some(ns) => ns,
            None if key.is_some() || matches!(lower, "" | "b" | "byte" | "bytes") => 1,
            None => return None,
        },
    };
    Some(number * factor as f64)
}

/// For each row of weights whether it has a tag that matches.
pub(super) fn matching(profile: &Profile, threads: &ThreadNames, filter: &TagFilter) -> Vec<bool> {
    let mut known: FxHashMap<WeightKey, bool> = FxHashMap::default();
    let rows = profile.weights.iter();
    rows.map(|row| {
        let key = without_stack(row.key);
        *known
            .entry(key)
            .or_insert_with(|| filter.matches(&tags(profile, threads, key)))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(filter: &str, tags: &[(&str, &str)]) -> bool {
        let filter = TagFilter::new(filter).expect("a filter");
        let tags: Vec<_> = tags
            .iter()
            .map(|(key, value)| (*key, Cow::Borrowed(*value)))
            .collect();
        filter.matches(&tags)
    }

    #[test]
    fn a_key_takes_any_of_several_expressions_and_no_key_needs_all() {
        let tags = [("request", "GET /users"), ("job", "mail")];
        assert!(matches("request=users", &tags));
        assert!(matches("request=posts,users", &tags));
        assert!(!matches("request=mail", &tags));
        assert!(!matches("req=users", &tags));
        assert!(matches("users", &tags));
        assert!(matches("job:mail", &tags));
        assert!(matches("users,mail", &tags));
        assert!(!matches("users,posts", &tags));
    }

    #[test]
    fn numbers_are_ranges() {
        for (filter, expected) in [
            ("bytes=64kb", true),
            ("bytes=65536", true),
            ("bytes=:1mb", true),
            ("bytes=65kb:", false),
            ("bytes=1kb:1mb", true),
            ("bytes=1:100", false),
            ("64kb:", true),
            ("other=64kb", false),
        ] {
            let tags = [("bytes", "65536")];
            assert_eq!(matches(filter, &tags), expected, "{filter}");
        }
        assert!(matches("id=-5:5", &[("id", "-3")]));
        assert!(matches("request=42", &[("request", "42")]));
        assert!(!matches("request=42", &[("request", "421")]));
        assert!(matches("took=5ms:", &[("took", "6000us")]));
        assert!(matches("ip=10.0", &[("ip", "10.0.0.1")]));
    }
}
