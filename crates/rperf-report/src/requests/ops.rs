//! What ops took: each of them in all requests and outside of them, and those that a request calls again
//! and again. All but the lines is from exact accounts. Asked by `rperf report --ops` and for JSON; any
//! thread.

use crate::stack::groups::{Function, GroupId};
use crate::stack::places::Places;
use crate::top::Sort;
use rperf_model::Order;
use rperf_model::frame_kind::OP;
use rperf_model::{OpKey, OpSums, Profile};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpTimes {
    /// All ops together. Its wall time is the sum of the states: ops inside of others count once.
    pub total: OpSums,
    /// The ops, those with the most time of their own first.
    pub ops: Vec<Op>,
    /// Ops that requests call again and again, those first whose calls cost most in all.
    pub repeats: Vec<Repeat>,
}

/// An op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// Its name, with its kind in front.
    pub name: String,
    /// What it took.
    pub sums: OpSums,
    /// The application's function and line that most of its samples lead to; `None` without one.
    pub app: Option<(Function, u32)>,
}

/// An op that an endpoint's requests call [`OpSums::REPEATED`] times or more, one in ten of them at least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The label that names the endpoint, and its name.
    pub endpoint: (String, String),
    /// The op's name.
    pub name: String,
    /// What it took there.
    pub sums: OpSums,
    /// How many requests of the endpoint have ended.
    pub requests: u64,
    /// The application's function and line, as in [`Op`], of this endpoint's requests.
    pub app: Option<(Function, u32)>,
}

impl OpTimes {
    /// The states of a row, with their names; that of fibers only if any op has it.
    pub fn states(&self, sums: &OpSums) -> Vec<(&'static str, u64)> {
        let mut states = vec![
            ("blocked", sums.blocked_ns),
            ("GVL wait", sums.gvl_wait_ns),
            ("running", sums.running_ns),
            ("GC", sums.gc_ns),
        ];
        if self.total.suspended_ns > 0 {
            states.push(("suspended", sums.suspended_ns));
        }
        states
    }

    /// The ops of a profile; `None` if it has none. `sort`: by the time of their own, or with the ops
    /// inside of them.
    pub fn of(profile: &Profile, sort: Sort) -> Option<Self> {
        if profile.ops.is_empty() {
            return None;
        }
        let lines = Lines::of(profile);
        let mut all: BTreeMap<&str, OpSums> = BTreeMap::new();
        let mut total = OpSums::default();
        for (key, sums) in profile.ops.iter() {
            all.entry(&key.name).or_default().add(sums);
            total.add(sums);
        }
        total.wall_ns = total.own_ns();
        let of = |(name, sums): (&str, OpSums)| Op {
            name: name.into(),
            sums,
            app: lines.of_op(name, None),
        };
        let mut ops: Vec<Op> = all.into_iter().map(of).collect();
        ops.order_by_key(|op| {
            let time = match sort {
                Sort::TotalValue => op.sums.wall_ns,
                Sort::SelfValue => op.sums.own_ns(),
            };
            (Reverse(time), op.name.clone())
        });
        Some(Self {
            total,
            ops,
            repeats: Self::repeats(profile, &lines),
        })
    }

    fn repeats(profile: &Profile, lines: &Lines<'_>) -> Vec<Repeat> {
        let of = |(key, sums): (&OpKey, &OpSums)| {
            let requests = requests_of(profile, key);
            sums.is_repeated(requests).then(|| Repeat {
                endpoint: (key.key.clone(), key.endpoint.clone()),
                name: key.name.clone(),
                sums: sums.clone(),
                requests,
                app: lines.of_op(&key.name, Some(key)),
            })
        };
        let mut repeats: Vec<Repeat> = profile.ops.iter().filter_map(of).collect();
        // By what they cost: they are in the order of their names before.
        repeats.order_by_key(|it| Reverse(it.sums.own_ns()));
        repeats
    }
}

/// An op of an endpoint's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointOp<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it took in these requests.
    pub sums: &'a OpSums,
    /// The requests call it again and again.
    pub is_repeated: bool,
    /// The application's function and line, as in [`Repeat`].
    pub app: Option<(Function, u32)>,
}

/// The ops of each endpoint of [`Profile::requests`], in that order, by name.
pub fn ops_by_endpoint(profile: &Profile) -> Vec<Vec<EndpointOp<'_>>> {
    if profile.ops.is_empty() {
        return Vec::new();
    }
    let lines = Lines::of(profile);
    let endpoints = profile.requests.iter().enumerate();
    let rows: FxHashMap<(&str, &str), usize> = endpoints
        .map(|(row, it)| ((&*it.key, &*it.name), row))
        .collect();
    let mut all = vec![Vec::new(); profile.requests.len()];
    for (key, sums) in profile.ops.iter() {
        let Some(&row) = rows.get(&(&*key.key, &*key.endpoint)) else {
            continue;
        };
        all[row].push(EndpointOp {
            name: &key.name,
            sums,
            is_repeated: sums.is_repeated(profile.requests[row].count()),
            app: lines.of_op(&key.name, Some(key)),
        });
    }
    all
}

/// How many requests of this endpoint have ended.
pub(crate) fn requests_of(profile: &Profile, key: &OpKey) -> u64 {
    let mut all = profile.requests.iter();
    let of = all.find(|it| it.key == key.key && it.name == key.endpoint);
    of.map_or(0, |it| it.count())
}

/// The lines that ops are called from, by samples.
pub(crate) struct Lines<'a> {
    places: Places<'a>,
    /// By op and, with a request or job, its label.
    weights: FxHashMap<(&'a str, Option<Label<'a>>), PlaceWeights>,
}

/// A key and a value.
type Label<'a> = (&'a str, &'a str);

/// The weight of each place.
type PlaceWeights = FxHashMap<(GroupId, u32), i64>;

impl<'a> Lines<'a> {
    /// The lines of a profile.
    pub(crate) fn of(profile: &'a Profile) -> Self {
        let places = Places::of(profile);
        let mut weights: FxHashMap<_, PlaceWeights> = FxHashMap::default();
        let column = profile.schema.default_column();
        for row in profile.weights.iter() {
            let leaf = profile.tree.get(row.key.node);
            let frame = leaf.and_then(|leaf| profile.frames.get(leaf.frame));
            let Some(frame) = frame.filter(|it| profile.strings.get(it.path) == OP) else {
                continue;
            };
            let Some(place) = places.of_node(row.key.node).1 else {
                continue;
            };
            let name = profile.strings.get(frame.name);
            let labels = profile.label_sets.get(row.key.labels).iter();
            let labels = labels
                .map(|&(key, value)| Some((profile.strings.get(key), profile.strings.get(value))));
            for label in labels.chain([None]) {
                let weight = weights.entry((name, label)).or_default();
                let weight = weight.entry(place).or_default();
                *weight = weight.saturating_add(row.value(column));
            }
        }
        Self { places, weights }
    }

    /// The line that most samples of the op lead to, in an endpoint or at all.
    pub(crate) fn of_op(&self, name: &str, within: Option<&OpKey>) -> Option<(Function, u32)> {
        let within = within.map(|key| (&*key.key, &*key.endpoint));
        let places = self.weights.get(&(name, within))?.iter();
        let most = places.max_by_key(|(place, weight)| (**weight, Reverse(**place)));
        most.map(|(&(group, line), _)| (self.places.function(group), line))
    }
}

#[cfg(test)]
mod tests;
