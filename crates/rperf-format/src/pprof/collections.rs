//! What collections took, in our pprof files: in a field that pprof has no name for, so that other readers
//! pass over it. Called by the writer and the reader; any thread.

use crate::ReadError;
use prost::Message;
use rperf_model::{CollectionSums, Collections, GcCause, Histogram};

/// The field's number in the profile.
pub(crate) const FIELD: u32 = 1_006;

/// Entries of a file. There are fewer causes, but later versions may know more.
pub(crate) const MOST: usize = 64;

/// The collections of a cause as a message.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    /// The cause's name.
    #[prost(string, tag = "1")]
    cause: String,
    #[prost(uint64, tag = "2")]
    count: u64,
    #[prost(uint64, tag = "3")]
    wall_nanos: u64,
    #[prost(uint64, tag = "4")]
    marking_nanos: u64,
    #[prost(uint64, tag = "5")]
    cpu_nanos: u64,
    /// The longest pause, the buckets that have pauses, and how many.
    #[prost(uint64, tag = "6")]
    max_nanos: u64,
    #[prost(uint32, repeated, tag = "7")]
    bucket: Vec<u32>,
    #[prost(uint64, repeated, tag = "8")]
    pauses: Vec<u64>,
}

/// The field with the collections of a cause, with its number in front.
pub(crate) fn encoded(cause: GcCause, sums: &CollectionSums) -> Vec<u8> {
    let buckets = sums.pauses.buckets();
    let (bucket, pauses) = buckets
        .map(|(number, pauses)| (number as u32, pauses))
        .unzip();
    let message = Packed {
        cause: cause.name().into(),
        count: sums.count,
        wall_nanos: sums.wall_ns,
        marking_nanos: sums.marking_ns,
        cpu_nanos: sums.cpu_ns,
        max_nanos: sums.pauses.max(),
        bucket,
        pauses,
    };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(FIELD, &message, &mut bytes);
    bytes
}

/// All entries of a file. A cause that isn't known here is another one.
pub(crate) fn decoded(fields: &[&[u8]]) -> Result<Collections, ReadError> {
    let mut collections = Collections::default();
    for field in fields {
        let message = Packed::decode(*field)?;
        if message.bucket.len() != message.pauses.len() {
            return Err(ReadError::damaged("the pauses of collections lack numbers"));
        }
        let buckets = message.bucket.iter().map(|number| *number as usize);
        let buckets = buckets.zip(message.pauses.iter().copied());
        let pauses = Histogram::of_buckets(buckets, message.max_nanos)
            .ok_or_else(|| ReadError::damaged("collections of a duration that can't be"))?;
        let sums = CollectionSums {
            count: message.count,
            wall_ns: message.wall_nanos,
            marking_ns: message.marking_nanos,
            cpu_ns: message.cpu_nanos,
            pauses,
        };
        let cause = GcCause::from_name(&message.cause).unwrap_or(GcCause::Other);
        collections.add(cause, &sums);
    }
    Ok(collections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_profile::TestProfile;

    fn took(pauses: &[u64]) -> CollectionSums {
        let mut sums = CollectionSums {
            count: 1,
            marking_ns: 3,
            cpu_ns: u64::MAX,
            ..CollectionSums::default()
        };
        for &pause in pauses {
            sums.wall_ns += pause;
            sums.pauses.add(pause);
        }
        sums
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut profile = TestProfile::wall().profile;
        for cause in GcCause::ALL {
            profile
                .collections
                .add(cause, &took(&[5, 5, 1_000_000, cause as u64]));
        }
        let mut bytes = Vec::new();
        crate::pprof::write(&profile, &mut bytes).expect("written");
        let read = crate::pprof::read(&mut &bytes[..]).expect("a profile");
        assert_eq!(read.collections, profile.collections);
        assert_eq!(read.collections.iter().count(), GcCause::ALL.len());
    }

    #[test]
    fn damage_is_told_and_causes_of_later_versions_are_other_ones() {
        let whole = Packed {
            cause: "major by moonlight".into(),
            count: 1,
            bucket: vec![1],
            pauses: vec![2],
            ..Packed::default()
        };
        let read = decoded(&[&whole.encode_to_vec()]).expect("an entry");
        let found: Vec<_> = read.iter().map(|it| (it.0, it.1.pauses.count())).collect();
        assert_eq!(found, [(GcCause::Other, 2)]);
        let damaged = [
            Packed {
                pauses: vec![],
                ..whole.clone()
            },
            Packed {
                bucket: vec![u32::MAX],
                ..whole
            },
        ];
        for message in damaged {
            assert!(decoded(&[&message.encode_to_vec()]).is_err());
        }
    }
}
