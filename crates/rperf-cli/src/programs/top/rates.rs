//! What the methods and labels of programs have had in an interval, for tables and JSON. Used by
//! `top`.

use rperf_model::Order;
use rperf_model::State;
use rperf_model::frame_kind::FOLDED_FRAME;
use rperf_model::shared_sums::SumsFacts;
use rperf_watch::pull::News;
use rperf_watch::sums::{Feed, Label, Method, Scope, Sums, Times};
use std::collections::HashMap;

const SECOND: u64 = 1_000_000_000;

fn per_second(time: u64, elapsed_ns: u64) -> u64 {
    (time as f64 / elapsed_ns.max(1) as f64 * SECOND as f64) as u64
}

/// What of a program has not been printed: all since the mark.
#[derive(Debug, Default)]
pub struct Window {
    /// The facts at the begin, if anything is known of the time since.
    before: Option<SumsFacts>,
    is_fresh: bool,
}

impl Window {
    /// What came with the last pull.
    pub fn note(&mut self, feed: &Feed, news: News) {
        match news {
            News::Interval { before, is_fresh } => {
                self.before.get_or_insert(before);
                self.is_fresh = is_fresh;
            }
            News::Begins | News::BeginsAnew => {
                *self = Self::default();
                let mut sums = feed.lock();
                sums.begin(feed.process);
                sums.set_mark_of(feed.process);
            }
            News::Waits => {}
        }
    }

    /// What there is up to `now`, if anything is known; it begins anew.
    pub fn take_interval(&mut self, feed: &Feed, now: &SumsFacts) -> Option<Interval> {
        let before = self.before.take()?;
        let is_blocked = {
            let sums = feed.lock();
            let mut rows = sums.rows_of(Scope::SinceMark, None, Some(feed.process));
            rows.any(|(row, _)| row.key.state == State::GvlBlocked)
        };
        if is_blocked {
            feed.note_idle();
        }
        let mut sums = feed.lock();
        let interval = Interval {
            elapsed_ns: now.as_of_ns.saturating_sub(before.as_of_ns),
            is_fresh: self.is_fresh,
            sampling_ns: now.sampling_ns.saturating_sub(before.sampling_ns),
            dropped_ns: now.dropped_ns.saturating_sub(before.dropped_ns),
            ..Interval::of(&sums, feed.process)
        };
        sums.set_mark_of(feed.process);
        Some(interval)
    }
}

/// A method in an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodRate {
    /// The method.
    pub method: Method,
    /// Its own times, in ns.
    pub own: Times,
    /// With what it calls.
    pub total: Times,
}

/// An interval between two pulls.
#[derive(Debug, Default)]
pub struct Interval {
    /// How long it was: from one step of the VM to the next. 0 if there was none.
    pub elapsed_ns: u64,
    /// The VM has answered at its end.
    pub is_fresh: bool,
    /// How much of it sampling has taken.
    pub sampling_ns: u64,
    /// The time of samples that found no room.
    pub dropped_ns: u64,
    /// The time of idle threads, which is in `all`, too.
    pub idle_ns: u64,
    /// The times of all methods together.
    pub all: Times,
    /// All methods that have had time, those that ran most first.
    pub methods: Vec<MethodRate>,
    /// Labels with their times, those that ran most first.
    pub labels: Vec<(Label, Times)>,
}

impl Interval {
    /// The times of a process since the mark.
    fn of(sums: &Sums, process: u32) -> Self {
        let (scope, process) = (Scope::SinceMark, Some(process));
        let (methods, _) = sums.method_times(scope, None, process);
        let methods = methods.into_iter().map(|it| MethodRate {
            method: sums.methods[it.method as usize].clone(),
            own: it.own,
            total: it.total,
        });
        // What was folded before the interval would count as its time.
        let methods = methods.filter(|it| (&*it.method.name, &*it.method.path) != FOLDED_FRAME);
        let labels = sums.label_times(scope, None, process).0.into_iter();
        let mut labels: Vec<_> = labels
            .map(|(label, times)| (label.clone(), times))
            .collect();
        labels.order_by(|(one, mine), (other, theirs)| {
            rank(theirs, theirs)
                .cmp(&rank(mine, mine))
                .then_with(|| one.cmp(other))
        });
        let idle = sums.rows_of(scope, None, process);
        let idle = idle.filter(|(row, _)| row.is_idle && row.key.state == State::GvlBlocked);
        Self {
            idle_ns: idle.fold(0, |sum, (_, times)| sum.saturating_add(times.all())),
            labels,
            ..Self::of_methods(methods.collect())
        }
    }

    fn of_methods(mut methods: Vec<MethodRate>) -> Self {
        methods.retain(|it| it.own != Times::default() || it.total.run > 0);
        methods.order_by(|one, other| {
            let name = |it: &MethodRate| (it.method.name.clone(), it.method.path.clone());
            rank(&other.own, &other.total)
                .cmp(&rank(&one.own, &one.total))
                .then_with(|| name(one).cmp(&name(other)))
        });
        let mut all = Times::default();
        methods.iter().for_each(|it| all.add(it.own));
        Self {
            all,
            methods,
            ..Self::default()
        }
    }

    /// The rates of several programs in ns per second, added up; `sampling_ns` is what each of them
    /// has had on average.
    pub fn rates<'a>(intervals: impl Iterator<Item = &'a Interval> + Clone) -> Self {
        let mut methods = HashMap::new();
        let (mut sampling_ns, mut idle_ns) = (0, 0_u64);
        let known = intervals.clone().filter(|it| it.elapsed_ns > 0);
        for interval in known.clone() {
            let rate = |time| per_second(time, interval.elapsed_ns);
            sampling_ns += rate(interval.sampling_ns);
            idle_ns = idle_ns.saturating_add(rate(interval.idle_ns));
            for it in &interval.methods {
                let name = (&it.method.name, &it.method.path);
                let found = methods.entry(name).or_insert_with(|| MethodRate {
                    method: it.method.clone(),
                    own: Times::default(),
                    total: Times::default(),
                });
                found.own.add(it.own.map(rate));
                found.total.add(it.total.map(rate));
            }
        }
        let count = known.count() as u64;
        Self {
            elapsed_ns: if count > 0 { SECOND } else { 0 },
            is_fresh: intervals.clone().all(|it| it.is_fresh),
            sampling_ns: sampling_ns / count.max(1),
            idle_ns,
            ..Self::of_methods(methods.into_values().collect())
        }
    }
}

/// What lines are sorted by.
fn rank(own: &Times, total: &Times) -> (u64, u64, u64, u64) {
    (own.run, total.run, own.wait, own.blocked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::shared_sums::SumsValues;
    use rperf_watch::sums::RowKey;

    /// The stacks `main` and `main` that calls itself, by another block of the same name, which calls
    /// `work`.
    fn sums() -> Sums {
        let mut sums = Sums::default();
        let process = sums.add_process(1, "app");
        let thread = sums.thread(process, 1);
        let mut stack = 0;
        for (name, line, values) in [
            ("main", 1, [3, 20]),
            ("main", 3, [0, 0]),
            ("work", 5, [7, 40]),
        ] {
            let frame = sums.frame(name, "a.rb", line).expect("room");
            stack = sums.stack(stack, frame, 0).expect("room");
            for (state, wall_ns) in [State::Running, State::GvlBlocked].into_iter().zip(values) {
                let key = RowKey {
                    stack,
                    thread,
                    labels: 0,
                    state,
                };
                let values = SumsValues {
                    count: 1,
                    wall_ns,
                    cpu_ns: 0,
                    blame_ns: 0,
                };
                sums.add(key, values);
            }
        }
        sums
    }

    #[test]
    fn callees_count_in_the_total_and_recursion_counts_once() {
        let mut sums = sums();
        let rows = |interval: &Interval| -> Vec<_> {
            let rows = interval.methods.iter();
            rows.map(|it| {
                (
                    it.method.name.to_string(),
                    it.own.run,
                    it.own.blocked,
                    it.total.run,
                )
            })
            .collect()
        };
        let interval = Interval {
            elapsed_ns: 100,
            ..Interval::of(&sums, 0)
        };
        let expected = [("work".into(), 7, 40, 7), ("main".into(), 3, 20, 10)];
        assert_eq!(rows(&interval), expected);
        assert_eq!((interval.all.run, interval.all.blocked), (10, 60));
        let unknown = Interval::default();
        let both = Interval::rates([&interval, &unknown, &interval].into_iter());
        let rate = |ns: u64| ns * 2 * SECOND / 100;
        let expected = expected.map(|(name, run, blocked, total): (String, _, _, _)| {
            (name, rate(run), rate(blocked), rate(total))
        });
        assert_eq!((rows(&both), both.elapsed_ns), (expected.to_vec(), SECOND));
        sums.set_mark_of(0);
        assert_eq!(rows(&Interval::of(&sums, 0)), []);
    }
}
