//! What functions cost by line, and what the calls between them cost, in all columns at once: what
//! the format `callgrind` holds. Called by that; any thread.
//!
//! The cost of a call is the callee's, with all that it calls, in stacks in which the callee isn't
//! open already. So what the callers of a function paid adds up to its total, in recursion too.

mod sums;

use crate::filter::add_thread_frames;
use crate::graph::thread_of;
use crate::stack::groups::{FrameKey, Function, GroupId, Groups};
use crate::stack::walk::{Values, Visitor, walk};
use rperf_model::Order;
use rperf_model::OwnColumn;
use rperf_model::{DisplayFrame, FrameId, Node, NodeId, Profile, Weight};
use rustc_hash::FxHashMap;
use sums::{Sums, add};

/// The costs of a profile's functions. All of them have one value for each column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCosts {
    /// The functions, in the order of their paths and names.
    pub functions: Vec<FunctionCosts>,
    /// All together.
    pub totals: Vec<i64>,
    /// Whether calls were counted; else samples stand for them.
    pub counts_calls: bool,
    /// Values below 0, which are left out.
    pub negative_values: u64,
}

/// What a function is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// A method or block, or whatever else a profile has, whose calls are known as far as the
    /// profile knows them.
    Method,
    /// A method or block, in stacks in which its calls were not counted, while others were.
    NotCounted,
    /// A state of a thread, such as `[GVL blocked]`.
    State,
    /// A thread: it calls what its stacks begin with.
    Thread,
}

/// What a function costs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionCosts {
    /// Its name and path.
    pub function: Function,
    /// What it is.
    pub kind: FunctionKind,
    /// Where it begins; 0 if that isn't known.
    pub first_line: u32,
    /// Costs of its own, by line: those without a line are at the first.
    pub lines: Vec<(u32, Vec<i64>)>,
    /// Its calls of others, and of itself.
    pub calls: Vec<CallCost>,
}

/// What the calls from one line of a function to another function cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallCost {
    /// The place of the function that is called.
    pub callee: usize,
    /// The line of the call.
    pub line: u32,
    /// How often it was called, or how many samples have the call; 0 if neither is known.
    pub count: i64,
    /// The costs of the callee and all that it calls.
    pub costs: Vec<i64>,
}

impl CallCosts {
    /// The costs in `profile`.
    pub fn of(profile: &Profile) -> Self {
        if profile.threads.is_empty() {
            return Adding::new(profile, &Groups::new(profile, FrameKey::Function), false).walked();
        }
        let mut by_thread = profile.clone();
        add_thread_frames(&mut by_thread);
        let groups = Groups::new(&by_thread, FrameKey::Function);
        Adding::new(&by_thread, &groups, true).walked()
    }
}

/// A frame of the stack that the walk is at.
#[derive(Clone, Copy)]
struct Open {
    function: usize,
    line: u32,
    call: Option<usize>,
}

/// A function in the making.
struct Entry {
    group: GroupId,
    kind: FunctionKind,
    first_line: u32,
    /// How often it is among the open frames.
    depth: u32,
}

/// The calls of a profile that counts them.
struct Counted {
    by_node: Vec<i64>,
    /// By caller and frame, whatever the line: objects are at nodes with a line, calls at nodes
    /// without one.
    by_frame: FxHashMap<(NodeId, FrameId), i64>,
}

struct Adding<'a> {
    profile: &'a Profile,
    groups: &'a Groups<'a>,
    by_thread: bool,
    width: usize,
    /// Where calls were counted.
    counts: Option<Counted>,
    first_lines: FxHashMap<GroupId, u32>,
    places: FxHashMap<(GroupId, FunctionKind), usize>,
    functions: Vec<Entry>,
    /// By function and line.
    lines: Sums<(usize, u32)>,
    /// By caller, callee and the line of the call.
    calls: Sums<(usize, usize, u32)>,
    /// By the places of `calls`.
    call_counts: FxHashMap<usize, i64>,
    open: Vec<Open>,
    /// For each open frame what it has cost so far, with all that it called.
    open_totals: Vec<i64>,
    totals: Vec<i64>,
    negative_values: u64,
}

impl Visitor<0> for Adding<'_> {
    fn enter(&mut self, id: NodeId, node: Node) {
        let group = self.groups.of_frame(node.frame);
        let calls = self
            .counts
            .as_ref()
            .map_or(0, |it| it.by_node[id.0 as usize]);
        let kind = match &self.counts {
            _ if self.by_thread && self.open.is_empty() => FunctionKind::Thread,
            None => FunctionKind::Method,
            Some(counts) => counts.kind(id, node),
        };
        let function = self.function(group, kind);
        let call = self.call(function);
        self.count(call, calls);
        let first_line = self.functions[function].first_line;
        let line = if node.line > 0 { node.line } else { first_line };
        self.functions[function].depth += 1;
        self.open.push(Open {
            function,
            line,
            call,
        });
        self.open_totals
            .resize(self.open_totals.len() + self.width, 0);
    }

    fn row(&mut self, row: Weight<'_>, _: Values<0>) {
        let values: Vec<i64> = row.values.iter().map(|value| (*value).max(0)).collect();
        self.negative_values += row.values.iter().filter(|value| **value < 0).count() as u64;
        let place = match self.profile.display_leaf(row.key) {
            Some(leaf) => {
                let function = self.leaf(leaf);
                if let Some(call) = self.call(function) {
                    add(self.calls.values(call), &values);
                }
                self.lines.place((function, 0))
            }
            None => {
                let Some(open) = self.open.last() else { return };
                self.lines.place((open.function, open.line))
            }
        };
        add(self.lines.values(place), &values);
        self.add_to_open(&values);
    }

    fn leave(&mut self, _: NodeId, _: Node, _: Values<0>) {
        let Some(open) = self.open.pop() else { return };
        let totals = self
            .open_totals
            .split_off(self.open_totals.len() - self.width);
        let entry = &mut self.functions[open.function];
        entry.depth -= 1;
        if let Some(call) = open.call
            && entry.depth == 0
        {
            add(self.calls.values(call), &totals);
        }
        self.add_to_open(&totals);
    }
}

impl<'a> Adding<'a> {
    fn new(profile: &'a Profile, groups: &'a Groups<'a>, by_thread: bool) -> Self {
        let width = profile.schema.len();
        let mut first_lines: FxHashMap<GroupId, u32> = FxHashMap::default();
        for (id, frame) in profile.frames.iter().filter(|(_, it)| it.first_line > 0) {
            let first = first_lines
                .entry(groups.of_frame(id))
                .or_insert(frame.first_line);
            *first = frame.first_line.min(*first);
        }
        Self {
            profile,
            groups,
            by_thread,
            width,
            counts: Counted::of(profile),
            first_lines,
            places: FxHashMap::default(),
            functions: Vec::new(),
            lines: Sums::new(width),
            calls: Sums::new(width),
            call_counts: FxHashMap::default(),
            open: Vec::new(),
            open_totals: Vec::new(),
            totals: vec![0; width],
            negative_values: 0,
        }
    }

    fn walked(mut self) -> CallCosts {
        walk(self.profile, [], &mut self);
        self.finish()
    }

    fn function(&mut self, group: GroupId, kind: FunctionKind) -> usize {
        let first_line = self.first_lines.get(&group).copied().unwrap_or(0);
        *self.places.entry((group, kind)).or_insert_with(|| {
            self.functions.push(Entry {
                group,
                kind,
                first_line,
                depth: 0,
            });
            self.functions.len() - 1
        })
    }

    fn leaf(&mut self, leaf: DisplayFrame) -> usize {
        self.function(self.groups.of(leaf), FunctionKind::State)
    }

    /// A call of `function` by the innermost open one.
    fn call(&mut self, function: usize) -> Option<usize> {
        let caller = self.open.last()?;
        Some(self.calls.place((caller.function, function, caller.line)))
    }

    fn count(&mut self, call: Option<usize>, count: i64) {
        if let Some(call) = call {
            let sum = self.call_counts.entry(call).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn add_to_open(&mut self, values: &[i64]) {
        match self.open_totals.len().checked_sub(self.width) {
            Some(top) => add(&mut self.open_totals[top..], values),
            None => add(&mut self.totals, values),
        }
    }

    fn finish(self) -> CallCosts {
        let mut order: Vec<usize> = (0..self.functions.len()).collect();
        let texts = |function: usize| {
            let entry = &self.functions[function];
            let text = &self.groups.texts[entry.group];
            (text.path, &*text.name, entry.kind)
        };
        order.order_by(|a, b| texts(*a).cmp(&texts(*b)));
        let mut places = vec![0; order.len()];
        for (place, &function) in order.iter().enumerate() {
            places[function] = place;
        }
        let mut functions: Vec<FunctionCosts> =
            order.iter().map(|&function| self.costs(function)).collect();
        let counts_calls = self.counts.is_some();
        let samples = self.profile.schema.samples();
        for (_, &(function, line), costs) in self.lines.iter() {
            functions[places[function]]
                .lines
                .push((line, costs.to_vec()));
        }
        for (place, &(caller, callee, line), costs) in self.calls.iter() {
            let count = match (counts_calls, samples) {
                (true, _) => self.call_counts.get(&place).copied().unwrap_or(0),
                (false, Some(samples)) => costs[samples.0],
                (false, None) => 0,
            };
            functions[places[caller]].calls.push(CallCost {
                callee: places[callee],
                line,
                count,
                costs: costs.to_vec(),
            });
        }
        for function in &mut functions {
            function.lines.sort_unstable();
            let by_callee = |call: &CallCost| (call.callee, call.line);
            function.calls.order_by_key(by_callee);
        }
        CallCosts {
            functions,
            totals: self.totals,
            counts_calls,
            negative_values: self.negative_values,
        }
    }

    /// A function without its costs.
    fn costs(&self, function: usize) -> FunctionCosts {
        let Entry {
            group,
            kind,
            first_line,
            ..
        } = self.functions[function];
        let named = match kind {
            FunctionKind::Thread => Function::named(thread_of(self.profile, self.groups, group)),
            _ => self.groups.function(group),
        };
        FunctionCosts {
            function: named,
            kind,
            first_line,
            lines: Vec::new(),
            calls: Vec::new(),
        }
    }
}

impl Counted {
    /// `None` if the profile counts no calls.
    fn of(profile: &Profile) -> Option<Self> {
        let calls = profile.schema.calls()?;
        let block_calls = profile.schema.find_own(OwnColumn::BlockCalls);
        let mut by_node = vec![0_i64; profile.tree.len() + 1];
        for weight in profile.weights.iter() {
            let of_blocks = block_calls.map_or(0, |column| weight.value(column));
            let sum = &mut by_node[weight.key.node.0 as usize];
            let count = weight.value(calls).saturating_add(of_blocks);
            *sum = sum.saturating_add(count);
        }
        let mut by_frame: FxHashMap<_, i64> = FxHashMap::default();
        for (id, node) in profile.tree.iter() {
            let count = by_node[id.0 as usize];
            let sum = by_frame.entry((node.parent, node.frame)).or_default();
            *sum = sum.saturating_add(count);
        }
        Some(Self { by_node, by_frame })
    }

    /// What the calls of a node say of its function.
    fn kind(&self, id: NodeId, node: Node) -> FunctionKind {
        let own = self.by_node[id.0 as usize];
        let calls = match own {
            0 => self.by_frame.get(&(node.parent, node.frame)).copied(),
            _ => Some(own),
        };
        match calls {
            Some(calls) if calls > 0 => FunctionKind::Method,
            _ => FunctionKind::NotCounted,
        }
    }
}

#[cfg(test)]
mod tests;
