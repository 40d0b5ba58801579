//! Brings what is pulled from a program into the store that the screens show. On the thread that
//! pulls.

use super::idle_rows;
use super::watched::{News, Take, Watched};
use rperf_model::frame_kind::FOLDED_FRAME;
use rperf_model::shared_sums::SumsValues;
use rperf_model::{FrameId, LabelSetId, Mode, WeightKey};
use rperf_report::terminal_text::shown;
use rperf_top::store::{RowKey, Store};
use rperf_watch::mirror::Mirror;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store, which the screens look into.
pub type SharedStore = Arc<Mutex<Store>>;

/// Locks it.
pub fn lock(store: &SharedStore) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way of a program's sums into the store.
pub struct Feed {
    store: SharedStore,
    /// The program's place there.
    pub process: u32,
    /// The store's number of each frame's method, and of each node and label set.
    methods: Vec<u32>,
    nodes: Vec<u32>,
    labels: Vec<u32>,
    /// The sums before the rows came anew, and when their session began.
    earlier: Option<(HashMap<RowKey, u64>, u64)>,
    /// What was before the program was watched isn't counted.
    counts: bool,
    is_pulling: bool,
}

impl Feed {
    /// The feed of a program that comes in.
    pub fn new(store: &SharedStore, program: &Watched) -> Self {
        let hello = &program.hello;
        let process = {
            let mut store = lock(store);
            store.add_directories(&hello.roots, &hello.rperf_directories);
            store.add_process(program.pid, &shown(&hello.program))
        };
        Feed {
            store: Arc::clone(store),
            process,
            methods: Vec::new(),
            nodes: vec![0],
            labels: Vec::new(),
            earlier: None,
            counts: false,
            is_pulling: false,
        }
    }

    /// What came with the last pull.
    pub fn note(&mut self, mirror: &Mirror, news: &News) {
        let mut store = lock(&self.store);
        let facts = &mirror.facts;
        store.set_session(self.process, &facts.mode, facts.frequency);
        match news {
            News::Waits => store.begin_interval(self.process),
            News::Begins => self.counts = true,
            News::BeginsAnew => {
                let elapsed = facts.as_of_ns.saturating_sub(facts.start_ns);
                store.end_interval(self.process, elapsed, facts.sampling_ns);
            }
            News::Interval { before, .. } => {
                let elapsed = facts.as_of_ns.saturating_sub(before.as_of_ns);
                let sampling = facts.sampling_ns.saturating_sub(before.sampling_ns);
                store.end_interval(self.process, elapsed, sampling);
            }
        }
    }

    /// Takes in what the mirror has and the store doesn't.
    fn learn(&mut self, mirror: &Mirror, store: &mut Store) {
        for number in self.methods.len()..mirror.frames() {
            let (name, path) = mirror.frame(FrameId(number as u32)).unwrap_or_default();
            let method = store.method_number(&shown(name), &shown(path));
            self.methods.push(method);
        }
        for node in &mirror.nodes()[self.nodes.len() - 1..] {
            let parent = self.nodes[node.parent.0 as usize];
            let method = self.methods[node.frame.0 as usize];
            self.nodes.push(store.node(parent, method));
        }
        for number in self.labels.len()..mirror.label_sets() {
            let set: Vec<_> = mirror
                .labels(LabelSetId(number as u32))
                .map(|(key, value)| (shown(key), shown(value)))
                .collect();
            let pairs = set.iter().map(|(key, value)| (&**key, &**value));
            self.labels.push(store.label_set(pairs));
        }
    }

    fn key(&self, store: &mut Store, key: WeightKey) -> RowKey {
        let labels = self.labels.get(key.labels.0 as usize);
        RowKey {
            node: self.nodes[key.node.0 as usize],
            thread: store.thread(self.process, key.thread),
            labels: labels.copied().unwrap_or(0),
            state: key.state,
        }
    }

    /// Notes which rows are those of idle threads.
    fn note_idle(&self, mirror: &Mirror) {
        if self.counts && mirror.facts.sampling() == Some(Mode::Wall) {
            // Without the lock: that takes longest.
            let rows = idle_rows::of(mirror);
            let mut store = lock(&self.store);
            let keys: HashSet<RowKey> = rows.iter().map(|it| self.key(&mut store, *it)).collect();
            store.set_idle(self.process, |key| keys.contains(key));
        }
    }

    /// All rows. Several of the mirror's can be one here, which knows no lines.
    fn all(&self, mirror: &Mirror, store: &mut Store) -> HashMap<RowKey, u64> {
        let mut all = HashMap::new();
        for (key, values) in mirror.rows() {
            let key = self.key(store, key);
            *all.entry(key).or_default() += mirror.facts.time_of(values);
        }
        all
    }

    /// The rows that threads have had which have ended are those of thread 0 now.
    fn fold(
        &self,
        store: &mut Store,
        earlier: &mut HashMap<RowKey, u64>,
        now: &HashMap<RowKey, u64>,
    ) {
        let there: HashSet<u32> = now.keys().map(|key| key.thread).collect();
        let gone = earlier.keys().map(|key| key.thread);
        let gone: HashSet<u32> = gone.filter(|it| !there.contains(it)).collect();
        let seqs: HashSet<u32> = gone
            .iter()
            .map(|it| store.threads[*it as usize].seq)
            .collect();
        store.fold(self.process, |seq| seqs.contains(&seq));
        let ended = store.thread(self.process, 0);
        let moved = earlier.extract_if(|key, _| gone.contains(&key.thread));
        for (key, time) in moved.collect::<Vec<_>>() {
            let key = RowKey {
                thread: ended,
                ..key
            };
            *earlier.entry(key).or_default() += time;
        }
    }
}

/// By how much rows have grown since `earlier`. What rows have lost, since their stacks were folded
/// meanwhile, is no growth of others with the same leaf.
fn grown(
    store: &Store,
    earlier: &HashMap<RowKey, u64>,
    now: &HashMap<RowKey, u64>,
) -> Vec<(RowKey, u64)> {
    let method = |node: u32| store.nodes.get(node as usize).map(|node| node.method);
    let kind = |key: &RowKey| (method(key.node), RowKey { node: 0, ..*key });
    let mut lost: HashMap<_, u64> = HashMap::new();
    for (key, before) in earlier {
        let less = before.saturating_sub(now.get(key).copied().unwrap_or(0));
        if less > 0 {
            *lost.entry(kind(key)).or_default() += less;
        }
    }
    let before = |key: &RowKey| earlier.get(key).copied().unwrap_or(0);
    let rows = now.iter();
    let mut rows: Vec<_> = rows
        .map(|(key, time)| (*key, time.saturating_sub(before(key))))
        .collect();
    if !lost.is_empty() {
        let is_folded = |key: &RowKey| {
            let caller = store.nodes.get(key.node as usize)?.parent;
            let method = store.methods.get(method(caller)? as usize)?;
            Some((&*method.name, &*method.path) == FOLDED_FRAME)
        };
        rows.sort_by_key(|(key, _)| is_folded(key) != Some(true));
        for (key, time) in &mut rows {
            if let Some(lost) = lost.get_mut(&kind(key)) {
                let moved = (*lost).min(*time);
                *lost -= moved;
                *time -= moved;
            }
        }
    }
    rows
}

impl Take for Feed {
    fn reset(&mut self, mirror: &Mirror) {
        if self.earlier.is_none() {
            let store = Arc::clone(&self.store);
            let all = self.all(mirror, &mut lock(&store));
            self.earlier = Some((all, mirror.facts.start_ns));
        }
        (self.methods, self.nodes, self.labels) = (Vec::new(), vec![0], Vec::new());
    }

    fn grown(&mut self, mirror: &Mirror, rows: &[(WeightKey, SumsValues)]) {
        let store = Arc::clone(&self.store);
        let mut store = lock(&store);
        if !std::mem::replace(&mut self.is_pulling, true) {
            store.begin_interval(self.process);
        }
        self.learn(mirror, &mut store);
        if self.counts && self.earlier.is_none() {
            for (key, values) in rows {
                let key = self.key(&mut store, *key);
                store.add(key, mirror.facts.time_of(*values));
            }
        }
    }

    fn end(&mut self, mirror: &Mirror) {
        self.is_pulling = false;
        let Some((mut earlier, start_ns)) = self.earlier.take() else {
            self.note_idle(mirror);
            return;
        };
        let store = Arc::clone(&self.store);
        let mut store = lock(&store);
        let now = self.all(mirror, &mut store);
        match mirror.facts.start_ns == start_ns {
            true => self.fold(&mut store, &mut earlier, &now),
            false => earlier.clear(),
        }
        if self.counts {
            for (key, time) in grown(&store, &earlier, &now) {
                store.add(key, time);
            }
        }
        drop(store);
        self.note_idle(mirror);
    }
}

#[cfg(test)]
mod tests;
