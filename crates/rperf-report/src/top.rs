//! The rows with the most: by function, file, directory, gem, label, op, thread or state.
//! Used by text reports, `rperf report` and diffs; any thread.

use crate::rows::in_ops::op_texts;
use crate::rows::states::state_rows;
use crate::rows::tags::tag_texts;
use crate::rows::threads::thread_texts;
use crate::stack::groups::{CoreMethods, FrameKey, Function, GroupId, Groups};
use crate::stack::walk::{OnceSums, Values, Visitor, add, walk};
use rperf_model::{Column, Node, NodeId, Order, Profile, Weight};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

pub(crate) mod totals;

/// The kind of the rows of a [`Top`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum By {
    /// Methods, blocks and the synthetic leaves, by name and path.
    Function,
    /// Classes and modules, with the functions that have none.
    Class,
    /// Paths.
    File,
    /// Directories of paths.
    Directory,
    /// Gems with their versions, the standard library, the application.
    Gem(CoreMethods),
    /// The values of the label with this key.
    Label(String),
    /// Ops, with one row for what is in none.
    Op,
    /// Threads.
    Thread,
    /// The state of the threads.
    State,
}

impl By {
    /// The rows with this name in the command and in the Ruby API; `None` if there are none.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "function" | "method" => By::Function,
            "class" => By::Class,
            "file" => By::File,
            "dir" => By::Directory,
            "gem" => By::Gem(CoreMethods::Caller),
            "gem:c" => By::Gem(CoreMethods::Apart),
            "op" => By::Op,
            "thread" => By::Thread,
            "state" => By::State,
            _ => match name.strip_prefix("label:") {
                Some(key) if !key.is_empty() => By::Label(key.to_string()),
                _ => return None,
            },
        })
    }
}

/// Which of its two values a row is ranked by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sort {
    /// By its own value, which pprof calls flat.
    #[default]
    SelfValue,
    /// By its value together with the value of its callees, which pprof calls cumulative.
    TotalValue,
}

/// The sums of a profile's weights, by rows of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Top {
    /// All weights.
    pub total: i64,
    /// All samples, if the profile counts them.
    pub samples: Option<i64>,
    /// Every row with a value, in the order of their names.
    pub rows: Vec<TopRow>,
}

/// The sums of one row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopRow {
    /// The function, file, label or state of the row.
    pub function: Function,
    /// Value of the stacks whose leaf it is.
    pub self_value: i64,
    /// Value of the stacks that have it anywhere, each stack once.
    pub total_value: i64,
    /// Samples whose stack has it as the leaf; 0 if the profile does not count them.
    pub self_samples: i64,
    /// Samples whose stack has it anywhere, each once.
    pub total_samples: i64,
}

impl Top {
    /// The rows of `profile` for the values in `column`.
    pub fn of(profile: &Profile, column: Column, by: &By) -> Self {
        let samples = profile.schema.samples();
        // Without a count of samples there is no column to take it from, and the
        // second value is not looked at.
        let columns = [column, samples.unwrap_or(column)];
        let mut all = [0; 2];
        for weight in profile.weights.iter() {
            add(&mut all, columns.map(|column| weight.value(column)));
        }
        let mut rows = match by {
            By::Function => by_frames(profile, columns, FrameKey::Function),
            By::Class => by_frames(profile, columns, FrameKey::Class),
            By::File => by_frames(profile, columns, FrameKey::File),
            By::Directory => by_frames(profile, columns, FrameKey::Directory),
            By::Gem(core) => by_frames(profile, columns, FrameKey::Gem(*core)),
            By::Label(key) => {
                let mut text = tag_texts(profile, key);
                by_weight(profile, columns, |weight| text(weight.key))
            }
            By::Op => {
                let text = op_texts(profile);
                by_weight(profile, columns, |weight| text(weight.key))
            }
            By::Thread => {
                let text = thread_texts(profile);
                by_weight(profile, columns, |weight| text(weight.key))
            }
            By::State => {
                let row = state_rows(profile);
                by_weight(profile, columns, |weight| {
                    row(weight.key).name().to_string()
                })
            }
        };
        if samples.is_none() {
            for row in &mut rows {
                (row.self_samples, row.total_samples) = (0, 0);
            }
        }
        rows.retain(|row| (row.self_value, row.total_value) != (0, 0) || row.total_samples != 0);
        rows.order_by(|a, b| a.function.cmp(&b.function));
        Self {
            total: all[0],
            samples: samples.map(|_| all[1]),
            rows,
        }
    }

    /// Rows with a value of their own (or, cumulative, any value), largest first. Equal
    /// ones are in order of their other value, then of the names, so that reports of
    /// equal profiles are equal.
    pub fn sorted(&self, sort: Sort) -> Vec<&TopRow> {
        let mut rows: Vec<_> = self
            .rows
            .iter()
            .filter(|row| row.value(sort) != 0)
            .collect();
        rows.order_by_key(|row| {
            let other = row.value(sort.other()).unsigned_abs();
            Reverse((row.value(sort).unsigned_abs(), other))
        });
        rows
    }
}

impl TopRow {
    /// The value that rows are ranked by.
    pub fn value(&self, sort: Sort) -> i64 {
        match sort {
            Sort::SelfValue => self.self_value,
            Sort::TotalValue => self.total_value,
        }
    }

    /// The samples behind [`TopRow::value`].
    pub fn samples(&self, sort: Sort) -> i64 {
        match sort {
            Sort::SelfValue => self.self_samples,
            Sort::TotalValue => self.total_samples,
        }
    }

    fn new(function: Function, own: Values<2>, total: Values<2>) -> Self {
        Self {
            function,
            self_value: own[0],
            total_value: total[0],
            self_samples: own[1],
            total_samples: total[1],
        }
    }
}

impl Sort {
    /// The other one.
    pub fn other(self) -> Self {
        match self {
            Sort::SelfValue => Sort::TotalValue,
            Sort::TotalValue => Sort::SelfValue,
        }
    }
}

/// Sums by groups of frames.
pub(crate) struct FrameSums<'a, const N: usize> {
    profile: &'a Profile,
    groups: &'a Groups<'a>,
    own: Vec<Values<N>>,
    sums: OnceSums<N>,
}

/// The sums of a group.
pub(crate) struct GroupSum<const N: usize> {
    pub(crate) group: GroupId,
    /// Values of the stacks with the group as their leaf.
    pub(crate) own: Values<N>,
    /// Values of the stacks that have the group anywhere, each once.
    pub(crate) total: Values<N>,
}

impl<'a, const N: usize> FrameSums<'a, N> {
    pub(crate) fn new(profile: &'a Profile, groups: &'a Groups<'a>) -> Self {
        Self {
            profile,
            groups,
            own: vec![[0; N]; groups.len()],
            sums: OnceSums::new(groups.len()),
        }
    }

    /// The groups that add up to anything.
    pub(crate) fn finish(self) -> impl Iterator<Item = GroupSum<N>> {
        let sums = self.own.into_iter().zip(self.sums.totals).enumerate();
        sums.filter(|(_, sums)| *sums != ([0; N], [0; N]))
            .map(|(group, (own, total))| GroupSum { group, own, total })
    }
}

impl<const N: usize> Visitor<N> for FrameSums<'_, N> {
    fn enter(&mut self, id: NodeId, node: Node) {
        self.sums.enter(self.groups.of_node(id, node));
    }

    fn row(&mut self, row: Weight<'_>, values: Values<N>) {
        let leaf = self.profile.display_leaf(row.key);
        let group = match (leaf, self.profile.tree.get(row.key.node)) {
            (Some(leaf), _) => {
                let group = self.groups.of(leaf);
                self.sums.add_leaf(group, values);
                group
            }
            (None, Some(&node)) => self.groups.of_node(row.key.node, node),
            (None, None) => return,
        };
        add(&mut self.own[group], values);
    }

    fn leave(&mut self, id: NodeId, node: Node, total: Values<N>) {
        self.sums.leave(self.groups.of_node(id, node), total);
    }
}

fn by_frames(profile: &Profile, columns: [Column; 2], key: FrameKey) -> Vec<TopRow> {
    let groups = Groups::new(profile, key);
    let mut sums = FrameSums::new(profile, &groups);
    walk(profile, columns, &mut sums);
    sums.finish()
        .map(|sum| TopRow::new(groups.function(sum.group), sum.own, sum.total))
        .collect()
}

fn by_weight(
    profile: &Profile,
    columns: [Column; 2],
    mut name: impl FnMut(Weight<'_>) -> String,
) -> Vec<TopRow> {
    let mut sums: FxHashMap<String, Values<2>> = FxHashMap::default();
    for weight in profile.weights.iter() {
        let values = columns.map(|column| weight.value(column));
        add(sums.entry(name(weight)).or_default(), values);
    }
    let rows = sums.into_iter();
    rows.map(|(name, sum)| TopRow::new(Function::named(name), sum, sum))
        .collect()
}

#[cfg(test)]
mod tests;
