//! Writing pprof profiles. Any thread.

use super::labels::{self, escape_key, escape_value};
use super::sample_types::{self, NANOSECONDS, signed, values_of_mode};
use super::{meta, proto};
use crate::FormatError;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rperf_model::{DisplayFrame, LabelSetId, Profile, Thread, Weight};
use rustc_hash::FxHashMap;
use std::io::Write;

/// Where a profile's reader finds out about rperf. Tools pass over what is not an
/// absolute URL.
const DOC_URL: &str = "https://github.com/rperf-rb/rperf#readme";

/// What the program is called if nobody has said: tools ask for its file otherwise.
const UNKNOWN_PROGRAM: &str = "ruby";

/// The one mapping, which all locations are in.
const MAPPING_ID: u64 = 1;

/// Writes `profile`, gzip'd.
pub fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let message = Writer::new(profile).into_message();
    let mut encoder = GzEncoder::new(output, Compression::default());
    encoder.write_all(&message.encode_to_vec())?;
    encoder.finish()?.flush()?;
    Ok(())
}

/// The message in the making; ids in it are dense from 1, as tools like best.
struct Writer<'a> {
    profile: &'a Profile,
    message: proto::Profile,
    texts: FxHashMap<String, i64>,
    /// By name, path and first line, as texts.
    functions: FxHashMap<(i64, i64, i64), u64>,
    locations: FxHashMap<DisplayFrame, u64>,
    thread_names: FxHashMap<u32, &'a str>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile) -> Self {
        let name = |thread: &Thread| (thread.seq, profile.strings.get(thread.name));
        let mut writer = Self {
            profile,
            message: proto::Profile::default(),
            texts: FxHashMap::default(),
            functions: FxHashMap::default(),
            locations: FxHashMap::default(),
            thread_names: profile.threads.iter().map(name).collect(),
        };
        // Tools refuse files whose first string is not the empty one.
        writer.text("");
        writer
    }

    fn into_message(mut self) -> proto::Profile {
        self.add_meta();
        for weight in &self.profile.weights {
            let sample = self.sample(weight);
            self.message.sample.push(sample);
        }
        self.message
    }

    fn add_meta(&mut self) {
        let meta = &self.profile.meta;
        self.message.sample_type = sample_types::of_mode(meta.mode)
            .iter()
            .map(|&(name, unit)| self.value_type(name, unit))
            .collect();
        self.message.default_sample_type = self.text(meta.mode.name());
        // Some tools refuse profiles without a period.
        self.message.period_type = Some(self.value_type(meta.mode.name(), NANOSECONDS));
        self.message.period = 1_000_000_000 / i64::from(meta.frequency.max(1));
        self.message.time_nanos = signed(meta.start_time_ns);
        self.message.duration_nanos = signed(meta.duration_ns);
        self.message.comment = meta::comments(meta)
            .iter()
            .map(|comment| self.text(comment))
            .collect();
        self.message.doc_url = self.text(DOC_URL);
        let program = match meta.program.as_str() {
            "" => UNKNOWN_PROGRAM,
            program => program,
        };
        // Says that names are known, so that no tool looks for a binary.
        self.message.mapping = vec![proto::Mapping {
            id: MAPPING_ID,
            filename: self.text(program),
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
        }];
    }

    fn sample(&mut self, weight: &Weight) -> proto::Sample {
        let profile = self.profile;
        let stack = profile.display_stack(weight);
        proto::Sample {
            location_id: stack.map(|frame| self.location(frame)).collect(),
            value: values_of_mode(weight.values, profile.meta.mode),
            label: self.labels(weight),
        }
    }

    fn labels(&mut self, weight: &Weight) -> Vec<proto::Label> {
        let mut written = vec![proto::Label {
            key: self.text(labels::THREAD_SEQ),
            str: 0,
            num: i64::from(weight.thread),
            num_unit: self.text(labels::THREAD_SEQ_UNIT),
        }];
        match self.thread_names.get(&weight.thread).copied() {
            None | Some("") => {}
            Some(name) => written.push(self.label(labels::THREAD, name)),
        }
        if let Some((key, value)) = weight.state.tag() {
            written.push(self.label(key, value));
        }
        self.add_user_labels(weight.labels, &mut written);
        written
    }

    fn add_user_labels(&mut self, set: LabelSetId, written: &mut Vec<proto::Label>) {
        let strings = &self.profile.strings;
        for &(key, value) in self.profile.label_sets.get(set) {
            let key = escape_key(strings.get(key));
            written.push(self.label(&key, escape_value(strings.get(value))));
        }
    }

    fn label(&mut self, key: &str, value: &str) -> proto::Label {
        proto::Label {
            key: self.text(key),
            str: self.text(value),
            num: 0,
            num_unit: 0,
        }
    }

    fn location(&mut self, frame: DisplayFrame) -> u64 {
        if let Some(&id) = self.locations.get(&frame) {
            return id;
        }
        let text = self.profile.frame_text(frame);
        let function_id = self.function(text.name, text.path, text.first_line);
        let id = self.message.location.len() as u64 + 1;
        self.message.location.push(proto::Location {
            id,
            mapping_id: MAPPING_ID,
            address: 0,
            line: vec![proto::Line {
                function_id,
                line: i64::from(text.line),
            }],
        });
        self.locations.insert(frame, id);
        id
    }

    fn function(&mut self, name: &str, path: &str, first_line: u32) -> u64 {
        let (name, filename) = (self.text(name), self.text(path));
        let start_line = i64::from(first_line);
        let next = self.functions.len() as u64 + 1;
        let id = *self
            .functions
            .entry((name, filename, start_line))
            .or_insert(next);
        if id == next {
            self.message.function.push(proto::Function {
                id,
                name,
                // If it were the name, pprof would take that for C++ and cut
                // `<main>` out of `block in <main>`.
                system_name: 0,
                filename,
                start_line,
            });
        }
        id
    }

    fn value_type(&mut self, name: &str, unit: &str) -> proto::ValueType {
        proto::ValueType {
            r#type: self.text(name),
            unit: self.text(unit),
        }
    }

    fn text(&mut self, text: &str) -> i64 {
        if let Some(&id) = self.texts.get(text) {
            return id;
        }
        let id = self.message.string_table.len() as i64;
        self.message.string_table.push(text.into());
        self.texts.insert(text.to_string(), id);
        id
    }
}
