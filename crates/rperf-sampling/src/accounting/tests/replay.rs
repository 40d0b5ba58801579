//! Stacks that are taken at ticks and told later make the samples that they would have
//! made then and there.

use super::*;
use crate::tick_capture::TickTimes;

/// A thread whose ticks are accounted at once, and one with the same life whose ticks
/// wait for the next event.
struct Twins {
    at_once: Simulated,
    later: Simulated,
    waiting: Vec<(u32, u64, TickTimes)>,
    /// Ticks in a row that find the same stack wait as one.
    merges: bool,
    seen: [Recorded; 2],
}

impl Twins {
    fn new(mode: Mode, seed: u64, merges: bool) -> Self {
        Self {
            at_once: Simulated::new(1, mode, 5_000_000, seed),
            later: Simulated::new(1, mode, 5_000_000, seed),
            waiting: Vec::new(),
            merges,
            seen: Default::default(),
        }
    }

    /// The ticks that wait are told, each with its own stack.
    fn drain(&mut self) {
        let now_at = self.seen[1].stack;
        for (stack, ticks, times) in self.waiting.drain(..) {
            self.seen[1].stack = stack;
            let accounting = &mut self.later.accounting;
            let dues = accounting.replay(ticks, times);
            self.seen[1].record(accounting, dues);
        }
        self.seen[1].stack = now_at;
    }

    fn tick(&mut self, before: u64) {
        let thread = &mut self.at_once;
        let tick_ns = thread.now.saturating_sub(before).max(thread.resumed);
        thread.sample(tick_ns, &mut self.seen[0]);
        let times = TickTimes {
            tick_ns,
            now_ns: thread.now,
            cpu_ns: thread.cpu,
            waits: None,
        };
        let stack = self.seen[1].stack;
        match self.waiting.last_mut().filter(|last| last.0 == stack) {
            // The log takes no tick twice.
            Some(last) if self.merges && last.2.tick_ns < tick_ns => {
                (last.1, last.2) = (last.1 + 1, times);
            }
            Some(last) if last.2.tick_ns >= tick_ns => {}
            _ => self.waiting.push((stack, 1, times)),
        }
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Tick { before } => self.tick(before),
            // Running on is no event.
            Step::Run(_) => {
                self.at_once.apply(step, &mut self.seen[0]);
                self.later.apply(step, &mut self.seen[1]);
            }
            _ => {
                self.drain();
                self.at_once.apply(step, &mut self.seen[0]);
                self.later.apply(step, &mut self.seen[1]);
            }
        }
    }

    fn end(&mut self) {
        self.drain();
        for (thread, seen) in [&mut self.at_once, &mut self.later]
            .into_iter()
            .zip(&mut self.seen)
        {
            thread.flush(seen);
        }
    }
}

fn lives() -> impl Strategy<Value = Vec<(u32, Step)>> {
    prop::collection::vec((1u32..4, step()), 1..200)
}

fn run(life: &[(u32, Step)], mode: Mode, seed: u64, merges: bool) -> [Recorded; 2] {
    let mut twins = Twins::new(mode, seed, merges);
    for (stack, step) in life {
        twins.seen.iter_mut().for_each(|seen| seen.stack = *stack);
        twins.apply(step);
    }
    twins.end();
    twins.seen
}

proptest! {
    #[test]
    fn a_tick_told_later_makes_the_same_sample(
        life in lives(), mode in prop_oneof![Just(Mode::Wall), Just(Mode::Cpu)], seed: u64
    ) {
        let [at_once, later] = run(&life, mode, seed, false);
        prop_assert_eq!(&at_once.samples, &later.samples);
        prop_assert_eq!(at_once.recording.unattributed, later.recording.unattributed);
    }

    #[test]
    fn a_run_of_ticks_told_as_one_has_the_same_sums(
        life in lives(), mode in prop_oneof![Just(Mode::Wall), Just(Mode::Cpu)], seed: u64
    ) {
        let [at_once, later] = run(&life, mode, seed, true);
        for stack in 1..4 {
            for wanted in State::ALL {
                let sum = |seen: &Recorded| seen.sum(|row| row.stack == stack && row.state == wanted);
                let (expected, found) = (sum(&at_once), sum(&later));
                prop_assert_eq!(expected.weight_ns(mode), found.weight_ns(mode));
            }
        }
    }
}
