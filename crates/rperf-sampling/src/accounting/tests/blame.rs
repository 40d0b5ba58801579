//! Blame of simulated threads: who had the GVL while others waited.

use super::recorded::Recorded;
use super::*;
use proptest::prelude::*;
use rperf_vm::{GcTime, GcWork, VmThread};
use rperf_vm::{Waiters, Waits};

/// Threads that share a GVL, and take turns as `next` says.
struct Turns {
    pace: Arc<Pace>,
    waiters: Waiters,
    threads: Vec<Accounting>,
    recorded: Recorded,
    now: u64,
    /// Since when each has been ready, or 0.
    ready: Vec<u64>,
    /// All waits, as the test adds them up; and those in which nobody had the GVL.
    waits: u64,
    hand_over: u64,
    /// The hand-overs up to the last turn.
    ended_hand_over: u64,
    /// For each thread, for how long others waited while it had the GVL.
    expected: Vec<u64>,
}

impl Turns {
    fn new(count: u32) -> Self {
        let pace = Arc::new(Pace::new(1_000_000));
        let threads = (1..=count).map(|seq| {
            let seed = u64::from(seq);
            let mut accounting = Accounting::new(seq, Mode::Wall, &pace, 0, seed);
            accounting.begin_off_gvl(1);
            accounting
        });
        let threads = threads.collect();
        Turns {
            pace,
            waiters: Waiters::default(),
            threads,
            recorded: Recorded::default(),
            now: 1,
            ready: vec![0; count as usize],
            waits: 0,
            hand_over: 0,
            ended_hand_over: 0,
            expected: vec![0; count as usize],
        }
    }

    /// `ns` pass, and `holder` has the GVL.
    fn pass(&mut self, ns: u64, holder: Option<usize>) {
        self.now += ns;
        let waiting = self.ready.iter().filter(|since| **since != 0).count() as u64;
        match holder {
            Some(holder) => self.expected[holder] += waiting * ns,
            None => self.hand_over += waiting * ns,
        }
    }

    fn make_ready(&mut self, row: usize) {
        if self.ready[row] == 0 {
            self.ready[row] = self.now;
            self.waiters.join(thread(row), self.now);
        }
    }

    fn resume(&mut self, row: usize) {
        self.make_ready(row);
        let (now, ready) = (self.now, std::mem::take(&mut self.ready[row]));
        self.waits += now - ready;
        self.waiters.leave(thread(row), now);
        let accounting = &mut self.threads[row];
        let waits = self.waiters.up_to(now).expect("nobody writes");
        let held = self.waiters.note_held(waits.ns);
        self.ended_hand_over = self.hand_over;
        accounting.begin_blame(held);
        let dues = accounting.resumed(now, ready, || 0).unwrap_or_default();
        self.recorded.record(accounting, dues);
    }

    fn waits(&self, now: u64) -> Waits {
        self.waiters.up_to(now).expect("nobody writes")
    }

    fn tick(&mut self, row: usize, late: u64) {
        let times = TickTimes {
            tick_ns: self.now - late,
            now_ns: self.now,
            cpu_ns: 0,
            waits: Some(self.waits(self.now - late)),
        };
        let accounting = &mut self.threads[row];
        let dues = accounting.replay(1, times);
        self.recorded.record(accounting, dues);
    }

    fn collect(&mut self, row: usize, marking: u64, sweeping: u64) {
        let (enter, before) = (self.now, self.waits(self.now));
        self.pass(marking + sweeping, Some(row));
        let work = GcWork {
            enter_ns: enter,
            exit_ns: self.now,
            cpu_ns: 0,
            marking: GcTime {
                wall_ns: marking,
                cpu_ns: 0,
            },
            tick_before_ns: 0,
            is_first: false,
            cause: None,
        };
        let after = self.waits(self.now);
        let accounting = &mut self.threads[row];
        accounting.blame_collection(before, after, &work);
        let dues = accounting.collected(work, 0);
        self.recorded.record(accounting, dues);
    }

    fn suspend(&mut self, row: usize) {
        let waits = self.waits(self.now);
        self.threads[row].blame_running(waits);
        self.threads[row].suspended(self.now);
        self.waiters.note_free(waits.ns);
    }

    /// The end of the session.
    fn flush(&mut self) {
        for (row, accounting) in self.threads.iter_mut().enumerate() {
            let dues = accounting.flush(self.now, self.ready[row], None);
            self.recorded.record(accounting, dues);
        }
        let waiting = self.ready.iter().filter(|since| **since != 0);
        self.waits += waiting.map(|since| self.now - since).sum::<u64>();
    }

    fn blame(&self, row: usize) -> u64 {
        self.recorded.sum_of_thread(row as u32 + 1).blame_ns
    }
}

fn thread(row: usize) -> VmThread {
    VmThread((row + 1) * 40)
}

proptest! {
    // Nothing is read at a moment other than its own, so all of it is right to the ns.
    #[test]
    fn who_has_the_gvl_is_to_blame_for_all_waits_but_the_hand_overs(
        turns in prop::collection::vec(
            (0_usize..4, 0_u64..3_000_000, any::<[bool; 4]>(), 0_u64..20_000, 0_u8..4),
            1..80,
        ),
        // Before so many turns an interval of so many ns comes into force.
        intervals in prop::collection::vec((0_usize..80, 1_u64..20_000_000), 0..12),
    ) {
        let mut sim = Turns::new(4);
        for (turn, (row, length, others, gap, what)) in turns.into_iter().enumerate() {
            for &(_, interval) in intervals.iter().filter(|it| it.0 == turn) {
                sim.pace.set(interval, interval);
            }
            sim.resume(row);
            for (other, is_ready) in others.into_iter().enumerate() {
                sim.pass(length / 8, Some(row));
                if is_ready && other != row {
                    sim.make_ready(other);
                }
            }
            if what == 1 {
                sim.collect(row, length / 4, length / 3);
            }
            sim.pass(length / 2, Some(row));
            if what >= 2 {
                sim.tick(row, (length / 4).min(5_000));
            }
            sim.suspend(row);
            sim.pass(gap, None);
        }
        sim.flush();
        let rows = 0..sim.threads.len();
        for row in rows.clone() {
            prop_assert_eq!(sim.blame(row), sim.expected[row]);
        }
        let waits = sim.recorded.sum(|row| row.state == State::GvlWait).wall_ns;
        prop_assert_eq!(waits, sim.waits);
        let blamed: u64 = rows.map(|row| sim.blame(row)).sum();
        let ended = sim.waiters.take_hand_over();
        prop_assert_eq!(ended, sim.ended_hand_over);
        prop_assert_eq!(blamed + sim.hand_over, waits);
        // What longer intervals have taken ahead never is all of the next sample, which has the blame.
        for row in sim.recorded.samples.iter().filter(|row| row.values.count > 0) {
            prop_assert!(row.state == State::Running || row.values.times.wall_ns > 0, "{row:?}");
        }
    }
}

#[test]
fn stacks_that_are_at_work_while_others_wait_have_the_blame() {
    let mut sim = Turns::new(2);
    // Of each turn of 4 ms the other thread waits in the last one, at another stack.
    for turn in 0..20_000 {
        sim.resume(0);
        for part in 0..4 {
            sim.recorded.stack = part;
            if part == 3 {
                sim.make_ready(1);
            }
            // A tick at any of its moments.
            let at = (turn * 7_919 + u64::from(part) * 3_001) % 1_000_000;
            sim.pass(at, Some(0));
            sim.tick(0, at.min(2_000));
            sim.pass(1_000_000 - at, Some(0));
        }
        sim.suspend(0);
        sim.resume(1);
        sim.suspend(1);
    }
    sim.flush();
    let blame_at = |stack| sim.recorded.sum(|row| row.stack == stack).blame_ns as f64;
    let all = sim.expected[0] as f64;
    assert_eq!(all, 20_000.0 * 1e6);
    let shares = [0, 1, 2, 3].map(|stack| blame_at(stack) / all);
    assert!(shares[3] > 0.99, "{shares:?}");
}
