//! Requests and jobs by endpoint, and how long each took among its like: its class. Under the GVL.

use crate::{Figures, table};
use rperf_model::{
    AmongSlowest, LatencyClass, Order, Quantiles, RequestId, RequestValues, Requests, Slowest,
};
use rustc_hash::FxHashMap;

/// How many of an endpoint must be known before one is judged.
const KNOWN: u64 = 100;
/// After so many the thresholds are renewed.
const RENEWED_AFTER: u32 = 64;
/// Requests of a window. There are two, and the older one is forgotten as a new one begins.
const WINDOW: u64 = 1_024;
/// For so long one goes on, if enough are known.
const WINDOW_NS: u64 = 600_000_000_000;

/// The endpoints, by the key of their label and then by name.
#[derive(Debug, Default)]
pub struct JudgedRequests {
    endpoints: FxHashMap<Box<str>, FxHashMap<Box<str>, Endpoint>>,
    /// In all.
    names: usize,
}

/// The label that names a request or a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestName<'a> {
    /// Its key.
    pub key: &'a str,
    /// Its value: the endpoint, or the job's class.
    pub name: &'a str,
}

#[derive(Debug)]
struct Endpoint {
    judge: Judge,
    /// What is told of them.
    requests: Requests,
}

impl JudgedRequests {
    /// The request `id` has ended with these `figures`, at `now_ns` on the monotonic clock and `ended_ns`
    /// since the epoch: its class, and whether it is one of the slowest of its endpoint.
    pub fn add(
        &mut self,
        name: RequestName<'_>,
        id: RequestId,
        figures: &Figures,
        now_ns: u64,
        ended_ns: u64,
    ) -> (LatencyClass, AmongSlowest) {
        let endpoint = self.endpoint(name);
        let class = endpoint.judge.judge(figures.wall_ns, now_ns);
        let request = Slowest {
            id,
            ..values(figures).ended_at(ended_ns)
        };
        let place = endpoint.requests.add(class, request, figures.is_alone);
        (class, place)
    }

    /// All that is told of them; `clear`: it is told once. What they are judged by stays.
    pub fn told(&mut self, clear: bool) -> Vec<Requests> {
        let endpoints = self.endpoints.values_mut().flat_map(FxHashMap::values_mut);
        let mut told: Vec<Requests> = endpoints
            .map(|it| {
                let empty = Requests::new(&it.requests.key, &it.requests.name);
                match clear {
                    true => std::mem::replace(&mut it.requests, empty),
                    false => it.requests.clone(),
                }
            })
            .filter(|it| it.count() > 0)
            .collect();
        told.order_by(|a, b| (&a.key, &a.name).cmp(&(&b.key, &b.name)));
        told
    }

    /// The name that it is told by: long ones are cut, and what finds no room is one of the others.
    pub fn told_as<'a>(&self, name: RequestName<'a>) -> RequestName<'a> {
        let RequestName { key, name } = name;
        let name = table::cut(name, table::LONGEST);
        let is_known = |names: &FxHashMap<Box<str>, Endpoint>| names.contains_key(name);
        let is_known = self.endpoints.get(key).is_some_and(is_known);
        let name = match self.names < table::MOST || is_known {
            true => name,
            false => table::OTHER,
        };
        RequestName { key, name }
    }

    fn endpoint(&mut self, name: RequestName<'_>) -> &mut Endpoint {
        let RequestName { key, name } = self.told_as(name);
        if !self.endpoints.contains_key(key) {
            self.endpoints.insert(key.into(), FxHashMap::default());
        }
        let names = self.endpoints.entry(key.into()).or_default();
        names.entry(name.into()).or_insert_with(|| {
            self.names += 1;
            Endpoint {
                judge: Judge::default(),
                requests: Requests::new(key, name),
            }
        })
    }
}

fn values(figures: &Figures) -> RequestValues {
    let sums = &figures.sums;
    let known = |value| if figures.is_alone { value } else { 0 };
    RequestValues {
        wall: figures.wall_ns,
        running: sums.running_ns,
        gvl_wait: sums.gvl_wait_ns,
        blocked: sums.blocked_ns,
        gc: sums.gc_ns,
        suspended: figures.suspended_ns,
        gvl_blame: known(sums.gvl_blame_ns),
        objects: known(sums.allocated_objects),
    }
}

/// What the requests of an endpoint are judged by: those of the last two windows.
#[derive(Debug, Default)]
struct Judge {
    /// The present window, and the one before.
    windows: [Quantiles; 2],
    began_ns: u64,
    thresholds: Option<Thresholds>,
    since_renewal: u32,
}

/// From which time on a request is of a class; each class ends where the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thresholds {
    typical: u64,
    slow: u64,
    tail: u64,
}

impl Judge {
    fn judge(&mut self, wall_ns: u64, now_ns: u64) -> LatencyClass {
        let class = match self.thresholds {
            None => LatencyClass::First,
            Some(thresholds) => thresholds.class(wall_ns),
        };
        self.add(wall_ns, now_ns);
        class
    }

    fn add(&mut self, wall_ns: u64, now_ns: u64) {
        let [present, before] = &mut self.windows;
        let age = now_ns.saturating_sub(self.began_ns);
        let is_over = present.count() >= WINDOW || (present.count() >= KNOWN && age >= WINDOW_NS);
        if present.count() == 0 || is_over {
            self.began_ns = now_ns;
        }
        if is_over {
            *before = std::mem::take(present);
        }
        present.add(wall_ns);
        self.since_renewal += 1;
        if self.thresholds.is_none() || self.since_renewal >= RENEWED_AFTER {
            self.renew();
        }
    }

    fn renew(&mut self) {
        let [present, before] = &self.windows;
        if present.count() + before.count() >= KNOWN {
            let mut both = before.clone();
            both.merge(present);
            self.thresholds = Thresholds::of(&both);
            self.since_renewal = 0;
        }
    }
}

impl Thresholds {
    /// Buckets are taken whole. That of p99 is of the tail, unless too many reach it and it is near what
    /// is usual: then it is that of a crowd, of which some are a little slower than others.
    fn of(known: &Quantiles) -> Option<Self> {
        let [p25, p75, p99] = [250, 750, 990].map(|per_mille| known.bucket(per_mille));
        let (p25, p75, p99) = (p25?, p75?, p99?);
        // A fiftieth, and some more of a few.
        let is_few = known.count_from(p99.start) <= known.count() / 50 + 2;
        let is_far = p99.start >= p75.end.saturating_add(p75.end / 2);
        let tail = if is_few || is_far { p99.start } else { p99.end };
        Some(Self {
            typical: p25.start,
            slow: p75.end,
            tail: tail.max(p75.end),
        })
    }

    fn class(self, wall_ns: u64) -> LatencyClass {
        if wall_ns >= self.tail {
            LatencyClass::Tail
        } else if wall_ns >= self.slow {
            LatencyClass::Slow
        } else if wall_ns >= self.typical {
            LatencyClass::Typical
        } else {
            LatencyClass::Fast
        }
    }
}

#[cfg(test)]
mod tests;
