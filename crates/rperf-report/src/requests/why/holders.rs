//! Who had the GVL while requests waited for it: of an endpoint where that was measured, or else of all
//! threads that waited.

use super::means::Means;
use super::texts::{SITES, Texts, classes, judged_keys};
use crate::rows::threads::thread_name;
use crate::stack::groups::Function;
use crate::stack::places::Place;
use rperf_model::numbers::signed;
use rperf_model::{Column, LatencyClass, NodeId, Order, OwnColumn, Requests, WeightKey};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// Who had the GVL while others waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The request or job, as `job=ExportJob`, or the thread.
    pub name: String,
    /// Whether it is known: samples may be lost.
    pub is_known: bool,
    /// For how long others waited meanwhile, whoever they were, in ns, in the whole profile.
    pub blame: i64,
    /// For how long a request of the endpoint waited meanwhile; `None` if that isn't known.
    pub means: Option<Means>,
    /// The innermost method that at least half of that was in.
    pub method: Option<Function>,
    /// The innermost one of the application, or else in a file, that at least half of it was in, and the
    /// line in it (0: not known).
    pub app: Option<(Function, u32)>,
}

impl Holder {
    /// What it is measured by, among others: the time by which it kept slow requests waiting longer, or
    /// else all blame.
    pub(super) fn weight(&self) -> i64 {
        self.means.map_or(self.blame, |it| it.excess())
    }
}

/// All who had the GVL, by what is known of the whole profile.
pub(super) struct AllHolders {
    names: Vec<String>,
    /// By name: the blame.
    blame: Vec<i64>,
    /// Who it was that had these stacks, mostly.
    of_nodes: FxHashMap<NodeId, usize>,
    /// Who kept others waiting most, and where.
    most: Vec<Holder>,
    /// Where requests have what they waited for, if that was measured.
    waited_for: Option<Column>,
}

impl Texts<'_> {
    /// All who had the GVL, if it was measured for how long others waited meanwhile.
    pub(super) fn all_holders(&self) -> Option<AllHolders> {
        let schema = &self.profile.schema;
        let blame = schema.find_own(OwnColumn::GvlBlame)?;
        let time = schema.find_own(OwnColumn::Wall);
        let threads = self.profile.threads.iter();
        let threads = threads.map(|it| (it.seq, self.profile.strings.get(it.name)));
        let threads: FxHashMap<u32, &str> = threads.collect();
        let keys: BTreeSet<&str> = judged_keys(self.profile).into_iter().collect();
        let mut ids: FxHashMap<String, usize> = FxHashMap::default();
        let mut stacks: Vec<FxHashMap<NodeId, i64>> = Vec::new();
        let mut nodes: FxHashMap<NodeId, FxHashMap<usize, (i64, i64)>> = FxHashMap::default();
        for row in self.profile.weights.iter() {
            let (value, time) = (row.value(blame), time.map_or(0, |time| row.value(time)));
            // What requests have waited for are stacks of others.
            if (value == 0 && time == 0) || !row.key.state.has_gvl() {
                continue;
            }
            let place = self.places.of_node(row.key.node);
            let name = self.holder_name(&row.key, place, &keys, &threads);
            let next = ids.len();
            let id = *ids.entry(name).or_insert(next);
            stacks.resize_with(ids.len(), FxHashMap::default);
            let of_node = nodes.entry(row.key.node).or_default();
            let of_node = of_node.entry(id).or_default();
            of_node.0 = of_node.0.saturating_add(value);
            of_node.1 = of_node.1.saturating_add(time);
            if value != 0 {
                let sum = stacks[id].entry(row.key.node).or_default();
                *sum = sum.saturating_add(value);
            }
        }
        let mut names = vec![String::new(); ids.len()];
        for (name, id) in ids {
            names[id] = name;
        }
        let of_nodes = nodes.into_iter().filter_map(|(node, ids)| {
            let most = ids.into_iter();
            let most = most.max_by_key(|(id, times)| (*times, Reverse(&names[*id])));
            Some((node, most?.0))
        });
        let of_nodes = of_nodes.collect();
        let sum = |stacks: &FxHashMap<NodeId, i64>| {
            let values = stacks.values().copied();
            values.fold(0, i64::saturating_add)
        };
        let blame: Vec<i64> = stacks.iter().map(sum).collect();
        let with_stacks = stacks.iter().enumerate().filter(|it| !it.1.is_empty());
        let ranked = with_stacks.map(|(id, _)| (blame[id], &*names[id], id));
        let told = first(ranked.collect())
            .into_iter()
            .map(|(blame, name, id)| {
                let stacks = stacks[id].iter().map(|(node, ns)| (*node, *ns));
                self.holder(Some(name), blame, None, stacks)
            });
        let most = told.collect();
        Some(AllHolders {
            names,
            blame,
            of_nodes,
            most,
            waited_for: schema.find_own(OwnColumn::GvlWaitedFor),
        })
    }

    /// Who had the GVL most while these requests waited for it, and by how much longer all together kept
    /// slow ones waiting; or if that wasn't measured, who had it while others waited.
    pub(super) fn holders_of(
        &self,
        requests: &Requests,
        all: &AllHolders,
    ) -> (Vec<Holder>, Option<i64>) {
        match all.waited_for {
            Some(column) => self.waited_for(requests, all, column),
            None => (all.most.clone(), None),
        }
    }

    fn waited_for(
        &self,
        requests: &Requests,
        all: &AllHolders,
        column: Column,
    ) -> (Vec<Holder>, Option<i64>) {
        let keys = judged_keys(self.profile);
        let mut holders: FxHashMap<Option<usize>, FxHashMap<NodeId, [i64; 2]>> =
            FxHashMap::default();
        for row in self.profile.weights.iter() {
            let value = row.value(column);
            // Stacks beyond those that a wait tells apart are told as one without frames.
            if value == 0 || row.key.node == NodeId::ROOT {
                continue;
            }
            let class = match self.class_of(row.key.labels, requests, &keys) {
                Some(LatencyClass::Typical) => 0,
                Some(LatencyClass::Tail) => 1,
                _ => continue,
            };
            let id = all.of_nodes.get(&row.key.node).copied();
            let stacks = holders.entry(id).or_default();
            let sum = &mut stacks.entry(row.key.node).or_default()[class];
            *sum = sum.saturating_add(value);
        }
        let counts = classes(requests).map(|it| signed(it.count.max(1)));
        let means = |[typical, tail]: [i64; 2]| Means {
            typical: typical / counts[0],
            tail: tail / counts[1],
        };
        let sums = holders.iter().map(|(id, stacks)| {
            let sums = stacks.values().fold([0_i64; 2], |sums, it| {
                [0, 1].map(|class| sums[class].saturating_add(it[class]))
            });
            (*id, means(sums))
        });
        let longer: Vec<_> = sums.filter(|(_, means)| means.excess() > 0).collect();
        let known = longer.iter().filter(|it| it.0.is_some());
        let known = known.fold(0_i64, |sum, it| sum.saturating_add(it.1.excess()));
        let is_measured = !longer.is_empty();
        let ranked = longer.into_iter().map(|(id, means)| {
            let name = id.map_or(UNKNOWN, |id| &*all.names[id]);
            (means.excess(), name, (id, means))
        });
        let told = first(ranked.collect());
        let told = told.into_iter().map(|(_, _, (id, sums))| {
            let stacks = holders.get(&id).into_iter().flatten();
            let stacks = stacks.map(|(node, it)| (*node, means(*it).excess()));
            let blame = id.map_or(0, |id| all.blame[id]);
            let name = id.map(|id| &*all.names[id]);
            self.holder(name, blame, Some(sums), stacks)
        });
        (told.collect(), is_measured.then_some(known))
    }

    /// The holder with these stacks, each with the time by which it kept others waiting, or kept
    /// slow requests waiting longer than typical ones.
    fn holder(
        &self,
        name: Option<&str>,
        blame: i64,
        means: Option<Means>,
        stacks: impl Iterator<Item = (NodeId, i64)>,
    ) -> Holder {
        let (method, app) = self.places.of_most(stacks);
        Holder {
            name: name.unwrap_or(UNKNOWN).into(),
            is_known: name.is_some(),
            blame,
            means,
            method: method.map(|group| self.places.function(group)),
            app: app.map(|(group, line)| (self.places.function(group), line)),
        }
    }

    /// Who had a stack: a request or a job, or a thread; or what nobody had the GVL for, as
    /// `[GVL hand-over]`.
    fn holder_name(
        &self,
        key: &WeightKey,
        place: Place,
        keys: &BTreeSet<&str>,
        threads: &FxHashMap<u32, &str>,
    ) -> String {
        let mut labels = keys.iter().filter_map(|name| {
            let value = self.label(key.labels, name)?;
            Some(format!("{name}={value}"))
        });
        let seq = key.thread;
        let nobody = place.0.filter(|_| seq == 0 && place.1.is_none());
        let thread = || match nobody {
            Some(group) => self.places.function(group).name,
            None => thread_name(seq, threads.get(&seq).copied().unwrap_or_default()),
        };
        labels.next().unwrap_or_else(thread)
    }
}

/// Whose samples were lost.
const UNKNOWN: &str = "(unknown)";

/// The first of these that are told: those with the greatest weights, by name where these are equal.
fn first<T>(mut ranked: Vec<(i64, &str, T)>) -> Vec<(i64, &str, T)> {
    ranked.order_by(|a, b| (b.0, a.1).cmp(&(a.0, b.1)));
    ranked.truncate(SITES);
    ranked
}
