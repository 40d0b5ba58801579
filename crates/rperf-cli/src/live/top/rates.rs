//! What each method has had in an interval. Used by `top`.

use super::idle_rows;
use super::watched::{News, Take};
use rperf_model::frame_kind::FOLDED_FRAME;
use rperf_model::shared_sums::{SumsFacts, SumsValues};
use rperf_model::{FrameId, State, WeightKey};
use rperf_watch::mirror::Mirror;
use std::collections::HashMap;

/// The times of a method, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Times {
    /// It ran itself.
    pub own: u64,
    /// It or its callees ran.
    pub total: u64,
    /// It was ready to run, and waited for the GVL.
    pub waiting: u64,
    /// It was blocked: it slept, or waited for input or for other threads.
    pub blocked: u64,
    /// It collected garbage.
    pub gc: u64,
}

const SECOND: u64 = 1_000_000_000;

fn per_second(time: u64, elapsed_ns: u64) -> u64 {
    (time as f64 / elapsed_ns.max(1) as f64 * SECOND as f64) as u64
}

impl Times {
    fn per_second(self, elapsed_ns: u64) -> Self {
        let rate = |time| per_second(time, elapsed_ns);
        Self {
            own: rate(self.own),
            total: rate(self.total),
            waiting: rate(self.waiting),
            blocked: rate(self.blocked),
            gc: rate(self.gc),
        }
    }

    fn each(&mut self, other: &Self, combine: fn(u64, u64) -> u64) {
        let pairs = [
            (&mut self.own, other.own),
            (&mut self.total, other.total),
            (&mut self.waiting, other.waiting),
            (&mut self.blocked, other.blocked),
            (&mut self.gc, other.gc),
        ];
        for (time, other) in pairs {
            *time = combine(*time, other);
        }
    }
}

/// The times of all methods, by name and path; and those of all labels, by key and value, of which
/// one sample may have several.
#[derive(Debug, Clone, Default)]
pub struct Methods {
    methods: ByName,
    labels: ByName,
}

type ByName = HashMap<(String, String), Times>;

impl Methods {
    /// The times in these rows, of methods and of labels.
    pub fn of(mirror: &Mirror, rows: impl IntoIterator<Item = (WeightKey, SumsValues)>) -> Self {
        let (methods, of_frames) = numbered(mirror);
        let mut times = vec![Times::default(); methods.len()];
        // In which row a method was seen last: recursion counts once.
        let mut seen = vec![0_usize; methods.len()];
        let mut of_sets = HashMap::<_, Times>::new();
        for (number, (key, values)) in rows.into_iter().enumerate() {
            let value = mirror.facts.time_of(values);
            add(of_sets.entry(key.labels).or_default(), key.state, value);
            for (depth, frame) in mirror.stack(key.node).enumerate() {
                let method = of_frames[frame.0 as usize];
                if depth == 0 {
                    add(&mut times[method], key.state, value);
                }
                if key.state != State::Running {
                    break;
                }
                if seen[method] != number + 1 {
                    seen[method] = number + 1;
                    times[method].total = times[method].total.saturating_add(value);
                }
            }
        }
        let rows = methods.into_iter().zip(times);
        // What was folded before the interval would count as its time.
        let rows = rows.filter(|(name, times)| *times != Times::default() && *name != FOLDED_FRAME);
        let mut labels = ByName::new();
        for (set, times) in of_sets {
            for (key, value) in mirror.labels(set) {
                let found = labels.entry((key.into(), value.into())).or_default();
                found.each(&times, u64::saturating_add);
            }
        }
        let methods = rows.map(|((name, path), times)| ((name.into(), path.into()), times));
        Self {
            methods: methods.collect(),
            labels,
        }
    }

    /// Adds the times of `other`.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.pairs(other) {
            for (name, times) in theirs {
                let found = mine.entry(name.clone()).or_default();
                found.each(times, u64::saturating_add);
            }
        }
    }

    /// Takes the times of `other` off.
    pub fn subtract(&mut self, other: &Self) {
        for (mine, theirs) in self.pairs(other) {
            for (name, times) in theirs {
                if let Some(found) = mine.get_mut(name) {
                    found.each(times, u64::saturating_sub);
                }
            }
        }
    }

    fn pairs<'a>(&'a mut self, other: &'a Self) -> [(&'a mut ByName, &'a ByName); 2] {
        [
            (&mut self.methods, &other.methods),
            (&mut self.labels, &other.labels),
        ]
    }
}

/// The names and paths of the mirror's methods, and which of them each frame has: blocks of one
/// method have one name.
fn numbered(mirror: &Mirror) -> (Vec<(&str, &str)>, Vec<usize>) {
    let mut methods = Vec::new();
    let mut numbers = HashMap::new();
    let frames = (0..mirror.frames()).map(|number| {
        let frame = mirror.frame(FrameId(number as u32)).unwrap_or_default();
        *numbers.entry(frame).or_insert_with(|| {
            methods.push(frame);
            methods.len() - 1
        })
    });
    let frames = frames.collect();
    (methods, frames)
}

fn add(times: &mut Times, state: State, value: u64) {
    let time = match state {
        State::Running => &mut times.own,
        State::GvlWait => &mut times.waiting,
        State::GvlBlocked => &mut times.blocked,
        State::GcMarking | State::GcSweeping => &mut times.gc,
    };
    *time = time.saturating_add(value);
}

/// What the methods of a program have had since a table was printed.
#[derive(Debug, Default)]
pub struct Sums {
    methods: Methods,
    /// All that they had before their rows came anew, and what idle threads had.
    earlier: Option<(Methods, u64)>,
    /// The rows of blocked threads that came with this pull.
    blocked: Vec<(WeightKey, SumsValues)>,
    /// The time of idle threads.
    idle_ns: u64,
    /// The facts at the begin, if anything is known of the time since.
    before: Option<SumsFacts>,
    is_fresh: bool,
}

impl Take for Sums {
    fn reset(&mut self, mirror: &Mirror) {
        // Rows may have been added up: by methods, the sums are what they were.
        self.earlier
            .get_or_insert_with(|| (Methods::of(mirror, mirror.rows()), all_idle(mirror)));
        self.blocked.clear();
    }

    fn grown(&mut self, mirror: &Mirror, rows: &[(WeightKey, SumsValues)]) {
        if self.earlier.is_none() {
            self.methods.add(&Methods::of(mirror, rows.iter().copied()));
            let blocked = rows.iter().filter(|it| it.0.state == State::GvlBlocked);
            self.blocked.extend(blocked);
        }
    }

    fn end(&mut self, mirror: &Mirror) {
        let idle_ns = match self.earlier.take() {
            Some((earlier, idle_ns)) => {
                let mut methods = Methods::of(mirror, mirror.rows());
                methods.subtract(&earlier);
                self.methods.add(&methods);
                all_idle(mirror).saturating_sub(idle_ns)
            }
            None => idle_rows::time(mirror, self.blocked.drain(..)),
        };
        self.idle_ns = self.idle_ns.saturating_add(idle_ns);
    }
}

fn all_idle(mirror: &Mirror) -> u64 {
    idle_rows::time(mirror, mirror.rows())
}

impl Sums {
    /// What came with the last sums.
    pub fn note(&mut self, news: News) {
        match news {
            News::Interval { before, is_fresh } => {
                self.before.get_or_insert(before);
                self.is_fresh = is_fresh;
            }
            News::Begins | News::BeginsAnew => *self = Self::default(),
            News::Waits => {}
        }
    }

    /// What there is up to `now`, if anything is known; it begins anew.
    pub fn take_interval(&mut self, now: &SumsFacts) -> Option<Interval> {
        let before = self.before.take()?;
        let methods = std::mem::take(&mut self.methods);
        let idle_ns = std::mem::take(&mut self.idle_ns);
        Some(Interval {
            idle_ns,
            ..Interval::new(methods, &before, now, self.is_fresh)
        })
    }
}

/// An interval between two pulls.
#[derive(Debug)]
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
    /// The times of all methods together; `total` is 0.
    pub all: Times,
    /// Name, path and times, those that ran most first.
    pub methods: Vec<(String, String, Times)>,
    /// Key, value and times of labels, those that ran most first. They have no `total`.
    pub labels: Vec<(String, String, Times)>,
}

impl Interval {
    /// The rates of several programs in ns per second, added up; `sampling_ns` is what each of them
    /// has had on average.
    pub fn rates<'a>(intervals: impl Iterator<Item = &'a Interval> + Clone) -> Self {
        let mut methods = ByName::new();
        let (mut sampling_ns, mut idle_ns) = (0, 0_u64);
        let known = intervals.clone().filter(|it| it.elapsed_ns > 0);
        for interval in known.clone() {
            let rate = |time| per_second(time, interval.elapsed_ns);
            sampling_ns += rate(interval.sampling_ns);
            idle_ns = idle_ns.saturating_add(rate(interval.idle_ns));
            for (name, path, times) in &interval.methods {
                let found = methods.entry((name.clone(), path.clone())).or_default();
                let rates = times.per_second(interval.elapsed_ns);
                found.each(&rates, u64::saturating_add);
            }
        }
        let count = known.count() as u64;
        let facts = SumsFacts {
            as_of_ns: if count > 0 { SECOND } else { 0 },
            sampling_ns: sampling_ns / count.max(1),
            ..SumsFacts::default()
        };
        let is_fresh = intervals.clone().all(|it| it.is_fresh);
        let labels = ByName::new();
        let before = SumsFacts::default();
        Self {
            idle_ns,
            ..Self::new(Methods { methods, labels }, &before, &facts, is_fresh)
        }
    }

    /// From `before` to `now`.
    pub fn new(methods: Methods, before: &SumsFacts, now: &SumsFacts, is_fresh: bool) -> Self {
        let mut all = Times::default();
        for times in methods.methods.values() {
            all.each(times, u64::saturating_add);
        }
        all.total = 0;
        Self {
            elapsed_ns: now.as_of_ns.saturating_sub(before.as_of_ns),
            is_fresh,
            sampling_ns: now.sampling_ns.saturating_sub(before.sampling_ns),
            dropped_ns: now.dropped_ns.saturating_sub(before.dropped_ns),
            idle_ns: 0,
            all,
            methods: sorted(methods.methods),
            labels: sorted(methods.labels),
        }
    }
}

/// The methods or labels with any time, those that ran most first.
fn sorted(times: ByName) -> Vec<(String, String, Times)> {
    let mut rows: Vec<_> = times
        .into_iter()
        .filter(|(_, times)| *times != Times::default())
        .map(|((name, more), times)| (name, more, times))
        .collect();
    rows.sort_by(|a, b| {
        let rank = |times: &Times| (times.own, times.total, times.waiting, times.blocked);
        rank(&b.2)
            .cmp(&rank(&a.2))
            .then_with(|| (&a.0, &a.1).cmp(&(&b.0, &b.1)))
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::shared_sums::SharedSums;
    use rperf_model::{LabelSetId, Node, NodeId};
    use rperf_protocol::delta::{Delta, Freshness};

    /// A table with the stacks `main` and `main` that calls itself, by another block of the same name,
    /// which calls `work`.
    fn mirror() -> Mirror {
        let mut table = SharedSums::default();
        table.facts.mode = "wall".into();
        let main = table.frame("main", "a.rb", 1);
        let other_main = table.frame("main", "a.rb", 3);
        let work = table.frame("work", "a.rb", 5);
        let mut parent = NodeId::ROOT;
        for (frame, values) in [(main, [3, 20]), (other_main, [0, 0]), (work, [7, 40])] {
            parent = table
                .node(Node {
                    parent,
                    frame,
                    line: 0,
                })
                .expect("room");
            for (state, wall_ns) in [State::Running, State::GvlBlocked].into_iter().zip(values) {
                let labels = LabelSetId::default();
                let key = WeightKey {
                    node: parent,
                    thread: 1,
                    labels,
                    state,
                };
                table.add(
                    key,
                    SumsValues {
                        count: 1,
                        wall_ns,
                        cpu_ns: 0,
                    },
                );
            }
        }
        let mut mirror = Mirror::default();
        let freshness = Freshness {
            is_fresh: true,
            clock_ns: 0,
        };
        let changes = table.changes(mirror.cursor());
        mirror.take(Delta { changes, freshness }).expect("taken");
        mirror
    }

    #[test]
    fn callees_count_in_the_total_and_recursion_counts_once() {
        let mirror = mirror();
        let methods = Methods::of(&mirror, mirror.rows());
        let mut twice = methods.clone();
        twice.add(&methods);
        twice.subtract(&methods);
        let (before, now) = (
            SumsFacts::default(),
            SumsFacts {
                as_of_ns: 100,
                ..SumsFacts::default()
            },
        );
        let interval = Interval::new(twice, &before, &now, true);
        let rows: Vec<_> = interval
            .methods
            .iter()
            .map(|(name, _, times)| (&**name, *times))
            .collect();
        let work = Times {
            own: 7,
            total: 7,
            blocked: 40,
            ..Times::default()
        };
        let main = Times {
            own: 3,
            total: 10,
            blocked: 20,
            ..Times::default()
        };
        assert_eq!(rows, [("work", work), ("main", main)]);
        assert_eq!(
            (interval.all.own, interval.all.blocked, interval.elapsed_ns),
            (10, 60, 100)
        );
    }
}
