//! Golden files: what each format makes of one small profile, byte by byte.
//!
//! `UPDATE_GOLDEN=1 cargo test -p rperf-format` writes them anew; look at the
//! difference before you commit it.

use crate::profiles::{self, Builder};
use crate::{proto, proto_dump};
use flate2::read::GzDecoder;
use prost::Message;
use rperf_format::{Format, TextOptions, write};
use rperf_model::test_support::{cpu_schema, wall_schema};
use rperf_model::{Meta, NodeId, Profile, State};
use std::io::Read;
use std::path::PathBuf;
use std::{env, fs};

pub fn assert_golden(name: &str, content: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, content).expect("golden files can be written");
    }
    let golden = fs::read(&path).expect("the golden file is there: see UPDATE_GOLDEN");
    let (is, should_be) = (
        String::from_utf8_lossy(content),
        String::from_utf8_lossy(&golden),
    );
    assert!(
        content == golden,
        "{name} has changed\n--- is\n{is}\n--- should be\n{should_be}"
    );
}

fn written(profile: &Profile, format: Format) -> Vec<u8> {
    written_with(
        profile,
        format,
        TextOptions {
            lines: false,
            whole: None,
        },
    )
}

fn written_with(profile: &Profile, format: Format, options: TextOptions) -> Vec<u8> {
    let mut output = Vec::new();
    write(profile, format, options, &mut output).expect("memory takes everything");
    output
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    let mut decoder = GzDecoder::new(bytes);
    decoder.read_to_end(&mut plain).expect("it is gzip'd");
    plain
}

#[test]
fn text_is_as_it_was() {
    for (name, schema) in [("wall", wall_schema()), ("cpu", cpu_schema())] {
        let output = written(&profiles::everything(schema), Format::Text);
        assert_golden(&format!("{name}.txt"), &output);
    }
}

#[test]
fn text_with_lines_is_as_it_was() {
    let options = TextOptions {
        lines: true,
        whole: None,
    };
    for (name, schema) in [("wall", wall_schema()), ("cpu", cpu_schema())] {
        let output = written_with(&profiles::everything(schema), Format::Text, options);
        assert_golden(&format!("{name}.lines.txt"), &output);
    }
}

#[test]
fn markdown_is_as_it_was() {
    for (name, schema) in [("wall", wall_schema()), ("cpu", cpu_schema())] {
        let output = written(&profiles::everything(schema), Format::Markdown);
        assert_golden(&format!("{name}.md"), &output);
    }
}

#[test]
fn json_is_as_it_was() {
    for (name, schema) in [("wall", wall_schema()), ("cpu", cpu_schema())] {
        let output = written(&profiles::everything(schema), Format::Json);
        assert_golden(&format!("{name}.json"), &output);
    }
}

#[test]
fn collapsed_is_as_it_was() {
    for (name, schema) in [("wall", wall_schema()), ("cpu", cpu_schema())] {
        let output = written(&profiles::everything(schema), Format::Collapsed);
        assert_golden(&format!("{name}.collapsed"), &output);
    }
}

#[test]
fn pprof_is_as_it_was() {
    for (name, schema) in [("wall", wall_schema()), ("cpu", cpu_schema())] {
        let output = unzipped(&written(&profiles::everything(schema), Format::Pprof));
        let message = proto::Profile::decode(output.as_slice()).expect("it is pprof");
        let dump = proto_dump::dump(&message);
        assert_golden(&format!("{name}.pb.txt"), dump.as_bytes());
        assert_golden(&format!("{name}.pb"), &output);
    }
}

#[test]
fn equal_profiles_are_written_equally() {
    for format in Format::ALL {
        let once = written(&profiles::everything(wall_schema()), format);
        let again = written(&profiles::everything(wall_schema()), format);
        assert!(once == again, "{format:?}");
    }
}

#[test]
fn tables_end_after_fifty_rows_and_tell_how_many_more_there_are() {
    let meta = Meta {
        frequency: 100,
        ..Meta::default()
    };
    let mut builder = Builder::new(cpu_schema(), meta);
    builder.thread(1, "");
    let none = builder.labels(&[]);
    for row in 0..53 {
        let name = format!("method_{row}");
        let node = builder.node(&[(&name, "a.rb", 1, row as u32 + 1)]);
        builder.add(node, 1, none, State::Running, &[1, 1_000_000 + row]);
    }
    let options = TextOptions {
        lines: true,
        whole: None,
    };
    let report = written_with(&builder.finish(), Format::Text, options);
    let report = String::from_utf8(report).expect("text");
    assert_eq!(report.matches("method_").count(), 150);
    assert_eq!(report.matches("  (3 more)\n").count(), 3);
    assert!(!report.contains("Lost:"));
}

#[test]
fn a_profile_without_weights_can_be_written() {
    let meta = Meta {
        frequency: 100,
        ..Meta::default()
    };
    let mut builder = Builder::new(cpu_schema(), meta);
    let none = builder.labels(&[]);
    builder.add(NodeId::ROOT, 0, none, State::Running, &[0, 0]);
    let profile = builder.finish();
    assert_eq!(
        written(&profile, Format::Text),
        b"Total: 0.0ms (cpu)\nSamples: 0, Frequency: 100Hz\n\nFlat:\n\nCumulative:\n"
    );
    assert_eq!(written(&profile, Format::Collapsed), b"");
    let markdown = "## Profile\n\nThere is nothing in this profile.\n\n\
                    - Measured: 0.0 ms of `cpu`, 0 samples\n- Frequency: 100 Hz\n";
    assert_eq!(written(&profile, Format::Markdown), markdown.as_bytes());
    let back = rperf_format::pprof::read(&mut written(&profile, Format::Pprof).as_slice());
    assert!(back.expect("a good profile").weights.is_empty());
}
