//! The ops of a session: their names, and what their calls took, by the request or job that they were
//! in. Under the GVL.

mod names;

pub use names::OpFrame;
use names::OpNames;

use crate::{Figures, OpTime, RequestName, Sums};
use rperf_model::{LatencyClass, OpCalls, OpKey, OpSums, Ops, Quantiles};
use rperf_vm::{OpNumber, RequestNumber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Ops that are told apart in one request. Calls of others count as outside of requests.
const PLACES: usize = 64;

/// Requests that may go on at a time. With more, the calls of the oldest count as outside of requests.
const OPEN: usize = 1 << 16;

/// Places of all requests that go on: 15 MB. With more, the oldest requests let go of theirs, likewise.
const OPEN_PLACES: usize = 1 << 16;

/// The ops of a session.
#[derive(Debug, Default)]
pub struct SessionOps {
    names: OpNames,
    /// Calls in requests that have ended.
    ended: Ops,
    /// Calls outside of requests.
    outside: BTreeMap<OpNumber, OpSums>,
    /// The requests that go on, and the calls in them.
    open: BTreeMap<RequestNumber, Vec<Place>>,
    /// How many places they have.
    places: usize,
    /// All calls since the session began, by op, from number 1.
    calls: Vec<u64>,
}

/// What a call took.
#[derive(Debug, Clone, Copy)]
pub struct OpCall {
    /// With the ops inside of it.
    pub figures: Figures,
    /// What these took in states.
    pub nested: Sums,
    /// What they took while other fibers had control.
    pub nested_suspended_ns: u64,
    /// Whether the call is inside of a call of the same op, whose wall time includes this call's.
    pub is_within_itself: bool,
}

impl OpCall {
    /// What it took in states, without the ops inside of it.
    fn own(&self) -> Sums {
        self.figures.sums.since(&self.nested)
    }

    /// What it took while other fibers had control, without the ops inside of it.
    fn own_suspended_ns(&self) -> u64 {
        let suspended_ns = self.figures.suspended_ns;
        suspended_ns.saturating_sub(self.nested_suspended_ns)
    }

    /// What it adds to the time of its op.
    pub fn time(&self) -> OpTime {
        let own_ns = self.own().wall_ns();
        OpTime {
            wall_ns: match self.is_within_itself {
                true => 0,
                false => self.figures.wall_ns,
            },
            own_ns: own_ns.saturating_add(self.own_suspended_ns()),
        }
    }
}

/// The calls of one op in a request that goes on.
#[derive(Debug)]
struct Place {
    op: OpNumber,
    sums: CallSums,
    /// The buckets of their blocked time, and how many calls each has. There are few: an op takes much the
    /// same time in each call.
    buckets: Vec<(usize, u32)>,
}

/// The sums of calls.
#[derive(Debug, Default)]
struct CallSums {
    calls: u64,
    wall_ns: u64,
    own: Sums,
    suspended_ns: u64,
    longest_blocked_ns: u64,
    /// All of them were made where objects can be told from those of other Ractors.
    is_alone: bool,
}

impl SessionOps {
    /// No ops yet, of a program in these directories.
    pub fn of_program_in(roots: Vec<String>) -> Self {
        Self {
            names: OpNames::of_program_in(roots),
            ..Self::default()
        }
    }

    /// The number of the op with this name. `kind` is a word such as `sql`: of statements of SQL, the
    /// values are left out of the name; of templates (`render`), the directories of the program.
    pub fn number(&mut self, kind: &str, text: &[u8]) -> OpNumber {
        self.names.number(kind, text)
    }

    /// Whether the op with this number is of this kind.
    pub fn is_of_kind(&self, op: OpNumber, kind: &[u8]) -> bool {
        let kind = std::str::from_utf8(kind);
        kind.is_ok_and(|kind| self.names.is_of_kind(op, kind))
    }

    /// The names of all ops, from number 1.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.names.all().to_vec()
    }

    /// Which op is the leaf of samples within the one with this number.
    pub fn frame(&self, op: OpNumber) -> OpFrame {
        self.names.frame(op)
    }

    /// The name of the op with this number.
    pub fn name(&self, op: OpNumber) -> Option<Arc<str>> {
        let row = usize::from(op.0).checked_sub(1)?;
        self.names.all().get(row).cloned()
    }

    /// A request has begun: calls in it are its own until it ends.
    pub fn begin_request(&mut self, request: RequestNumber) {
        if self.open.len() >= OPEN {
            self.let_go_of_oldest();
        }
        self.open.insert(request, Vec::new());
    }

    /// A call of the op has ended, in this request or in none.
    pub fn add(&mut self, op: OpNumber, request: RequestNumber, call: &OpCall) {
        let Some(row) = usize::from(op.0).checked_sub(1) else {
            return;
        };
        if self.calls.len() <= row {
            self.calls.resize(row + 1, 0);
        }
        self.calls[row] += 1;
        if let Some(place) = self.place(op, request) {
            place.add(call);
            return;
        }
        let mut place = Place::of(op);
        place.add(call);
        let is_displaced = request != RequestNumber::NONE;
        self.add_outside(&place, is_displaced);
    }

    /// The names of ops, of this kind or of all, and how many calls have ended since the session began.
    pub fn calls<'a>(&'a self, kind: Option<&'a str>) -> impl Iterator<Item = (&'a str, u64)> {
        let calls = (1..).map(OpNumber).zip(&self.calls);
        let chosen =
            calls.filter(move |(op, _)| kind.is_none_or(|it| self.names.is_of_kind(*op, it)));
        chosen.filter_map(|(op, calls)| Some((self.names.name(op)?, *calls)))
    }

    /// A request has ended. Its class is `None` if it isn't known how long it took.
    pub fn end_request(
        &mut self,
        request: RequestNumber,
        of: RequestName<'_>,
        class: Option<LatencyClass>,
    ) {
        for place in self.closed(request) {
            let Some(name) = self.names.name(place.op) else {
                continue;
            };
            let key = OpKey {
                key: of.key.into(),
                endpoint: of.name.into(),
                name: name.into(),
            };
            let mut sums = place.sums();
            sums.requests = 1;
            sums.repeated = u64::from(sums.calls >= OpSums::REPEATED);
            if let Some(of_class) = class.and_then(|it| sums.classes.get_mut(it as usize)) {
                *of_class = OpCalls {
                    calls: sums.calls,
                    wall_ns: sums.wall_ns,
                };
            }
            self.ended.add(key, &sums);
        }
    }

    /// All calls so far, those of requests that go on as outside of requests; they are let go of if
    /// `clear`, but for these.
    pub fn told(&mut self, clear: bool) -> Ops {
        let (mut told, outside) = match clear {
            true => (
                std::mem::take(&mut self.ended),
                std::mem::take(&mut self.outside),
            ),
            false => (self.ended.clone(), self.outside.clone()),
        };
        let mut add = |op, sums: &OpSums| {
            let name = self.names.name(op).unwrap_or(Ops::OTHER).into();
            let key = OpKey {
                name,
                ..OpKey::default()
            };
            told.add(key, sums);
        };
        outside.iter().for_each(|(op, sums)| add(*op, sums));
        if clear {
            return told;
        }
        let open = self.open.values().flatten();
        open.for_each(|place| add(place.op, &place.sums()));
        told
    }

    /// The place of an op in a request; `None` if it has ended, or there is no room.
    fn place(&mut self, op: OpNumber, request: RequestNumber) -> Option<&mut Place> {
        let places = self.open.get(&request)?;
        let known = places.iter().position(|it| it.op == op);
        if let Some(row) = known {
            return self.open.get_mut(&request)?.get_mut(row);
        }
        if places.len() >= PLACES {
            return None;
        }
        while self.places >= OPEN_PLACES {
            self.let_go_of_oldest();
        }
        // It may have been the oldest.
        let places = self.open.get_mut(&request)?;
        self.places += 1;
        places.push(Place::of(op));
        places.last_mut()
    }

    /// What a request that has ended had.
    fn closed(&mut self, request: RequestNumber) -> Vec<Place> {
        let places = self.open.remove(&request).unwrap_or_default();
        self.places -= places.len();
        places
    }

    /// The oldest request that goes on is known no more.
    fn let_go_of_oldest(&mut self) {
        let oldest = self.open.first_key_value().map(|(&request, _)| request);
        for place in oldest.map_or_else(Vec::new, |it| self.closed(it)) {
            self.add_outside(&place, true);
        }
    }

    /// Calls outside of requests; `is_displaced`: they were in one.
    fn add_outside(&mut self, place: &Place, is_displaced: bool) {
        let mut sums = place.sums();
        sums.displaced = if is_displaced { sums.calls } else { 0 };
        self.outside.entry(place.op).or_default().add(&sums);
    }
}

impl Place {
    fn of(op: OpNumber) -> Self {
        Self {
            op,
            sums: CallSums {
                is_alone: true,
                ..CallSums::default()
            },
            buckets: Vec::new(),
        }
    }

    fn add(&mut self, call: &OpCall) {
        let own = call.own();
        let sums = &mut self.sums;
        sums.calls += 1;
        sums.wall_ns = sums.wall_ns.saturating_add(call.time().wall_ns);
        sums.own = sums.own.plus(&own);
        sums.suspended_ns = sums.suspended_ns.saturating_add(call.own_suspended_ns());
        sums.longest_blocked_ns = sums.longest_blocked_ns.max(own.blocked_ns);
        sums.is_alone &= call.figures.is_alone;
        let bucket = Quantiles::bucket_of(own.blocked_ns);
        match self.buckets.iter_mut().find(|it| it.0 == bucket) {
            Some((_, calls)) => *calls = calls.saturating_add(1),
            None => self.buckets.push((bucket, 1)),
        }
    }

    fn sums(&self) -> OpSums {
        let CallSums { own, .. } = &self.sums;
        let buckets = self.buckets.iter().copied();
        let longest_ns = self.sums.longest_blocked_ns;
        OpSums {
            calls: self.sums.calls,
            wall_ns: self.sums.wall_ns,
            running_ns: own.running_ns,
            gvl_wait_ns: own.gvl_wait_ns,
            blocked_ns: own.blocked_ns,
            gc_ns: own.gc_ns,
            suspended_ns: self.sums.suspended_ns,
            objects: Some(own.allocated_objects).filter(|_| self.sums.is_alone),
            blocked: Quantiles::of_buckets(buckets, own.blocked_ns, longest_ns).unwrap_or_default(),
            ..OpSums::default()
        }
    }
}

#[cfg(test)]
mod tests;
