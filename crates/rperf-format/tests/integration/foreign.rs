//! Files of other tools: what they measure is read whatever it is, and written back in
//! the same columns, units and order. The files are made here, by the messages alone.

use crate::proto;
use flate2::read::GzDecoder;
use prost::Message;
use rperf_format::{Format, TextOptions, Whole, pprof, write};
use rperf_model::{Column, Period, Profile, ValueType};
use std::collections::BTreeMap;
use std::io::Read;

/// A file in the making; all text is in `string_table`.
struct File {
    message: proto::Profile,
}

impl File {
    fn new(types: &[(&str, &str)], default: &str) -> Self {
        let message = proto::Profile {
            string_table: vec![Vec::new()],
            ..Default::default()
        };
        let mut file = Self { message };
        for (name, unit) in types {
            let value_type = file.value_type(name, unit);
            file.message.sample_type.push(value_type);
        }
        file.message.default_sample_type = file.text(default);
        file
    }

    fn period(mut self, name: &str, unit: &str, period: i64) -> Self {
        self.message.period_type = Some(self.value_type(name, unit));
        self.message.period = period;
        self
    }

    /// A sample of these functions, leaf first.
    fn sample(mut self, stack: &[&str], values: &[i64]) -> Self {
        let sample = proto::Sample {
            location_id: stack.iter().map(|name| self.location(name)).collect(),
            value: values.to_vec(),
            label: Vec::new(),
        };
        self.message.sample.push(sample.encode_to_vec().into());
        self
    }

    fn location(&mut self, name: &str) -> u64 {
        let name = self.text(name);
        let known = self.message.function.iter().find(|row| row.name == name);
        if let Some(function) = known {
            return function.id;
        }
        let id = self.message.function.len() as u64 + 1;
        self.message.function.push(proto::Function {
            id,
            name,
            ..Default::default()
        });
        let line = proto::Line {
            function_id: id,
            line: 7,
        };
        self.message.location.push(proto::Location {
            id,
            line: vec![line],
            ..Default::default()
        });
        id
    }

    fn value_type(&mut self, name: &str, unit: &str) -> proto::ValueType {
        let (r#type, unit) = (self.text(name), self.text(unit));
        proto::ValueType { r#type, unit }
    }

    fn text(&mut self, text: &str) -> i64 {
        let table = &mut self.message.string_table;
        let row = table.iter().position(|row| row == text.as_bytes());
        row.unwrap_or_else(|| {
            table.push(text.into());
            table.len() - 1
        }) as i64
    }

    fn read(&self) -> Profile {
        let profile = pprof::read(&mut self.message.encode_to_vec().as_slice());
        let profile = profile.expect("a good profile");
        assert_eq!(profile.check(), Ok(()));
        profile
    }
}

/// What a message says, in words.
#[derive(Debug, PartialEq)]
struct Said {
    types: Vec<(String, String)>,
    default: String,
    period: Option<((String, String), i64)>,
    samples: BTreeMap<Vec<String>, Vec<i64>>,
}

fn said(message: &proto::Profile) -> Said {
    let text = |row: i64| {
        let text = message.string_table[row as usize].clone();
        String::from_utf8(text).expect("it is UTF-8")
    };
    let value_type = |it: &proto::ValueType| (text(it.r#type), text(it.unit));
    let function = |id: &u64| {
        let location = message.location.iter().find(|row| row.id == *id);
        let id = location.expect("it is there").line[0].function_id;
        let function = message.function.iter().find(|row| row.id == id);
        text(function.expect("it is there").name)
    };
    let samples = message.sample.iter().map(|encoded| {
        let sample = proto::Sample::decode(encoded.clone()).expect("a sample");
        (
            sample.location_id.iter().map(function).collect(),
            sample.value,
        )
    });
    let period_type = message.period_type.as_ref();
    Said {
        types: message.sample_type.iter().map(value_type).collect(),
        default: text(message.default_sample_type),
        period: period_type.map(|period| (value_type(period), message.period)),
        samples: samples.collect(),
    }
}

fn written(profile: &Profile) -> proto::Profile {
    let mut zipped = Vec::new();
    pprof::write(profile, &mut zipped).expect("memory takes everything");
    let mut plain = Vec::new();
    let mut decoder = GzDecoder::new(zipped.as_slice());
    decoder.read_to_end(&mut plain).expect("it is gzip'd");
    proto::Profile::decode(plain.as_slice()).expect("it is pprof")
}

fn text_of(profile: &Profile, format: Format) -> String {
    let mut output = Vec::new();
    let options = TextOptions {
        lines: true,
        whole: None,
    };
    write(profile, format, options, &mut output).expect("memory takes everything");
    String::from_utf8(output).expect("text")
}

/// A heap profile as Go's runtime writes it.
fn heap() -> File {
    let types = [
        ("alloc_objects", "count"),
        ("alloc_space", "bytes"),
        ("inuse_objects", "count"),
        ("inuse_space", "bytes"),
    ];
    File::new(&types, "inuse_space")
        .period("space", "bytes", 524_288)
        .sample(&["bytes.growSlice", "main.main"], &[1_300, 1_048_576, 0, 0])
        .sample(&["main.load", "main.main"], &[20, 9_000_000, 15, 7_250_000])
        .sample(&["main.main"], &[2, 4_096, 1, 2_048])
}

/// Counts first, times in microseconds, no default: it is the last type.
fn stackprof() -> File {
    File::new(&[("samples", "count"), ("wall", "microseconds")], "")
        .period("wall", "microseconds", 1_000)
        .sample(&["Object#work", "<main>"], &[40, 40_123])
        .sample(&["(marking)"], &[2, 2_001])
}

/// A profile with one type, which is named as the default, and no period.
fn pf2() -> File {
    File::new(&[("cpu", "nanoseconds")], "cpu")
        .sample(&["Integer#times", "<main>"], &[10_000_000])
        .sample(&["<main>"], &[20_000_000])
}

#[test]
fn all_columns_units_default_and_period_come_back() {
    for (file, default) in [
        (heap(), "inuse_space"),
        (stackprof(), "wall"),
        (pf2(), "cpu"),
    ] {
        let once = written(&file.read());
        // A default that was not named is named now.
        let expected = Said {
            default: default.into(),
            ..said(&file.message)
        };
        assert_eq!(said(&once), expected);
        let again = File { message: once }.read();
        assert_eq!(said(&written(&again)), expected);
    }
}

#[test]
fn a_heap_profile_has_no_frequency_but_a_period() {
    let profile = heap().read();
    assert_eq!(profile.schema.len(), 4);
    assert_eq!(profile.schema.default_column(), Column(3));
    assert_eq!(profile.sum(Column(1)), 10_052_672);
    let value_type = ValueType::new("space", "bytes");
    let value = 524_288;
    assert_eq!(profile.meta.period, Some(Period { value_type, value }));
    assert_eq!((profile.meta.frequency, profile.sample_count()), (0, None));
    assert_eq!(written(&profile).comment.len(), 0);
}

#[test]
fn a_period_of_time_tells_the_frequency() {
    let profile = stackprof().read();
    assert_eq!(profile.meta.frequency, 1000);
    assert_eq!(profile.sample_count(), Some(42));
    assert_eq!(pf2().read().meta.frequency, 0);
}

#[test]
fn text_and_collapsed_show_the_default_column_in_its_unit() {
    let profile = heap().read();
    assert_eq!(
        text_of(&profile, Format::Text),
        "\
Total: 6.92 MB (inuse_space)

Flat:
      6.91 MB 100.0%  main.load
      0.00 MB   0.0%  main.main

Cumulative:
      6.92 MB 100.0%  main.main
      6.91 MB 100.0%  main.load

Lines: none were recorded
"
    );
    assert_eq!(
        text_of(&profile, Format::Collapsed),
        "main.main 2048\nmain.main;main.load 7250000\n"
    );
    let text = text_of(&stackprof().read(), Format::Text);
    assert!(text.starts_with("Total: 42.1ms (wall)\nSamples: 42, Frequency: 1000Hz\n\nFlat:\n"));
}

#[test]
fn shares_are_of_the_whole_that_a_filter_has_left_this_of() {
    let mut text = Vec::new();
    let options = TextOptions {
        lines: false,
        whole: Some(Whole {
            value: 4 * 7_252_048,
            idle: 0,
        }),
    };
    write(&heap().read(), Format::Text, options, &mut text).expect("memory takes everything");
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("Total: 27.66 MB (inuse_space), of which 6.92 MB (25.0%) are left\n"));
    assert!(text.contains("  6.92 MB  25.0%  main.main\n"), "{text}");
}

#[test]
fn counts_are_mere_numbers_and_negative_values_are_shown() {
    let file = File::new(&[("contentions", "count")], "")
        .sample(&["Mutex#lock", "<main>"], &[-1_234_567])
        .sample(&["Queue#pop", "<main>"], &[500]);
    assert_eq!(
        text_of(&file.read(), Format::Text),
        "\
Total: -1,234,067 (contentions)

Flat:
  -1,234,567 100.0%  Mutex#lock
         500   0.0%  Queue#pop

Cumulative:
  -1,234,567 100.0%  Mutex#lock
  -1,234,067 100.0%  <main>
         500   0.0%  Queue#pop

Lines: none were recorded
"
    );
    let collapsed = text_of(&file.read(), Format::Collapsed);
    assert_eq!(
        collapsed,
        "<main>;Mutex#lock -1234567\n<main>;Queue#pop 500\n"
    );
}

#[test]
fn profiles_of_other_tools_are_merged_as_ours() {
    let mut both = heap().read();
    both.merge(&heap().read()).expect("the same types");
    assert_eq!(both.sum(Column(3)), 2 * 7_252_048);
    let error = both.merge(&pf2().read()).expect_err("other types");
    assert!(error.to_string().ends_with("the other has cpu/nanoseconds"));
}
