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
mod tests {
    use super::*;
    use crate::event::TracedKind;
    use crate::tree::counts::{Count, Counts};
    use crate::tree::folds::Exclusion;
    use crate::tree::state_times::StateTimes;
    use crate::tree::{ROOT, TracedFrame, TracedTree};

    const COSTS: Costs = [
        PairCost {
            callee_ns: 10.0,
            caller_ns: 20.0,
        },
        PairCost {
            callee_ns: 1.0,
            caller_ns: 2.0,
        },
        PairCost {
            callee_ns: 0.0,
            caller_ns: 0.0,
        },
    ];

    fn count(calls: u64, running: u64) -> Count {
        Count { calls, running }
    }

    fn sums(counts: &[(u32, Count)]) -> ThreadSums {
        let mut all = Counts::default();
        for &(node, count) in counts {
            *all.of(node) = count;
        }
        ThreadSums {
            counts: all,
            ..ThreadSums::default()
        }
    }

    fn compensated(
        tree: &TracedTree,
        counts: &[(u32, Count)],
        excluded: &[Exclusion],
        ns_per_tick: f64,
        c_pays: bool,
    ) -> (Vec<Times>, f64) {
        let (sums, mut rounding) = (sums(counts), Rounding::new(ns_per_tick));
        let folds = Folds::new(tree.nodes(), excluded, u32::MAX, c_pays);
        let times = compensate(tree.nodes(), &sums, &COSTS, &folds, c_pays, &mut rounding);
        let uncovered_ns = times.uncovered_ns();
        (times.nodes, uncovered_ns)
    }

    fn frame(word: usize) -> TracedFrame {
        TracedFrame { word, method: 0 }
    }

    #[test]
    fn each_call_costs_the_callee_and_who_has_the_callers_time() {
        let mut tree = TracedTree::default();
        let caller = tree.child(ROOT, frame(1), TracedKind::Method);
        let each = tree.child(caller, frame(2), TracedKind::InsertedC);
        let block = tree.child(each, frame(1), TracedKind::Block);
        let counts = [(caller, count(1, 500)), (block, count(100, 300))];
        let (times, uncovered) = compensated(&tree, &counts, &[], 1.0, false);
        let found: Vec<_> = times
            .iter()
            .map(|it| (it.node, it.running_ns, it.overhead_ns))
            .collect();
        assert_eq!(found, [(caller, 290, 210), (block, 200, 100)]);
        assert_eq!(
            uncovered, 20.0,
            "the root has no time to take its part from"
        );
        let (times, uncovered) = compensated(&tree, &counts, &[], 1.0, true);
        assert_eq!((times[0].overhead_ns, uncovered), (10, 220.0));
    }

    #[test]
    fn an_excluded_frame_has_its_times_and_costs_in_its_caller() {
        let mut tree = TracedTree::default();
        let caller = tree.child(ROOT, frame(1), TracedKind::Method);
        let between = tree.child(caller, frame(2), TracedKind::Method);
        let each = tree.child(between, frame(3), TracedKind::InsertedC);
        let block = tree.child(each, frame(4), TracedKind::Block);
        let callee = tree.child(block, frame(1), TracedKind::Method);
        let counts = [
            (caller, count(1, 500)),
            (between, count(2, 400)),
            (block, count(10, 300)),
            (callee, count(10, 200)),
        ];
        use Exclusion::{Asked, None, Own};
        let excluded = [None, Asked, None, Own];
        let (times, _) = compensated(&tree, &counts, &excluded, 1.0, false);
        let found: Vec<_> = times
            .iter()
            .map(|it| (it.node, it.calls, it.running_ns, it.overhead_ns))
            .collect();
        // Its own 10, 2 * 30 and 10 * 3 of those left out, and 10 * 20 of those that they called.
        assert_eq!(found, [(caller, 1, 900, 300), (callee, 10, 100, 100)]);
    }

    #[test]
    fn what_loads_the_profiler_and_its_own_frames_are_one() {
        use Exclusion::{Loader, None, Own};
        let mut tree = TracedTree::default();
        let require = tree.child(ROOT, frame(1), TracedKind::Inserted);
        let own = tree.child(require, frame(2), TracedKind::Inserted);
        let called = tree.child(own, frame(3), TracedKind::Method);
        let programs = tree.child(ROOT, frame(1), TracedKind::Method);
        let counts = [require, own, called, programs].map(|node| (node, count(0, 10)));
        let excluded = [Loader, Own, None];
        let (times, _) = compensated(&tree, &counts, &excluded, 1.0, false);
        let found: Vec<_> = times.iter().map(|it| (it.node, it.running_ns)).collect();
        let own_root = tree.nodes().len() as u32;
        assert_eq!(found, [(called, 10), (programs, 10), (own_root, 20)]);
    }

    #[test]
    fn core_methods_that_the_profiler_calls_are_its_own_unless_it_runs_the_programs_code() {
        use Exclusion::{Core, None, Own, PassesOn};
        let mut tree = TracedTree::default();
        let own = tree.child(ROOT, frame(1), TracedKind::Method);
        let list = tree.child(own, frame(2), TracedKind::C);
        let hook = tree.child(list, frame(3), TracedKind::C);
        let programs = tree.child(hook, frame(4), TracedKind::Method);
        let its = tree.child(programs, frame(2), TracedKind::C);
        let label = tree.child(ROOT, frame(5), TracedKind::Method);
        let called = tree.child(label, frame(2), TracedKind::C);
        let core = tree.child(own, frame(6), TracedKind::Method);
        let programs_core = tree.child(programs, frame(6), TracedKind::Method);
        let nodes = [
            own,
            list,
            hook,
            programs,
            its,
            label,
            called,
            core,
            programs_core,
        ];
        let counts = nodes.map(|node| (node, count(1, 10_000)));
        let excluded = [Own, None, None, None, PassesOn, Core];
        let (times, _) = compensated(&tree, &counts, &excluded, 1.0, false);
        let found: Vec<_> = times.iter().map(|it| (it.node, it.calls)).collect();
        let own_root = tree.nodes().len() as u32;
        let shown = [
            (programs, 1),
            (its, 1),
            (called, 1),
            (programs_core, 1),
            (own_root, 0),
        ];
        assert_eq!(found, shown);
    }

    #[test]
    fn what_would_be_negative_is_zero_and_told() {
        let mut tree = TracedTree::default();
        let node = tree.child(ROOT, frame(1), TracedKind::Method);
        let counts = [(node, count(100, 300))];
        let (times, uncovered) = compensated(&tree, &counts, &[], 1.0, false);
        assert_eq!((times[0].running_ns, times[0].overhead_ns), (0, 300));
        assert_eq!(uncovered, 2_700.0);
    }

    #[test]
    fn parts_add_up_to_the_ns_whatever_a_tick_is() {
        let mut tree = TracedTree::default();
        let counts: Vec<_> = (1..200)
            .map(|word| {
                (
                    tree.child(ROOT, frame(word), TracedKind::Inserted),
                    count(0, word as u64),
                )
            })
            .collect();
        let mut states = StateTimes::default();
        states.add(3, State::GvlWait, 7);
        states.add(5, State::GcMarking, 4);
        let sums = ThreadSums {
            states,
            ..sums(&counts)
        };
        let mut rounding = Rounding::new(0.4987);
        let folds = Folds::new(tree.nodes(), &[], u32::MAX, false);
        let times = compensate(tree.nodes(), &sums, &COSTS, &folds, false, &mut rounding);
        let nodes = times.nodes.iter().map(|it| it.running_ns + it.overhead_ns);
        let sum: u64 = nodes.chain(times.states.iter().map(|it| it.2)).sum();
        assert_eq!(sum, ((199.0 * 100.0 + 11.0) * 0.4987_f64).round() as u64);
    }

    #[test]
    fn costs_are_of_the_fastest_runs_of_each_loop() {
        let run = |callee_ns, body_ns| LoopTimes {
            callee_ns,
            caller_ns: 2.0 * callee_ns,
            body_ns,
        };
        let mut few = [run(900.0, 1.0), run(100.0, 1.0)];
        let mut many = [
            run(950.0, 9.0),
            run(300.0, 40.0),
            run(700.0, 7.0),
            run(400.0, 8.0),
            run(320.0, 60.0),
        ];
        let mut calibration = Calibration::default();
        calibration.add(CallKind::Block, &mut few, &mut many, 10.0, 2.0);
        let cost = PairCost {
            callee_ns: 20.0,
            caller_ns: 41.0,
        };
        assert_eq!(
            calibration.costs,
            [PairCost::default(), cost, PairCost::default()]
        );
        assert_eq!(calibration.bodies_ns, [0.0, 50.0, 0.0]);
        calibration.add(CallKind::Block, &mut few, &mut many, 10.0, 1_000.0);
        assert_eq!(calibration.costs, Costs::default(), "nothing is negative");
    }

    #[test]
    fn costs_follow_the_time_that_the_hook_takes() {
        let calibration = Calibration {
            costs: COSTS,
            bodies_ns: [50.0, 50.0, 0.0],
        };
        let mut bodies = Bodies::default();
        for _ in 0..FEW_LOOKS {
            bodies.add(CallKind::Method, false, 120);
            bodies.add(CallKind::Method, true, 80);
            bodies.add(CallKind::Method, true, LONGEST_BODY);
            bodies.add(CallKind::C, true, 80);
        }
        let costs = calibration.costs_with(&bodies, 0.5);
        assert_eq!(
            costs[0],
            PairCost {
                callee_ns: 20.0,
                caller_ns: 40.0
            }
        );
        assert_eq!(costs[1..], COSTS[1..], "too little is known of others");
        assert_eq!(bodies.of_pair(CallKind::C), None);
    }
}
