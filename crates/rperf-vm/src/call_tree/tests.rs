//! Stacks come back from their nodes, and those without room keep their leaf.

use super::*;
use proptest::prelude::*;

fn stack_of(tree: &CapturedTree, node: NodeId) -> Vec<(FrameWord, u32)> {
    let mut stack = Vec::new();
    let mut id = node;
    while id != NodeId::ROOT {
        let node = tree.nodes()[id.0 as usize - 1];
        assert!(node.parent < id, "parents come first");
        stack.push((tree.frames()[node.frame as usize], node.line));
        id = node.parent;
    }
    stack
}

#[test]
fn lines_below_zero_are_none() {
    let mut tree = CapturedTree::new(10);
    let lines = [7, -1_i32 as u32, -2_i32 as u32];
    let interned = tree.intern(&[3, 2, 1], &lines, &mut LastStack::default());
    assert_eq!(stack_of(&tree, interned.node), [(3, 7), (2, 0), (1, 0)]);
}

proptest! {
    #[test]
    fn a_node_gives_back_the_stack_that_was_interned(
        stacks in prop::collection::vec((0usize..3, prop::collection::vec((1usize..9, 0u32..3), 0..12)), 1..60)
    ) {
        let mut tree = CapturedTree::new(1 << 20);
        let mut threads = [LastStack::default(), LastStack::default(), LastStack::default()];
        for (thread, stack) in stacks {
            let (frames, lines): (Vec<_>, Vec<_>) = stack.iter().copied().unzip();
            let last = &mut threads[thread];
            let interned = tree.intern(&frames, &lines, last);
            prop_assert!(!interned.truncated);
            prop_assert_eq!(stack_of(&tree, interned.node), stack);
        }
        let unique: std::collections::HashSet<_> = tree.frames().iter().collect();
        prop_assert_eq!(unique.len(), tree.frames().len(), "each frame is there once");
    }
}

#[test]
fn equal_stacks_share_a_node_and_stacks_without_room_keep_their_leaf() {
    let mut tree = CapturedTree::new(16);
    let mut last = LastStack::default();
    let stack: Vec<FrameWord> = (1..=16).rev().collect();
    let first = tree.intern(&stack, &[], &mut last);
    let again = tree.intern(&stack, &[], &mut LastStack::default());
    assert_eq!((first, first.truncated), (again, false));
    let lines = [7, 2, 1];
    // Two parts of two nodes are there for leaves.
    let beyond = tree.intern(&[90, 50, 1], &lines, &mut last);
    assert!(!beyond.truncated);
    assert_eq!(folded_stack_of(&tree, beyond.node), [Some((90, 7)), None]);
    let same_leaf = tree.intern(&[90, 60, 61, 1], &[7, 1, 1, 1], &mut last);
    assert_eq!(same_leaf, beyond);
    let (mut left, mut lost) = (0, 0);
    for leaf in 91..95 {
        match tree.intern(&[leaf, 2, 1], &[], &mut last).truncated {
            true => lost += 1,
            false => left += 1,
        }
    }
    assert_eq!((left, lost), (2, 2));
    assert_eq!(tree.intern(&stack, &[], &mut last), first);
    assert_eq!(tree.intern(&[], &[], &mut last).node, NodeId::ROOT);
    assert!(tree.nodes().len() <= 16 + 2 * 2 + 1 && tree.memory() > 0);
}

#[test]
fn the_callers_that_are_known_stay() {
    let mut tree = CapturedTree::new(64);
    let deep: Vec<FrameWord> = (1..=64).rev().collect();
    tree.intern(&deep, &[], &mut LastStack::default());
    let beyond = tree.intern(&[90, 80, 2, 1], &[], &mut LastStack::default());
    let stack = folded_stack_of(&tree, beyond.node);
    assert_eq!(stack, [Some((90, 0)), None, Some((2, 0)), Some((1, 0))]);
}

/// With `None` for `[folded]`.
fn folded_stack_of(tree: &CapturedTree, node: NodeId) -> Vec<Option<(FrameWord, u32)>> {
    let row = |id: NodeId| (id.0 as usize).checked_sub(1).map(|row| tree.nodes()[row]);
    let nodes = std::iter::successors(row(node), |node| row(node.parent));
    nodes
        .map(|it| match it.frame {
            FOLDED => None,
            frame => Some((tree.frames()[frame as usize], it.line)),
        })
        .collect()
}

#[test]
fn the_last_wait_is_known_by_its_digest_if_its_stack_is_whole() {
    let [here, elsewhere] = [1, 2].map(StackDigest::of);
    let mut tree = CapturedTree::new(4);
    let mut last = LastStack::default();
    let waiting = tree.intern(&[3, 2, 1], &[], &mut last);
    assert_eq!(last.wait_with(here), None);
    last.note_wait(here);
    tree.intern(&[7, 1], &[], &mut last);
    assert_eq!(
        last.wait_with(here),
        Some(waiting.node),
        "whatever ran since"
    );
    assert_eq!(last.wait_with(elsewhere), None);
    tree.intern(&[9, 8, 6, 1], &[], &mut last);
    last.note_wait(elsewhere);
    assert_eq!(last.wait_with(elsewhere), None, "there was no room for it");
    assert_eq!(last.wait_with(here), None);
    tree.intern(&[3, 2, 1], &[], &mut last);
    last.note_wait(here);
    last.keep(0);
    assert_eq!(last.wait_with(here), None);
}
