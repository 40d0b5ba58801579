//! A profile as Pyroscope's push API takes it: `push.v1.PushRequest` with a pprof file in it, for
//! `/push.v1.PusherService/Push`. Used by the command; any thread.
//!
//! Pyroscope makes a series of each set of labels that samples have, and refuses the whole profile
//! for one key that it doesn't like. So the samples keep the labels of the program alone, under
//! names that it takes: threads, states and processes are told apart by the stacks only.

use super::proto::{Label, Profile as File, Sample};
use super::write;
use crate::FormatError;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use prost::Message;
use rperf_model::label_keys::{THREAD, THREAD_SEQ};
use rperf_model::{OwnColumn, Profile};
use std::collections::HashMap;
use std::io::{self, Read, Write};

/// Where it goes to.
pub const PATH: &str = "/push.v1.PusherService/Push";

/// What the body is.
pub const CONTENT_TYPE: &str = "application/proto";

/// Bytes of a label's value that Pyroscope takes.
const MAX_VALUE: usize = 1024;

#[derive(Clone, PartialEq, Message)]
struct PushRequest {
    #[prost(message, repeated, tag = "1")]
    series: Vec<Series>,
}

#[derive(Clone, PartialEq, Message)]
struct Series {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<RawSample>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelPair {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct RawSample {
    #[prost(bytes = "vec", tag = "1")]
    raw_profile: Vec<u8>,
    #[prost(string, tag = "2")]
    id: String,
}

/// The body of a request: one profile, whose series has these `labels`; `id` is a UUID.
pub fn request(
    profile: &Profile,
    labels: &[(String, String)],
    id: &str,
) -> Result<Vec<u8>, FormatError> {
    let name = match profile.schema.default_own() {
        Some(OwnColumn::Cpu) => "process_cpu",
        _ => &profile.schema.default_type().name,
    };
    let own = [("__name__".to_string(), name.to_string())];
    let pairs = own.iter().chain(labels);
    let series = Series {
        labels: pairs
            .map(|(name, value)| LabelPair {
                name: name.clone(),
                value: value.clone(),
            })
            .collect(),
        samples: vec![RawSample {
            raw_profile: file(profile)?,
            id: id.into(),
        }],
    };
    let series = vec![series];
    Ok(PushRequest { series }.encode_to_vec())
}

/// Whether a label may be called so.
pub fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    let is_first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    bytes.next().is_some_and(is_first) && bytes.all(|it| is_first(it) || it.is_ascii_digit())
}

fn file(profile: &Profile) -> Result<Vec<u8>, FormatError> {
    let mut content = Vec::new();
    write(profile, &mut content)?;
    let mut plain = Vec::new();
    GzDecoder::new(content.as_slice()).read_to_end(&mut plain)?;
    let own = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let mut message = File::decode(plain.as_slice()).map_err(own)?;
    let mut names = Names::default();
    for bytes in &mut message.sample {
        let mut sample = Sample::decode(bytes.clone()).map_err(own)?;
        let texts = &mut message.string_table;
        sample.label = names.of(&sample.label, texts);
        *bytes = sample.encode_to_vec().into();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&message.encode_to_vec())?;
    Ok(encoder.finish()?)
}

/// The keys that labels have there, by those that they have here; `None` for those that go.
#[derive(Default)]
struct Names(HashMap<i64, Option<i64>>);

impl Names {
    fn of(&mut self, labels: &[Label], texts: &mut Vec<Vec<u8>>) -> Vec<Label> {
        let mut kept: Vec<Label> = Vec::new();
        for label in labels.iter().filter(|label| label.str > 0) {
            let value = texts.get(label.str as usize).map_or(0, Vec::len);
            let key = *self
                .0
                .entry(label.key)
                .or_insert_with(|| renamed(label.key, texts));
            // Two keys may have become one.
            let is_new = |key: i64| kept.iter().all(|it| it.key != key);
            if let Some(key) = key.filter(|&key| value <= MAX_VALUE && is_new(key)) {
                kept.push(Label { key, ..*label });
            }
        }
        kept
    }
}

fn renamed(key: i64, texts: &mut Vec<Vec<u8>>) -> Option<i64> {
    let text = String::from_utf8_lossy(texts.get(usize::try_from(key).ok()?)?).into_owned();
    if text.starts_with('%') || text == THREAD || text == THREAD_SEQ {
        return None;
    }
    if is_name(&text) {
        return Some(key);
    }
    let fit = |it: char| if it.is_ascii_alphanumeric() { it } else { '_' };
    let mut name: String = text.chars().map(fit).collect();
    if !is_name(&name) {
        name.insert(0, '_');
    }
    let place = texts.iter().position(|it| *it == name.as_bytes());
    let place = place.unwrap_or_else(|| {
        texts.push(name.into());
        texts.len() - 1
    });
    i64::try_from(place).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pprof::read;
    use rperf_model::test_support::RandomWalk;

    #[test]
    fn it_has_the_envelope_and_the_whole_profile() {
        let walk = RandomWalk {
            weights: 500,
            depth: 20,
            threads: 3,
            requests: 4,
        };
        let profile = walk.profile();
        let labels = [("service_name".to_string(), "shop".to_string())];
        let body = request(&profile, &labels, "id").expect("made");
        let found = PushRequest::decode(body.as_slice()).expect("a request");
        let [series] = &*found.series else {
            panic!("one series")
        };
        let pairs = series.labels.iter();
        let pairs: Vec<_> = pairs.map(|it| (&*it.name, &*it.value)).collect();
        assert_eq!(pairs, [("__name__", "wall"), ("service_name", "shop")]);
        let [sample] = &*series.samples else {
            panic!("one sample")
        };
        assert_eq!(sample.id, "id");
        let sent = read(&mut sample.raw_profile.as_slice()).expect("a profile");
        let sum = |profile: &Profile| -> i64 {
            let rows = profile.weights.iter();
            rows.map(|row| row.values.iter().sum::<i64>()).sum()
        };
        assert_eq!(sum(&sent), sum(&profile));
        let labelled = |profile: &Profile| profile.weights.iter().any(|row| row.key.labels.0 > 0);
        assert!(sent.threads.len() < profile.threads.len() && labelled(&sent));
    }

    #[test]
    fn samples_keep_the_programs_labels_under_names_that_it_takes() {
        let mut names = Names::default();
        let mut texts: Vec<Vec<u8>> = [
            "", "v", "endpoint", "%pid", "thread", "a.b", "a_b", "9x", "größe",
        ]
        .map(|text| text.as_bytes().to_vec())
        .into();
        let label = |key, str| Label {
            key,
            str,
            num: 0,
            num_unit: 0,
        };
        let kept = names.of(
            &[
                label(2, 1),
                label(3, 1),
                label(4, 1),
                label(5, 1),
                label(6, 1),
                label(7, 1),
                label(8, 1),
                label(2, 0),
            ],
            &mut texts,
        );
        let kept = kept.iter().map(|it| texts[it.key as usize].clone());
        let kept: Vec<_> = kept
            .map(|it| String::from_utf8(it).expect("text"))
            .collect();
        assert_eq!(kept, ["endpoint", "a_b", "_9x", "gr__e"]);
        let long = vec![b'x'; MAX_VALUE + 1];
        texts.push(long);
        let place = texts.len() as i64 - 1;
        assert_eq!(names.of(&[label(2, place)], &mut texts), []);
    }
}
