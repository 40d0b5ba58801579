//! Frames that a profile doesn't show one by one: excluded ones, and those below the depth limit.
//! They are in the tree all the same, so our stack stays the VM's; only as the profile is made, what
//! they have had goes to the nearest frame above that is shown. Outside of hooks.

use crate::event::TracedKind;
use crate::tree::counts::Counts;
use crate::tree::state_times::StateTimes;
use crate::tree::thread::ThreadSums;
use crate::tree::{ROOT, TracedNode};
use Exclusion::{Asked, Core, Loader, Own, PassesOn};
use std::borrow::Cow;

/// Whether a frame is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exclusion {
    /// A frame that isn't left out.
    None,
    /// A frame that somebody asked to leave out.
    Asked,
    /// A frame of the profiler's own. Core methods that it calls are its own, too.
    Own,
    /// A frame of the profiler's own; what it calls may be the program's.
    PassesOn,
    /// A core method in Ruby, which isn't left out by itself.
    Core,
    /// A frame that loads files. It is the profiler's if no event told of its call and it leads to
    /// the profiler's own frames, of which no event told either.
    Loader,
}

/// Where the time and the objects of each node go. One more node is for what the profiler does of its
/// own accord, below the root.
#[derive(Debug)]
pub(crate) struct Folds {
    /// By node: a node that is shown, or the root.
    homes: Vec<u32>,
    /// By node: whether its calls don't count.
    is_excluded: Vec<bool>,
    is_empty: bool,
}

impl Folds {
    /// `excluded` tells by row which frames are left out; nodes below level `deepest` have no time of
    /// their own. `c_pays`: methods of C that no event told of have time of their own.
    pub(crate) fn new(
        nodes: &[TracedNode],
        excluded: &[Exclusion],
        deepest: u32,
        c_pays: bool,
    ) -> Self {
        let own_root = nodes.len() as u32;
        let loads_own = loaders(nodes, excluded);
        let mut homes: Vec<u32> = Vec::with_capacity(nodes.len());
        let mut is_excluded = Vec::with_capacity(nodes.len());
        let mut serves_own = vec![false; nodes.len()];
        let mut is_empty = true;
        for (number, node) in nodes.iter().enumerate() {
            let number = number as u32;
            let told = exclusion(excluded, node.row);
            // Parents come first.
            let is_called_by_own = serves_own.get(node.parent as usize) == Some(&true);
            serves_own[number as usize] =
                told == Own || is_called_by_own && (told == Core || node.kind.is_c());
            let is_own =
                loads_own[number as usize] || serves_own[number as usize] || told == PassesOn;
            let excludes = is_own || told == Asked;
            let home = match excludes || node.level > deepest {
                true => homes[payer(nodes, node.parent, c_pays) as usize],
                false => number,
            };
            let home = if is_own && home == ROOT {
                own_root
            } else {
                home
            };
            is_empty &= home == number;
            homes.push(home);
            is_excluded.push(excludes);
        }
        homes.push(own_root);
        is_excluded.push(false);
        Self {
            homes,
            is_excluded,
            is_empty,
        }
    }

    /// The node that has the time and the objects of `node`.
    pub(crate) fn home(&self, node: u32) -> u32 {
        self.homes[node as usize]
    }

    /// Whether the frame of `node` is left out.
    pub(crate) fn is_excluded(&self, node: u32) -> bool {
        self.is_excluded[node as usize]
    }

    /// The node of what the profiler itself does, if it has done anything.
    pub(crate) fn own_root(&self) -> Option<u32> {
        let own_root = self.homes.len() as u32 - 1;
        let others = &self.homes[..own_root as usize];
        others.contains(&own_root).then_some(own_root)
    }

    /// By node, whether its frame is left out.
    pub(crate) fn excluded(&self) -> &[bool] {
        &self.is_excluded
    }

    /// The sums as they are shown.
    pub(crate) fn of<'a>(&self, sums: &'a ThreadSums) -> Cow<'a, ThreadSums> {
        if self.is_empty {
            return Cow::Borrowed(sums);
        }
        let mut folded = ThreadSums {
            counts: Counts::default(),
            states: self.of_states(&sums.states),
            used: self.of_states(&sums.used),
            ..ThreadSums::default()
        };
        for (node, count) in sums.counts.iter() {
            folded.counts.of(self.home(node)).running += count.running;
            if !self.is_excluded(node) {
                folded.counts.of(node).calls += count.calls;
            }
        }
        for (node, ns) in &sums.stolen {
            *folded.stolen.entry(self.home(*node)).or_default() += ns;
        }
        Cow::Owned(folded)
    }

    fn of_states(&self, times: &StateTimes) -> StateTimes {
        let mut folded = StateTimes::default();
        for (node, state, ticks) in times.sorted() {
            folded.add(self.home(node), state, ticks);
        }
        folded
    }
}

/// What is told of the frame of this row.
pub(crate) fn exclusion(excluded: &[Exclusion], row: u32) -> Exclusion {
    excluded
        .get(row as usize)
        .copied()
        .unwrap_or(Exclusion::None)
}

/// The nodes at the bottom that have loaded the profiler.
fn loaders(nodes: &[TracedNode], excluded: &[Exclusion]) -> Vec<bool> {
    let mut loads_own = vec![false; nodes.len()];
    let is_inserted =
        |node: &TracedNode| matches!(node.kind, TracedKind::Inserted | TracedKind::InsertedC);
    // Children come last.
    for (number, node) in nodes.iter().enumerate().rev() {
        let told = exclusion(excluded, node.row);
        let leads_to_own = loads_own[number] || matches!(told, Own | PassesOn);
        let Some(parent) = nodes.get(node.parent as usize) else {
            continue;
        };
        let loads = is_inserted(parent) && exclusion(excluded, parent.row) == Loader;
        if loads && leads_to_own && is_inserted(node) {
            loads_own[node.parent as usize] = true;
        }
    }
    loads_own
}

/// The node that has the caller's part of what is spent below `parent`.
pub(crate) fn payer(nodes: &[TracedNode], parent: u32, c_pays: bool) -> u32 {
    let mut node = parent;
    while !c_pays && nodes[node as usize].kind == TracedKind::InsertedC {
        node = nodes[node as usize].parent;
    }
    node
}
