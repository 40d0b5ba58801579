//! Why the slow requests of an endpoint are slow: what they have that the usual ones don't, by state.
//! States and objects are means of accounts, and exact; where the time was is told by samples. Called by
//! the command; any thread.

mod causes;
mod collections;
mod holders;
mod means;
mod op_shares;
mod slowest;
mod texts;

pub use collections::Collections;
pub use holders::Holder;
pub use means::Means;
pub use op_shares::OpShare;
pub use slowest::SlowRequest;

use holders::AllHolders;
use means::mean;
use texts::{SITES, Texts, classes};
pub(crate) use texts::{is_in_request, judged_keys};

use crate::stack::groups::Function;
use crate::stack::places::Place;
use rperf_model::numbers::signed;
use rperf_model::{
    Column, LatencyClass, NodeId, Order, OwnColumn, Profile, RequestValues, Requests, State,
};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A part of what a request takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// With the GVL, but for collections.
    Running,
    /// Waiting for the GVL.
    GvlWait,
    /// Blocked.
    Blocked,
    /// Collecting garbage.
    Gc,
    /// Other fibers of the thread had control.
    Suspended,
}

impl Part {
    /// All parts, which add up to the wall time.
    pub const ALL: [Self; 5] = [
        Self::Running,
        Self::GvlWait,
        Self::Blocked,
        Self::Gc,
        Self::Suspended,
    ];

    /// Its name for people, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::GvlWait => "GVL wait",
            Self::Blocked => "blocked",
            Self::Gc => "GC",
            Self::Suspended => "suspended",
        }
    }

    fn of(self, values: &RequestValues) -> u64 {
        match self {
            Self::Running => values.running,
            Self::GvlWait => values.gvl_wait,
            Self::Blocked => values.blocked,
            Self::Gc => values.gc,
            Self::Suspended => values.suspended,
        }
    }

    fn of_state(state: State) -> Self {
        match state {
            State::Running => Self::Running,
            State::GvlBlocked => Self::Blocked,
            State::GvlWait => Self::GvlWait,
            State::GcMarking | State::GcSweeping => Self::Gc,
        }
    }
}

/// An endpoint, and what makes its slowest requests slow.
#[derive(Debug, Clone)]
pub struct EndpointTimes<'a> {
    /// Its requests.
    pub requests: &'a Requests,
    /// Each part, in the order of [`Part::ALL`].
    pub parts: [Means; 5],
}

impl<'a> EndpointTimes<'a> {
    /// All endpoints, those first whose tail costs most in all.
    pub fn all(profile: &'a Profile) -> Vec<Self> {
        let mut all: Vec<_> = profile.requests.iter().map(Self::of).collect();
        let cost = |it: &Self| {
            let tail = it.requests.class(LatencyClass::Tail).count;
            it.excess().max(0) as u128 * u128::from(tail)
        };
        all.order_by_key(|it| (Reverse(cost(it)), &it.requests.key, &it.requests.name));
        all
    }

    /// The times of these requests.
    pub fn of(requests: &'a Requests) -> Self {
        let [typical, tail] = classes(requests);
        Self {
            requests,
            parts: Part::ALL.map(|part| Means::of([&typical, &tail], |it| part.of(&it.sums))),
        }
    }

    /// How much longer a request of the tail takes; 0 where there are none to compare.
    pub fn excess(&self) -> i64 {
        match classes(self.requests).iter().all(|it| it.count > 0) {
            true => self
                .parts
                .iter()
                .fold(0, |sum, it| sum.saturating_add(it.excess())),
            false => 0,
        }
    }

    /// The share of a part in what the tail takes longer, in percent: of the parts that grew.
    pub fn share(&self, part: Part) -> f64 {
        let grown = |means: &Means| means.excess().max(0);
        let all = self.parts.iter().map(grown).fold(0, i64::saturating_add);
        rperf_model::numbers::percent(grown(&self.parts[part as usize]), all)
    }
}

/// Where time was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The innermost method.
    pub method: Option<Function>,
    /// The innermost one of the application, or else in a file, and the line in it (0: not known).
    pub app: Option<(Function, u32)>,
    /// What a request has there.
    pub means: Means,
}

/// The answer for an endpoint.
#[derive(Debug, Clone)]
pub struct Why<'a> {
    /// Its times.
    pub times: EndpointTimes<'a>,
    /// Objects of a request, where they are known.
    pub objects: Option<Means>,
    /// Where each part grew most, in the order of [`Part::ALL`].
    pub sites: [Vec<Site>; 5],
    /// Why collections ran in them whose time grew most, by samples.
    pub collections: Vec<Collections>,
    /// By how much the time of all causes grew whose time grew, told above or not, in ns of a request.
    pub collected: i64,
    /// Who kept its slow requests waiting most, or all that waited; `None` if that wasn't measured.
    pub holders: Option<Vec<Holder>>,
    /// By how much longer all who are known kept a slow request waiting, told above or not, in ns; `None`
    /// if that wasn't measured.
    pub held: Option<i64>,
    /// All blame of the profile, in ns.
    pub blame: i64,
    /// The time of samples of its requests that had not ended, or for which there was no room.
    pub open_ns: i64,
    /// Its ops, those first that a request of the tail spends most with; none where several endpoints are
    /// told of.
    pub ops: Vec<OpShare>,
    /// The slowest requests, the slowest one first.
    pub slowest: Vec<SlowRequest>,
}

impl<'a> Why<'a> {
    /// With so few requests in the tail there is little to tell.
    pub const FEW: u64 = 20;

    /// Below this share who had the GVL isn't told, nor why collections ran, in percent.
    pub const LEAST_PERCENT: f64 = 5.0;

    /// Why the tail of these requests, which are of `profile`, is slow.
    pub fn of(profile: &'a Profile, requests: &'a Requests) -> Self {
        let texts = Texts::of(profile);
        Self {
            ops: op_shares::ops_of(profile, requests),
            ..Self::told(&texts, texts.all_holders().as_ref(), requests)
        }
    }

    fn told(texts: &Texts<'a>, holders: Option<&AllHolders>, requests: &'a Requests) -> Self {
        let profile = texts.profile;
        let wall = profile.schema.find_own(OwnColumn::Wall);
        let sums = wall.map(|wall| texts.sums(requests, wall));
        let (sites, open_ns) = sums.unwrap_or_default();
        let blame = profile.schema.find_own(OwnColumn::GvlBlame);
        let [typical, tail] = classes(requests);
        let objects = [&typical, &tail].map(|it| mean(it.sums.objects, it.alone));
        let (holders, held) = match holders.map(|all| texts.holders_of(requests, all)) {
            Some((holders, held)) => (Some(holders), held),
            None => (None, None),
        };
        let collections = wall.map(|wall| collections::collections_of(texts, requests, wall));
        let (collections, collected) = collections.unwrap_or_default();
        let are_known = typical.alone > 0 && tail.alone > 0;
        Self {
            times: EndpointTimes::of(requests),
            objects: are_known.then_some(Means {
                typical: objects[0],
                tail: objects[1],
            }),
            sites,
            collections,
            collected,
            holders,
            held,
            blame: blame.map_or(0, |blame| profile.sum(blame)),
            open_ns,
            ops: Vec::new(),
            slowest: slowest::slowest(&texts.request_labels, requests),
        }
    }

    /// Whether there are enough of both kinds to be compared.
    pub fn has_enough(&self) -> bool {
        let [typical, tail] = classes(self.times.requests);
        typical.count > 0 && tail.count >= Self::FEW
    }
}

impl<'a> Texts<'a> {
    /// Where the parts of these requests grew most, and the time of those that are open.
    fn sums(&self, requests: &Requests, wall: Column) -> ([Vec<Site>; 5], i64) {
        let mut places: FxHashMap<NodeId, Option<Place>> = FxHashMap::default();
        let mut sums: FxHashMap<(usize, Place), [i64; 2]> = FxHashMap::default();
        let mut open_ns: i64 = 0;
        let keys = judged_keys(self.profile);
        for row in self.profile.weights.iter() {
            let column = match self.class_of(row.key.labels, requests, &keys) {
                Some(LatencyClass::Typical) => 0,
                Some(LatencyClass::Tail) => 1,
                Some(LatencyClass::Open) => {
                    open_ns = open_ns.saturating_add(row.value(wall));
                    continue;
                }
                _ => continue,
            };
            let node = row.key.node;
            // The time of rperf itself has no place, because the line that called it isn't to blame.
            let place = places.entry(node).or_insert_with(|| {
                (!self.places.is_rperfs(node)).then(|| self.places.of_node(node))
            });
            let Some(place) = *place else {
                continue;
            };
            let part = Part::of_state(row.key.state) as usize;
            let sum = &mut sums.entry((part, place)).or_default()[column];
            *sum = sum.saturating_add(row.value(wall));
        }
        let counts = classes(requests).map(|it| signed(it.count.max(1)));
        let mut sites: [Vec<Site>; 5] = Default::default();
        for ((part, (method, app)), sums) in sums {
            let means = Means {
                typical: sums[0] / counts[0],
                tail: sums[1] / counts[1],
            };
            if means.excess() > 0 {
                sites[part].push(Site {
                    method: method.map(|group| self.places.function(group)),
                    app: app.map(|(group, line)| (self.places.function(group), line)),
                    means,
                });
            }
        }
        for sites in &mut sites {
            sites.order_by(|a, b| a.rank().cmp(&b.rank()));
            sites.truncate(SITES);
        }
        (sites, open_ns)
    }
}

impl Site {
    fn rank(&self) -> impl Ord + '_ {
        (Reverse(self.means.excess()), &self.method, &self.app)
    }
}

#[cfg(test)]
mod tests;
