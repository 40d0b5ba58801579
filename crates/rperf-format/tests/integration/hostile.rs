//! Damaged and made-up files: the reader refuses them or makes a valid profile of
//! them, which every format can write.

use crate::profiles;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use rperf_format::answers::FilteredProfile;
use rperf_format::viewer::{self, TitledProfile, View};
use rperf_format::{Format, GraphOptions, TextOptions, dot, pprof, write};
use rperf_model::test_support::wall_schema;
use rperf_model::{MergeError, Profile};
use rperf_report::{
    By, CoreMethods, Direction, Filter, Lines, NodeKind, TagFilter, Top, Tree, TreeLimits, regex,
};
use std::io::{self, Read};
use std::sync::LazyLock;

static ZIPPED: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut output = Vec::new();
    let profile = profiles::everything(wall_schema());
    pprof::write(&profile, &mut output).expect("memory takes everything");
    output
});

static PLAIN: LazyLock<Vec<u8>> = LazyLock::new(|| unzipped(&ZIPPED));

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut decoder = GzDecoder::new(bytes);
    decoder.read_to_end(&mut plain).expect("it is gzip'd");
    plain
}

fn with_wrong_bit(bytes: &[u8], bit: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes
}

/// Whether the reader takes `bytes`.
fn is_taken(bytes: &[u8]) -> bool {
    let Ok(profile) = pprof::read(&mut &*bytes) else {
        return false;
    };
    assert_eq!(profile.check(), Ok(()));
    for format in Format::ALL {
        let options = TextOptions {
            lines: true,
            whole: None,
        };
        write(&profile, format, options, &mut io::sink()).expect("the sink takes everything");
    }
    look_at(profile);
    true
}

/// Asks everything of a profile that can be asked, and makes the page of it.
fn look_at(profile: Profile) {
    let column = profile.schema.default_column();
    let label = By::Label("request".to_string());
    for by in [
        By::Function,
        By::Gem(CoreMethods::Caller),
        By::Op,
        By::Thread,
        By::State,
        label,
    ] {
        Top::of(&profile, column, &by);
    }
    for direction in [Direction::TopDown, Direction::BottomUp] {
        Tree::of(&profile, column, direction, TreeLimits::default());
    }
    Lines::of(&profile, column);
    for kind in [NodeKind::Class, NodeKind::FunctionOfThread] {
        let options = GraphOptions {
            kind,
            node_count: 2,
            has_clusters: true,
            ..GraphOptions::default()
        };
        dot(FilteredProfile::all(&profile), &options);
    }
    let titled = TitledProfile {
        title: "damaged",
        profile: &profile,
    };
    let view = View {
        profiles: vec![titled, titled],
        ..View::default()
    };
    viewer::write(&view, &mut io::sink()).expect("the sink takes everything");
    let filter = Filter {
        hide: Some(regex("a").expect("an expression")),
        tag_focus: vec![TagFilter::new(".").expect("a filter")],
        tag_root: vec!["thread".to_string()],
        tag_leaf: vec!["request".to_string()],
        ..Filter::default()
    };
    let filtered = filter.apply(profile.clone()).profile;
    assert_eq!(filtered.check(), Ok(()));
    let mut merged = profile;
    match merged.merge(&filtered) {
        Ok(()) => assert_eq!(merged.check(), Ok(())),
        // A thread may have the last number that there is.
        Err(error) => assert_eq!(error, MergeError::TooManyThreads),
    }
}

#[test]
fn files_that_were_cut_are_refused_if_they_were_zipped() {
    for len in 0..ZIPPED.len() {
        assert!(!is_taken(&ZIPPED[..len]), "cut at {len}");
    }
    assert!(is_taken(&ZIPPED));
}

#[test]
fn plain_files_that_were_cut_do_no_harm() {
    let taken = (0..PLAIN.len()).filter(|&len| is_taken(&PLAIN[..len]));
    assert!(taken.count() < PLAIN.len() / 2, "most cuts are noticed");
}

#[test]
fn files_with_one_wrong_bit_are_refused_if_they_were_zipped() {
    // The header of 10 bytes has fields that don't matter; the rest has a checksum.
    for bit in 80..ZIPPED.len() * 8 {
        let bytes = with_wrong_bit(&ZIPPED, bit);
        // A few bits fill the last byte up and mean nothing.
        assert!(!is_taken(&bytes) || unzipped(&bytes) == *PLAIN, "bit {bit}");
    }
}

#[test]
fn plain_files_with_one_wrong_bit_do_no_harm() {
    // Every seventh is quicker, and meets each place in a byte all the same.
    let bits = (0..PLAIN.len() * 8).step_by(7);
    let taken = bits.filter(|&bit| is_taken(&with_wrong_bit(&PLAIN, bit)));
    // Many bits change only a name or a number.
    assert!(taken.count() > 0);
}

proptest! {
    #[test]
    fn random_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        is_taken(&bytes);
        let mut zipped = vec![0x1f, 0x8b];
        zipped.extend(bytes);
        is_taken(&zipped);
    }

    #[test]
    fn files_with_several_wrong_bytes_do_no_harm(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20)
    ) {
        let mut bytes = PLAIN.clone();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        is_taken(&bytes);
    }
}
