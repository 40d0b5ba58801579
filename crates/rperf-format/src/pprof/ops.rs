//! What ops took, in our pprof files: in a field that pprof has no name for, so that other readers pass
//! over it. Called by the writer and the reader; any thread.

use crate::ReadError;
use prost::Message;
use rperf_model::{LatencyClass, OpCalls, OpKey, OpSums, Ops, Quantiles};

/// The field's number in the profile.
pub(crate) const FIELD: u32 = 1_005;

/// Bytes of all entries of a file.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// An entry as a message.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    endpoint: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(uint64, tag = "4")]
    calls: u64,
    #[prost(uint64, tag = "5")]
    wall_nanos: u64,
    #[prost(uint64, tag = "6")]
    running_nanos: u64,
    #[prost(uint64, tag = "7")]
    gvl_wait_nanos: u64,
    #[prost(uint64, tag = "8")]
    blocked_nanos: u64,
    #[prost(uint64, tag = "9")]
    gc_nanos: u64,
    #[prost(uint64, tag = "10")]
    suspended_nanos: u64,
    #[prost(uint64, optional, tag = "11")]
    objects: Option<u64>,
    #[prost(uint64, tag = "12")]
    requests: u64,
    #[prost(uint64, tag = "13")]
    repeated: u64,
    /// The longest time for which a call was blocked, the buckets that have calls, and how many.
    #[prost(uint64, tag = "14")]
    max_nanos: u64,
    #[prost(uint32, repeated, tag = "15")]
    bucket: Vec<u32>,
    #[prost(uint32, repeated, tag = "16")]
    in_bucket: Vec<u32>,
    /// Calls and wall time of each class in turn; nothing where there are no requests.
    #[prost(uint64, repeated, tag = "17")]
    classes: Vec<u64>,
    #[prost(uint64, tag = "18")]
    displaced: u64,
}

/// The field with an entry, with its number in front.
pub(crate) fn encoded(key: &OpKey, sums: &OpSums) -> Vec<u8> {
    let buckets = sums.blocked.buckets();
    let (bucket, in_bucket) = buckets
        .map(|(number, calls)| (number as u32, calls))
        .unzip();
    let classes = sums.classes.iter().flat_map(|it| [it.calls, it.wall_ns]);
    let message = Packed {
        key: key.key.clone(),
        endpoint: key.endpoint.clone(),
        name: key.name.clone(),
        calls: sums.calls,
        wall_nanos: sums.wall_ns,
        running_nanos: sums.running_ns,
        gvl_wait_nanos: sums.gvl_wait_ns,
        blocked_nanos: sums.blocked_ns,
        gc_nanos: sums.gc_ns,
        suspended_nanos: sums.suspended_ns,
        objects: sums.objects,
        requests: sums.requests,
        repeated: sums.repeated,
        max_nanos: sums.blocked.max(),
        bucket,
        in_bucket,
        classes: match sums.requests {
            0 => Vec::new(),
            _ => classes.collect(),
        },
        displaced: sums.displaced,
    };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(FIELD, &message, &mut bytes);
    bytes
}

/// All entries of a file.
pub(crate) fn decoded(fields: &[&[u8]]) -> Result<Ops, ReadError> {
    let mut ops = Ops::default();
    for field in fields {
        let message = Packed::decode(*field)?;
        let has_classes = message.classes.len() == 2 * LatencyClass::ENDED;
        if message.bucket.len() != message.in_bucket.len()
            || !(has_classes || message.classes.is_empty())
        {
            return Err(ReadError::damaged("an op's numbers don't belong together"));
        }
        let buckets = message.bucket.iter().map(|&it| it as usize);
        let buckets = buckets.zip(message.in_bucket.iter().copied());
        let blocked = Quantiles::of_buckets(buckets, message.blocked_nanos, message.max_nanos)
            .ok_or_else(|| {
                ReadError::damaged("an op's calls were blocked for a time that can't be")
            })?;
        let mut sums = OpSums {
            calls: message.calls,
            wall_ns: message.wall_nanos,
            running_ns: message.running_nanos,
            gvl_wait_ns: message.gvl_wait_nanos,
            blocked_ns: message.blocked_nanos,
            gc_ns: message.gc_nanos,
            suspended_ns: message.suspended_nanos,
            objects: message.objects,
            blocked,
            requests: message.requests,
            repeated: message.repeated,
            displaced: message.displaced,
            ..OpSums::default()
        };
        for (class, numbers) in sums.classes.iter_mut().zip(message.classes.chunks_exact(2)) {
            *class = OpCalls {
                calls: numbers[0],
                wall_ns: numbers[1],
            };
        }
        let key = OpKey {
            key: message.key,
            endpoint: message.endpoint,
            name: message.name,
        };
        ops.add(key, &sums);
    }
    Ok(ops)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_profile::TestProfile;

    fn entry(endpoint: &str, objects: Option<u64>) -> (OpKey, OpSums) {
        let key = OpKey {
            key: "endpoint".into(),
            endpoint: endpoint.into(),
            name: "[SQL] SELECT ?".into(),
        };
        let mut sums = OpSums {
            calls: 1,
            wall_ns: 2,
            running_ns: 3,
            gvl_wait_ns: 4,
            blocked_ns: 5,
            gc_ns: 6,
            suspended_ns: 7,
            objects,
            requests: 8,
            repeated: 9,
            displaced: 10,
            ..OpSums::default()
        };
        sums.blocked.add(5);
        sums.classes[2] = OpCalls {
            calls: 1,
            wall_ns: u64::MAX,
        };
        (key, sums)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut profile = TestProfile::wall().profile;
        for (endpoint, objects) in [("/a", Some(0)), ("/b", None)] {
            let (key, sums) = entry(endpoint, objects);
            profile.ops.add(key, &sums);
        }
        let mut bytes = Vec::new();
        crate::pprof::write(&profile, &mut bytes).expect("written");
        let read = crate::pprof::read(&mut &bytes[..]).expect("a profile");
        assert_eq!((&read.ops, read.ops.len()), (&profile.ops, 2));
    }

    #[test]
    fn damage_is_told() {
        let (key, sums) = entry("/a", None);
        let field = encoded(&key, &sums);
        // Two bytes of number and kind, and one of length.
        let whole = Packed::decode(&field[3..]).expect("a message");
        let damaged = [
            Packed {
                in_bucket: vec![],
                ..whole.clone()
            },
            Packed {
                bucket: vec![u32::MAX],
                ..whole.clone()
            },
            Packed {
                classes: vec![1],
                ..whole.clone()
            },
        ];
        for message in damaged {
            assert!(decoded(&[&message.encode_to_vec()]).is_err());
        }
        assert!(decoded(&[&whole.encode_to_vec()]).is_ok());
    }
}
