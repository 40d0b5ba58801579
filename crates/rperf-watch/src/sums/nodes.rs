//! The stacks of all programs, each once: without their lines, as people see them, and with them,
//! as the programs send them.

use super::reading::CAP;
use rperf_model::CallTree;
use rustc_hash::FxHashMap;
use std::ops::Deref;

/// A stack without its lines.
#[derive(Debug, Clone, Copy)]
pub struct Node {
    /// The node of the caller. The root is its own.
    pub parent: u32,
    /// The method.
    pub method: u32,
    /// The callees: the last one's number, and the one's before it of the same caller; 0 for none.
    pub first_child: u32,
    /// The next callee of the same caller.
    pub next_sibling: u32,
}

/// The numbers of nodes by caller and method, but for the last callee of each caller.
pub(super) type NodeNumbers = FxHashMap<(u32, u32), u32>;

/// All nodes by their numbers, callers before their callees and the root before all, and which of
/// them each stack with its lines belongs to.
#[derive(Debug, Clone)]
pub struct Nodes {
    all: Vec<Node>,
    /// All stacks with their lines.
    pub(super) stacks: CallTree,
    /// The node of each stack, that of the root first.
    of_stacks: Vec<u32>,
}

impl Default for Nodes {
    fn default() -> Self {
        let root = Node {
            parent: 0,
            method: u32::MAX,
            first_child: 0,
            next_sibling: 0,
        };
        Nodes {
            all: vec![root],
            stacks: CallTree::default(),
            of_stacks: vec![0],
        }
    }
}

impl Deref for Nodes {
    type Target = [Node];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Nodes {
    /// The callees of a node.
    pub(super) fn children(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        let next = |node: u32| (node != 0).then_some(node);
        let first = self.all.get(node as usize);
        let first = first.and_then(|it| next(it.first_child));
        std::iter::successors(first, move |&it| next(self.all[it as usize].next_sibling))
    }

    /// The node of a stack.
    pub(super) fn of_stack(&self, stack: u32) -> u32 {
        self.of_stacks[stack as usize]
    }

    /// The number of a stack, whose frame is one of `method`.
    pub(super) fn stack(
        &mut self,
        stack: rperf_model::Node,
        method: u32,
        known: &mut NodeNumbers,
    ) -> Option<u32> {
        if self.stacks.len() >= CAP {
            return self.stacks.find(&stack).map(|it| it.0);
        }
        let id = self.stacks.intern(stack).0;
        if id as usize == self.of_stacks.len() {
            let caller = self.of_stack(stack.parent.0);
            let node = self.node(caller, method, known);
            self.of_stacks.push(node);
        }
        Some(id)
    }

    fn node(&mut self, parent: u32, method: u32, known: &mut NodeNumbers) -> u32 {
        let number = self.all.len() as u32;
        let last = self.all[parent as usize].first_child;
        if last != 0 {
            let last_method = self.all[last as usize].method;
            if last_method == method {
                return last;
            }
            if let Some(&found) = known.get(&(parent, method)) {
                return found;
            }
            known.insert((parent, last_method), last);
        }
        self.all.push(Node {
            parent,
            method,
            first_child: 0,
            next_sibling: last,
        });
        self.all[parent as usize].first_child = number;
        number
    }
}
