//! How long calls took, in our pprof files: in a field that pprof has no name for, so that other
//! readers pass over it. Called by the writer and the reader; any thread.

use crate::ReadError;
use prost::Message;
use rperf_model::{Histogram, Latencies};

/// The field's number in the profile.
pub(crate) const FIELD: u32 = 1_002;

/// A method's calls as a message.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    path: String,
    #[prost(uint64, tag = "3")]
    max_nanos: u64,
    /// The buckets that have calls, and how many.
    #[prost(uint32, repeated, tag = "4")]
    bucket: Vec<u32>,
    #[prost(uint64, repeated, tag = "5")]
    calls: Vec<u64>,
}

/// The field with a method's calls, with its number in front.
pub(crate) fn encoded(latencies: &Latencies) -> Vec<u8> {
    let Latencies {
        name,
        path,
        durations,
    } = latencies;
    let (bucket, calls) = durations
        .buckets()
        .map(|(number, calls)| (number as u32, calls))
        .unzip();
    let message = Packed {
        name: name.clone(),
        path: path.clone(),
        max_nanos: durations.max(),
        bucket,
        calls,
    };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(FIELD, &message, &mut bytes);
    bytes
}

/// The calls in a field's content.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Latencies, ReadError> {
    let message = Packed::decode(bytes)?;
    if message.bucket.len() != message.calls.len() {
        return Err(ReadError::damaged("the durations of calls lack numbers"));
    }
    let numbers = message.bucket.iter().map(|number| *number as usize);
    let buckets = numbers.zip(message.calls.iter().copied());
    let durations = Histogram::of_buckets(buckets, message.max_nanos);
    Ok(Latencies {
        name: message.name,
        path: message.path,
        durations: durations
            .ok_or_else(|| ReadError::damaged("calls of a duration that can't be"))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(of: &Packed) -> Vec<u8> {
        of.encode_to_vec()
    }

    #[test]
    fn what_is_written_is_read_again_and_damage_is_told() {
        let mut durations = Histogram::default();
        for ns in [1, 5, 5, 1_000_000] {
            durations.add(ns);
        }
        let latencies = Latencies {
            name: "Cart#total".into(),
            path: "cart.rb".into(),
            durations,
        };
        let field = encoded(&latencies);
        // Two bytes of number and kind, and one of length.
        assert_eq!(decoded(&field[3..]).expect("a field"), latencies);
        let lacking = Packed {
            bucket: vec![1],
            ..Packed::default()
        };
        assert!(decoded(&content(&lacking)).is_err());
        let beyond = Packed {
            bucket: vec![u32::MAX],
            calls: vec![1],
            ..Packed::default()
        };
        assert!(decoded(&content(&beyond)).is_err());
    }
}
