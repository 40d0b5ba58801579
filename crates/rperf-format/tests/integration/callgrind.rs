//! Tests of callgrind's format: its text, that a reader finds all sums in it, and that
//! `callgrind_annotate` takes it, where that is installed.

use crate::golden::assert_golden;
use crate::profiles::{self, Builder};
use proptest::prelude::*;
use rperf_format::{Format, TextOptions, write};
use rperf_model::test_support::{schema, wall_schema};
use rperf_model::{LabelSetId, Meta, Profile, State};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::{fs, str};

const ANNOTATE: &str = "callgrind_annotate";

static HAS_ANNOTATE: LazyLock<bool> = LazyLock::new(|| {
    let version = Command::new(ANNOTATE)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let is_here = version.is_ok();
    if !is_here {
        eprintln!("no {ANNOTATE}: not tested whether it takes our files");
    }
    is_here
});

fn written(profile: &Profile) -> String {
    let mut output = Vec::new();
    write(
        profile,
        Format::Callgrind,
        TextOptions::default(),
        &mut output,
    )
    .expect("memory takes everything");
    String::from_utf8(output).expect("UTF-8")
}

/// What `callgrind_annotate` makes of a file; `None` where it isn't here.
fn annotated(text: &str, arguments: &[&str]) -> Option<String> {
    if !*HAS_ANNOTATE {
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("callgrind.out.1");
    fs::write(&path, text).expect("a file");
    let output = Command::new(ANNOTATE)
        .args(["--threshold=100", "--auto=no"])
        .args(arguments)
        .arg(&path)
        .output()
        .expect("it is here");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A path and a name.
type Place = (String, String);

/// A file as its format's description reads it: all values, by path and name.
#[derive(Debug, Default)]
struct Read {
    events: Vec<String>,
    summary: Vec<u64>,
    own: BTreeMap<Place, Vec<u64>>,
    calls: BTreeMap<[Place; 2], (u64, Vec<u64>)>,
}

impl Read {
    fn of(text: &str) -> Self {
        let mut read = Self::default();
        let mut names: BTreeMap<(&str, u64), String> = BTreeMap::new();
        let (mut file, mut function) = (String::new(), None);
        let (mut callee_file, mut callee, mut count) = (None, None, None);
        for line in text
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            if let Some((key, value)) = line
                .split_once(['=', ':'])
                .filter(|(key, _)| key.chars().all(|letter| letter.is_ascii_alphabetic()))
            {
                let value = value.trim();
                match key {
                    "events" => read.events = value.split(' ').map(String::from).collect(),
                    "summary" => read.summary = numbers(value),
                    "fl" => file = named(&mut names, "fl", value),
                    "fn" => function = Some((file.clone(), named(&mut names, "fn", value))),
                    "cfl" => callee_file = Some(named(&mut names, "fl", value)),
                    "cfn" => {
                        let file = callee_file.take().unwrap_or_else(|| file.clone());
                        callee = Some((file, named(&mut names, "fn", value)));
                    }
                    "calls" => count = numbers(value).first().copied(),
                    "version" | "creator" | "cmd" | "desc" | "event" | "positions" => {}
                    _ => panic!("no line of the format: {line}"),
                }
                continue;
            }
            let costs = &numbers(line)[1..];
            let caller = function.clone().expect("a function has the costs");
            match count.take() {
                None => add(read.own.entry(caller).or_default(), costs),
                Some(number) => {
                    assert!(number > 0, "readers take it for no call: {line}");
                    let callee = callee.take().expect("a function is called");
                    let call = read.calls.entry([caller, callee]).or_default();
                    call.0 += number;
                    add(&mut call.1, costs);
                }
            }
        }
        read
    }
}

fn numbers(text: &str) -> Vec<u64> {
    let words = text.split(' ');
    words.map(|word| word.parse().expect("a number")).collect()
}

/// The name behind `(1)`, or `(1) name`, which makes it known.
fn named(
    names: &mut BTreeMap<(&'static str, u64), String>,
    kind: &'static str,
    text: &str,
) -> String {
    let (id, name) = text
        .strip_prefix('(')
        .expect("a number")
        .split_once(')')
        .expect("its end");
    let key = (kind, id.parse().expect("a number"));
    if let Some(name) = name.strip_prefix(' ') {
        let known = names.insert(key, name.to_string());
        assert_eq!(known, None, "each name is written once");
    }
    names[&key].clone()
}

fn add(sums: &mut Vec<u64>, values: &[u64]) {
    sums.resize(values.len(), 0);
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = sum.saturating_add(*value);
    }
}

/// A trace: recursion, a cycle, blocks, C methods that were not counted.
fn traced() -> Profile {
    let types = [
        ("calls", "count"),
        ("wall", "nanoseconds"),
        ("block_calls", "count"),
    ];
    let mut builder = Builder::new(schema(&types, 1), Meta::default());
    builder.thread(1, "");
    let main = ("<main>", "app.rb", 1, 0);
    let block = ("block in <main>", "app.rb", 1, 0);
    let fib = ("Object#fib", "app.rb", 3, 0);
    let each = ("Array#each", "<C method>", 0, 0);
    let is_even = ("Odd#(2) even?", "lib/odd.rb", 10, 0);
    let is_odd = ("Odd#odd?\n", "lib/odd.rb", 20, 0);
    for (frames, values) in [
        (&[main][..], [0, 100, 0]),
        (&[main, fib], [1, 10, 0]),
        (&[main, fib, fib], [2, 20, 0]),
        (&[main, fib, fib, fib], [4, 40, 0]),
        (&[main, each], [0, 0, 0]),
        (&[main, each, block], [0, 30, 5]),
        (&[main, each, block, is_even], [5, 50, 0]),
        (&[main, each, block, is_even, is_odd], [5, 50, 0]),
        (&[main, each, block, is_even, is_odd, is_even], [4, 40, 0]),
    ] {
        let node = builder.node(frames);
        builder.add(node, 1, LabelSetId(0), State::Running, &values);
    }
    let node = builder.node(&[main, fib]);
    builder.add(node, 1, LabelSetId(0), State::GvlBlocked, &[0, 7, 0]);
    builder.finish()
}

#[test]
fn files_are_as_they_were() {
    for (name, profile) in [
        ("wall", profiles::everything(wall_schema())),
        ("traced", traced()),
    ] {
        let text = written(&profile);
        // A release changes the version, and nothing else.
        let text = text.replace(
            concat!("rperf ", env!("CARGO_PKG_VERSION"), "\n"),
            "rperf 0.1.0\n",
        );
        assert_golden(&format!("{name}.callgrind"), text.as_bytes());
        annotated(&text, &[]);
    }
}

#[test]
fn callgrind_annotate_has_our_counts_and_totals() {
    let text = written(&traced());
    let read = Read::of(&text);
    let key = |path: &str, name: &str| (path.to_string(), name.to_string());
    let fib = key("app.rb", "Object#fib");
    let call = &read.calls[&[fib.clone(), fib]];
    assert_eq!((call.0, call.1[0]), (6, 0), "recursion costs nothing more");
    let Some(tree) = annotated(&text, &["--inclusive=yes", "--tree=both"]) else {
        return;
    };
    let has = |line: &str| tree.lines().any(|it| squeezed(it).ends_with(line));
    for line in [
        "> app.rb:Object#fib (6x) []",
        "> app.rb:Object#fib (1x) []",
        "> app.rb:block in <main> (5x) []",
        "> lib/odd.rb:Odd#(2) even? (5x) []",
        "> lib/odd.rb:Odd#(2) even? (4x) []",
        "> lib/odd.rb:Odd#odd? (5x) []",
    ] {
        assert!(has(line), "{line}\n{tree}");
    }
    // As rperf's own tables have the totals.
    for (total, name) in [
        ("347", "thread 1"),
        ("77", "app.rb:Object#fib"),
        ("140", "lib/odd.rb:Odd#(2) even?"),
        ("90", "lib/odd.rb:Odd#odd?"),
    ] {
        let line = tree.lines().find(|line| {
            let line = squeezed(line);
            line.starts_with(&format!("{total} ")) && line.contains(&format!("* {name}"))
                || line.starts_with(&format!("{total} ")) && line.contains(&format!("* ???:{name}"))
        });
        assert!(line.is_some(), "{total} {name}\n{tree}");
    }
}

/// `text` with one blank for several.
fn squeezed(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_reader_finds_all_sums(profile in prop_oneof![
        profiles::arbitrary(), profiles::with_any_columns()
    ]) {
        let read = Read::of(&written(&profile));
        let width = profile.schema.len();
        prop_assert_eq!((read.events.len(), read.summary.len()), (width, width));
        let mut sums = vec![0; width];
        for costs in read.own.values() {
            add(&mut sums, costs);
        }
        let max = i64::MAX as u64;
        for (sum, total) in sums.iter().zip(&read.summary) {
            prop_assert!(sum == total || *sum >= max && *total == max);
        }
    }
}
