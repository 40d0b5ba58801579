//! Places in the code that samples lead to: the innermost method, and the line of the application that led
//! there. Any thread.

use crate::groups::{FrameKey, Function, GroupId, Groups, is_file};
use rperf_model::{Category, NodeId, Profile};

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

    /// The place of a stack.
    pub(crate) fn of_node(&self, node: NodeId) -> Place {
        let tree = &self.profile.tree;
        let leaf = tree.get(node).map(|node| self.groups.of_frame(node.frame));
        let mut in_file = None;
        for node in tree.stack(node) {
            let group = self.groups.of_frame(node.frame);
            let text = &self.groups.texts[group];
            if !is_file(text.path) {
                continue;
            }
            let place = (group, node.line);
            if self.profile.meta.origin(&text.name, text.path).category == Category::App {
                return (leaf, Some(place));
            }
            in_file = in_file.or(Some(place));
        }
        (leaf, in_file)
    }
}
