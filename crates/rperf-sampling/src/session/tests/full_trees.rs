//! Sessions whose stacks are all different.

use super::*;
use std::collections::BTreeMap;

/// Methods that call each other at random, 20 to 50 deep, below one.
fn stack(state: &mut u64) -> Vec<FrameWord> {
    let mut below = |limit: u64| {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 33) % limit
    };
    let depth = 20 + below(30);
    let methods = (0..depth).map(|_| 2 + below(200) as FrameWord);
    methods.chain([1]).collect()
}

fn numbered(frame: FrameWord) -> ResolvedFrame {
    method(&format!("method{frame}"))
}

#[test]
fn memory_stays_within_the_limit_and_self_times_are_exact() {
    let config = SessionConfig {
        max_nodes: 10_000,
        ..config()
    };
    let mut session = Session::start(config, || ()).expect("a worker");
    let mut expected = BTreeMap::new();
    let (mut state, mut most, mut epochs) = (1, 0, 0);
    for number in 0..12_000 {
        let stack = stack(&mut state);
        record(&mut session, &stack, None);
        *expected.entry(numbered(stack[0]).name).or_insert(0) += 10;
        if number % 500 == 0 {
            most = most.max(session.memory());
            if session.is_epoch_over(clock::monotonic_ns()) {
                session.begin_epoch_end();
                while let Some(frame) = session.next_unnamed() {
                    session.name(frame, numbered(frame));
                }
                session.end_epoch_if_named(1);
                epochs += 1;
            }
        }
    }
    assert!(epochs > 3, "{epochs} epochs");
    // All of it would be 420,000 nodes.
    assert!(most < 16 << 20, "{most} bytes");
    let (taken, mut frames) = session.stop(0).expect("the worker lives");
    while let Some(frame) = frames.next() {
        frames.add(frame, numbered(frame));
    }
    let (snapshot, nodes) = taken.complete().expect("the worker lives");
    let profile = snapshot.into_profile(&nodes, frames.names(), String::new(), Vec::new());
    assert_eq!(profile.check(), Ok(()));
    let nodes = profile.tree.len();
    assert!((5_000..=10_000).contains(&nodes), "{nodes} nodes");
    let mut own = BTreeMap::new();
    for row in profile.weights.iter() {
        let leaf = profile.tree.get(row.key.node).expect("a stack");
        let frame = profile.frames.get(leaf.frame).expect("a frame");
        let name = profile.strings.get(frame.name).to_string();
        *own.entry(name).or_insert(0) += row.value(profile.schema.default_column());
    }
    assert_eq!(own, expected);
    let counters = profile.meta.counters;
    assert_eq!(counters.truncated_samples, 0);
    assert!(counters.folded_ns > 0 && counters.folded_ns <= total(&profile) as u64);
}
