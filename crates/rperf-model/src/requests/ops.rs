//! What ops took, beside the samples: exact sums, also of ops that no sample has met. An op is a query, a
//! request to another server, or whatever else has a name while it lasts. Made by the extension as ops
//! end, read by formats and reports. Any thread, no I/O.

use crate::{LatencyClass, Quantiles};
use std::collections::BTreeMap;

/// What tells an entry from others.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpKey {
    /// The key of the label that names the request or job; empty outside of those that are judged.
    pub key: String,
    /// Its name.
    pub endpoint: String,
    /// The op, with its kind in front: `[SQL] SELECT * FROM users WHERE id = ?`.
    pub name: String,
}

/// What the calls of an op took. Times are in ns. The states are without the ops inside of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpSums {
    /// How often it ended.
    pub calls: u64,
    /// From begin to end, with the ops inside of it. A call inside of one of the same op counts in that.
    pub wall_ns: u64,
    /// Its thread had the GVL, and collected no garbage.
    pub running_ns: u64,
    /// Its thread waited for the GVL.
    pub gvl_wait_ns: u64,
    /// Its thread was off the GVL, and not ready to run.
    pub blocked_ns: u64,
    /// Its thread collected garbage.
    pub gc_ns: u64,
    /// Other fibers of its thread had control.
    pub suspended_ns: u64,
    /// The objects that it made; `None` if that isn't known of all calls.
    pub objects: Option<u64>,
    /// How long its thread was blocked in a call.
    pub blocked: Quantiles,
    /// In how many judged requests it was called.
    pub requests: u64,
    /// In how many of them [`OpSums::REPEATED`] times or more.
    pub repeated: u64,
    /// How many of the calls were in a request, and count as outside of requests: it had ended, or there was
    /// no room.
    pub displaced: u64,
    /// The calls in requests of each class.
    pub classes: [OpCalls; LatencyClass::ENDED],
}

/// Calls of an op, and their wall time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpCalls {
    /// How many.
    pub calls: u64,
    /// From begin to end, in ns.
    pub wall_ns: u64,
}

impl OpCalls {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            wall_ns: self.wall_ns.saturating_add(other.wall_ns),
        }
    }
}

impl OpSums {
    /// Calls in one request from which on it is repeated there.
    pub const REPEATED: u64 = 5;

    /// The endpoint repeats an op if at least one request in so many does.
    const REPEATING: u64 = 10;

    /// Adds `other`, saturating.
    pub fn add(&mut self, other: &Self) {
        self.objects = match (self.objects, other.objects) {
            // There was no call yet.
            (_, theirs) if self.calls == 0 => theirs,
            (ours, _) if other.calls == 0 => ours,
            (Some(ours), Some(theirs)) => Some(ours.saturating_add(theirs)),
            _ => None,
        };
        for (ours, theirs) in self.calls_and_times(other) {
            *ours = ours.saturating_add(theirs);
        }
        for (ours, theirs) in [
            (&mut self.requests, other.requests),
            (&mut self.repeated, other.repeated),
            (&mut self.displaced, other.displaced),
        ] {
            *ours = ours.saturating_add(theirs);
        }
        self.blocked.merge(&other.blocked);
        for (ours, theirs) in self.classes.iter_mut().zip(other.classes) {
            *ours = ours.plus(theirs);
        }
    }

    /// Takes what an earlier snapshot of the same session has away, of an op outside of requests.
    fn subtract(&mut self, earlier: &Self) {
        self.objects = match (self.objects, earlier.objects) {
            (Some(ours), Some(theirs)) => Some(ours.saturating_sub(theirs)),
            _ => None,
        };
        for (ours, theirs) in self.calls_and_times(earlier) {
            *ours = ours.saturating_sub(theirs);
        }
        self.blocked.subtract(&earlier.blocked);
    }

    /// The number of calls and each of the times, beside that of `other`.
    fn calls_and_times<'a>(&'a mut self, other: &Self) -> [(&'a mut u64, u64); 7] {
        [
            (&mut self.calls, other.calls),
            (&mut self.wall_ns, other.wall_ns),
            (&mut self.running_ns, other.running_ns),
            (&mut self.gvl_wait_ns, other.gvl_wait_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.gc_ns, other.gc_ns),
            (&mut self.suspended_ns, other.suspended_ns),
        ]
    }

    /// The time of its own: the sum of its states.
    pub fn own_ns(&self) -> u64 {
        let states = [
            self.running_ns,
            self.gvl_wait_ns,
            self.blocked_ns,
            self.gc_ns,
            self.suspended_ns,
        ];
        states.into_iter().fold(0, u64::saturating_add)
    }

    /// Whether an endpoint with so many `requests` repeats it: a loop that calls it for each record, most
    /// likely. Where no request is known, as in the entry of those that found no room, that can't be told.
    pub fn is_repeated(&self, requests: u64) -> bool {
        let is_known = self.repeated > 0 && requests > 0;
        is_known && self.repeated.saturating_mul(Self::REPEATING) >= requests
    }
}

/// The ops of a profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ops {
    entries: BTreeMap<OpKey, OpSums>,
}

impl Ops {
    /// Entries at most. Further calls are added to the entry of their op outside of requests, and without
    /// room for that to one of all ops.
    pub const MOST: usize = 1 << 14;

    /// Entries of ops outside of requests that there is room for beyond.
    const SPARE: usize = 1 << 12;

    /// The name of the entry of all ops that found no room.
    pub const OTHER: &str = "(other)";

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All, by endpoint and name.
    pub fn iter(&self) -> impl Iterator<Item = (&OpKey, &OpSums)> {
        self.entries.iter()
    }

    /// Adds what `key` took.
    pub fn add(&mut self, mut key: OpKey, sums: &OpSums) {
        let has_room =
            |ops: &Self, key: &OpKey, most| ops.len() < most || ops.entries.contains_key(key);
        let is_displaced = !has_room(self, &key, Self::MOST) && !key.endpoint.is_empty();
        if !has_room(self, &key, Self::MOST) {
            key.key.clear();
            key.endpoint.clear();
        }
        if !has_room(self, &key, Self::MOST + Self::SPARE) {
            key.name = Self::OTHER.into();
        }
        let entry = self.entries.entry(key).or_default();
        entry.add(sums);
        if is_displaced {
            entry.displaced = entry.displaced.saturating_add(sums.calls);
        }
    }

    /// Adds those of another process or session.
    pub fn merge(&mut self, other: &Self) {
        for (key, sums) in &other.entries {
            self.add(key.clone(), sums);
        }
    }

    /// Takes those away that an earlier snapshot of the same session has. All are by name alone then: the calls of
    /// a request that went on there have come to its endpoint since it ended.
    pub(crate) fn subtract(&mut self, earlier: &Self) {
        let mut left = self.by_name();
        for (key, sums) in &earlier.by_name().entries {
            if let Some(ours) = left.entries.get_mut(key) {
                ours.subtract(sums);
            }
        }
        left.entries.retain(|_, sums| sums.calls > 0);
        *self = left;
    }

    /// All as if they had been outside of requests.
    fn by_name(&self) -> Self {
        let mut all = Self::default();
        for (key, sums) in &self.entries {
            let key = OpKey {
                name: key.name.clone(),
                ..OpKey::default()
            };
            let sums = OpSums {
                requests: 0,
                repeated: 0,
                displaced: 0,
                classes: Default::default(),
                ..sums.clone()
            };
            all.add(key, &sums);
        }
        all
    }

    /// Bytes held, roughly.
    pub fn memory(&self) -> usize {
        let entries = self.entries.iter();
        entries
            .map(|(key, sums)| {
                let texts = key.key.len() + key.endpoint.len() + key.name.len();
                texts + size_of::<(OpKey, OpSums)>() + sums.blocked.memory()
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(endpoint: &str, name: &str) -> OpKey {
        OpKey {
            key: if endpoint.is_empty() { "" } else { "endpoint" }.into(),
            endpoint: endpoint.into(),
            name: name.into(),
        }
    }

    fn call(wall_ns: u64, objects: Option<u64>) -> OpSums {
        OpSums {
            calls: 1,
            wall_ns,
            objects,
            ..OpSums::default()
        }
    }

    #[test]
    fn calls_of_one_op_and_endpoint_are_added_and_unknown_objects_stay_so() {
        let mut ops = Ops::default();
        ops.add(key("/a", "q"), &call(3, Some(1)));
        ops.add(key("/a", "q"), &call(4, Some(2)));
        ops.add(key("/b", "q"), &call(u64::MAX, None));
        ops.add(key("/b", "q"), &call(1, Some(5)));
        let all: Vec<_> = ops.iter().collect();
        assert_eq!((all[0].1.calls, all[0].1.wall_ns), (2, 7));
        assert_eq!(all[0].1.objects, Some(3));
        assert_eq!((all[1].1.wall_ns, all[1].1.objects), (u64::MAX, None));
        let mut merged = ops.clone();
        merged.merge(&ops);
        assert_eq!(merged.iter().next().map(|it| it.1.wall_ns), Some(14));
    }

    #[test]
    fn what_came_after_an_earlier_snapshot_is_left_by_name() {
        let calls = |calls, wall_ns, objects| OpSums {
            calls,
            wall_ns,
            objects,
            blocked_ns: wall_ns,
            requests: 1,
            ..OpSums::default()
        };
        let (mut earlier, mut later) = <(Ops, Ops)>::default();
        earlier.add(key("/a", "q"), &calls(2, 20, Some(2)));
        earlier.add(key("", "old"), &calls(1, 3, Some(1)));
        // Three calls of a request that goes on, and one outside of requests.
        earlier.add(key("", "q"), &calls(4, 40, Some(4)));
        earlier.add(key("", "unknown"), &calls(1, 2, None));
        later.add(key("/a", "q"), &calls(2 + 3 + 2, 75, Some(9)));
        later.add(key("", "q"), &calls(1, 10, Some(1)));
        later.add(key("", "old"), &calls(1, 3, Some(1)));
        later.add(key("/b", "new"), &calls(1, 5, Some(0)));
        later.add(key("/b", "unknown"), &calls(2, 3, None));
        later.subtract(&earlier);
        let left = later.iter().map(|(key, it)| {
            let is_outside = key.key.is_empty() && key.endpoint.is_empty() && it.requests == 0;
            assert!(is_outside, "{key:?}");
            assert_eq!(it.blocked_ns, it.wall_ns);
            (&*key.name, it.calls, it.wall_ns, it.objects)
        });
        let left: Vec<_> = left.collect();
        let expected = [
            ("new", 1, 5, Some(0)),
            ("q", 2, 25, Some(4)),
            ("unknown", 1, 1, None),
        ];
        assert_eq!(left, expected);
    }

    #[test]
    fn what_finds_no_room_is_added_to_its_op_or_to_all_others() {
        let mut ops = Ops::default();
        for number in 0..Ops::MOST {
            ops.add(key(&format!("/{number}"), "q"), &call(1, None));
        }
        for number in 0..Ops::SPARE + 7 {
            ops.add(key("/late", &number.to_string()), &call(1, None));
        }
        assert_eq!(ops.len(), Ops::MOST + Ops::SPARE + 1);
        let calls: u64 = ops.iter().map(|it| it.1.calls).sum();
        assert_eq!(calls as usize, Ops::MOST + Ops::SPARE + 7);
        assert_eq!(ops.entries[&key("", Ops::OTHER)].calls, 7);
        let displaced: u64 = ops.iter().map(|it| it.1.displaced).sum();
        assert_eq!(displaced as usize, Ops::SPARE + 7);
        assert!(ops.memory() > ops.len());
    }

    #[test]
    fn an_op_is_repeated_if_a_tenth_of_the_requests_repeat_it() {
        let of = |repeated| OpSums {
            repeated,
            ..OpSums::default()
        };
        assert!(of(10).is_repeated(100) && !of(9).is_repeated(100) && !of(0).is_repeated(0));
        assert!(!of(10).is_repeated(0), "no request is known");
    }
}
