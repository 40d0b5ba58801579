//! Places in the code that samples lead to: the innermost method, and the line of the application that led
//! there. None of rperf's own methods is one. Any thread.

mod most;

use crate::stack::groups::{FrameKey, Function, GroupId, Groups, is_file};
use rperf_model::{Category, NodeId, Profile};

/// The innermost function, and the innermost one of the application, or else in a file, with the line in
/// it (0: not known).
pub(crate) type Place = (Option<GroupId>, Option<(GroupId, u32)>);

/// The places of a profile.
pub(crate) struct Places<'a> {
    profile: &'a Profile,
    groups: Groups<'a>,
    /// By group.
    categories: Vec<Category>,
}

impl<'a> Places<'a> {
    /// The places of `profile`.
    pub(crate) fn of(profile: &'a Profile) -> Self {
        let groups = Groups::new(profile, FrameKey::Function);
        let texts = groups.texts.iter();
        let categories = texts.map(|it| profile.meta.origin(&it.name, it.path).category);
        Self {
            profile,
            categories: categories.collect(),
            groups,
        }
    }

    /// A function of a place.
    pub(crate) fn function(&self, group: GroupId) -> Function {
        self.groups.function(group)
    }

    /// The place of a stack.
    pub(crate) fn of_node(&self, node: NodeId) -> Place {
        let mut leaf = None;
        let mut in_file = None;
        for (group, line) in self.stack(node) {
            leaf = leaf.or(Some(group));
            if !self.is_in_file(group) {
                continue;
            }
            let place = (group, line);
            if self.categories[group] == Category::App {
                return (leaf, Some(place));
            }
            in_file = in_file.or(Some(place));
        }
        (leaf, in_file)
    }

    /// Whether the innermost function of a stack is rperf's own: what it took is no time of its callers.
    pub(crate) fn is_rperfs(&self, node: NodeId) -> bool {
        let innermost = self.profile.tree.get(node);
        let group = innermost.map(|node| self.groups.of_frame(node.frame));
        group.is_some_and(|group| self.categories[group] == Category::Rperf)
    }

    /// The functions of a stack with their lines, the innermost first, without those of rperf.
    fn stack(&self, node: NodeId) -> impl Iterator<Item = (GroupId, u32)> + '_ {
        let nodes = self.profile.tree.stack(node);
        let functions = nodes.map(|node| (self.groups.of_frame(node.frame), node.line));
        functions.filter(|(group, _)| self.categories[*group] != Category::Rperf)
    }

    fn is_in_file(&self, group: GroupId) -> bool {
        is_file(self.groups.texts[group].path)
    }
}
