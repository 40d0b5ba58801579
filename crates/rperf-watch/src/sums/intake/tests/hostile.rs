//! Pages of hostile servers: they are refused, and nothing fails.

use super::super::super::reading;
use super::*;
use proptest::prelude::*;

#[test]
fn what_refers_to_nothing_is_refused() {
    let frame = |name| Frame {
        name: StringId(name),
        path: StringId(0),
        first_line: 0,
    };
    let node = |parent, frame| Node {
        parent: NodeId(parent),
        frame: FrameId(frame),
        line: 0,
    };
    let row = |key| {
        let values = wall(1);
        vec![SumsRow { key, values }]
    };
    let good = Changes {
        facts: SumsFacts {
            mode: Mode::Wall,
            ..SumsFacts::default()
        },
        strings: vec!["a".into()],
        frames: vec![frame(0)],
        nodes: vec![node(0, 0), node(1, 0)],
        label_sets: vec![vec![], vec![(StringId(0), StringId(0))]],
        rows: row(key(NodeId(2))),
        ..Changes::default()
    };
    assert!(empty().take(0, page(good.clone())).is_ok());
    let labels = LabelSetId(2);
    for bad in [
        Changes {
            frames: vec![frame(1)],
            ..good.clone()
        },
        Changes {
            nodes: vec![node(1, 0)],
            ..good.clone()
        },
        Changes {
            nodes: vec![node(0, 1)],
            ..good.clone()
        },
        Changes {
            label_sets: vec![vec![(StringId(1), StringId(0))]],
            ..good.clone()
        },
        Changes {
            rows: row(key(NodeId(3))),
            ..good.clone()
        },
        Changes {
            rows: row(WeightKey {
                labels,
                ..key(NodeId(1))
            }),
            ..good.clone()
        },
    ] {
        let mut sums = empty();
        assert_eq!(sums.take(0, page(bad)), Err(BadDelta));
        assert!(sums.rows.is_empty() && sums.methods.is_empty());
    }
}

proptest! {
    #[test]
    fn no_page_makes_it_fail(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        counts in any::<bool>(),
    ) {
        let mut way = Way::new();
        way.table.facts.mode = Mode::Cpu;
        if counts {
            way.add(1, 1, 3);
            way.begin();
        }
        let mut stack = Vec::new();
        for line in 0..5 {
            stack.push(("a", 1, line));
            let key = key(way.node(&stack));
            way.table.add(key, wall(5));
        }
        let changed = way.table.changes(Cursor::default());
        let mut bytes = Delta { changes: changed, freshness: FRESHNESS }.to_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Ok(delta) = Delta::from_bytes(&bytes) {
            let _ = way.sums.take(0, delta);
            for extent in [Extent::Session, Extent::Watched] {
                if let Some(profile) = way.sums.profile(extent, None) {
                    prop_assert_eq!(profile.check(), Ok(()));
                }
            }
            way.sums.node_times(Scope::Rate, None, None);
        }
    }
}

#[test]
fn a_row_of_nothing_but_other_columns_is_in_no_profile() {
    let values = |count, wall_ns, blame_ns| SumsValues {
        count,
        wall_ns,
        cpu_ns: 0,
        blame_ns,
    };
    for (mode, odd) in [(Mode::Cpu, values(0, 5, 0)), (Mode::Wall, values(0, 0, 5))] {
        let mut way = Way::new();
        way.table.facts.mode = mode;
        let (odd_node, node) = (way.node(&[("odd", 1, 1)]), way.node(&[("work", 1, 1)]));
        way.table.add(key(odd_node), odd);
        way.table.add(key(node), values(2, 3, 0));
        let changes = way.table.changes(Cursor::default());
        assert_eq!(way.sums.take(0, page(changes)), Ok(()));
        let (profile, rows) = way.sums.session_of(0).expect("a profile");
        assert_eq!((profile.check(), profile.weights.len()), (Ok(()), 1));
        assert_eq!(rows[0].seen.count, 2);
    }
}

#[test]
fn there_are_only_so_many_helpers() {
    let mut way = Way::new();
    way.begin();
    way.sums.intake.readings[0].helpers = (1..=reading::CAP as u32).collect();
    way.add_of_helper(reading::CAP as u32 + 1);
    let changes = way.table.changes(way.cursor);
    assert_eq!(way.sums.take(0, page(changes)), Err(BadDelta));
}
