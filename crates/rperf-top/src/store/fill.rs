//! How the store is filled. Under its lock, on the thread that pulls.

use super::{
    Figures, HISTORY, LABEL_CAP, METHOD_CAP, MORE, Method, NODE_CAP, Node, Position, Process,
    ROW_CAP, Row, RowKey, State, Store, THREAD_CAP, Thread, ThreadFacts,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

impl Store {
    /// A program comes in. Returns its place.
    pub fn add_process(&mut self, pid: i32, program: &str) -> u32 {
        self.let_go_of_ended();
        self.processes.push(Process {
            pid,
            program: program.into(),
            ..Process::default()
        });
        self.processes.len() as u32 - 1
    }

    /// The number of a method.
    pub fn method_number(&mut self, name: &str, path: &str) -> u32 {
        let mut key: (Arc<str>, Arc<str>) = (name.into(), path.into());
        let index = Arc::make_mut(&mut self.index);
        if self.methods.len() >= METHOD_CAP && !index.methods.contains_key(&key) {
            key = (MORE.into(), "".into());
        }
        let (name, path) = key.clone();
        *index.methods.entry(key).or_insert_with(|| {
            let short_path = Arc::clone(&path);
            self.methods.push(Method {
                name,
                path,
                short_path,
            });
            self.methods.len() as u32 - 1
        })
    }

    /// Whether methods came in whose paths are as they were recorded.
    pub fn has_new_methods(&self) -> bool {
        self.shortened < self.methods.len()
    }

    /// Gives all methods the paths that people see: what comes in may make others ambiguous.
    pub fn shorten(&mut self, short: impl Fn(&str) -> Arc<str>) {
        for method in &mut self.methods {
            method.short_path = short(&method.path);
        }
        self.shortened = self.methods.len();
    }

    /// Notes the directories of a program, and those of rperf's files in it.
    pub fn add_directories(&mut self, roots: &[String], rperf_directories: &[String]) {
        for (known, new) in [
            (&mut self.roots, roots),
            (&mut self.rperf_directories, rperf_directories),
        ] {
            for directory in new {
                if !known.contains(directory) {
                    known.push(directory.clone());
                }
            }
        }
    }

    /// The number of the stack in which `method` is called by `parent`.
    pub fn node(&mut self, parent: u32, method: u32) -> u32 {
        let number = self.nodes.len() as u32;
        let index = Arc::make_mut(&mut self.index);
        if let Some(&found) = index.nodes.get(&(parent, method)) {
            return found;
        }
        if self.nodes.len() >= NODE_CAP {
            return parent;
        }
        index.nodes.insert((parent, method), number);
        let mut caller = parent;
        while caller != 0 && self.nodes[caller as usize].method != method {
            caller = self.nodes[caller as usize].parent;
        }
        let next_sibling = self.nodes[parent as usize].first_child;
        self.nodes.push(Node {
            parent,
            method,
            is_outermost: caller == 0,
            first_child: 0,
            next_sibling,
        });
        self.nodes[parent as usize].first_child = number;
        number
    }

    /// The number of a thread.
    pub fn thread(&mut self, process: u32, seq: u32) -> u32 {
        let mut thread = Thread { process, seq };
        let index = Arc::make_mut(&mut self.index);
        if self.threads.len() >= THREAD_CAP && !index.threads.contains_key(&thread) {
            thread.seq = 0;
        }
        *index.threads.entry(thread).or_insert_with(|| {
            self.threads.push(thread);
            self.threads.len() as u32 - 1
        })
    }

    /// The number of a label set.
    pub fn label_set<'a>(&mut self, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> u32 {
        let mut set: Vec<(Arc<str>, Arc<str>)> = pairs.map(|(k, v)| (k.into(), v.into())).collect();
        let index = Arc::make_mut(&mut self.index);
        if self.labels.len() >= LABEL_CAP && !index.labels.contains_key(&set) {
            set = vec![(MORE.into(), "".into())];
        }
        if let Some(&found) = index.labels.get(&set) {
            return found;
        }
        let number = self.labels.len() as u32;
        index.labels.insert(set.clone(), number);
        self.labels.push(set);
        number
    }

    /// Adds time to a row.
    pub fn add(&mut self, key: RowKey, ns: u64) {
        if ns == 0 {
            return;
        }
        let number = self.row(key);
        let row = &mut self.rows[number as usize];
        row.total = row.total.saturating_add(ns);
        if row.recent == 0 {
            let process = self.threads[key.thread as usize].process;
            self.processes[process as usize].recent.push(number);
        }
        row.recent = row.recent.saturating_add(ns);
    }

    fn row(&mut self, mut key: RowKey) -> u32 {
        if self.rows.len() >= ROW_CAP && !self.index.rows.contains_key(&key) {
            let process = self.threads[key.thread as usize].process;
            (key.labels, key.thread) = (0, self.thread(process, 0));
        }
        let index = Arc::make_mut(&mut self.index);
        *index.rows.entry(key).or_insert_with(|| {
            self.rows.push(Row {
                key,
                total: 0,
                mark: 0,
                recent: 0,
                is_idle: false,
            });
            self.rows.len() as u32 - 1
        })
    }

    /// Threads of the process have ended, and their times count under its thread 0 from now on.
    pub fn fold(&mut self, process: u32, has_ended: impl Fn(u32) -> bool) {
        let ended = self.thread(process, 0);
        let rows = std::mem::take(&mut self.rows);
        Arc::make_mut(&mut self.index).rows.clear();
        for it in &mut self.processes {
            it.recent.clear();
        }
        for mut row in rows {
            let thread = self.threads[row.key.thread as usize];
            if thread.process == process && has_ended(thread.seq) {
                row.key.thread = ended;
            }
            let number = self.row(row.key);
            let found = &mut self.rows[number as usize];
            let was_recent = found.recent > 0;
            found.total = found.total.saturating_add(row.total);
            found.mark = found.mark.saturating_add(row.mark);
            found.recent = found.recent.saturating_add(row.recent);
            found.is_idle |= row.is_idle;
            if found.recent > 0 && !was_recent {
                let process = self.threads[row.key.thread as usize].process;
                self.processes[process as usize].recent.push(number);
            }
        }
    }

    /// Notes which rows of the process are those of idle threads.
    pub fn set_idle(&mut self, process: u32, is_idle: impl Fn(&RowKey) -> bool) {
        for row in &mut self.rows {
            if self.threads[row.key.thread as usize].process == process {
                row.is_idle = is_idle(&row.key);
            }
        }
    }

    /// An interval of the process begins.
    pub fn begin_interval(&mut self, process: u32) {
        let process = &mut self.processes[process as usize];
        for row in process.recent.drain(..) {
            self.rows[row as usize].recent = 0;
        }
        (process.elapsed_ns, process.sampling_ns) = (0, 0);
    }

    /// It is over, and was so long.
    pub fn end_interval(&mut self, number: u32, elapsed_ns: u64, sampling_ns: u64) {
        let process = &mut self.processes[number as usize];
        (process.elapsed_ns, process.sampling_ns) = (elapsed_ns, sampling_ns);
        process.watched_ns += elapsed_ns;
        let of_process = |thread: u32| self.threads[thread as usize].process == number;
        for (_, facts) in self
            .facts
            .iter_mut()
            .filter(|(thread, _)| of_process(**thread))
        {
            facts.age_ns = facts.age_ns.saturating_add(elapsed_ns);
        }
        self.position(number);
    }

    /// Where the threads of the process are, after an interval.
    fn position(&mut self, process: u32) {
        let mut positions: FxHashMap<u32, (Position, u64)> = FxHashMap::default();
        for row in &self.processes[process as usize].recent {
            let Row { key, recent, .. } = self.rows[*row as usize];
            let fresh = Position {
                node: key.node,
                state: key.state,
                ns: 0,
            };
            let (position, all) = positions.entry(key.thread).or_insert((fresh, 0));
            *all = all.saturating_add(recent);
            if (position.node, position.state) == (key.node, key.state) {
                position.ns = position.ns.saturating_add(recent);
            } else if recent > position.ns {
                *position = Position {
                    ns: recent,
                    ..fresh
                };
            }
        }
        for (thread, (mut position, all)) in positions.iter().map(|(thread, it)| (*thread, *it)) {
            let before = self.positions.get(&thread);
            let stays = before.filter(|it| (it.node, it.state) == (position.node, position.state));
            position.ns = match stays {
                _ if position.ns < all => 0,
                None => position.ns,
                Some(before) => before.ns.saturating_add(position.ns),
            };
            self.positions.insert(thread, position);
        }
        let threads = &self.threads;
        self.positions.retain(|thread, _| {
            threads[*thread as usize].process != process || positions.contains_key(thread)
        });
    }

    /// What the session of the process is.
    pub fn set_session(&mut self, process: u32, mode: &str, frequency: u32) {
        let process = &mut self.processes[process as usize];
        (process.mode, process.frequency) = (mode.into(), frequency);
    }

    /// Whether a thread of the process keeps the GVL, so that nothing more is known of it.
    pub fn set_stuck(&mut self, process: u32, is_stuck: bool) {
        self.processes[process as usize].is_stuck = is_stuck;
    }

    /// What is known now of the threads of the process, by their numbers in its profile.
    pub fn set_facts(
        &mut self,
        process: u32,
        threads: impl Iterator<Item = (Option<u32>, ThreadFacts)>,
    ) {
        let known = &self.threads;
        self.facts
            .retain(|&thread, _| known[thread as usize].process != process);
        for (seq, facts) in threads {
            let thread = seq.map(|seq| Thread { process, seq });
            // Those without time have no line.
            let thread = thread.and_then(|it| self.index.threads.get(&it));
            self.facts.extend(thread.map(|&thread| (thread, facts)));
        }
    }

    /// What native threads of the process wait for, where no more is known.
    pub fn set_waits(&mut self, process: u32, threads: impl Iterator<Item = ThreadFacts>) {
        let waits: FxHashMap<_, _> = threads.map(|it| (it.tid, it.waits_in)).collect();
        let now = |facts: &ThreadFacts| waits.get(&facts.tid).cloned().unwrap_or_default();
        for (&thread, facts) in &mut self.facts {
            if self.threads[thread as usize].process == process {
                (facts.waits_in, facts.age_ns) = (now(facts), 0);
            }
        }
    }

    /// The process can't be watched any more. If it was the last one, its last interval stays.
    pub fn end_process(&mut self, process: u32) {
        self.processes[process as usize].has_ended = true;
        self.set_facts(process, std::iter::empty());
        if self.living().next().is_some() {
            self.let_go_of_ended();
        }
    }

    /// The last interval of processes that have ended, and which of their threads had which time.
    fn let_go_of_ended(&mut self) {
        for process in 0..self.processes.len() as u32 {
            let it = &mut self.processes[process as usize];
            if it.has_ended && !std::mem::replace(&mut it.is_let_go, true) {
                self.begin_interval(process);
                self.fold(process, |_| true);
            }
        }
    }

    /// All programs have been asked: the picture may be renewed.
    pub fn end_round(&mut self) {
        let figures = self.present_figures();
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(figures);
        self.renew();
    }

    /// The picture may be renewed, and no interval is over.
    pub fn renew(&mut self) {
        self.version += 1;
    }

    fn present_figures(&self) -> Figures {
        let mut figures = Figures::default();
        let mut known = 0;
        for process in &self.processes {
            // In those of which nothing is known, no Ruby code runs.
            known += u32::from(!process.has_ended || process.elapsed_ns > 0);
            if process.elapsed_ns == 0 {
                continue;
            }
            let part = |ns: u64| ns as f64 / process.elapsed_ns as f64;
            for row in &process.recent {
                let row = &self.rows[*row as usize];
                let part = part(row.recent);
                match row.key.state {
                    State::Running => figures.busy += part,
                    State::GvlWait => figures.waiting += part,
                    State::GvlBlocked if row.is_idle && !self.shows_idle => figures.hidden += part,
                    State::GvlBlocked => figures.blocked += part,
                    State::GcMarking | State::GcSweeping => figures.gc += part,
                }
            }
            figures.overhead += part(process.sampling_ns);
        }
        let known = f64::from(known.max(1));
        figures.busy = (figures.busy + figures.gc) / known;
        (figures.gc, figures.overhead) = (figures.gc / known, figures.overhead / known);
        figures
    }

    /// From now on "since the mark" counts from here.
    pub fn set_mark(&mut self) {
        for row in &mut self.rows {
            row.mark = row.total;
        }
        for process in &mut self.processes {
            process.mark_ns = process.watched_ns;
        }
        self.has_mark = true;
        self.version += 1;
    }
}
