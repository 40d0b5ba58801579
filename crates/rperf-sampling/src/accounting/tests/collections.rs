//! Collections: their CPU time, and ticks that fall into one.

use super::*;

#[test]
fn collections_that_are_preempted_have_the_cpu_time_that_they_used() {
    for mode in [Mode::Cpu, Mode::Wall] {
        let mut accounting = Accounting::new(1, mode, &pace(), 0, 3);
        let mut recorded = Recorded::default();
        accounting.begin_running(0);
        let (mut now, mut cpu, mut collecting) = (0, 0, 0);
        for round in 0..2_000u64 {
            // Half of the time of every other collection goes to another process.
            let length = 700_000;
            let used = if round % 2 == 0 { length / 2 } else { length };
            let work = GcWork {
                enter_ns: now,
                exit_ns: now + length,
                cpu_ns: used,
                marking: GcTime {
                    wall_ns: length / 3,
                    cpu_ns: used / 3,
                },
                tick_before_ns: 0,
                is_first: false,
                cause: None,
            };
            now += length;
            cpu += used;
            collecting += used;
            let dues = accounting.collected(work, 0);
            recorded.record(&mut accounting, dues);
            now += 100_000;
            cpu += 100_000;
            let dues = accounting.sample(now, now - 10_000, 0, || cpu);
            recorded.record(&mut accounting, dues);
        }
        let dues = accounting.flush(now, 0, Some(cpu));
        recorded.record(&mut accounting, dues);
        assert_eq!(recorded.sum(|_| true).cpu_ns, cpu, "{mode:?}");
        let in_gc = recorded.sum(|row| row.state >= State::GcMarking).cpu_ns;
        assert_eq!(in_gc, collecting, "{mode:?}");
    }
}

/// A method that ends in a collection, and one that doesn't, of about the same length.
#[test]
fn a_tick_within_a_collection_is_none_for_running_time() {
    let mut accounting = Accounting::new(1, Mode::Wall, &pace(), 0, 5);
    let mut recorded = Recorded::default();
    let mut dither = Dither::new(7);
    let (mut now, mut next_tick, mut tick) = (1, INTERVAL, 0);
    let mut truth = [0; 2];
    let mut pass = |now: &mut u64, tick: &mut u64, in_gc: bool| {
        let length = dither.memoryless_gap(300_000);
        *now += length;
        while next_tick < *now {
            *tick = next_tick;
            next_tick += if in_gc {
                dither.memoryless_gap(INTERVAL)
            } else {
                dither.gap(INTERVAL)
            };
        }
        length
    };
    accounting.begin_running(now);
    for round in 0..400_000 {
        let method = round % 2;
        recorded.stack = method;
        truth[method as usize] += pass(&mut now, &mut tick, false);
        if method == 0 {
            let (enter_ns, tick_before_ns) = (now, tick);
            pass(&mut now, &mut tick, true);
            let work = GcWork {
                enter_ns,
                exit_ns: now,
                cpu_ns: now - enter_ns,
                marking: GcTime::default(),
                tick_before_ns,
                is_first: false,
                cause: None,
            };
            let dues = accounting.collected(work, tick);
            recorded.record(&mut accounting, dues);
        }
        // The only safepoint is at the end.
        let dues = accounting.sample(now, tick, 0, || 0);
        recorded.record(&mut accounting, dues);
    }
    let first = recorded.sum(|row| row.stack == 0 && row.state == State::Running);
    let both = recorded.sum(|row| row.state == State::Running);
    let share = first.wall_ns as f64 / both.wall_ns as f64;
    let expected = truth[0] as f64 / (truth[0] + truth[1]) as f64;
    assert!((share - expected).abs() < 0.01, "{share} for {expected}");
}
