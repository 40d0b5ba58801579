//! Places in the code that samples lead to: the innermost method, and the line of the application that led
//! there. Any thread.

use crate::groups::{FrameKey, Function, GroupId, Groups, is_file};
use rperf_model::frame_kind::OP;
use rperf_model::{Category, Node, NodeId, Profile};

/// The method that gives a block's work a name.
const BEGINS_OPS: &str = "Rperf.op";

/// The innermost function, and the innermost one of the application, or else in a file, with the line in
/// it (0: not known).
pub(crate) type Place = (Option<GroupId>, Option<(GroupId, u32)>);

/// The places of a profile.
pub(crate) struct Places<'a> {
    profile: &'a Profile,
    groups: Groups<'a>,
}

impl<'a> Places<'a> {
    /// The places of `profile`.
    pub(crate) fn of(profile: &'a Profile) -> Self {
        Self {
            profile,
            groups: Groups::new(profile, FrameKey::Function),
        }
    }

    /// A function of a place.
    pub(crate) fn function(&self, group: GroupId) -> Function {
        self.groups.function(group)
    }

    /// The place of a stack. The line of an op is that which called the method that begins it: a driver's
    /// own line would be the same for all.
    pub(crate) fn of_node(&self, node: NodeId) -> Place {
        let tree = &self.profile.tree;
        let leaf = tree.get(node).map(|node| self.groups.of_frame(node.frame));
        let is_op = leaf.is_some_and(|leaf| self.groups.texts[leaf].path == OP);
        let calls = || tree.stack(node).position(|node| self.begins_op(node));
        let begun = if is_op { calls() } else { None };
        let callers = begun.and_then(|begun| self.of_stack(tree.stack(node).skip(begun + 2)));
        (leaf, callers.or_else(|| self.of_stack(tree.stack(node))))
    }

    /// The innermost of these functions that is the application's, or else in a file.
    fn of_stack<'n>(&self, stack: impl Iterator<Item = &'n Node>) -> Option<(GroupId, u32)> {
        let mut in_file = None;
        for node in stack {
            let group = self.groups.of_frame(node.frame);
            let text = &self.groups.texts[group];
            if !is_file(text.path) {
                continue;
            }
            let place = (group, node.line);
            if self.profile.meta.origin(&text.name, text.path).category == Category::App {
                return Some(place);
            }
            in_file = in_file.or(Some(place));
        }
        in_file
    }

    /// Whether the method begins ops for the one that calls it.
    fn begins_op(&self, node: &Node) -> bool {
        let text = &self.groups.texts[self.groups.of_frame(node.frame)];
        text.name == BEGINS_OPS
            && self.profile.meta.origin(&text.name, text.path).category == Category::Rperf
    }
}
