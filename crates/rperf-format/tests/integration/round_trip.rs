//! Our own pprof files read back: the same profile, but for ids.

use crate::profiles;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use rperf_format::pprof;
use rperf_model::test_support::{RandomWalk, cpu_schema, wall_schema};
use rperf_model::{FrameText, Profile, State};
use std::collections::BTreeMap;
use std::io::Read;

/// Weights with texts in place of ids.
type Rows = BTreeMap<(Vec<Text>, u32, String, Vec<(String, String)>, State), Vec<i64>>;
type Text = (String, String, u32, u32);

fn rows(profile: &Profile) -> Rows {
    let text = |id| profile.strings.get(id).to_string();
    let mut rows = Rows::new();
    for weight in profile.weights.iter() {
        let row = weight.key;
        // The stack of the tree, without what is put on for display.
        let nodes = profile.tree.stack(row.node);
        let stack = nodes
            .map(|node| {
                let FrameText {
                    name,
                    path,
                    first_line,
                    line,
                } = profile.frame_text(node.into());
                (name.to_string(), path.to_string(), first_line, line)
            })
            .collect();
        let thread = profile
            .threads
            .iter()
            .find(|thread| thread.seq == row.thread);
        let thread_name = thread.map_or(String::new(), |row| text(row.name));
        let labels = profile.label_sets.get(row.labels).iter();
        let labels = labels
            .map(|&(key, value)| (text(key), text(value)))
            .collect();
        let key = (stack, row.thread, thread_name, labels, row.state);
        let earlier = rows.insert(key, weight.values.to_vec());
        assert_eq!(earlier, None, "each row once");
    }
    rows
}

fn assert_comes_back(profile: &Profile) {
    let mut zipped = Vec::new();
    pprof::write(profile, &mut zipped).expect("memory takes everything");
    let mut plain = Vec::new();
    let mut decoder = GzDecoder::new(zipped.as_slice());
    decoder.read_to_end(&mut plain).expect("it is gzip'd");

    for bytes in [zipped, plain] {
        let back = pprof::read(&mut bytes.as_slice()).expect("a good profile");
        assert_eq!(back.check(), Ok(()));
        assert_eq!(rows(&back), rows(profile));
        let (meta, was) = (&back.meta, &profile.meta);
        assert_eq!(back.schema, profile.schema);
        assert_eq!(meta.period, was.period);
        assert_eq!(meta.frequency, was.frequency);
        assert_eq!(meta.start_time_ns, was.start_time_ns);
        assert_eq!(meta.duration_ns, was.duration_ns);
        assert_eq!(meta.program, was.program);
        assert_eq!(meta.notes, was.notes);
        assert_eq!(meta.missing, was.missing);
        assert_eq!(meta.counters, was.counters);
    }
}

#[test]
fn the_profile_with_everything_comes_back() {
    for schema in [wall_schema(), cpu_schema()] {
        assert_comes_back(&profiles::everything(schema));
    }
}

#[test]
fn a_large_profile_comes_back() {
    // More threads than the formats keep a last stack for.
    for threads in [1, 8, 200] {
        let mut profile = RandomWalk {
            weights: 2_000,
            depth: 60,
            threads,
            requests: 0,
        }
        .profile();
        profile.meta.program = "app.rb".into();
        assert_comes_back(&profile);
    }
}

proptest! {
    #[test]
    fn any_profile_comes_back(profile in profiles::arbitrary()) {
        assert_comes_back(&profile);
    }

    #[test]
    fn any_columns_come_back(profile in profiles::with_any_columns()) {
        assert_comes_back(&profile);
    }
}
