//! The rows: how they grow, and how they become others, as threads end and stacks are folded.

use super::{Row, RowKey, Sums};
use rperf_model::Order;
use rperf_model::frame_kind::FOLDED_FRAME;
use rperf_model::shared_sums::SumsValues;
use rustc_hash::{FxHashMap, FxHashSet};

impl Sums {
    /// Adds values to a row.
    pub fn add(&mut self, key: RowKey, values: SumsValues) {
        let number = self.row(key);
        self.grow(number, values);
    }

    /// The number of a row.
    pub(super) fn row(&mut self, key: RowKey) -> u32 {
        *self.intake.rows.entry(key).or_insert_with(|| {
            let number = self.rows.len() as u32;
            let process = self.threads.process_of(key.thread);
            self.processes[process as usize].rows.all.push(number);
            self.rows.push(Row {
                key,
                seen: SumsValues::default(),
                total: SumsValues::default(),
                mark: SumsValues::default(),
                time: 0,
                time_mark: 0,
                recent: 0,
                recent_blame: 0,
                is_idle: false,
            });
            number
        })
    }

    /// The row has so much more since the program is watched.
    pub(super) fn grow(&mut self, number: u32, values: SumsValues) {
        let row = &mut self.rows[number as usize];
        row.total.add(values);
        let process = self.threads.process_of(row.key.thread);
        let process = &mut self.processes[process as usize];
        let time = process.time_of(values);
        let was_recent = row.is_recent();
        row.recent = row.recent.saturating_add(time);
        row.recent_blame = row.recent_blame.saturating_add(values.blame_ns);
        if !was_recent && row.is_recent() {
            process.rows.recent.push(number);
        }
        row.time = row.time.saturating_add(time);
    }

    /// All rows of the process came anew, with these sums, as those of ended threads were added up,
    /// stacks were folded, or its session began anew.
    pub(super) fn replace_rows(
        &mut self,
        process: u32,
        now: &FxHashMap<RowKey, SumsValues>,
        is_same_session: bool,
    ) {
        if is_same_session {
            self.fold_ended(process, now);
        }
        let grown = match is_same_session {
            true => self.grown(process, now),
            false => now.iter().map(|(key, values)| (*key, *values)).collect(),
        };
        for row in &self.processes[process as usize].rows.all {
            let row = &mut self.rows[*row as usize];
            row.seen = now.get(&row.key).copied().unwrap_or_default();
        }
        if self.processes[process as usize].counts {
            for (key, values) in grown {
                self.add(key, values);
            }
        }
    }

    /// Threads without a row of their own have ended.
    fn fold_ended(&mut self, process: u32, now: &FxHashMap<RowKey, SumsValues>) {
        let there: FxHashSet<u32> = now.keys().map(|key| key.thread).collect();
        let had = self
            .rows_in(Some(process))
            .filter(|row| row.has_been_seen());
        let gone: FxHashSet<u32> = had
            .map(|row| row.key.thread)
            .filter(|it| !there.contains(it))
            .collect();
        self.fold(process, |thread| gone.contains(&thread));
    }

    /// By how much rows have grown. What rows have lost, since their stacks were folded meanwhile, is no
    /// growth of others with the same leaf.
    fn grown(
        &self,
        process: u32,
        now: &FxHashMap<RowKey, SumsValues>,
    ) -> Vec<(RowKey, SumsValues)> {
        let node = |key: &RowKey| self.nodes[self.nodes.of_stack(key.stack) as usize];
        let kind = |key: &RowKey| (node(key).method, RowKey { stack: 0, ..*key });
        let mut lost: FxHashMap<_, SumsValues> = FxHashMap::default();
        let mut grown = Vec::new();
        for row in self.rows_in(Some(process)) {
            let new = now.get(&row.key).copied().unwrap_or_default();
            let less = row.seen.without(new);
            if less != SumsValues::default() {
                lost.entry(kind(&row.key)).or_default().add(less);
            }
            grown.push((row.key, new.without(row.seen)));
        }
        if !lost.is_empty() {
            let is_folded = |key: &RowKey| {
                let method = self.method(node(key).parent);
                method.is_some_and(|it| (&*it.name, &*it.path) == FOLDED_FRAME)
            };
            grown.order_by_key(|(key, _)| !is_folded(key));
            for (key, values) in &mut grown {
                if let Some(lost) = lost.get_mut(&kind(key)) {
                    let rest = values.without(*lost);
                    *lost = lost.without(*values);
                    *values = rest;
                }
            }
        }
        grown
    }

    /// Threads of the process have ended, and their values count under its thread 0 from now on.
    pub(super) fn fold(&mut self, process: u32, has_ended: impl Fn(u32) -> bool) {
        let ended = self.thread(process, 0);
        let is_let_go = self.processes[process as usize].is_let_go;
        self.intake.rows.clear();
        for it in &mut self.processes {
            it.rows.clear();
        }
        let mut kept = 0_u32;
        for place in 0..self.rows.len() {
            let mut row = self.rows[place];
            let is_its = self.process_of(&row) == process;
            // Nobody counts them.
            if is_its && is_let_go && row.total == SumsValues::default() {
                continue;
            }
            if is_its && has_ended(row.key.thread) {
                row.key.thread = ended;
            }
            let number = *self.intake.rows.entry(row.key).or_insert(kept);
            let found = &mut self.rows[number as usize];
            if number == kept {
                *found = row;
                kept += 1;
            } else {
                found.merge(&row);
            }
        }
        self.rows.truncate(kept as usize);
        for (number, row) in (0..).zip(&self.rows) {
            let process = self.threads.process_of(row.key.thread);
            let own = &mut self.processes[process as usize].rows;
            own.all.push(number);
            if row.is_recent() {
                own.recent.push(number);
            }
        }
    }

    /// Nothing of these threads in this session is of the program itself. In earlier sessions the
    /// numbers were other threads'.
    pub(super) fn leave_out(&mut self, process: u32, seqs: &FxHashSet<u32>) {
        let process = &mut self.processes[process as usize];
        for row in &process.rows.all {
            let row = &mut self.rows[*row as usize];
            if seqs.contains(&self.threads.seq_of(row.key.thread)) {
                row.leave_out_session(process.time_of(row.seen));
            }
        }
        let rows = &self.rows;
        let recent = &mut process.rows.recent;
        recent.retain(|row| rows[*row as usize].is_recent());
    }

    /// Notes which rows of the process are those of idle threads.
    pub fn set_idle(&mut self, process: u32, is_idle: impl Fn(&RowKey) -> bool) {
        for row in &self.processes[process as usize].rows.all {
            let row = &mut self.rows[*row as usize];
            row.is_idle = is_idle(&row.key);
        }
    }

    /// From now on "since the mark" counts from here.
    pub fn set_mark(&mut self) {
        for process in 0..self.processes.len() as u32 {
            self.set_mark_of(process);
        }
        self.rounds.mark();
    }

    /// From now on "since the mark" counts from here, for this process.
    pub fn set_mark_of(&mut self, process: u32) {
        let process = &mut self.processes[process as usize];
        for row in &process.rows.all {
            let row = &mut self.rows[*row as usize];
            (row.mark, row.time_mark) = (row.total, row.time);
        }
        process.time.set_mark();
    }
}
