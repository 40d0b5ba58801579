//! Pages come through as they are, and hostile bytes are refused.

use super::*;
use proptest::prelude::*;
use rperf_model::shared_sums::{Cursor, SharedSums, SumsFacts, SumsRow};
use rperf_model::{Frame, FrameId, LabelSetId, Node, NodeId, State, WeightKey};
use serde_json::json;

/// With the blame that it has only where that is measured.
fn row() -> impl Strategy<Value = SumsRow> {
    let key = (any::<u32>(), any::<u32>(), any::<u32>(), 0_usize..5);
    let value = 0..=i64::MAX as u64;
    let values = (value.clone(), value.clone(), value.clone(), value);
    (key, values).prop_map(
        |((node, thread, labels, state), (count, wall_ns, cpu_ns, blame_ns))| SumsRow {
            key: WeightKey {
                node: NodeId(node),
                thread,
                labels: LabelSetId(labels),
                state: State::ALL[state],
            },
            values: SumsValues {
                count,
                wall_ns,
                cpu_ns,
                blame_ns,
            },
        },
    )
}

fn delta() -> impl Strategy<Value = Delta> {
    use proptest::collection::vec;
    let three = || vec(any::<[u32; 3]>(), 0..20);
    let sets = vec(vec(any::<[u32; 2]>(), 0..4), 0..5);
    let facts = (
        any::<bool>(),
        any::<u32>(),
        any::<[u64; 6]>(),
        any::<[bool; 3]>(),
    );
    let tables = (
        vec(".{0,20}", 0..20),
        three(),
        three(),
        sets,
        vec(row(), 0..20),
    );
    (facts, tables).prop_map(|((is_wall, frequency, numbers, flags), tables)| {
        let (strings, frames, nodes, sets, mut rows) = tables;
        let [
            start_ns,
            as_of_ns,
            sampling_ns,
            dropped_ns,
            clock_ns,
            serial,
        ] = numbers;
        let [is_fresh, reset, blames] = flags;
        if !blames {
            rows.iter_mut().for_each(|it| it.values.blame_ns = 0);
        }
        let frame = |[name, path, first_line]: [u32; 3]| Frame {
            name: StringId(name),
            path: StringId(path),
            first_line,
        };
        let node = |[parent, frame, line]: [u32; 3]| Node {
            parent: NodeId(parent),
            frame: FrameId(frame),
            line,
        };
        let label = |[key, value]: [u32; 2]| (StringId(key), StringId(value));
        let set = |set: Vec<[u32; 2]>| set.into_iter().map(label).collect();
        Delta {
            changes: Changes {
                facts: SumsFacts {
                    mode: if is_wall { Mode::Wall } else { Mode::Cpu },
                    frequency,
                    blames,
                    start_ns,
                    as_of_ns,
                    sampling_ns,
                    dropped_ns,
                },
                reset,
                more: !reset,
                cursor: Cursor {
                    serial,
                    ..Cursor::default()
                },
                strings,
                frames: frames.into_iter().map(frame).collect(),
                nodes: nodes.into_iter().map(node).collect(),
                label_sets: sets.into_iter().map(set).collect(),
                rows,
            },
            freshness: Freshness { is_fresh, clock_ns },
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(delta in delta()) {
        prop_assert_eq!(Delta::from_bytes(&delta.to_bytes()), Ok(delta));
    }

    #[test]
    fn no_bytes_make_the_reader_fail(
        delta in delta(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..10),
        end: prop::sample::Index,
    ) {
        let mut bytes = delta.to_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let _ = Delta::from_bytes(&bytes);
        let _ = Delta::from_bytes(&bytes[..end.index(bytes.len())]);
    }
}

#[test]
fn a_page_is_what_other_versions_know() {
    let mut table = SharedSums::default();
    (table.facts.mode, table.facts.frequency) = (Mode::Wall, 99);
    table.facts.start_ns = 1_700_000_000_000_000_000;
    for line in [7, 300] {
        let frame = table.frame("A#b", "a.rb", line);
        let parent = NodeId::ROOT;
        let node = table.node(Node {
            parent,
            frame,
            line,
        });
        add(&mut table, node.expect("room"), line.into());
    }
    let mut changes = table.changes(Cursor::default());
    changes.cursor.serial = 7;
    changes.label_sets = vec![vec![(StringId(1), StringId(2))].into_iter().collect()];
    let freshness = Freshness {
        is_fresh: true,
        clock_ns: 5,
    };
    let page = Delta { changes, freshness };
    let golden = include_bytes!("../../golden/delta.bin");
    assert_eq!(
        page.to_bytes().escape_ascii().to_string(),
        golden.escape_ascii().to_string()
    );
    assert_eq!(Delta::from_bytes(golden), Ok(page));
}

/// A delta with these columns, in the body `body`.
fn with_columns(columns: serde_json::Value, body: &[u8]) -> Result<Delta, BadDelta> {
    let header = json!({
        "version": 1, "mode": "wall", "frequency": 1, "start_ns": 1, "as_of_ns": 1, "sampling_ns": 1,
        "dropped_ns": 1, "fresh": true, "clock_ns": 1, "reset": true, "more": false,
        "cursor": "1.0.0.0.0.0.0.0", "columns": columns, "new": "of a later version",
    });
    let header = header.to_string();
    let length = (header.len() as u32).to_le_bytes();
    Delta::from_bytes(&[MAGIC, &length, header.as_bytes(), body].concat())
}

#[test]
fn columns_that_lie_are_refused() {
    let column = |name: &str, encoding: &str, length: u64, count: u64| {
        json!([[name, encoding, length, count]])
    };
    assert!(with_columns(json!([]), &[]).is_ok());
    assert!(with_columns(column("of a later version", "zstd", 1, 1), &[1]).is_ok());
    for (columns, body) in [
        (column("strings/length", "uleb", 1, u64::MAX), &[0][..]),
        (column("strings/length", "uleb", u64::MAX, 1), &[0]),
        (column("strings/length", "uleb", 2, 1), &[0, 0]),
        (column("strings/length", "uleb", 1, 1), &[9]),
        (column("strings/length", "zstd", 1, 1), &[0]),
        (column("strings/text", "bytes", 1, 1), b"x"),
        (column("frames/name", "uleb", 1, 1), &[0]),
        (column("rows/node", "sleb", 1, 1), &[1]),
        (column("label_sets/length", "uleb", 1, 1), &[1]),
        (column("frames/name", "uleb", 10, 1), &[0xff; 10]),
        (column("rows/blame", "sleb", 1, 1), &[2]),
        (json!([7]), &[]),
        (json!([["rows/node", "delta", 0]]), &[]),
        (
            json!([["a", "uleb", 1, 1], ["rows/node", "delta", 1, 1]]),
            &[1],
        ),
    ] {
        assert!(with_columns(columns.clone(), body).is_err(), "{columns}");
    }
    // Numbers without end, and a header that would be a tree in memory.
    let body = vec![0; 2 << 20];
    let length = body.len() as u64;
    let many = column("labels/key", "uleb", length, length);
    assert!(with_columns(many, &body).is_err());
    let large = vec![json!({}); 1 << 16];
    assert!(with_columns(large.into(), &[]).is_err());
}

/// A session whose program has `nodes` stacks below 400 methods, each seen in one thread.
fn large_table(nodes: u32) -> SharedSums {
    let mut table = SharedSums::default();
    table.facts.mode = Mode::Wall;
    let methods: Vec<_> = (0..400)
        .map(|number| {
            let path = format!("/app/lib/part{}/file{number}.rb", number % 20);
            table.frame(
                &format!("Module{}::Class#method_{number}", number % 40),
                &path,
                number,
            )
        })
        .collect();
    let mut parent = NodeId::ROOT;
    for number in 0..nodes {
        // Twenty calls deep, as in the benchmark.
        if number % 20 == 0 {
            parent = NodeId::ROOT;
        }
        let node = Node {
            parent,
            frame: methods[number as usize * 7 % methods.len()],
            line: number / 20 % 4_999,
        };
        parent = table.node(node).expect("room");
        add(&mut table, parent, u64::from(number));
    }
    table
}

fn add(table: &mut SharedSums, node: NodeId, number: u64) {
    let key = WeightKey {
        node,
        thread: 1 + (number % 50) as u32,
        labels: table.label_set([]),
        state: State::Running,
    };
    let values = SumsValues {
        count: 1 + number % 1000,
        wall_ns: 1_000_000 * (1 + number % 1000) + number % 997,
        cpu_ns: 900_000 * (1 + number % 1000) + number % 991,
        blame_ns: 0,
    };
    assert!(table.add(key, values));
}

/// Bytes of all pages that a client gets who has come as far as `cursor`, and how far it is then.
fn pulled(table: &mut SharedSums, mut cursor: Cursor) -> (usize, usize, Cursor) {
    let (mut bytes, mut largest) = (0, 0);
    loop {
        let changes = table.changes(cursor);
        let more = changes.more;
        cursor = changes.cursor;
        let freshness = Freshness {
            is_fresh: true,
            clock_ns: 1_000_000_000_000,
        };
        let page = Delta { changes, freshness }.to_bytes().len();
        bytes += page;
        largest = largest.max(page);
        if !more {
            return (bytes, largest, cursor);
        }
    }
}

/// The bars are 2 MB for the first pull, and 2 KB for a later one; a page's is 256 KB.
#[test]
fn pulls_take_few_bytes() {
    let mut table = large_table(100_000);
    let (bytes, largest, cursor) = pulled(&mut table, Cursor::default());
    assert!(bytes < 4_000_000, "{bytes}");
    assert!(largest < 512 << 10, "{largest}");
    // A tenth of a second, in which a few threads were seen at some twenty places each.
    for number in 0..60 {
        add(&mut table, NodeId(1 + number * 1_499), number.into());
    }
    let (bytes, _, cursor) = pulled(&mut table, cursor);
    assert!(bytes < 4_000, "{bytes}");
    let (bytes, _, _) = pulled(&mut table, cursor);
    assert!(bytes < 1_000, "{bytes}");
}
