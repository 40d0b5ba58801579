//! Tests of sample types and periods.

use super::*;
use rperf_model::test_support;

/// A message with these sample types, and the table of its strings.
fn message<'a>(types: &[(&'a str, &'a str)], default: &'a str) -> (Message<'a>, Vec<&'a [u8]>) {
    let mut table = vec![&b""[..]];
    let mut text = |text: &'a str| {
        table.push(text.as_bytes());
        table.len() as i64 - 1
    };
    let mut message = Message::default();
    for (name, unit) in types {
        let (r#type, unit) = (text(name), text(unit));
        message.sample_types.push(proto::ValueType { r#type, unit });
    }
    message.default_sample_type = text(default);
    (message, table)
}

fn read(types: &[(&str, &str)], default: &str) -> Result<Schema, ReadError> {
    let (message, table) = message(types, default);
    schema(&message, &Texts::new(&table, 0)?)
}

fn default_of(types: &[(&str, &str)], default: &str) -> usize {
    let schema = read(types, default).expect("it has types");
    schema.default_column().0
}

#[test]
fn the_default_is_the_first_of_its_name_or_the_last_type() {
    let types = [("a", "count"), ("b", "bytes"), ("b", "ms"), ("c", "ms")];
    assert_eq!(default_of(&types, "b"), 1);
    assert_eq!(default_of(&types, "none"), 3);
    assert_eq!(default_of(&types, ""), 3);
    assert_eq!(default_of(&[("", "count"), ("b", "bytes")], ""), 1);
}

#[test]
fn the_default_that_is_written_is_the_one_that_is_read() {
    for (types, default, name) in [
        (&[("a", "count"), ("b", "bytes")][..], 0, "a"),
        (&[("a", "count"), ("b", "bytes")], 1, "b"),
        (&[("a", "count"), ("a", "bytes")], 0, "a"),
        (&[("a", "count"), ("a", "bytes")], 1, ""),
        (&[("a", "count"), ("", "bytes")], 1, ""),
    ] {
        let schema = test_support::schema(types, default);
        assert_eq!(default_name(&schema), name);
        assert_eq!(read(types, name).expect("it has types"), schema);
    }
}

#[test]
fn without_a_sample_type_there_is_no_profile() {
    let error = read(&[], "").expect_err("no types");
    assert_eq!(
        error.to_string(),
        "the profile is damaged: it has no sample types"
    );
}

#[test]
fn types_without_end_are_refused() {
    assert!(read(&[("a", "b"); MAX_TYPES], "").is_ok());
    let error = read(&[("a", "b"); MAX_TYPES + 1], "").expect_err("too many");
    let expected = "the profile is too large: more than 1,000 sample types";
    assert_eq!(error.to_string(), expected);
    let long = "x".repeat(MAX_TEXT / 2);
    assert!(read(&[(&long, &long)], "").is_ok());
    assert!(read(&[(&long, &long), ("", "b")], "").is_err());
}

fn period_of(number: i64, unit: &str) -> (Option<Period>, u32) {
    let (mut message, mut table) = message(&[("cpu", unit)], "");
    message.period = number;
    message.period_type = Some(message.sample_types[0]);
    table.push(b"nanoseconds");
    let mut meta = Meta::default();
    let texts = Texts::new(&table, 0).expect("a good table");
    let period = read_period(&message, &texts, &mut meta).expect("good texts");
    (period, meta.frequency)
}

#[test]
fn a_period_that_is_a_time_tells_the_frequency() {
    for (number, unit, frequency) in [
        (10_000_000, "nanoseconds", 100),
        (3_003_003, "nanoseconds", 333),
        (1_000, "us", 1000),
        (2, "milliseconds", 500),
        (1, "seconds", 1),
        (524_288, "bytes", 0),
        // Not what a profiler can do, nor what is said by 0 or less.
        (1, "nanoseconds", 0),
        (i64::MAX, "seconds", 0),
        (0, "nanoseconds", 0),
        (-5, "nanoseconds", 0),
    ] {
        let (period, found) = period_of(number, unit);
        assert_eq!(found, frequency, "{number} {unit}");
        let value_type = ValueType::new("cpu", unit);
        let value = number;
        assert_eq!(period, Some(Period { value_type, value }));
    }
    let (message, table) = message(&[("cpu", "ns")], "");
    let texts = Texts::new(&table, 0).expect("a good table");
    let period = read_period(&message, &texts, &mut Meta::default());
    assert!(period.is_ok_and(|period| period.is_none()));
}
