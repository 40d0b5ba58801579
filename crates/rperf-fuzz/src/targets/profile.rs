//! Profiles: what is read is valid, and can be looked at, filtered, merged, compared and written in each
//! format. What pprof's format gets is read again.

use flate2::Compression;
use flate2::write::GzEncoder;
use rperf_format::{Format, TextOptions, pprof, write};
use rperf_model::Profile;
use rperf_report::{
    By, CoreMethods, Diff, Direction, Filter, Lines, Normalize, Run, Sort, Top, Tree, TreeLimits,
    regex,
};
use std::io::Write;

/// Profiles of the format's own tests.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../rperf-format/tests/golden/cpu.pb").to_vec(),
        include_bytes!("../../../rperf-format/tests/golden/wall.pb").to_vec(),
        Vec::new(),
    ]
}

pub fn zipped_seeds() -> Vec<Vec<u8>> {
    seeds().iter().filter_map(|plain| zipped(plain)).collect()
}

fn zipped(plain: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()
}

/// Damaged gzip seldom has a right checksum: what is in it is damaged, too.
pub fn read_zipped(input: &[u8]) {
    read(input);
    if let Some(zipped) = zipped(input) {
        read(&zipped);
    }
}

pub fn read(input: &[u8]) {
    let Ok(profile) = pprof::read(&mut &*input) else {
        return;
    };
    assert_eq!(profile.check(), Ok(()));
    for format in Format::ALL {
        let text = written(&profile, format);
        match format {
            Format::Json | Format::Spans => is_json(&text),
            Format::Text | Format::Markdown | Format::Collapsed => is_harmless(&text),
            _ => {}
        }
    }
    comes_back(&profile);
    look_at(profile);
}

fn written(profile: &Profile, format: Format) -> Vec<u8> {
    let mut text = Vec::new();
    let options = TextOptions {
        lines: true,
        whole: None,
    };
    // Some formats can't hold each profile, and say so.
    match write(profile, format, options, &mut text) {
        Ok(()) => text,
        Err(_) => Vec::new(),
    }
}

fn is_json(text: &[u8]) {
    if !text.is_empty() {
        let read: Result<serde_json::Value, _> = serde_json::from_slice(text);
        assert!(read.is_ok(), "it is no JSON: {read:?}");
    }
}

/// No name commands a terminal.
fn is_harmless(text: &[u8]) {
    let commands = |byte: &u8| byte.is_ascii_control() && !b"\n\t".contains(byte);
    assert!(!text.iter().any(commands), "it has control characters");
}

fn comes_back(profile: &Profile) {
    let first = written(profile, Format::Pprof);
    let again = pprof::read(&mut &*first);
    assert!(again.is_ok(), "what was written can't be read: {again:?}");
}

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
    let filter = Filter {
        hide: regex("a").ok(),
        ..Filter::default()
    };
    let filtered = filter.apply(profile.clone()).profile;
    assert_eq!(filtered.check(), Ok(()));
    let [base, target] = [&profile, &filtered].map(|it| Run::of(it, None));
    let _ = Diff::of(&[base], &[target], Sort::SelfValue, Normalize::No);
    let mut merged = profile;
    if merged.merge(&filtered).is_ok() {
        assert_eq!(merged.check(), Ok(()));
    }
}
