//! The requests and jobs that have ended in a session, by endpoint and class: how many there were, and
//! the sums of their accounts, so that there are means per request. Made by the extension, kept in
//! files, and read by `rperf why`. Any thread, no I/O.

pub(crate) mod latency_class;
pub(crate) mod ops;

use crate::{LatencyClass, Quantiles};
use std::fmt;

/// The requests of one endpoint, or the jobs of one class.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// The key of the label that has the name.
    pub key: String,
    /// The name.
    pub name: String,
    /// How long they took, in ns.
    pub walls: Quantiles,
    /// By their class.
    pub classes: [RequestSums; LatencyClass::ENDED],
    /// The slowest, the slowest one first.
    pub slowest: Vec<Slowest>,
    /// How many of each class are left, if filters by tags have taken samples away. All else is of all requests.
    pub left: Option<[u64; LatencyClass::ENDED]>,
}

/// Requests of one class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestSums {
    /// How many there are.
    pub count: u64,
    /// How many there are whose objects and blame are known: they can't be told from those of other
    /// Ractors.
    pub alone: u64,
    /// All of them together.
    pub sums: RequestValues,
}

/// What a request took, or several. Times are in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestValues {
    /// From the beginning to the end.
    pub wall: u64,
    /// With the GVL, but for collections.
    pub running: u64,
    /// Waiting for the GVL.
    pub gvl_wait: u64,
    /// Blocked.
    pub blocked: u64,
    /// In collections of garbage.
    pub gc: u64,
    /// Other fibers of the thread had control.
    pub suspended: u64,
    /// For how long others waited for the GVL while it had it.
    pub gvl_blame: u64,
    /// Objects that were made.
    pub objects: u64,
}

/// Which request it is: its samples have that as a label, if it is one of the slowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    /// A word of its session, which another one hardly has: profiles of several are merged.
    pub session: u32,
    /// Its number in the session; 0 if it isn't known.
    pub number: u32,
}

impl RequestId {
    /// Whether there is one. Earlier versions have written none.
    pub fn is_known(self) -> bool {
        self.number != 0
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}-{}", self.session, self.number)
    }
}

/// A request that is one of the slowest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Slowest {
    /// Which one it is.
    pub id: RequestId,
    /// When it ended, in ns since the Unix epoch.
    pub ended_ns: u64,
    /// What it took.
    pub values: RequestValues,
}

/// Whether a request is one of the slowest now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AmongSlowest {
    /// The request is one of the slowest.
    pub is_one: bool,
    /// The request that it has replaced among them.
    pub in_place_of: Option<RequestId>,
}

impl Requests {
    /// Endpoints that a profile has at most.
    pub const MOST: usize = 1 << 14;
    /// How many of the slowest requests are kept of each.
    pub const SLOWEST: usize = 5;

    /// None yet.
    pub fn new(key: &str, name: &str) -> Self {
        Self {
            key: key.into(),
            name: name.into(),
            ..Self::default()
        }
    }

    /// Adds a request of this `class`. `is_alone`: its objects and blame are known.
    pub fn add(&mut self, class: LatencyClass, request: Slowest, is_alone: bool) -> AmongSlowest {
        let values = request.values;
        self.walls.add(values.wall);
        if let Some(sums) = self.classes.get_mut(class as usize) {
            sums.count += 1;
            sums.alone += u64::from(is_alone);
            sums.sums = sums.sums.plus(values);
        }
        self.note(request)
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.walls.count()
    }

    /// The requests of a class; none are open.
    pub fn class(&self, class: LatencyClass) -> RequestSums {
        let sums = self.classes.get(class as usize);
        sums.copied().unwrap_or_default()
    }

    /// How many of each class there are, or are left by filters.
    pub fn counts(&self) -> [u64; LatencyClass::ENDED] {
        self.left.unwrap_or_else(|| self.classes.map(|it| it.count))
    }

    /// Adds those of another process or session, of the same endpoint.
    pub fn merge(&mut self, other: &Self) {
        if self.left.is_some() || other.left.is_some() {
            let mut counts = self.counts();
            for (ours, theirs) in counts.iter_mut().zip(other.counts()) {
                *ours = ours.saturating_add(theirs);
            }
            self.left = Some(counts);
        }
        self.walls.merge(&other.walls);
        for (ours, theirs) in self.classes.iter_mut().zip(&other.classes) {
            ours.count = ours.count.saturating_add(theirs.count);
            ours.alone = ours.alone.saturating_add(theirs.alone);
            ours.sums = ours.sums.plus(theirs.sums);
        }
        for slow in &other.slowest {
            self.note(*slow);
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + self.key.len()
            + self.name.len()
            + self.walls.memory()
            + self.slowest.capacity() * size_of::<Slowest>()
    }

    fn note(&mut self, slow: Slowest) -> AmongSlowest {
        let is_faster = |other: &Slowest| other.values.wall < slow.values.wall;
        let place = self.slowest.iter().position(is_faster);
        let place = place.unwrap_or(self.slowest.len());
        if place >= Self::SLOWEST {
            return AmongSlowest::default();
        }
        let last = self.slowest.get(Self::SLOWEST - 1).map(|it| it.id);
        self.slowest.truncate(Self::SLOWEST - 1);
        self.slowest.insert(place, slow);
        AmongSlowest {
            is_one: true,
            in_place_of: last.filter(|it| it.is_known()),
        }
    }
}

impl RequestValues {
    /// Its numbers, in the order of its fields.
    pub fn numbers(&self) -> [u64; 8] {
        [
            self.wall,
            self.running,
            self.gvl_wait,
            self.blocked,
            self.gc,
            self.suspended,
            self.gvl_blame,
            self.objects,
        ]
    }

    /// The one with these numbers.
    pub fn of(numbers: [u64; 8]) -> Self {
        let [
            wall,
            running,
            gvl_wait,
            blocked,
            gc,
            suspended,
            gvl_blame,
            objects,
        ] = numbers;
        Self {
            wall,
            running,
            gvl_wait,
            blocked,
            gc,
            suspended,
            gvl_blame,
            objects,
        }
    }

    /// A request that took so much and ended so many ns after the Unix epoch; it isn't known which one.
    pub fn ended_at(self, ended_ns: u64) -> Slowest {
        Slowest {
            ended_ns,
            values: self,
            ..Slowest::default()
        }
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        let mut sums = self.numbers();
        for (sum, number) in sums.iter_mut().zip(other.numbers()) {
            *sum = sum.saturating_add(number);
        }
        Self::of(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn took(wall: u64) -> Slowest {
        Slowest {
            id: RequestId {
                session: 7,
                number: wall as u32,
            },
            ended_ns: wall,
            values: RequestValues {
                wall,
                running: wall / 2,
                objects: 1,
                ..RequestValues::default()
            },
        }
    }

    #[test]
    fn what_filters_have_left_is_added_where_only_one_of_two_was_filtered() {
        let mut filtered = Requests::new("endpoint", "GET /");
        filtered.add(LatencyClass::Typical, took(1), true);
        filtered.add(LatencyClass::Tail, took(9), true);
        let whole = filtered.clone();
        filtered.left = Some([0, 0, 0, 0, 1]);
        for (mut one, other) in [(filtered.clone(), &whole), (whole.clone(), &filtered)] {
            one.merge(other);
            assert_eq!(one.counts(), [0, 0, 1, 0, 2]);
            assert_eq!(one.class(LatencyClass::Typical).count, 2);
        }
        let mut both = whole.clone();
        both.merge(&whole);
        assert_eq!((both.left, both.counts()), (None, [0, 0, 2, 0, 2]));
    }

    #[test]
    fn the_slowest_are_kept_and_merged_is_added() {
        let [mut one, mut other, mut all] = [0; 3].map(|_| Requests::new("endpoint", "GET /"));
        for wall in 1..=40 {
            let class = LatencyClass::ALL[wall as usize % LatencyClass::ENDED];
            let half = if wall % 3 == 0 { &mut one } else { &mut other };
            half.add(class, took(wall), wall % 2 == 0);
            let place = all.add(class, took(wall), wall % 2 == 0);
            let sixth = wall.checked_sub(5).filter(|it| *it > 0);
            assert_eq!(place.in_place_of, sixth.map(|it| took(it).id));
            assert!(place.is_one);
        }
        one.merge(&other);
        assert_eq!(one, all);
        assert_eq!((one.count(), one.class(LatencyClass::Open).count), (40, 0));
        let walls: Vec<u64> = one.slowest.iter().map(|it| it.values.wall).collect();
        assert_eq!(walls, [40, 39, 38, 37, 36]);
        let tail = one.class(LatencyClass::Tail);
        assert_eq!((tail.count, tail.alone, tail.sums.objects), (8, 4, 8));
        let fast = all.add(LatencyClass::Fast, took(36), true);
        assert_eq!(fast, AmongSlowest::default());
        assert_eq!(one.slowest[0].id.to_string(), "00000007-40");
        assert!(one.slowest[0].id.is_known() && !RequestId::default().is_known());
    }

    #[test]
    fn numbers_are_in_the_order_of_the_fields() {
        let values = RequestValues::of([1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!((values.wall, values.gvl_wait, values.objects), (1, 3, 8));
        assert_eq!(values.numbers(), [1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
