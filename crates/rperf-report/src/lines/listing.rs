//! Per-line listings of methods and files. Used by `rperf report --annotate`; any thread.

use crate::stack::groups::{FrameKey, Function, GroupId, GroupText, Groups};
use crate::stack::walk::{OnceSums, Values, Visitor, walk};
use crate::text::pattern::NamePattern;
use rperf_model::Order;
use rperf_model::frame_kind::method_of;
use rperf_model::{Column, DisplayFrame, FrameId, FrameText, Node, NodeId, Profile, Weight};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The subject of a listing.
#[derive(Debug, Clone)]
pub enum Subject {
    /// Each function with a name that matches.
    Functions(NamePattern),
    /// The file with this path, or whose path ends with it, as it was recorded or as it is shown.
    File(String),
}

/// The lines of one function or file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The function; without a name if all of the file is listed.
    pub function: Function,
    /// Line of the definition, or 0 where none is known. Of several definitions, the
    /// first.
    pub first_line: u32,
    /// Value of the stacks with the function, or with a frame of the file, as leaf.
    pub self_value: i64,
    /// Value of the stacks that have it anywhere, each once.
    pub total_value: i64,
    /// Its lines with a value. Line 0 stands for values without a line.
    pub lines: BTreeMap<u32, LineValues>,
}

/// The values of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LineValues {
    /// Value of the stacks whose leaf is at the line: without what the line calls, C methods
    /// included.
    pub self_value: i64,
    /// Value of the stacks that have the line anywhere, each once.
    pub total_value: i64,
}

impl Listing {
    /// A listing for each function or file that `subject` names, the largest total
    /// first. That of a method has its blocks, unless it is a block that is named.
    pub fn of(profile: &Profile, column: Column, subject: &Subject) -> Vec<Listing> {
        let key = match subject {
            Subject::Functions(NamePattern::Exact(name)) if method_of(name) != name => {
                FrameKey::Function
            }
            Subject::Functions(_) => FrameKey::WithBlocks,
            Subject::File(_) => FrameKey::File,
        };
        let groups = Groups::new(profile, key);
        let is_named = |text: FrameText<'_>, group: &GroupText<'_>| match subject {
            Subject::Functions(pattern) => {
                pattern.matches(text.name) || pattern.matches(&group.name)
            }
            Subject::File(file) => {
                ends_with_path(&group.name, file) || ends_with_path(group.path, file)
            }
        };
        let mut is_listed = vec![false; groups.len()];
        for (frame, _) in profile.frames.iter() {
            let text = profile.frame_text(DisplayFrame::Real { frame, line: 0 });
            let group = groups.of_frame(frame);
            is_listed[group] |= is_named(text, &groups.texts[group]);
        }
        let mut sums = ListingSums {
            profile,
            is_listed: &is_listed,
            groups: &groups,
            functions: OnceSums::new(groups.len()),
            function_selfs: vec![0; groups.len()],
            rows: FxHashMap::default(),
            lines: OnceSums::new(0),
            line_selfs: Vec::new(),
        };
        walk(profile, [column], &mut sums);
        let mut listings = sums.finish(key);
        listings.retain(|listing| !listing.lines.is_empty());
        listings.order_by(|a, b| {
            let largest_first = b
                .total_value
                .unsigned_abs()
                .cmp(&a.total_value.unsigned_abs());
            largest_first.then_with(|| a.function.cmp(&b.function))
        });
        listings
    }
}

/// Whether `path` is the file, or ends with its path.
fn ends_with_path(path: &str, file: &str) -> bool {
    let file = file.strip_prefix("./").unwrap_or(file);
    match path.strip_suffix(file) {
        Some(before) => !file.is_empty() && (before.is_empty() || before.ends_with('/')),
        None => false,
    }
}

struct ListingSums<'a> {
    profile: &'a Profile,
    is_listed: &'a [bool],
    groups: &'a Groups<'a>,
    functions: OnceSums<1>,
    function_selfs: Vec<i64>,
    rows: FxHashMap<(GroupId, u32), usize>,
    lines: OnceSums<1>,
    line_selfs: Vec<i64>,
}

impl Visitor<1> for ListingSums<'_> {
    fn enter(&mut self, _: NodeId, node: Node) {
        if let Some((group, line)) = self.listed(node) {
            self.functions.enter(group);
            self.lines.enter(line);
        }
    }

    fn row(&mut self, row: Weight<'_>, [value]: Values<1>) {
        if self.profile.display_leaf(row.key).is_some() {
            return;
        }
        let node = self.profile.tree.get(row.key.node).copied();
        if let Some((group, line)) = node.and_then(|node| self.listed(node)) {
            for sum in [&mut self.function_selfs[group], &mut self.line_selfs[line]] {
                *sum = sum.saturating_add(value);
            }
        }
    }

    fn leave(&mut self, _: NodeId, node: Node, total: Values<1>) {
        if let Some((group, line)) = self.listed(node) {
            self.functions.leave(group, total);
            self.lines.leave(line, total);
        }
    }
}

impl ListingSums<'_> {
    /// The rows of a node's function and line, if they are to be listed.
    fn listed(&mut self, node: Node) -> Option<(GroupId, usize)> {
        let group = self.groups.of_frame(node.frame);
        if !self.is_listed[group] {
            return None;
        }
        let line = *self.rows.entry((group, node.line)).or_insert_with(|| {
            self.line_selfs.push(0);
            self.lines.push()
        });
        Some((group, line))
    }

    fn finish(self, key: FrameKey) -> Vec<Listing> {
        let mut listings: BTreeMap<GroupId, Listing> = BTreeMap::new();
        for (&(group, number), &line) in &self.rows {
            let listing = listings.entry(group).or_insert_with(|| {
                let function = self.groups.function(group);
                Listing {
                    function: match key {
                        FrameKey::File => Function {
                            short_path: function.name,
                            path: function.path,
                            name: String::new(),
                        },
                        _ => function,
                    },
                    first_line: 0,
                    self_value: self.function_selfs[group],
                    total_value: self.functions.totals[group][0],
                    lines: BTreeMap::new(),
                }
            });
            let values = LineValues {
                self_value: self.line_selfs[line],
                total_value: self.lines.totals[line][0],
            };
            if values != LineValues::default() {
                listing.lines.insert(number, values);
            }
        }
        for (id, frame) in self.profile.frames.iter() {
            if let Some(listing) = listings.get_mut(&self.groups.of_frame(FrameId(id.0)))
                && frame.first_line > 0
                && (listing.first_line == 0 || frame.first_line < listing.first_line)
            {
                listing.first_line = frame.first_line;
            }
        }
        listings.into_values().collect()
    }
}

#[cfg(test)]
mod tests;
