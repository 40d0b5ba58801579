//! The writer of pprof profiles. Called by `format::write`; any thread.

mod samples;
mod tables;

use super::value_types;
use super::{collections, latencies, meta, ops, proto, requests, suite, time_lines};
use crate::FormatError;
use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rperf_model::numbers::signed;
use rperf_model::{Profile, ValueType};
use samples::Samples;
use std::io::Write;
use std::mem;
use tables::{MAPPING_ID, Tables};

/// Where a profile's reader finds out about rperf. Tools pass over what is not an
/// absolute URL.
const DOC_URL: &str = "https://github.com/rperf-rb/rperf#readme";

/// What the program is called if nobody has said: tools ask for its file otherwise.
const UNKNOWN_PROGRAM: &str = "ruby";

/// The program being profiled may wait for it: level 6 takes half as long again, for
/// files that are some 5 % smaller.
const COMPRESSION: Compression = Compression::new(3);

/// Bytes that are compressed at a time.
const CHUNK: usize = 64 << 10;

/// Writes `profile`, gzip'd.
///
/// A message may come in pieces, one after the other: the samples, by far the most of
/// it, are compressed as they are made.
pub fn write(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let mut encoder = GzEncoder::new(output, COMPRESSION);
    let mut tables = Tables::new(profile);
    let mut message = without_samples(profile, &mut tables);
    // In front of the samples, since fields are best in order.
    let sample_types = proto::Profile {
        sample_type: mem::take(&mut message.sample_type),
        ..proto::Profile::default()
    };
    let mut chunk = sample_types.encode_to_vec();
    let mut samples = Samples::new(profile);
    for weight in profile.weights.iter() {
        samples.append(weight, &mut tables, &mut chunk);
        if chunk.len() >= CHUNK {
            encoder.write_all(&chunk)?;
            chunk.clear();
        }
    }
    encoder.write_all(&chunk)?;
    tables.move_into(&mut message);
    encoder.write_all(&message.encode_to_vec())?;
    for line in &profile.time_lines {
        encoder.write_all(&time_lines::encoded(line))?;
    }
    for method in &profile.latencies {
        encoder.write_all(&latencies::encoded(method))?;
    }
    for (key, sums) in profile.suite.iter() {
        encoder.write_all(&suite::encoded(key, sums))?;
    }
    for (key, sums) in profile.ops.iter() {
        encoder.write_all(&ops::encoded(key, sums))?;
    }
    for (cause, sums) in profile.collections.iter() {
        encoder.write_all(&collections::encoded(cause, sums))?;
    }
    for of_endpoint in &profile.requests {
        encoder.write_all(&requests::encoded(of_endpoint))?;
    }
    encoder.finish()?.flush()?;
    Ok(())
}

/// All that is not a sample and that samples don't lead to.
fn without_samples(profile: &Profile, tables: &mut Tables<'_>) -> proto::Profile {
    let Profile { meta, schema, .. } = profile;
    let sample_type = schema
        .types()
        .iter()
        .map(|sample_type| value_type(tables, sample_type))
        .collect();
    let default_sample_type = tables.text(value_types::default_name(schema));
    let period = value_types::period(meta, schema);
    let comments = meta::comments(meta, schema);
    let comment = comments
        .iter()
        .map(|comment| tables.text(comment))
        .collect();
    let doc_url = tables.text(DOC_URL);
    let program = match meta.program.as_str() {
        "" => UNKNOWN_PROGRAM,
        program => program,
    };
    // Says that names are known, so that no tool looks for a binary.
    let mapping = proto::Mapping {
        id: MAPPING_ID,
        filename: tables.text(program),
        has_functions: true,
        has_filenames: true,
        has_line_numbers: true,
    };
    proto::Profile {
        sample_type,
        mapping: vec![mapping],
        time_nanos: signed(meta.start_time_ns),
        duration_nanos: signed(meta.duration_ns),
        period_type: period
            .as_ref()
            .map(|period| value_type(tables, &period.value_type)),
        period: period.as_ref().map_or(0, |period| period.value),
        comment,
        default_sample_type,
        doc_url,
        ..proto::Profile::default()
    }
}

fn value_type(tables: &mut Tables<'_>, value_type: &ValueType) -> proto::ValueType {
    proto::ValueType {
        r#type: tables.text(&value_type.name),
        unit: tables.text(&value_type.unit),
    }
}
