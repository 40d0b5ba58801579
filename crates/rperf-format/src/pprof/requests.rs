//! Requests and jobs by endpoint and class, in our pprof files: in a field that pprof has no name for,
//! so that other readers pass over it. Called by the writer and the reader; any thread.

use crate::ReadError;
use prost::Message;
use rperf_model::{
    LatencyClass, Quantiles, RequestId, RequestSums, RequestValues, Requests, Slowest,
};

/// The field's number in the profile.
pub(crate) const FIELD: u32 = 1_003;

/// How many numbers a class has: its counts, and then its sums.
const OF_CLASS: usize = 10;
/// How many one of the slowest has: its end, and then its values.
const OF_SLOWEST: usize = 9;

/// The requests of an endpoint as a message.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(uint64, tag = "3")]
    wall_nanos: u64,
    #[prost(uint64, tag = "4")]
    max_nanos: u64,
    /// The buckets that have requests, and how many.
    #[prost(uint32, repeated, tag = "5")]
    bucket: Vec<u32>,
    #[prost(uint32, repeated, tag = "6")]
    requests: Vec<u32>,
    /// So many numbers for each class in turn.
    #[prost(uint64, repeated, tag = "7")]
    classes: Vec<u64>,
    /// So many for each of the slowest.
    #[prost(uint64, repeated, tag = "8")]
    slowest: Vec<u64>,
    /// Which ones these are: the word of the session in the upper half, and the number there. Earlier versions have
    /// written none.
    #[prost(uint64, repeated, tag = "9")]
    ids: Vec<u64>,
    /// How many of each class filters have left; none: all. Earlier versions have written none.
    #[prost(uint64, repeated, tag = "10")]
    left: Vec<u64>,
}

/// The field with the requests of an endpoint, with its number in front.
pub(crate) fn encoded(of: &Requests) -> Vec<u8> {
    let (bucket, requests) = of
        .walls
        .buckets()
        .map(|(number, requests)| (number as u32, requests))
        .unzip();
    let class = |it: &RequestSums| {
        let mut numbers = vec![it.count, it.alone];
        numbers.extend(it.sums.numbers());
        numbers
    };
    let slow = |it: &Slowest| {
        let mut numbers = vec![it.ended_ns];
        numbers.extend(it.values.numbers());
        numbers
    };
    let id = |it: &Slowest| u64::from(it.id.session) << 32 | u64::from(it.id.number);
    let message = Packed {
        key: of.key.clone(),
        name: of.name.clone(),
        wall_nanos: of.walls.sum(),
        max_nanos: of.walls.max(),
        bucket,
        requests,
        classes: of.classes.iter().flat_map(class).collect(),
        slowest: of.slowest.iter().flat_map(slow).collect(),
        ids: of.slowest.iter().map(id).collect(),
        left: of.left.into_iter().flatten().collect(),
    };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(FIELD, &message, &mut bytes);
    bytes
}

/// The requests in a field's content.
pub(crate) fn decoded(bytes: &[u8]) -> Result<Requests, ReadError> {
    let message = Packed::decode(bytes)?;
    let is_whole = message.bucket.len() == message.requests.len()
        && message.classes.len() == OF_CLASS * LatencyClass::ENDED
        && message.slowest.len().is_multiple_of(OF_SLOWEST)
        && message.slowest.len() <= OF_SLOWEST * Requests::SLOWEST
        && message.ids.len() <= message.slowest.len() / OF_SLOWEST
        && (message.left.is_empty() || message.left.len() == LatencyClass::ENDED);
    if !is_whole {
        return Err(ReadError::damaged(
            "the requests of an endpoint lack numbers",
        ));
    }
    let numbers = message.bucket.iter().map(|number| *number as usize);
    let buckets = numbers.zip(message.requests.iter().copied());
    let walls = Quantiles::of_buckets(buckets, message.wall_nanos, message.max_nanos);
    let mut requests = Requests::new(&message.key, &message.name);
    requests.walls =
        walls.ok_or_else(|| ReadError::damaged("requests of a duration that can't be"))?;
    let of_classes = message.classes.chunks_exact(OF_CLASS);
    for (class, numbers) in requests.classes.iter_mut().zip(of_classes) {
        *class = RequestSums {
            count: numbers[0],
            alone: numbers[1],
            sums: values(&numbers[2..]),
        };
    }
    requests.left = message.left.try_into().ok();
    let slowest = message.slowest.chunks_exact(OF_SLOWEST);
    let ids = message.ids.into_iter().chain(std::iter::repeat(0));
    requests.slowest = slowest
        .zip(ids)
        .map(|(numbers, id)| Slowest {
            id: RequestId {
                session: (id >> 32) as u32,
                number: id as u32,
            },
            ended_ns: numbers[0],
            values: values(&numbers[1..]),
        })
        .collect();
    Ok(requests)
}

fn values(numbers: &[u64]) -> RequestValues {
    let mut all = [0; OF_CLASS - 2];
    all.copy_from_slice(numbers);
    RequestValues::of(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_damage_is_told() {
        let mut requests = Requests::new("endpoint", "GET /orders/:id");
        for wall in [1, 5, 5, 1_000_000] {
            let values = RequestValues {
                wall,
                objects: 3,
                ..RequestValues::default()
            };
            let request = Slowest {
                id: RequestId {
                    session: u32::MAX,
                    number: wall as u32,
                },
                ended_ns: 7,
                values,
            };
            requests.add(LatencyClass::Tail, request, wall > 1);
        }
        let field = encoded(&requests);
        // Two bytes of number and kind, and two of length.
        assert_eq!(decoded(&field[4..]).expect("a field"), requests);
        let filtered = Requests {
            left: Some([0, 1, 0, 0, 2]),
            ..requests.clone()
        };
        assert_eq!(
            decoded(&encoded(&filtered)[4..]).expect("a field"),
            filtered
        );
        let whole = Packed::decode(&field[4..]).expect("a message");
        let earlier = Packed {
            ids: Vec::new(),
            ..whole.clone()
        };
        let earlier = decoded(&earlier.encode_to_vec()).expect("a message");
        assert!(earlier.slowest.iter().all(|it| !it.id.is_known()));
        for damaged in [
            Packed {
                left: vec![1],
                ..whole.clone()
            },
            Packed {
                requests: vec![1],
                ..whole.clone()
            },
            Packed {
                classes: vec![0; OF_CLASS],
                ..whole.clone()
            },
            Packed {
                slowest: vec![0; OF_SLOWEST + 1],
                ..whole.clone()
            },
            Packed {
                slowest: vec![0; OF_SLOWEST * (Requests::SLOWEST + 1)],
                ..whole.clone()
            },
            Packed {
                ids: vec![1; 5],
                ..whole.clone()
            },
            Packed {
                bucket: vec![u32::MAX],
                requests: vec![1],
                ..whole.clone()
            },
        ] {
            assert!(decoded(&damaged.encode_to_vec()).is_err());
        }
    }
}
