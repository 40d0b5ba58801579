//! Tests of RPV1: what is written is taken apart again.

mod initializers;
mod ops;
mod suite;

use super::*;
use flate2::read::GzDecoder;
use rperf_model::test_support::{self, wall_schema};
use rperf_model::{
    Histogram, LabelSetId, Latencies, LatencyClass, RequestValues, Requests, Thread, WeightKey,
};
use rperf_report::{Normalize, Run};
use std::io::Read;

/// RPV1, taken apart.
struct Decoded {
    header: Value,
    body: Vec<u8>,
}

impl Decoded {
    fn of(view: &View<'_>, max_bytes: usize) -> Self {
        let gzipped = encode_within(view, max_bytes).expect("memory takes it");
        let mut bytes = Vec::new();
        let mut decoder = GzDecoder::new(gzipped.as_slice());
        decoder.read_to_end(&mut bytes).expect("gzip");
        assert_eq!(bytes[..4], *MAGIC);
        let length = u32::from_le_bytes(bytes[4..8].try_into().expect("four bytes")) as usize;
        let header = serde_json::from_slice(&bytes[8..8 + length]).expect("JSON");
        Self {
            header,
            body: bytes[8 + length..].to_vec(),
        }
    }

    fn column(&self, name: &str) -> Vec<i64> {
        let columns = self.header["columns"].as_array().expect("a list");
        let entry = columns.iter().find(|entry| entry["name"] == name);
        let Some(entry) = entry else {
            return Vec::new();
        };
        let number = |key: &str| entry[key].as_u64().expect("a number") as usize;
        let mut bytes = &self.body[number("offset")..][..number("length")];
        if entry["encoding"] == "bytes" {
            return bytes.iter().map(|&byte| i64::from(byte)).collect();
        }
        let mut numbers = Vec::new();
        while !bytes.is_empty() {
            let read = prost::encoding::decode_varint(&mut bytes).expect("LEB128");
            let unzigzagged = (read >> 1) as i64 ^ -((read & 1) as i64);
            numbers.push(match entry["encoding"].as_str() {
                Some("uleb") => read as i64,
                Some("sleb") => unzigzagged,
                _ => numbers.last().unwrap_or(&0) + unzigzagged,
            });
        }
        assert_eq!(numbers.len(), number("count"), "{name}");
        numbers
    }

    fn strings(&self) -> Vec<String> {
        let text = self.column("strings/text");
        let text: Vec<u8> = text.into_iter().map(|byte| byte as u8).collect();
        let mut rest = text.as_slice();
        let lengths = self.column("strings/length").into_iter();
        let strings = lengths.map(|length| {
            let (string, after) = rest.split_at(length as usize);
            rest = after;
            String::from_utf8(string.to_vec()).expect("UTF-8")
        });
        strings.collect()
    }

    /// Frames of each node, from the root: name and line.
    fn stacks(&self) -> Vec<Vec<(String, i64)>> {
        let strings = self.strings();
        let names = self.column("frames/name");
        let (mut new_callees, mut new_lines) = (
            self.column("callees/frame").into_iter(),
            self.column("lines/line").into_iter(),
        );
        let mut callees: Vec<(i64, Vec<i64>)> = Vec::new();
        let mut lines = callees.clone();
        let take = |lists: &mut Vec<(i64, Vec<i64>)>,
                    context,
                    index: i64,
                    new: &mut dyn Iterator<Item = i64>| {
            let at = lists
                .iter()
                .position(|list| list.0 == context)
                .unwrap_or_else(|| {
                    lists.push((context, Vec::new()));
                    lists.len() - 1
                });
            let list = &mut lists[at].1;
            if index == list.len() as i64 {
                list.push(new.next().expect("a new one"));
            }
            list[index as usize]
        };
        let mut frames = vec![-1];
        let mut stacks: Vec<Vec<(String, i64)>> = vec![Vec::new()];
        let indexes = self
            .column("nodes/callee")
            .into_iter()
            .zip(self.column("nodes/line"));
        for ((id, up), (callee, line)) in (1..).zip(self.column("nodes/parent")).zip(indexes) {
            let parent = (id - up) as usize;
            let frame = take(&mut callees, frames[parent], callee, &mut new_callees);
            let line = take(&mut lines, frame, line, &mut new_lines);
            let mut stack = stacks[parent].clone();
            stack.push((strings[names[frame as usize] as usize].clone(), line));
            stacks.push(stack);
            frames.push(frame);
        }
        assert_eq!((new_callees.next(), new_lines.next()), (None, None));
        stacks
    }

    /// The rows of profile `index`: stack, state, and the values.
    fn rows(&self, index: usize) -> Vec<(Vec<String>, i64, Vec<i64>)> {
        let stacks = self.stacks();
        let column = |name: &str| self.column(&format!("profiles/{index}/{name}"));
        let types = self.header["value_types"].as_array().expect("a list").len();
        let values: Vec<_> = (0..types)
            .map(|it| column(&format!("value/{it}")))
            .collect();
        let rows = column("node").into_iter().zip(column("state")).enumerate();
        rows.map(|(row, (node, state))| {
            let stack = stacks[node as usize].iter().map(|frame| frame.0.clone());
            let values = values.iter().filter_map(|column| column.get(row).copied());
            (stack.collect(), state, values.collect())
        })
        .collect()
    }
}

/// A stack of names and lines, its state, and its values.
type TestRow<'a> = (&'a [(&'a str, u32)], State, [i64; 3]);

fn profile(rows: &[TestRow<'_>]) -> Profile {
    let mut profile = Profile::new(wall_schema());
    let name = profile.strings.intern("main");
    profile.threads.push(Thread { seq: 1, name });
    for &(stack, state, values) in rows {
        let frames: Vec<_> = stack
            .iter()
            .map(|&(name, line)| (name, "a.rb", 1, line))
            .collect();
        let node = test_support::node(&mut profile, &frames);
        let key = WeightKey {
            node,
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        profile.weights.push(key, &values);
    }
    profile
}

fn view<'a>(profiles: &[(&'a str, &'a Profile)]) -> View<'a> {
    let profiles = profiles.iter();
    View {
        profiles: profiles
            .map(|&(title, profile)| TitledProfile { title, profile })
            .collect(),
        ..View::default()
    }
}

const RUNNING: i64 = State::Running as i64;
const BLOCKED: i64 = State::GvlBlocked as i64;

#[test]
fn nodes_are_written_as_the_format_s_example_says() {
    let profile = profile(&[
        (&[("A", 3), ("B", 9)], State::Running, [1, 10, 5]),
        (&[("A", 3), ("C", 9)], State::Running, [1, 10, 5]),
        (&[("A", 4), ("B", 9)], State::Running, [1, 10, 5]),
    ]);
    let decoded = Decoded::of(&view(&[("a", &profile)]), MAX_BYTES);
    assert_eq!(decoded.column("nodes/parent"), [1, 1, 2, 4, 1]);
    assert_eq!(decoded.column("nodes/callee"), [0, 0, 1, 0, 0]);
    assert_eq!(decoded.column("callees/frame"), [0, 1, 2]);
    assert_eq!(decoded.column("nodes/line"), [0, 0, 0, 1, 0]);
    assert_eq!(decoded.column("lines/line"), [3, 9, 9, 4]);
    let last = decoded.stacks().pop().expect("nodes");
    assert_eq!(last, [("A".to_string(), 4), ("B".to_string(), 9)]);
}

#[test]
fn states_are_leaves_and_rows_have_all_values() {
    let profile = profile(&[
        (&[("work", 2)], State::Running, [2, 20, i64::MAX]),
        (&[("work", 2)], State::GvlBlocked, [1, -7, 0]),
        (&[], State::Running, [1, 3, 3]),
    ]);
    let decoded = Decoded::of(&view(&[("a", &profile)]), MAX_BYTES);
    let stack = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        decoded.rows(0),
        [
            (stack(&["work"]), RUNNING, vec![2, 20, i64::MAX]),
            (stack(&["work", "[GVL blocked]"]), BLOCKED, vec![1, -7, 0]),
            (stack(&["[no frames]"]), RUNNING, vec![1, 3, 3]),
        ]
    );
    assert_eq!(decoded.header["default_type"], 1);
    assert_eq!(
        decoded.header["states"][1],
        json!({"name": "blocked", "tag": ["%GVL", "blocked"]})
    );
    let categories = decoded.column("frames/category");
    let expected = [Category::App, Category::Gvl, Category::Other].map(|it| it as i64);
    assert_eq!(categories, expected);
}

#[test]
fn frames_have_short_paths_and_those_that_were_recorded_and_sources_the_short_ones() {
    let mut profile = Profile::new(wall_schema());
    profile.meta.add_root("/srv/shop");
    let gem = "/g/gems/rack-3.1.8/lib/rack.rb";
    let frames = [
        ("<main>", "/srv/shop/app.rb", 1, 2),
        ("Rack.run", gem, 3, 4),
    ];
    let key = WeightKey {
        node: test_support::node(&mut profile, &frames),
        thread: 1,
        labels: LabelSetId(0),
        state: State::Running,
    };
    profile.weights.push(key, &[1, 2, 3]);
    let view = View {
        sources: vec![("/srv/shop/app.rb".into(), "run".into())],
        ..view(&[("a", &profile)])
    };
    let decoded = Decoded::of(&view, MAX_BYTES);
    let strings = decoded.strings();
    let texts = |column: &str| {
        let numbers = decoded.column(column).into_iter();
        numbers.map(|it| &*strings[it as usize]).collect::<Vec<_>>()
    };
    assert_eq!(texts("frames/file"), ["app.rb", "rack-3.1.8/lib/rack.rb"]);
    assert_eq!(texts("frames/path"), ["/srv/shop/app.rb", gem]);
    assert_eq!(texts("frames/library"), ["", "rack-3.1.8"]);
    assert_eq!(texts("sources/file"), ["app.rb"]);
}

#[test]
fn profiles_share_the_tables_and_types_are_matched_by_name_and_unit() {
    let one = profile(&[(&[("A", 1), ("B", 2)], State::Running, [1, 10, 5])]);
    let schema = test_support::schema(&[("cpu", "nanoseconds"), ("bytes", "bytes")], 0);
    let mut other = Profile::new(schema);
    let node = test_support::node(&mut other, &[("B", "a.rb", 1, 2)]);
    let key = WeightKey {
        node,
        thread: 7,
        labels: LabelSetId(0),
        state: State::Running,
    };
    other.weights.push(key, &[40, 99]);
    let mut view = view(&[("one", &one), ("other", &other)]);
    view.comparison = Some(Comparison {
        scale: 0.5,
        normalised: "total".into(),
    });
    let decoded = Decoded::of(&view, MAX_BYTES);
    assert_eq!(decoded.column("frames/name").len(), 2, "B is one frame");
    assert_eq!(decoded.rows(0)[0].2, [1, 10, 5]);
    assert_eq!(
        decoded.rows(1),
        [(vec!["B".to_string()], RUNNING, vec![40])]
    );
    assert_eq!(decoded.column("profiles/1/value/2"), [40], "the type cpu");
    assert_eq!(decoded.column("threads/number"), [1, 7]);
    assert_eq!(
        decoded.header["diff"],
        json!({"base": 0, "target": 1, "scale": 0.5, "normalised": "total"})
    );
}

#[test]
fn changes_are_as_the_comparison_of_the_runs_tells_them() {
    let run = |slow: i64| {
        let rows: [TestRow; 2] = [
            (
                &[("A", 1), ("B", 2)],
                State::Running,
                [slow, slow * 1000, 0],
            ),
            (&[("A", 1)], State::Running, [900, 900_000, 0]),
        ];
        profile(&rows)
    };
    let (one, other) = (run(400), run(800));
    let diff = Diff::of(
        &[Run::of(&one, None)],
        &[Run::of(&other, None)],
        Sort::SelfValue,
        Normalize::No,
    );
    let mut view = view(&[("one", &one), ("other", &other)]);
    view.comparison = Some(Comparison {
        scale: 1.0,
        normalised: "none".into(),
    });
    view.changes = vec![None, diff.ok(), None];
    let decoded = Decoded::of(&view, MAX_BYTES);
    let (strings, name) = (decoded.strings(), decoded.column("changes/1/name"));
    assert_eq!(name.len(), 1, "A has not changed");
    assert_eq!(strings[name[0] as usize], "B");
    assert_eq!(decoded.column("changes/1/base"), [400_000]);
    assert_eq!(decoded.column("changes/1/target"), [800_000]);
    assert_eq!(decoded.column("changes/1/verdict"), [2]);
    let file = decoded.column("changes/1/file");
    assert!(decoded.column("frames/file").contains(&file[0]));
    assert!(decoded.column("changes/0/name").is_empty());
    let total = json!({"runs": [1, 1], "base": 1_300_000, "target": 1_700_000, "verdict": 2});
    let expected = json!([null, total, null]);
    assert_eq!(decoded.header["diff"]["changes"], expected);
    assert_eq!(decoded.header["diff"]["by"], "self");
}

#[test]
fn what_is_known_is_told_and_what_is_not_has_no_key() {
    let mut profile = profile(&[]);
    profile.meta.program = "a.rb".into();
    profile.meta.start_time_ns = 5_000_000;
    profile.meta.counters.truncated_samples = 2;
    let decoded = Decoded::of(&view(&[("", &profile)]), MAX_BYTES);
    assert_eq!(
        decoded.header["profiles"][0],
        json!({
            "program": "a.rb",
            "start_ms": 5,
            "losses": [{"counter": "truncated_samples", "value": 2, "text": "2 stacks truncated"}],
        })
    );
}

#[test]
fn the_lightest_stacks_are_left_out_of_what_is_too_large() {
    let names: Vec<String> = (0..2_000)
        .map(|number| format!("method_{number}"))
        .collect();
    let stacks: Vec<_> = names.iter().map(|name| [(name.as_str(), 1)]).collect();
    let mut rows: Vec<TestRow<'_>> = Vec::new();
    for stack in &stacks {
        rows.push((stack, State::Running, [1, 1, 1]));
    }
    rows.push((&[("heavy", 1)], State::Running, [50, 50_000_000, 50]));
    let profile = profile(&rows);
    let whole = Decoded::of(&view(&[("a", &profile)]), MAX_BYTES);
    assert_eq!(whole.rows(0).len(), 2_001);
    let decoded = Decoded::of(&view(&[("a", &profile)]), 4_000);
    let rows = decoded.rows(0);
    let names: Vec<_> = rows.iter().map(|row| row.0[0].as_str()).collect();
    assert_eq!(names, ["heavy", PRUNED]);
    assert_eq!(rows[1].2, [2_000, 2_000, 2_000], "no value is lost");
    let loss = &decoded.header["profiles"][0]["losses"][0];
    assert_eq!(
        (&loss["counter"], &loss["value"]),
        (&json!("pruned_stacks"), &json!(2_000))
    );
}

#[test]
fn what_no_row_has_is_not_in_the_file() {
    let mut profile = profile(&[(&[("kept", 1)], State::Running, [1, 10, 5])]);
    test_support::node(&mut profile, &[("secret_method", "secret.rb", 1, 1)]);
    test_support::labels(&mut profile, &[("user", "secret")]);
    let name = profile.strings.intern("secret thread");
    profile.threads.push(Thread { seq: 2, name });
    let decoded = Decoded::of(&view(&[("a", &profile)]), MAX_BYTES);
    let secrets = decoded
        .strings()
        .into_iter()
        .filter(|text| text.contains("secret"));
    assert_eq!(secrets.count(), 0);
    assert_eq!(decoded.column("threads/number"), [1]);
    assert_eq!(decoded.rows(0).len(), 1);
}

#[test]
fn it_tells_how_long_calls_took_by_name_and_file() {
    let mut profile = Profile::new(wall_schema());
    let mut durations = Histogram::default();
    for ns in [1_000, 1_000, 1_000, 8_000] {
        durations.add(ns);
    }
    let latencies = |name: &str, durations| Latencies {
        name: name.into(),
        path: "cart.rb".into(),
        durations,
    };
    profile.latencies = vec![
        latencies("Cart#total", durations),
        latencies("Cart#none", Histogram::default()),
    ];
    let titled = TitledProfile {
        title: "",
        profile: &profile,
    };
    let view = View {
        profiles: vec![titled, titled],
        ..View::default()
    };
    let found = Decoded::of(&view, MAX_BYTES);
    let strings = found.strings();
    for index in 0..2 {
        let column = |name: &str| found.column(&format!("latencies/{index}/{name}"));
        let text = |name: &str| &*strings[column(name)[0] as usize];
        assert_eq!((text("name"), text("file")), ("Cart#total", "cart.rb"));
        assert_eq!((column("calls"), column("max")), (vec![4], vec![8_000]));
        assert!((875..1_125).contains(&column("p50")[0]));
    }
}

#[test]
fn it_tells_of_requests_by_endpoint_and_class() {
    let mut profile = Profile::new(wall_schema());
    let took = |wall: u64| RequestValues::of([wall, wall - 3, 1, 2, 0, 0, 7, 100]);
    let mut orders = Requests::new("endpoint", "GET /orders");
    orders.add(LatencyClass::Typical, took(1_000).ended_at(5_000_000), true);
    orders.add(
        LatencyClass::Typical,
        took(1_100).ended_at(6_000_000),
        false,
    );
    orders.add(LatencyClass::Tail, took(9_000).ended_at(7_999_999), true);
    let id = rperf_model::RequestId {
        session: 4_711,
        number: 17,
    };
    orders.slowest[0].id = id;
    let mut job = Requests::new("job", "ExportJob");
    job.add(LatencyClass::First, took(u64::MAX).ended_at(u64::MAX), true);
    profile.requests = vec![orders, job];
    let none = Profile::new(wall_schema());
    let decoded = Decoded::of(&view(&[("", &none), ("", &profile)]), MAX_BYTES);

    let columns = decoded.header["columns"].as_array().expect("a list");
    let names = columns.iter().filter_map(|entry| entry["name"].as_str());
    let of_none = names.filter(|name| name.ends_with("/0/count") || name.starts_with("requests/0"));
    assert_eq!(
        of_none.count(),
        0,
        "a profile without requests has no table"
    );
    let column = |name: &str| decoded.column(name);
    let strings = decoded.strings();
    let texts = |name: &str| -> Vec<&str> {
        let indexes = column(name).into_iter();
        indexes.map(|it| &*strings[it as usize]).collect()
    };
    assert_eq!(texts("requests/1/key"), ["endpoint", "job"]);
    assert_eq!(texts("requests/1/name"), ["GET /orders", "ExportJob"]);
    assert_eq!(column("requests/1/count"), [3, 1]);
    assert_eq!(column("requests/1/max"), [9_000, i64::MAX]);
    let p50 = profile.requests[0].walls.quantile(500) as i64;
    assert_eq!(column("requests/1/p50")[0], p50);
    assert_eq!(column("requests/1/slowest"), [3, 1]);
    // First, fast, typical, slow, tail, of each.
    let counts = [0, 0, 2, 0, 1, 1, 0, 0, 0, 0];
    assert_eq!(column("request_classes/1/count"), counts);
    assert_eq!(column("request_classes/1/alone")[2], 1);
    assert_eq!(column("request_classes/1/wall")[2..5], [2_100, 0, 9_000]);
    assert_eq!(column("request_classes/1/gvl_wait")[4], 1);
    assert_eq!(column("request_classes/1/gvl_blame")[2], 14);
    assert_eq!(column("request_classes/1/objects")[5], 100);
    assert_eq!(column("slowest/1/ended_ms")[..3], [7, 6, 5]);
    assert_eq!(column("slowest/1/session"), [4_711, 0, 0, 0]);
    assert_eq!(column("slowest/1/number"), [17, 0, 0, 0]);
    assert_eq!(column("slowest/1/wall")[..2], [9_000, 1_100]);
    assert_eq!(column("slowest/1/blocked"), [2, 2, 2, 2]);
}
