//! Callers and callees of functions, with the calling lines. Used by
//! `rperf report --callers`; any thread.

use crate::stack::groups::{FrameKey, Function, GroupId, Groups};
use crate::stack::walk::{OnceSums, Values, Visitor, walk};
use crate::text::pattern::NamePattern;
use rperf_model::{Column, Node, NodeId, Order, Profile, Weight};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A function with those that call it and those that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    /// The function.
    pub function: Function,
    /// Value of the stacks whose leaf it is.
    pub self_value: i64,
    /// Value of the stacks that have it anywhere, each once.
    pub total_value: i64,
    /// Its callers, the largest value first.
    pub callers: Vec<Neighbour>,
    /// Whom it calls, the largest value first.
    pub callees: Vec<Neighbour>,
}

/// A caller or a callee of the function, with the calls between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// The caller, or the callee.
    pub function: Function,
    /// Value of the stacks with the call anywhere, each once.
    pub value: i64,
    /// The lines of the calls, in the caller, with the value of the stacks that have
    /// them, the largest first. 0 stands for those that are not known.
    pub lines: Vec<(u32, i64)>,
}

impl Neighbours {
    /// The functions of `profile` that `pattern` chooses, the largest total first.
    pub fn of(profile: &Profile, column: Column, pattern: &NamePattern) -> Vec<Neighbours> {
        let groups = Groups::new(profile, FrameKey::Function);
        let texts = groups.texts.iter();
        let mut sums = CallSums {
            profile,
            groups: &groups,
            is_chosen: texts.map(|text| pattern.matches(&text.name)).collect(),
            functions: OnceSums::new(groups.len()),
            selfs: vec![0; groups.len()],
            calls: FxHashMap::default(),
            call_sums: OnceSums::new(0),
            lines: FxHashMap::default(),
            line_sums: OnceSums::new(0),
        };
        walk(profile, [column], &mut sums);
        sums.finish()
    }
}

struct CallSums<'a> {
    profile: &'a Profile,
    groups: &'a Groups<'a>,
    is_chosen: Vec<bool>,
    functions: OnceSums<1>,
    selfs: Vec<i64>,
    /// By caller and callee.
    calls: FxHashMap<(GroupId, GroupId), usize>,
    call_sums: OnceSums<1>,
    /// By call and line.
    lines: FxHashMap<(usize, u32), usize>,
    line_sums: OnceSums<1>,
}

/// A call: rows of `CallSums`.
#[derive(Clone, Copy)]
struct Call {
    call: usize,
    line: usize,
}

impl Visitor<1> for CallSums<'_> {
    fn enter(&mut self, _: NodeId, node: Node) {
        let group = self.groups.of_frame(node.frame);
        self.functions.enter(group);
        if let Some(Call { call, line }) = self.call(node.parent, group) {
            self.call_sums.enter(call);
            self.line_sums.enter(line);
        }
    }

    fn row(&mut self, row: Weight<'_>, values: Values<1>) {
        let node = row.key.node;
        let leaf = match self.profile.display_leaf(row.key) {
            Some(leaf) => {
                let leaf = self.groups.of(leaf);
                self.functions.add_leaf(leaf, values);
                if let Some(Call { call, line }) = self.call(node, leaf) {
                    self.call_sums.add_leaf(call, values);
                    self.line_sums.add_leaf(line, values);
                }
                leaf
            }
            None => match self.profile.tree.get(node) {
                Some(node) => self.groups.of_frame(node.frame),
                None => return,
            },
        };
        self.selfs[leaf] = self.selfs[leaf].saturating_add(values[0]);
    }

    fn leave(&mut self, _: NodeId, node: Node, total: Values<1>) {
        let group = self.groups.of_frame(node.frame);
        self.functions.leave(group, total);
        if let Some(Call { call, line }) = self.call(node.parent, group) {
            self.call_sums.leave(call, total);
            self.line_sums.leave(line, total);
        }
    }
}

impl CallSums<'_> {
    /// The call of `callee` from the node `caller`, if one of the two is chosen.
    fn call(&mut self, caller: NodeId, callee: GroupId) -> Option<Call> {
        let node = self.profile.tree.get(caller)?;
        let caller = self.groups.of_frame(node.frame);
        if !self.is_chosen[caller] && !self.is_chosen[callee] {
            return None;
        }
        let sums = &mut self.call_sums;
        let call = *self
            .calls
            .entry((caller, callee))
            .or_insert_with(|| sums.push());
        let sums = &mut self.line_sums;
        let line = *self
            .lines
            .entry((call, node.line))
            .or_insert_with(|| sums.push());
        Some(Call { call, line })
    }

    fn finish(self) -> Vec<Neighbours> {
        let mut lines: FxHashMap<usize, Vec<(u32, i64)>> = FxHashMap::default();
        for (&(call, number), &line) in &self.lines {
            let [value] = self.line_sums.totals[line];
            lines.entry(call).or_default().push((number, value));
        }
        let mut found: BTreeMap<GroupId, Neighbours> = BTreeMap::new();
        for group in (0..self.groups.len()).filter(|group| self.is_chosen[*group]) {
            let [total_value] = self.functions.totals[group];
            if (self.selfs[group], total_value) != (0, 0) {
                let neighbours = Neighbours {
                    function: self.groups.function(group),
                    self_value: self.selfs[group],
                    total_value,
                    callers: Vec::new(),
                    callees: Vec::new(),
                };
                found.insert(group, neighbours);
            }
        }
        for (&(caller, callee), &call) in &self.calls {
            let mut lines = lines.remove(&call).unwrap_or_default();
            lines.order_by_key(|(number, value)| (Reverse(value.unsigned_abs()), *number));
            let neighbour = |group| Neighbour {
                function: self.groups.function(group),
                value: self.call_sums.totals[call][0],
                lines: lines.clone(),
            };
            if let Some(chosen) = found.get_mut(&callee) {
                chosen.callers.push(neighbour(caller));
            }
            if let Some(chosen) = found.get_mut(&caller) {
                chosen.callees.push(neighbour(callee));
            }
        }
        let mut found: Vec<_> = found.into_values().collect();
        for chosen in &mut found {
            for side in [&mut chosen.callers, &mut chosen.callees] {
                side.retain(|neighbour| neighbour.value != 0);
                side.order_by(|a, b| {
                    let largest_first = b.value.unsigned_abs().cmp(&a.value.unsigned_abs());
                    largest_first.then_with(|| a.function.cmp(&b.function))
                });
            }
        }
        found.order_by(|a, b| {
            let largest_first = b
                .total_value
                .unsigned_abs()
                .cmp(&a.total_value.unsigned_abs());
            largest_first.then_with(|| a.function.cmp(&b.function))
        });
        found
    }
}

#[cfg(test)]
mod tests;
