//! What those who watch see of a session, with stacks that the test makes up.

use super::*;
use crate::accounting::Accounting;
use crate::config::SessionConfig;
use crate::recording::{Position, SampleStack};
use crate::timer::sources::TimerKind;
use crate::{DEFAULT_MAX_NODES, Mode, NO_OVERHEAD_LIMIT, Pace, Snapshot};
use crossbeam_channel::{Receiver, bounded};
use proptest::prelude::*;
use rperf_model::shared_sums::{Changes, Cursor, SumsRow};
use rperf_model::{Column, Profile, StringId, WeightKey};
use rperf_vm::{FrameNames, LabelSet, LastStack, Stack};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Wall time by the names of the stack, the leaf first, the thread and the label.
type Sums = BTreeMap<(Vec<String>, u32, String), i64>;

fn session() -> Session {
    session_of(DEFAULT_MAX_NODES)
}

fn session_of(max_nodes: u32) -> Session {
    let config = SessionConfig {
        mode: Mode::Wall,
        blames: false,
        judges: false,
        frequency: 1000,
        max_overhead: NO_OVERHEAD_LIMIT,
        max_nodes,
        timer: TimerKind::Sleep,
        aggregate: true,
    };
    Session::start(config, || ()).expect("a worker")
}

fn record(session: &mut Session, thread: u32, frame: FrameWord, labels: Option<&LabelSet>) {
    record_stack(session, thread, &[frame, 1], labels);
}

fn record_stack(
    session: &mut Session,
    thread: u32,
    frames: &[FrameWord],
    labels: Option<&LabelSet>,
) {
    let pace = Arc::new(Pace::new(1_000_000));
    let mut accounting = Accounting::new(thread, Mode::Wall, &pace, 0, 0);
    accounting.begin_running(0);
    let dues = accounting.sample(10, 10, 0, || 1);
    let stack = Stack {
        frames,
        lines: &[],
        cut: false,
    };
    let position = Position {
        stack: Some(SampleStack::Frames(stack)),
        last: &mut LastStack::default(),
        labels,
    };
    session.record(0, &mut accounting, dues, position);
}

/// Different frames can have one name.
fn name(frame: FrameWord) -> ResolvedFrame {
    ResolvedFrame {
        name: format!("method{}", frame % 50),
        path: "app.rb".into(),
        first_line: 1,
    }
}

/// Tells what is new, with names for `most` frames.
fn tell(session: &mut Session, most: usize) -> (SharedTable, bool) {
    for _ in 0..most {
        let Some(frame) = session.next_untold() else {
            break;
        };
        session.tell_name(frame, name(frame));
    }
    let (reply, replies): (_, Receiver<_>) = bounded(1);
    session.tell(5, 0, move |table, is_complete| {
        let _ = reply.send((Arc::clone(table), is_complete));
    });
    replies.recv().expect("a reply")
}

fn end_epoch(session: &mut Session) {
    session.begin_epoch_end();
    finish_epoch(session);
}

fn finish_epoch(session: &mut Session) {
    while let Some(frame) = session.next_unnamed() {
        session.name(frame, name(frame));
    }
    session.end_epoch_if_named(1);
}

/// What a reader has that was away all the time.
fn seen(table: &SharedTable) -> Sums {
    let mut all = Changes::default();
    let mut table = table.lock().expect("no panic");
    loop {
        let page = table.changes(all.cursor);
        all.cursor = page.cursor;
        all.strings.extend(page.strings);
        all.frames.extend(page.frames);
        all.nodes.extend(page.nodes);
        all.label_sets.extend(page.label_sets);
        all.rows.extend(page.rows);
        if !page.more {
            break;
        }
    }
    let text = |id: StringId| all.strings[id.0 as usize].clone();
    let mut sums = Sums::new();
    for SumsRow { key, values } in &all.rows {
        let mut names = Vec::new();
        let mut node = key.node.0 as usize;
        while let Some(row) = node.checked_sub(1) {
            names.push(text(all.frames[all.nodes[row].frame.0 as usize].name));
            node = all.nodes[row].parent.0 as usize;
        }
        let set = &all.label_sets[key.labels.0 as usize];
        let label = set.first().map_or(String::new(), |pair| text(pair.1));
        *sums.entry((names, key.thread, label)).or_default() += values.wall_ns as i64;
    }
    assert!(all.cursor.serial > 0);
    sums
}

fn of_profile(profile: &Profile) -> Sums {
    let mut sums = Sums::new();
    for weight in profile.weights.iter() {
        let WeightKey {
            node,
            thread,
            labels,
            ..
        } = weight.key;
        let frame =
            |node: &rperf_model::Node| profile.frames.get(node.frame).expect("a frame").name;
        let names = profile
            .tree
            .stack(node)
            .map(|node| profile.strings.get(frame(node)).to_string());
        let set = profile.label_sets.get(labels);
        let label = set.first().map_or(String::new(), |pair| {
            profile.strings.get(pair.1).to_string()
        });
        *sums.entry((names.collect(), thread, label)).or_default() += weight.value(Column(1));
    }
    sums
}

fn stopped(session: Session) -> Profile {
    let (taken, frames): (_, FrameNames) = session.stop(0).expect("the worker lives");
    let (snapshot, nodes): (Snapshot, _) = taken.complete().expect("the worker lives");
    let known = frames.names().to_vec();
    let rest = frames.unnamed().iter().map(|&frame| Arc::new(name(frame)));
    let names: Vec<_> = known.into_iter().chain(rest).collect();
    snapshot.into_profile(&nodes, &names, String::new(), Vec::new())
}

#[derive(Debug, Clone)]
enum Step {
    Record(usize, usize, u32, usize),
    Tell(usize),
    Unwatch,
    EndEpoch,
    BeginEpochEnd,
    Clear,
    Snapshot,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_usize..6_000, 2_usize..300, 1_u32..4, 0_usize..3)
            .prop_map(|(count, frame, thread, label)| Step::Record(count, frame, thread, label)),
        5 => (0_usize..200).prop_map(Step::Tell),
        1 => Just(Step::Unwatch),
        2 => Just(Step::EndEpoch),
        2 => Just(Step::BeginEpochEnd),
        1 => Just(Step::Clear),
        1 => Just(Step::Snapshot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn those_who_watch_see_what_the_profile_has(steps in proptest::collection::vec(step(), 1..25)) {
        let mut session = session();
        let label = |value: &str| LabelSet::empty().with([("request".into(), Some(value.into()))]);
        let labels = [None, Some(label("a")), Some(label("b"))];
        for step in steps {
            match step {
                Step::Record(count, first, thread, label) => {
                    for number in 0..count {
                        record(&mut session, thread, first + number % 20, labels[label].as_ref());
                    }
                }
                Step::Tell(most) => drop(tell(&mut session, most)),
                Step::Unwatch => session.end_watch(),
                Step::EndEpoch if !session.is_ending() => end_epoch(&mut session),
                Step::BeginEpochEnd if !session.is_ending() => session.begin_epoch_end(),
                Step::EndEpoch | Step::BeginEpochEnd => finish_epoch(&mut session),
                Step::Clear | Step::Snapshot if session.is_ending() => finish_epoch(&mut session),
                Step::Clear => drop(session.clear(0, 1).expect("the worker lives").0.complete()),
                Step::Snapshot => drop(session.snapshot(0, Vec::new()).expect("the worker lives")),
            }
        }
        if session.is_ending() {
            finish_epoch(&mut session);
        }
        let (table, is_complete) = tell(&mut session, usize::MAX);
        prop_assert!(is_complete);
        prop_assert!(session.is_watched());
        prop_assert_eq!(seen(&table), of_profile(&stopped(session)));
    }
}

/// The sums by leaf, thread and label.
fn by_leaf(sums: Sums) -> Sums {
    let mut by_leaf = Sums::new();
    for ((names, thread, label), time) in sums {
        let leaf = names.into_iter().take(1).collect();
        *by_leaf.entry((leaf, thread, label)).or_default() += time;
    }
    by_leaf
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn self_times_stay_where_a_table_or_a_profile_has_no_room(
        max_nodes in 200_u32..2_000,
        rounds in proptest::collection::vec(
            (proptest::collection::vec(proptest::collection::vec(1_usize..7, 1..16), 1..120), any::<bool>()),
            2..8,
        ),
    ) {
        let (mut whole, mut limited) = (session(), session_of(max_nodes));
        for (stacks, is_epoch) in rounds {
            for session in [&mut whole, &mut limited] {
                for (number, stack) in stacks.iter().enumerate() {
                    record_stack(session, 1 + number as u32 % 2, stack, None);
                }
                match is_epoch {
                    true => end_epoch(session),
                    false => drop(tell(session, 100)),
                }
            }
        }
        let (table, is_complete) = tell(&mut limited, usize::MAX);
        prop_assert!(is_complete);
        let live = seen(&table);
        prop_assert!(table.lock().expect("no panic").nodes() <= max_nodes as usize);
        let (whole, limited) = (stopped(whole), stopped(limited));
        let nodes = limited.tree.len();
        prop_assert!(nodes <= max_nodes as usize, "{nodes} nodes");
        prop_assert_eq!(limited.folded().ns, limited.meta.counters.folded_ns);
        let expected = by_leaf(of_profile(&whole));
        prop_assert_eq!(&by_leaf(of_profile(&limited)), &expected);
        prop_assert_eq!(&by_leaf(live), &expected);
    }
}

#[test]
fn what_has_no_name_yet_comes_later() {
    let mut session = session();
    for frame in 2..40 {
        record(&mut session, 1, frame, None);
    }
    let (table, is_complete) = tell(&mut session, 10);
    // The frame at the root has a name, too.
    assert_eq!((seen(&table).len(), is_complete), (9, false));
    assert_eq!(
        table
            .lock()
            .expect("no panic")
            .changes(Cursor::default())
            .facts
            .as_of_ns,
        5
    );
    let (_, is_complete) = tell(&mut session, 100);
    assert_eq!((seen(&table).len(), is_complete), (38, true));
    session.begin_epoch_end();
    assert!(!tell(&mut session, 0).1, "an epoch has no names yet");
    finish_epoch(&mut session);
    let (_, is_complete) = tell(&mut session, 0);
    assert_eq!((seen(&table).len(), is_complete), (38, true));
    session.end_watch();
    assert!(!session.is_watched());
    let (other, is_complete) = tell(&mut session, 0);
    assert_eq!((seen(&other).len(), is_complete), (38, true));
    assert!(!Arc::ptr_eq(&other, &table));
}
