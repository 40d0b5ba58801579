//! What is known as a profile: for a file, for a page, and to tell which threads are idle.

use super::{Label, Process, Row, Sums};
use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::numbers::signed;
use rperf_model::shared_sums::SumsValues;
use rperf_model::{
    Column, LabelSetId, Mode, NodeId, OwnColumn, Profile, Schema, StringId, Thread, ValueType,
    WeightKey,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// How far a profile reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// From the begin of the programs' sessions.
    Session,
    /// Since the programs are watched.
    Watched,
    /// Since the mark.
    SinceMark,
}

impl Extent {
    /// A row's values.
    fn values(self, row: &Row) -> SumsValues {
        match self {
            Extent::Session => row.seen,
            Extent::Watched => row.total,
            Extent::SinceMark => row.total.without(row.mark),
        }
    }

    fn duration_ns(self, process: &Process) -> u64 {
        match self {
            Extent::Session => process
                .facts
                .as_of_ns
                .saturating_sub(process.facts.start_ns),
            Extent::Watched => process.time.watched_ns(),
            Extent::SinceMark => process.time.since_mark_ns(),
        }
    }

    fn dropped_ns(self, process: &Process) -> u64 {
        match self {
            Extent::Session => process.facts.dropped_ns,
            Extent::Watched => process.time.dropped_ns(),
            Extent::SinceMark => process.time.dropped_since_mark_ns(),
        }
    }
}

impl Sums {
    /// What there is of all programs, with the label, if there is one. `None` if there is nothing.
    pub fn profile(&self, extent: Extent, filter: Option<&Label>) -> Option<Profile> {
        let has_label = self.labels.with(filter);
        let has_it = |row: &&Row| has_label[row.key.labels as usize];
        let rows = self.rows_in(None).filter(has_it);
        let found = self.profile_of(extent, &self.processes, rows);
        found.map(|(profile, _)| profile)
    }

    /// The session of a process, and where each of the profile's rows comes from. `None` if there is
    /// nothing.
    pub(super) fn session_of(&self, process: u32) -> Option<(Profile, Vec<&Row>)> {
        let rows = self.rows_in(Some(process));
        let processes = std::slice::from_ref(&self.processes[process as usize]);
        let (mut profile, rows) = self.profile_of(Extent::Session, processes, rows)?;
        // They are known only while somebody looks at threads, and which are idle is told without.
        let name = profile.strings.intern("");
        profile.threads.iter_mut().for_each(|it| it.name = name);
        Some((profile, rows))
    }

    /// The profile of the rows, and where each of its rows comes from.
    fn profile_of<'a>(
        &self,
        extent: Extent,
        processes: &[Process],
        rows: impl Iterator<Item = &'a Row>,
    ) -> Option<(Profile, Vec<&'a Row>)> {
        let rows = rows.map(|row| (row, extent.values(row)));
        let rows: Vec<_> = rows.filter(|it| it.1 != SumsValues::default()).collect();
        let mut has_rows = vec![false; self.processes.len()];
        for (row, _) in &rows {
            has_rows[self.process_of(row) as usize] = true;
        }
        let found = self.processes.iter().zip(&has_rows);
        let mut found = found.filter(|it| *it.1).map(|it| it.0).peekable();
        let first = *found.peek()?;
        let mode = match &first.foreign_time {
            Some(_) => None,
            // Those of wall mode have all columns.
            None if found.all(Process::is_cpu) => Some(Mode::Cpu),
            None => Some(Mode::Wall),
        };
        let blames = mode == Some(Mode::Wall) && self.has_blame();
        let blame = Some(OwnColumn::GvlBlame).filter(|_| blames);
        let schema = match mode {
            Some(mode) => mode.schema().with(blame),
            None => {
                let time = ValueType::new(first.time_name(), "nanoseconds");
                Schema::new(vec![time], Column(0))?
            }
        };
        let mut profile = Profile::new(schema);
        profile.strings = self.strings.clone();
        profile.frames = self.methods.frames.clone();
        profile.tree = self.nodes.stacks.clone();
        profile.label_sets = self.labels.sets.clone();
        let is_one = processes.len() == 1;
        let mut labels = FxHashMap::default();
        let mut threads = BTreeMap::new();
        let mut sources = Vec::with_capacity(rows.len());
        for (row, values) in rows {
            let SumsValues {
                count,
                wall_ns,
                cpu_ns,
                blame_ns,
            } = values;
            let [count, wall, cpu, blame] = [count, wall_ns, cpu_ns, blame_ns].map(signed);
            let values: &[i64] = match mode {
                Some(Mode::Cpu) => &[count, cpu],
                Some(Mode::Wall) if blames => &[count, wall, cpu, blame],
                Some(Mode::Wall) => &[count, wall, cpu],
                None => &[signed(first.time_of(values))],
            };
            // A hostile server sends values of other columns alone.
            if values.iter().all(|value| *value == 0) {
                continue;
            }
            let process = self.process_of(row);
            let key = WeightKey {
                node: NodeId(row.key.stack),
                // Thread 0 has the time of threads that have ended, here as there.
                thread: match self.threads.seq_of(row.key.thread) {
                    seq if is_one || seq == 0 => seq,
                    _ => row.key.thread + 1,
                },
                labels: *labels.entry((row.key.labels, process)).or_insert_with_key(
                    |&(set, process)| match is_one {
                        true => LabelSetId(set),
                        false => self.with_process(&mut profile, set, process),
                    },
                ),
                state: row.key.state,
            };
            if key.thread > 0 {
                threads.insert(key.thread, row.key.thread);
            }
            profile.weights.push(key, values);
            sources.push(row);
        }
        let name = |thread: u32| self.threads.facts(thread).map_or("", |it| &*it.name);
        let threads = threads.iter().map(|(seq, thread)| Thread {
            seq: *seq,
            name: profile.strings.intern(name(*thread)),
        });
        profile.threads = threads.collect();
        let meta = &mut profile.meta;
        for root in &self.directories.roots {
            meta.add_root(root);
        }
        for directory in &self.directories.of_rperf {
            meta.add_rperf_directory(directory);
        }
        meta.duration_ns = processes.iter().map(|it| extent.duration_ns(it)).max()?;
        meta.frequency = processes.iter().map(|it| it.facts.frequency).max()?;
        meta.program.clone_from(&first.program);
        let dropped = processes.iter().map(|it| extent.dropped_ns(it));
        meta.counters.dropped_ns = dropped.fold(0, u64::saturating_add);
        (!profile.weights.is_empty()).then_some((profile, sources))
    }

    /// The label set with the labels of the process.
    fn with_process(&self, profile: &mut Profile, set: u32, process: u32) -> LabelSetId {
        let process = &self.processes[process as usize];
        let mut set: Vec<(StringId, StringId)> = self.labels.sets.get(LabelSetId(set)).to_vec();
        for (key, value) in [
            (PID, &*process.pid.to_string()),
            (PROCESS, &*process.program),
        ] {
            set.push((profile.strings.intern(key), profile.strings.intern(value)));
        }
        profile.label_sets.intern(set)
    }
}
