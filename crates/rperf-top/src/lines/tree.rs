//! The lines of the call tree: callees below their callers, or callers below their callees. Only
//! what is opened is visited.

use crate::line::{Line, Question, What, key};
use rperf_model::Order;
use rperf_watch::sums::{NodeTimes, Sums, Times};
use rustc_hash::{FxHashMap, FxHashSet};

/// A line that is being opened, and what of those below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// The line below, as long as there is only one.
    Only(u64),
    /// The one with the most time, as long as it has at least half of it. 0 for the first line.
    Hottest(u64),
}

/// What the user has made of the tree, of whichever sums it is.
#[derive(Debug, Default)]
pub struct Tree {
    /// Callers are shown below their callees.
    pub bottom_up: bool,
    /// What is opened as the lines are made next, and only then.
    pub opening: Option<Opening>,
    /// The keys of lines that are opened, also of those that aren't there just now.
    opened: FxHashSet<u64>,
}

impl Tree {
    /// Closes the line with this key.
    pub fn close(&mut self, key: u64) {
        self.opened.remove(&key);
    }
}

/// A stack from above or from below.
struct Branch {
    line: Line,
    /// From above: its node. From below: each caller's node at this depth, with the leaf's.
    nodes: Vec<(u32, u32)>,
}

struct Maker<'a> {
    sums: &'a Sums,
    question: &'a Question<'a>,
    times: NodeTimes,
    /// Whether it, a caller or a callee is looked for; empty if nothing is.
    found: Vec<bool>,
    bottom_up: bool,
    process: Option<u32>,
}

/// The lines. What is opened grows by what is being opened.
pub fn tree(sums: &Sums, question: &Question<'_>, tree: &mut Tree) -> Vec<Line> {
    let mut lines = Vec::new();
    for process in question.processes(sums) {
        let times = sums.node_times(question.scope, question.filter, process);
        let all = times.all();
        if let (Some(process), true) = (process, all != Times::default()) {
            lines.push(Line::heading(process, all));
        }
        let found = match question.search.is_empty() {
            true => Vec::new(),
            false => found_nodes(sums, question),
        };
        let maker = Maker {
            sums,
            question,
            times,
            found,
            bottom_up: tree.bottom_up,
            process,
        };
        maker.add(&mut lines, tree);
    }
    lines
}

/// The stacks that have something to do with methods that are looked for.
fn found_nodes(sums: &Sums, question: &Question<'_>) -> Vec<bool> {
    let methods = 0..sums.methods.len() as u32;
    let methods: Vec<_> = methods
        .map(|method| question.finds_method(sums, method))
        .collect();
    let mut found: Vec<_> = sums
        .nodes
        .iter()
        .map(|node| methods.get(node.method as usize) == Some(&true))
        .collect();
    // Below what is found.
    for number in 1..found.len() {
        found[number] |= found[sums.nodes[number].parent as usize];
    }
    // And above.
    for number in (1..found.len()).rev() {
        if found[number] {
            found[sums.nodes[number].parent as usize] = true;
        }
    }
    found
}

impl Maker<'_> {
    fn add(&self, lines: &mut Vec<Line>, tree: &mut Tree) {
        let mut branches = match self.bottom_up {
            true => self.leaves(),
            false => self.callees(0, 0),
        };
        self.order(&mut branches);
        if let Some(Opening::Hottest(0)) = tree.opening {
            tree.opening = branches.last().map(|it| Opening::Hottest(it.line.key));
        }
        while let Some(mut branch) = branches.pop() {
            let key = branch.line.key;
            let is_opening = matches!(
                tree.opening,
                Some(Opening::Only(wanted) | Opening::Hottest(wanted)) if wanted == key
            );
            if is_opening {
                tree.opened.insert(key);
            }
            let is_opened = tree.opened.contains(&key);
            let below = match is_opened {
                true => self.below(&branch),
                false => Vec::new(),
            };
            branch.line.opens = match is_opened {
                true => (!below.is_empty()).then_some(true),
                false => self.has_below(&branch).then_some(false),
            };
            let mut below = below;
            self.order(&mut below);
            if is_opening {
                tree.opening = self.next(&branch.line, &below, tree.opening);
            }
            lines.push(branch.line);
            branches.extend(below);
        }
    }

    /// What is opened after `line`, whose callees or callers are `below`, the first one last.
    fn next(&self, line: &Line, below: &[Branch], opening: Option<Opening>) -> Option<Opening> {
        let first = &below.last()?.line;
        let sort = self.question.sort;
        match opening? {
            Opening::Only(_) => (below.len() == 1).then_some(Opening::Only(first.key)),
            Opening::Hottest(_) => {
                let (whole, part) = (line.value(sort, true), first.value(sort, true));
                (part > 0 && part >= whole / 2).then_some(Opening::Hottest(first.key))
            }
        }
    }

    /// The first one last, as it is taken from the end.
    fn order(&self, branches: &mut [Branch]) {
        branches.sort_by_cached_key(|it| {
            let line = &it.line;
            (
                line.value(self.question.sort, true),
                line.total.run,
                line.total.all(),
            )
        });
    }

    fn is_shown(&self, node: u32) -> bool {
        let is_found = self.found.is_empty() || self.found[node as usize];
        is_found && self.times.total[node as usize] != Times::default()
    }

    fn below(&self, branch: &Branch) -> Vec<Branch> {
        let depth = branch.line.depth + 1;
        match self.bottom_up {
            true => self.callers(branch, depth),
            false => self.callees(branch.nodes[0].0, depth),
        }
    }

    fn has_below(&self, branch: &Branch) -> bool {
        match self.bottom_up {
            true => branch
                .nodes
                .iter()
                .any(|(node, _)| self.sums.nodes[*node as usize].parent != 0),
            false => {
                let node = branch.nodes[0].0;
                self.sums.children(node).any(|it| self.is_shown(it))
            }
        }
    }

    fn line(&self, method: u32, key: u64, depth: usize, own: Times, total: Times) -> Line {
        Line {
            what: What::Method(method),
            key,
            depth,
            opens: None,
            own,
            total,
            whole: self.times.all().run,
        }
    }

    fn callees(&self, node: u32, depth: usize) -> Vec<Branch> {
        let shown = self.sums.children(node).filter(|it| self.is_shown(*it));
        let branch = |node: u32| {
            let place = node as usize;
            let method = self.sums.nodes[place].method;
            let (own, total) = (self.times.own[place], self.times.total[place]);
            Branch {
                line: self.line(
                    method,
                    key(&("down", self.process, node)),
                    depth,
                    own,
                    total,
                ),
                nodes: vec![(node, node)],
            }
        };
        shown.map(branch).collect()
    }

    fn leaves(&self) -> Vec<Branch> {
        let nodes = 1..self.sums.nodes.len() as u32;
        let with_time = nodes
            .filter(|it| self.is_shown(*it) && self.times.own[*it as usize] != Times::default());
        self.grouped(with_time.map(|it| (it, it)), key(&("up", self.process)), 0)
    }

    fn callers(&self, branch: &Branch, depth: usize) -> Vec<Branch> {
        let above = branch.nodes.iter().map(|(node, leaf)| {
            let parent = self.sums.nodes[*node as usize].parent;
            (parent, *leaf)
        });
        self.grouped(above.filter(|(node, _)| *node != 0), branch.line.key, depth)
    }

    fn grouped(
        &self,
        nodes: impl Iterator<Item = (u32, u32)>,
        above: u64,
        depth: usize,
    ) -> Vec<Branch> {
        let mut groups: FxHashMap<u32, Vec<(u32, u32)>> = FxHashMap::default();
        for (node, leaf) in nodes {
            let method = self.sums.nodes[node as usize].method;
            groups.entry(method).or_default().push((node, leaf));
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.order_by_key(|(method, _)| *method);
        let branch = |(method, nodes): (u32, Vec<(u32, u32)>)| {
            let mut total = Times::default();
            for (_, leaf) in &nodes {
                total.add(self.times.own[*leaf as usize]);
            }
            let own = if depth == 0 { total } else { Times::default() };
            Branch {
                line: self.line(method, key(&(above, method)), depth, own, total),
                nodes,
            }
        };
        groups.into_iter().map(branch).collect()
    }
}
