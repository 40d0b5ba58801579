//! The sums of a call graph: one walk through all stacks. Called by `graph`, with all nodes and then
//! with those that are kept; any thread.

use crate::stack::groups::{GroupId, Groups};
use crate::stack::walk::{OnceSums, Values, Visitor, walk_summing};
use rperf_model::{Column, Node, NodeId, Profile, Weight};
use rustc_hash::FxHashMap;

/// The sums of a graph. Nodes have the same places whichever of them are kept; those that
/// aren't have no sums.
pub(super) struct Sums {
    pub(super) nodes: Vec<NodeSum>,
    pub(super) edges: Vec<EdgeSum>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NodeSum {
    pub(super) group: GroupId,
    /// The group of the thread's frame, where each thread has its own nodes.
    pub(super) thread: Option<GroupId>,
    pub(super) own: i64,
    pub(super) total: i64,
    pub(super) calls: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EdgeSum {
    pub(super) caller: usize,
    pub(super) callee: usize,
    pub(super) value: i64,
    pub(super) calls: i64,
    pub(super) is_residual: bool,
}

impl Sums {
    /// The sums of `profile` for the values in `column`, and for its calls. `by_thread`: the
    /// roots of all stacks are the frames of threads. `is_kept`: without it all nodes are.
    pub(super) fn of(
        profile: &Profile,
        groups: &Groups<'_>,
        column: Column,
        by_thread: bool,
        is_kept: Option<&[bool]>,
    ) -> Self {
        let calls = profile.schema.calls();
        let mut adding = Adding {
            profile,
            groups,
            is_kept,
            by_thread,
            thread: None,
            places: FxHashMap::default(),
            nodes: Vec::new(),
            node_totals: OnceSums::new(0),
            edge_places: FxHashMap::default(),
            edges: Vec::new(),
            edge_values: OnceSums::new(0),
            open: Vec::new(),
        };
        let values = |row: Weight<'_>| {
            let calls = calls.map_or(0, |calls| row.value(calls));
            [row.value(column), calls]
        };
        walk_summing(profile, values, &mut adding);
        adding.finish()
    }
}

/// A frame of the stack that the walk is at.
#[derive(Clone, Copy)]
struct Open {
    /// Its node, if that is kept; else the one of the next caller that is.
    nearest: Option<usize>,
    is_kept: bool,
    /// The edge to it from the caller that is kept.
    edge: Option<usize>,
    /// Whether no other frame is between the two.
    is_direct: bool,
}

impl Open {
    /// Its own node, if that is kept.
    fn node(self) -> Option<usize> {
        self.nearest.filter(|_| self.is_kept)
    }
}

struct Adding<'a> {
    profile: &'a Profile,
    groups: &'a Groups<'a>,
    is_kept: Option<&'a [bool]>,
    by_thread: bool,
    thread: Option<GroupId>,
    /// Places in `nodes`, by thread and group.
    places: FxHashMap<(Option<GroupId>, GroupId), usize>,
    nodes: Vec<NodeSum>,
    node_totals: OnceSums<1>,
    /// Places in `edges`, by caller and callee.
    edge_places: FxHashMap<(usize, usize), usize>,
    edges: Vec<EdgeSum>,
    edge_values: OnceSums<1>,
    open: Vec<Open>,
}

impl Visitor<2> for Adding<'_> {
    fn enter(&mut self, id: NodeId, node: Node) {
        let group = self.groups.of_node(id, node);
        if self.by_thread && self.open.is_empty() {
            self.thread = Some(group);
            self.open.push(Open {
                nearest: None,
                is_kept: true,
                edge: None,
                is_direct: false,
            });
            return;
        }
        let open = self.called(group);
        if let Some(node) = open.node() {
            self.node_totals.enter(node);
        }
        if let Some(edge) = open.edge {
            self.edge_values.enter(edge);
        }
        self.open.push(open);
    }

    fn row(&mut self, row: Weight<'_>, [value, calls]: Values<2>) {
        if let Some(&open) = self.open.last()
            && let Some(node) = open.node()
        {
            add(&mut self.nodes[node].calls, calls);
            if let Some(edge) = open.edge.filter(|_| open.is_direct) {
                add(&mut self.edges[edge].calls, calls);
            }
        }
        let leaf = match self.profile.display_leaf(row.key) {
            Some(leaf) => {
                let leaf = self.called(self.groups.of(leaf));
                if let Some(node) = leaf.node() {
                    self.node_totals.add_leaf(node, [value]);
                }
                if let Some(edge) = leaf.edge {
                    self.edge_values.add_leaf(edge, [value]);
                }
                Some(leaf)
            }
            None => self.open.last().copied(),
        };
        if let Some(node) = leaf.and_then(Open::node) {
            add(&mut self.nodes[node].own, value);
        }
    }

    fn leave(&mut self, _: NodeId, _: Node, [total, _]: Values<2>) {
        let Some(open) = self.open.pop() else {
            return;
        };
        if let Some(node) = open.node() {
            self.node_totals.leave(node, [total]);
        }
        if let Some(edge) = open.edge {
            self.edge_values.leave(edge, [total]);
        }
    }
}

impl Adding<'_> {
    /// A frame of this group, called by the innermost open one.
    fn called(&mut self, group: GroupId) -> Open {
        let caller = self.open.last().copied();
        let node = self.node(group);
        let nearest = caller.and_then(|caller| caller.nearest);
        if self.is_kept.is_some_and(|is_kept| !is_kept[node]) {
            return Open {
                nearest,
                is_kept: false,
                edge: None,
                is_direct: false,
            };
        }
        let is_direct = caller.is_some_and(|caller| caller.is_kept);
        Open {
            nearest: Some(node),
            is_kept: true,
            edge: nearest.map(|caller| self.edge(caller, node, is_direct)),
            is_direct,
        }
    }

    fn node(&mut self, group: GroupId) -> usize {
        let thread = self.thread;
        *self.places.entry((thread, group)).or_insert_with(|| {
            self.nodes.push(NodeSum {
                group,
                thread,
                own: 0,
                total: 0,
                calls: 0,
            });
            self.node_totals.push()
        })
    }

    fn edge(&mut self, caller: usize, callee: usize, is_direct: bool) -> usize {
        let edge = *self.edge_places.entry((caller, callee)).or_insert_with(|| {
            self.edges.push(EdgeSum {
                caller,
                callee,
                value: 0,
                calls: 0,
                is_residual: true,
            });
            self.edge_values.push()
        });
        self.edges[edge].is_residual &= !is_direct;
        edge
    }

    fn finish(mut self) -> Sums {
        for (node, [total]) in self.nodes.iter_mut().zip(self.node_totals.totals) {
            node.total = total;
        }
        for (edge, [value]) in self.edges.iter_mut().zip(self.edge_values.totals) {
            edge.value = value;
        }
        Sums {
            nodes: self.nodes,
            edges: self.edges,
        }
    }
}

fn add(sum: &mut i64, value: i64) {
    *sum = sum.saturating_add(value);
}
