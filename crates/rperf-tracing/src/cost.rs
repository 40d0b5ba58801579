//! What tracing itself costs, taken out of the times. A pair of events costs the callee and the
//! caller something beyond the truth; both are in proportion to calls, so that nothing has to be
//! done at the events. Arithmetic on numbers that are handed in.

use crate::event::CallKind;
use crate::tree::TracedNode;
use crate::tree::folds::{Folds, payer};
use crate::tree::thread::ThreadSums;
use rperf_model::Order;
use rperf_model::State;
use rustc_hash::FxHashMap;

pub(crate) mod looks;
pub(crate) mod uncovered;

/// A hook that took longer was interrupted, in ticks of any clock that is read: 1,000 ticks are
/// at most 1,000 ns.
const LONGEST_BODY: u64 = 1_000;

/// Looks at the hook's time that are too few to say anything.
const FEW_LOOKS: u64 = 20;

/// By how much the conditions of a program may differ from those of the calibration.
const LARGEST_FACTOR: f64 = 4.0;

/// What a call costs beyond the truth, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PairCost {
    /// In the time of what is called.
    pub callee_ns: f64,
    /// In the time of its caller.
    pub caller_ns: f64,
}

/// The cost of each kind of call.
pub type Costs = [PairCost; CallKind::ALL.len()];

/// How long the hook took after its reading of the clock: sums and numbers, by kind of call, for
/// calls and for returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bodies([[(u64, u64); 2]; CallKind::ALL.len()]);

impl Bodies {
    /// Adds one, unless something else has come in between.
    pub(crate) fn add(&mut self, kind: CallKind, is_return: bool, ticks: u64) {
        if ticks < LONGEST_BODY {
            let (sum, number) = &mut self.0[kind as usize][usize::from(is_return)];
            *sum += ticks;
            *number += 1;
        }
    }

    /// The mean of a call and its return together, in ticks, if it is known.
    pub fn of_pair(&self, kind: CallKind) -> Option<f64> {
        let [call, end] = self.0[kind as usize];
        let mean =
            |(sum, number): (u64, u64)| (number >= FEW_LOOKS).then(|| sum as f64 / number as f64);
        Some(mean(call)? + mean(end)?)
    }
}

/// What was measured before the program's first line.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calibration {
    /// The costs there.
    pub costs: Costs,
    /// How long a pair of events kept the hook busy there, in ns, by kind; 0 if it isn't known.
    pub bodies_ns: [f64; CallKind::ALL.len()],
}

/// What the calls of a loop took in one run of it, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LoopTimes {
    /// What is called.
    pub callee_ns: f64,
    /// The loop itself.
    pub caller_ns: f64,
    /// How long the two events of a call kept the hook busy; 0 if it isn't known.
    pub body_ns: f64,
}

impl LoopTimes {
    /// The mean of the fastest quarter of the runs: the others may have been interrupted.
    fn of_fastest(runs: &mut [Self]) -> Self {
        let total = |it: &Self| it.callee_ns + it.caller_ns;
        runs.order_by(|one, other| total(one).total_cmp(&total(other)));
        let fastest = &runs[..runs.len().div_ceil(4)];
        let mean =
            |of: fn(&Self) -> f64| fastest.iter().map(of).sum::<f64>() / fastest.len() as f64;
        Self {
            callee_ns: mean(|it| it.callee_ns),
            caller_ns: mean(|it| it.caller_ns),
            body_ns: mean(|it| it.body_ns),
        }
    }
}

impl Calibration {
    /// Adds a kind of calls, measured by runs of two loops: one of them makes so many `more` calls,
    /// of which each takes `untraced_ns` without tracing. The cost and the hook's time are of the
    /// same runs, as they are compared.
    pub fn add(
        &mut self,
        kind: CallKind,
        few: &mut [LoopTimes],
        many: &mut [LoopTimes],
        more: f64,
        untraced_ns: f64,
    ) {
        let (few, many) = (LoopTimes::of_fastest(few), LoopTimes::of_fastest(many));
        let cost = |many_ns: f64, few_ns: f64| {
            let per_call = (many_ns - few_ns) / more;
            (per_call - untraced_ns / 2.0).max(0.0)
        };
        self.costs[kind as usize] = PairCost {
            callee_ns: cost(many.callee_ns, few.callee_ns),
            caller_ns: cost(many.caller_ns, few.caller_ns),
        };
        self.bodies_ns[kind as usize] = many.body_ns;
    }

    /// The costs in a program in which the hook took as long as `bodies` say: colder caches and a
    /// busy machine are in it.
    pub(crate) fn costs_with(&self, bodies: &Bodies, ns_per_tick: f64) -> Costs {
        let mut costs = self.costs;
        for kind in CallKind::ALL {
            let there = self.bodies_ns[kind as usize];
            if let Some(ticks) = bodies.of_pair(kind)
                && there > 0.0
            {
                let factor = ticks * ns_per_tick / there;
                let factor = factor.clamp(1.0 / LARGEST_FACTOR, LARGEST_FACTOR);
                let cost = &mut costs[kind as usize];
                cost.callee_ns *= factor;
                cost.caller_ns *= factor;
            }
        }
        costs
    }
}

/// The times of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) node: u32,
    pub(crate) calls: u64,
    /// While its thread ran, without the cost of tracing.
    pub(crate) running_ns: u64,
    /// The cost of tracing.
    pub(crate) overhead_ns: u64,
    /// CPU time while its thread ran, without that cost, if it was measured.
    pub(crate) cpu_ns: u64,
}

/// The times of a thread under one label set.
#[derive(Debug)]
pub(crate) struct ThreadTimes {
    pub(crate) nodes: Vec<Times>,
    /// The time of nodes in other states, in ns.
    pub(crate) states: Vec<(u32, State, u64)>,
    /// CPU time of nodes in other states, in ns.
    pub(crate) used_ns: Vec<(u32, State, u64)>,
    /// Cost that found no time to be taken out of, by node, in ns.
    pub(crate) uncovered: Vec<(u32, f64)>,
}

impl ThreadTimes {
    /// The sum of it.
    pub(crate) fn uncovered_ns(&self) -> f64 {
        let costs = self.uncovered.iter().map(|(_, ns)| ns);
        costs.sum::<f64>().max(0.0)
    }
}

/// The times of a thread under one label set, as `folds` shows them; `rounding` is the thread's.
/// `c_pays`: methods of C that no event told of have time of their own.
pub(crate) fn compensate(
    nodes: &[TracedNode],
    sums: &ThreadSums,
    costs: &Costs,
    folds: &Folds,
    c_pays: bool,
    rounding: &mut Rounding,
) -> ThreadTimes {
    let mut overheads: FxHashMap<u32, f64> = FxHashMap::default();
    for (node, count) in sums.counts.iter() {
        let traced = nodes[node as usize];
        if let Some(kind) = traced.kind.counted() {
            let (calls, cost) = (count.calls as f64, costs[kind as usize]);
            let callee = folds.home(node);
            *overheads.entry(callee).or_default() += calls * cost.callee_ns.max(0.0);
            let caller = folds.home(payer(nodes, traced.parent, c_pays));
            *overheads.entry(caller).or_default() += calls * cost.caller_ns.max(0.0);
        }
    }
    let sums = folds.of(sums);
    let times = sums.counts.iter().map(|(node, count)| {
        let raw_ns = rounding.ns(count.running);
        let overhead = overheads.get_mut(&node);
        let overhead_ns = overhead.map_or(0, |ns| {
            let covered = (ns.round() as u64).min(raw_ns);
            *ns -= covered as f64;
            covered
        });
        let running_ns = raw_ns - overhead_ns;
        let stolen_ns = sums.stolen.get(&node).copied().unwrap_or(0);
        Times {
            node,
            calls: count.calls,
            running_ns,
            overhead_ns,
            cpu_ns: running_ns.saturating_sub(stolen_ns),
        }
    });
    let nodes = times.collect();
    let states = sums.states.sorted().into_iter();
    ThreadTimes {
        nodes,
        states: states
            .map(|(node, state, ticks)| (node, state, rounding.ns(ticks)))
            .collect(),
        used_ns: sums.used.sorted(),
        uncovered: overheads.into_iter().collect(),
    }
}

/// From ticks to ns, so that the sum is right to the ns, whatever the parts are.
#[derive(Debug)]
pub(crate) struct Rounding {
    ns_per_tick: f64,
    ticks: u64,
    ns: u64,
}

impl Rounding {
    pub(crate) fn new(ns_per_tick: f64) -> Self {
        Self {
            ns_per_tick,
            ticks: 0,
            ns: 0,
        }
    }

    fn ns(&mut self, ticks: u64) -> u64 {
        self.ticks = self.ticks.saturating_add(ticks);
        let sum = (self.ticks as f64 * self.ns_per_tick).round() as u64;
        let ns = sum.saturating_sub(self.ns);
        self.ns += ns;
        ns
    }
}

#[cfg(test)]
mod tests;
