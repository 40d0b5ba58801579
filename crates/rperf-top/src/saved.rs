//! A saved profile as a store. On the command's main thread.

use crate::store::{RowKey, Store, ThreadFacts};
use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::{LabelSetId, NodeId, Profile};
use std::collections::{HashMap, HashSet};

/// The unit that the screens know.
const UNIT: &str = "nanoseconds";

/// What is shown of a profile.
#[derive(Debug, Clone, Copy)]
pub struct Shows<'a> {
    /// Whether each row of weights is the time of an idle thread.
    pub idle_rows: &'a [bool],
    /// That time is shown as all other.
    pub shows_idle: bool,
}

/// The profile that is called `title`, whose texts are made fit for a terminal by `shown`. Stacks
/// count as they are looked at: without lines. The error says why there is nothing to be seen.
pub fn store(
    profile: &Profile,
    title: &str,
    shows: Shows<'_>,
    shown: impl Fn(&str) -> String,
) -> Result<Store, String> {
    let value = profile.schema.default_type();
    if value.unit != UNIT {
        return Err(format!("its values are no times, but {}", value.name));
    }
    if profile.weights.is_empty() {
        return Err("there is nothing in it".into());
    }
    let mut reader = Reader {
        profile,
        store: Store::default(),
        processes: HashMap::new(),
        labels: HashMap::new(),
        title: shown(title),
        shown: &shown,
    };
    reader.read(shows.idle_rows);
    let mut store = reader.store;
    (store.is_saved, store.shows_idle) = (true, shows.shows_idle);
    store.end_round();
    Ok(store)
}

struct Reader<'a> {
    profile: &'a Profile,
    store: Store,
    /// The place of each process in the store, by number.
    processes: HashMap<i32, u32>,
    /// The process and the labels of each label set.
    labels: HashMap<LabelSetId, (u32, u32)>,
    title: String,
    shown: &'a dyn Fn(&str) -> String,
}

impl Reader<'_> {
    fn read(&mut self, idle_rows: &[bool]) {
        let profile = self.profile;
        let text = |id| (self.shown)(profile.strings.get(id));
        let mut methods = Vec::with_capacity(profile.frames.len());
        for (_, frame) in profile.frames.iter() {
            let (name, path) = (text(frame.name), text(frame.path));
            methods.push(self.store.method_number(&name, &path));
        }
        let mut nodes: HashMap<NodeId, u32> = HashMap::from([(NodeId::ROOT, 0)]);
        for (id, node) in profile.tree.iter().filter(|(id, _)| *id != NodeId::ROOT) {
            let parent = nodes.get(&node.parent).copied().unwrap_or(0);
            let method = methods[node.frame.0 as usize];
            nodes.insert(id, self.store.node(parent, method));
        }
        let column = profile.schema.default_column();
        let mut idle: HashSet<RowKey> = HashSet::new();
        for (number, weight) in profile.weights.iter().enumerate() {
            let (process, labels) = self.labels(weight.key.labels);
            let key = RowKey {
                node: nodes.get(&weight.key.node).copied().unwrap_or(0),
                thread: self.store.thread(process, weight.key.thread),
                labels,
                state: weight.key.state,
            };
            // Differences of profiles have less than nothing.
            let time = u64::try_from(weight.value(column)).unwrap_or(0);
            self.store.add(key, time);
            if idle_rows.get(number) == Some(&true) {
                idle.insert(key);
            }
        }
        let meta = &profile.meta;
        self.store
            .add_directories(&meta.roots, &meta.rperf_directories);
        for process in 0..self.store.processes.len() as u32 {
            let mode = &profile.schema.default_type().name;
            self.store.set_session(process, mode, meta.frequency);
            self.store.set_idle(process, |key| idle.contains(key));
            self.name_threads(process);
            self.store.end_interval(process, meta.duration_ns, 0);
        }
    }

    fn name_threads(&mut self, process: u32) {
        let profile = self.profile;
        let named = profile.threads.iter().map(|thread| {
            let facts = ThreadFacts {
                name: (self.shown)(profile.strings.get(thread.name)).into(),
                ..ThreadFacts::default()
            };
            (Some(thread.seq), facts)
        });
        self.store.set_facts(process, named);
    }

    fn labels(&mut self, id: LabelSetId) -> (u32, u32) {
        if let Some(&known) = self.labels.get(&id) {
            return known;
        }
        let profile = self.profile;
        let pairs = profile.label_sets.get(id).iter();
        let pairs = pairs.map(|(key, value)| {
            let (key, value) = (profile.strings.get(*key), profile.strings.get(*value));
            ((self.shown)(key), (self.shown)(value))
        });
        let pairs: Vec<_> = pairs.collect();
        let of = |wanted: &str| pairs.iter().find(|(key, _)| key == wanted);
        let pid = of(PID).and_then(|(_, pid)| pid.parse().ok()).unwrap_or(0);
        let program = match of(PROCESS) {
            Some((_, program)) if pid != 0 => program.clone(),
            _ => self.title.clone(),
        };
        let process = match self.processes.get(&pid) {
            Some(&process) => process,
            None => {
                let process = self.store.add_process(pid, &program);
                *self.processes.entry(pid).or_insert(process)
            }
        };
        let own = pairs.iter().filter(|(key, _)| key != PID && key != PROCESS);
        let labels = self
            .store
            .label_set(own.map(|(key, value)| (&**key, &**value)));
        self.labels.insert(id, (process, labels));
        (process, labels)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Scope;
    use rperf_model::test_support::cpu_schema;
    use rperf_model::{Column, Schema, ValueType};

    const ALL: Shows<'static> = Shows {
        idle_rows: &[],
        shows_idle: true,
    };

    #[test]
    fn what_was_written_is_seen_again() {
        let mut first = Store::default();
        for pid in [7, 8] {
            let process = first.add_process(pid, "puma");
            first.set_session(process, "wall", 100);
            let method = first.method_number("A#b", "a.rb");
            let key = RowKey {
                node: first.node(0, method),
                thread: first.thread(process, 3),
                labels: first.label_set([("endpoint", "GET /")].into_iter()),
                state: rperf_model::State::GvlBlocked,
            };
            first.add(key, 5_000);
            first.end_interval(process, 10_000, 0);
        }
        let profile = first.profile(Scope::Total, None).expect("something");
        let again = store(&profile, "x.pb.gz", ALL, |it| it.to_string()).expect("times");
        let titles: Vec<_> = again.processes.iter().map(|it| it.title()).collect();
        assert_eq!(titles, ["7 puma", "8 puma"]);
        assert_eq!(again.labels.len(), 2);
        let sums = again.sums(Scope::Total, None, Some(1));
        assert_eq!(sums.all().blocked, 5_000);
        // A rate: half of each second.
        assert_eq!(
            again.sums(Scope::Rate, None, None).all().blocked,
            1_000_000_000
        );
        assert!(again.is_saved && again.method(1).is_some());
    }

    #[test]
    fn what_has_no_times_is_refused() {
        let empty = Profile::new(cpu_schema());
        assert!(store(&empty, "x", ALL, |it| it.to_string()).is_err());
        let types = vec![ValueType::new("alloc_bytes", "bytes")];
        let objects = Profile::new(Schema::new(types, Column(0)).expect("a schema"));
        let error = store(&objects, "x", ALL, |it| it.to_string()).expect_err("refused");
        assert_eq!(error, "its values are no times, but alloc_bytes");
    }
}
