//! What tests and factories took, in our pprof files: in a field that pprof has no name for, so that
//! other readers pass over it. Called by the writer and the reader; any thread.

use crate::ReadError;
use prost::Message;
use rperf_model::{Suite, SuiteKey, SuiteKind, SuiteSums};

/// The field's number in the profile.
pub(crate) const FIELD: u32 = 1_004;

/// Bytes of all entries of a file. A [`Suite`] doesn't get there.
pub(crate) const MAX_BYTES: usize = 64 << 20;

/// An entry as a message.
#[derive(Clone, PartialEq, Message)]
struct Packed {
    /// The place in [`SuiteKind::ALL`].
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    group: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    title: String,
    #[prost(uint64, tag = "5")]
    count: u64,
    #[prost(uint64, tag = "6")]
    wall_nanos: u64,
    #[prost(uint64, tag = "7")]
    running_nanos: u64,
    #[prost(uint64, tag = "8")]
    gvl_wait_nanos: u64,
    #[prost(uint64, tag = "9")]
    blocked_nanos: u64,
    #[prost(uint64, tag = "10")]
    gc_nanos: u64,
    #[prost(uint64, tag = "11")]
    suspended_nanos: u64,
    #[prost(uint64, optional, tag = "12")]
    objects: Option<u64>,
    #[prost(uint64, tag = "13")]
    own_nanos: u64,
    #[prost(uint64, tag = "14")]
    top_level: u64,
}

/// The field with an entry, with its number in front.
pub(crate) fn encoded(key: &SuiteKey, sums: &SuiteSums) -> Vec<u8> {
    let message = Packed {
        kind: key.kind as u32,
        group: key.group.clone(),
        name: key.name.clone(),
        title: sums.title.clone(),
        count: sums.count,
        wall_nanos: sums.wall_ns,
        running_nanos: sums.running_ns,
        gvl_wait_nanos: sums.gvl_wait_ns,
        blocked_nanos: sums.blocked_ns,
        gc_nanos: sums.gc_ns,
        suspended_nanos: sums.suspended_ns,
        objects: sums.objects,
        own_nanos: sums.own_ns,
        top_level: sums.top_level,
    };
    let mut bytes = Vec::new();
    prost::encoding::message::encode(FIELD, &message, &mut bytes);
    bytes
}

/// All entries of a file. A kind that we don't know is a later version's.
pub(crate) fn decoded(fields: &[&[u8]]) -> Result<Suite, ReadError> {
    let mut suite = Suite::default();
    for field in fields {
        let message = Packed::decode(*field)?;
        if message.count == 0 {
            // Nothing has run.
            continue;
        }
        let Some(&kind) = SuiteKind::ALL.get(message.kind as usize) else {
            continue;
        };
        let key = SuiteKey {
            kind,
            group: message.group,
            name: message.name,
        };
        let sums = SuiteSums {
            title: message.title,
            count: message.count,
            wall_ns: message.wall_nanos,
            running_ns: message.running_nanos,
            gvl_wait_ns: message.gvl_wait_nanos,
            blocked_ns: message.blocked_nanos,
            gc_ns: message.gc_nanos,
            suspended_ns: message.suspended_nanos,
            objects: message.objects,
            own_ns: message.own_nanos,
            top_level: message.top_level,
        };
        suite.add(key, &sums);
    }
    Ok(suite)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Profile;
    use rperf_model::test_profile::TestProfile;

    fn entry(kind: SuiteKind, name: &str, objects: Option<u64>) -> (SuiteKey, SuiteSums) {
        let key = SuiteKey {
            kind,
            group: "spec/a_spec.rb".into(),
            name: name.into(),
        };
        let sums = SuiteSums {
            title: "adds".into(),
            count: 1,
            wall_ns: 2,
            running_ns: 3,
            gvl_wait_ns: 4,
            blocked_ns: 5,
            gc_ns: 6,
            suspended_ns: 7,
            objects,
            own_ns: 8,
            top_level: u64::MAX,
        };
        (key, sums)
    }

    fn profile() -> Profile {
        let mut profile = TestProfile::wall().profile;
        for (place, kind) in SuiteKind::ALL.into_iter().enumerate() {
            let objects = (place != 1).then_some(place as u64);
            let (key, sums) = entry(kind, "spec/a_spec.rb[1:1]", objects);
            profile.suite.add(key, &sums);
        }
        profile
    }

    #[test]
    fn what_is_written_is_read_again() {
        let profile = profile();
        let mut bytes = Vec::new();
        crate::pprof::write(&profile, &mut bytes).expect("written");
        let read = crate::pprof::read(&mut &bytes[..]).expect("a profile");
        assert_eq!(read.suite, profile.suite);
        assert_eq!(read.suite.len(), 3);
    }

    #[test]
    fn the_largest_suite_is_read_again() {
        let (_, mut sums) = entry(SuiteKind::Example, "", Some(u64::MAX));
        sums.title = "t".repeat(50);
        for number in [
            &mut sums.count,
            &mut sums.wall_ns,
            &mut sums.running_ns,
            &mut sums.gvl_wait_ns,
            &mut sums.blocked_ns,
            &mut sums.gc_ns,
            &mut sums.suspended_ns,
            &mut sums.own_ns,
        ] {
            *number = u64::MAX;
        }
        let mut suite = Suite::default();
        let mut add = |group: String, name: String| {
            let kind = SuiteKind::Example;
            suite.add(SuiteKey { kind, group, name }, &sums);
        };
        for number in 0..Suite::MOST {
            add("g".repeat(50), format!("{number:050}"));
        }
        for number in 0..6_000 {
            add(format!("{number:05000}"), "a".repeat(512));
        }
        let encoded = suite.iter().map(|(key, sums)| encoded(key, sums).len());
        let bytes: usize = encoded.sum();
        assert!((MAX_BYTES / 2..MAX_BYTES).contains(&bytes), "{bytes}");
    }

    #[test]
    fn kinds_of_later_versions_and_rows_without_runs_are_passed_over_and_damage_is_told() {
        let row = |kind, count, name: &str| {
            let row = Packed {
                kind,
                count,
                name: name.into(),
                ..Packed::default()
            };
            row.encode_to_vec()
        };
        let rows = [row(0, 1, "a"), row(9, 1, "b"), row(0, 0, "c")];
        let read = decoded(&rows.each_ref().map(|it| &**it)).expect("entries");
        let names: Vec<_> = read.iter().map(|(key, _)| &*key.name).collect();
        assert_eq!(names, ["a"]);
        assert!(decoded(&[&[0xff]]).is_err());
    }
}
