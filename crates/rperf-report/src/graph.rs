//! The call graph: each function once, with its own value and its total, and who calls whom. Used by
//! `rperf report --dot` and `--svg`, and by the format `dot`; any thread.
//!
//! What is small is cut, with pprof's rules: `choice` says which functions are left, `trim` which
//! calls. Calls that lead from one function that is left to another, by way of cut ones only, are
//! one edge: a residual one.

mod choice;
mod limits;
mod sums;
mod trim;

use crate::filter::add_thread_frames;
use crate::rows::threads::thread_name;
use crate::stack::groups::{CoreMethods, FrameKey, Function, Groups};
use limits::RankText;
pub use limits::{Cut, GraphLimits};
use rperf_model::{Column, Profile};
use std::cmp::Reverse;
use sums::{EdgeSum, NodeSum, Sums};

/// What the nodes of a call graph are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NodeKind {
    /// Methods, blocks and the synthetic leaves, by name and path.
    #[default]
    Function,
    /// Classes and modules, with the functions that have none.
    Class,
    /// Paths.
    File,
    /// Directories of paths.
    Directory,
    /// Gems with their versions, the standard library, the application.
    Gem(CoreMethods),
    /// Functions, those of each thread for themselves.
    FunctionOfThread,
}

/// A call graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallGraph {
    /// All weights.
    pub total: i64,
    /// Whether the profile counts calls.
    pub counts_calls: bool,
    /// The nodes, the largest total first.
    pub nodes: Vec<GraphNode>,
    /// The edges, the largest value first.
    pub edges: Vec<GraphEdge>,
    /// What has been cut.
    pub cut: Cut,
}

/// A function, or whatever else nodes are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphNode {
    /// The function. Nodes of other kinds have their text in its name.
    pub function: Function,
    /// The thread that it is of, where each thread has its own nodes.
    pub thread: Option<String>,
    /// Value of the stacks whose leaf it is.
    pub self_value: i64,
    /// Value of the stacks that have it anywhere, each once.
    pub total_value: i64,
    /// How often it was called; `None` where that isn't known.
    pub calls: Option<i64>,
}

/// Who calls whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GraphEdge {
    /// The node that calls.
    pub caller: usize,
    /// The node that is called; the same one, where it calls itself.
    pub callee: usize,
    /// Value of the stacks with the call anywhere, each once.
    pub value: i64,
    /// How often it was made; `None` where that isn't known.
    pub calls: Option<i64>,
    /// Whether all stacks lead from the one to the other by way of nodes that have been cut.
    pub is_residual: bool,
}

impl CallGraph {
    /// The graph of `profile` for the values in `column`.
    pub fn of(profile: &Profile, column: Column, kind: NodeKind, limits: GraphLimits) -> Self {
        match kind {
            NodeKind::FunctionOfThread => {
                let mut by_thread = profile.clone();
                add_thread_frames(&mut by_thread);
                Self::with_groups(&by_thread, column, kind, limits)
            }
            _ => Self::with_groups(profile, column, kind, limits),
        }
    }

    fn with_groups(profile: &Profile, column: Column, kind: NodeKind, limits: GraphLimits) -> Self {
        let groups = Groups::new(profile, frame_key(kind));
        let by_thread = kind == NodeKind::FunctionOfThread;
        let ask = |is_kept: Option<&[bool]>| Sums::of(profile, &groups, column, by_thread, is_kept);
        let all = ask(None);
        let (is_kept, mut cut) = choice::choose(&all, limits, |node| rank_text(&groups, node));
        let kept = match is_kept.contains(&false) {
            true => ask(Some(&is_kept)),
            false => all,
        };
        let order = ordered(&kept.nodes, &is_kept, |node| rank_text(&groups, node));
        let mut places = vec![usize::MAX; kept.nodes.len()];
        for (place, &node) in order.iter().enumerate() {
            places[node] = place;
        }
        let edges = kept.edges.iter().map(|edge| EdgeSum {
            caller: places[edge.caller],
            callee: places[edge.callee],
            ..*edge
        });
        let trimmed = trim::trim(edges.collect(), order.len(), limits.least_edge);
        cut.edges = trimmed.cut;
        let known = |count: i64| (count != 0).then_some(count);
        let node = |&node: &usize| {
            let sum = &kept.nodes[node];
            GraphNode {
                function: groups.function(sum.group),
                thread: sum.thread.map(|thread| thread_of(profile, &groups, thread)),
                self_value: sum.own,
                total_value: sum.total,
                calls: known(sum.calls),
            }
        };
        let edge = |edge: EdgeSum| GraphEdge {
            caller: edge.caller,
            callee: edge.callee,
            value: edge.value,
            calls: known(edge.calls),
            is_residual: edge.is_residual,
        };
        Self {
            total: profile.sum(column),
            counts_calls: profile.schema.calls().is_some(),
            nodes: order.iter().map(node).collect(),
            edges: trimmed.edges.into_iter().map(edge).collect(),
            cut,
        }
    }
}

fn frame_key(kind: NodeKind) -> FrameKey {
    match kind {
        NodeKind::Function | NodeKind::FunctionOfThread => FrameKey::Function,
        NodeKind::Class => FrameKey::Class,
        NodeKind::File => FrameKey::File,
        NodeKind::Directory => FrameKey::Directory,
        NodeKind::Gem(core) => FrameKey::Gem(core),
    }
}

/// The thread whose frame has this group: it is named for the number.
pub(crate) fn thread_of(profile: &Profile, groups: &Groups<'_>, thread: usize) -> String {
    let seq = groups.texts[thread].name.parse().unwrap_or(0);
    let thread = profile.threads.iter().find(|thread| thread.seq == seq);
    thread_name(
        seq,
        thread.map_or("", |thread| profile.strings.get(thread.name)),
    )
}

fn rank_text<'a>(groups: &'a Groups<'_>, node: &NodeSum) -> RankText<'a> {
    let text = &groups.texts[node.group];
    let thread = node.thread.map_or("", |thread| &*groups.texts[thread].name);
    (&text.name, &text.short_path, thread)
}

/// The nodes that are kept, the largest total first.
fn ordered<'a>(
    nodes: &[NodeSum],
    is_kept: &[bool],
    text: impl Fn(&NodeSum) -> RankText<'a>,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..nodes.len()).filter(|&node| is_kept[node]).collect();
    order.sort_by_cached_key(|&node| {
        let sum = &nodes[node];
        (Reverse(sum.total.unsigned_abs()), text(sum))
    });
    order
}

#[cfg(test)]
mod tests;
