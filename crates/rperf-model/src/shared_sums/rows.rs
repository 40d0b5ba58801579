//! The rows of shared sums, and which of them have changed in the last generations.

use crate::WeightKey;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;

/// Rows that are held at most.
pub(super) const ROW_CAP: usize = 1 << 20;

/// Generations whose changes are known.
const GENERATIONS: usize = 64;

/// The sums of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SumsValues {
    /// Samples.
    pub count: u64,
    /// Wall time in ns.
    pub wall_ns: u64,
    /// CPU time in ns.
    pub cpu_ns: u64,
    /// Time that others waited for the GVL meanwhile, in ns.
    pub blame_ns: u64,
}

impl SumsValues {
    /// Adds `other`, saturating.
    pub fn add(&mut self, other: Self) {
        self.count = self.count.saturating_add(other.count);
        self.wall_ns = self.wall_ns.saturating_add(other.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(other.cpu_ns);
        self.blame_ns = self.blame_ns.saturating_add(other.blame_ns);
    }

    /// Without what `other` has.
    pub fn without(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            wall_ns: self.wall_ns.saturating_sub(other.wall_ns),
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
            blame_ns: self.blame_ns.saturating_sub(other.blame_ns),
        }
    }
}

/// A row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SumsRow {
    /// Where the sums belong.
    pub key: WeightKey,
    /// The sums.
    pub values: SumsValues,
}

/// All rows. Their numbers only grow, until rows are folded.
#[derive(Debug)]
pub(super) struct Rows {
    rows: Vec<Stamped>,
    index: FxHashMap<WeightKey, u32>,
    /// Changes belong to this generation, until somebody reads them.
    generation: u64,
    /// The rows that were changed in each of the last generations, this one last.
    changed: VecDeque<Vec<u32>>,
}

#[derive(Debug, Clone, Copy)]
struct Stamped {
    row: SumsRow,
    /// The generation of its last change.
    changed: u64,
}

impl Default for Rows {
    fn default() -> Self {
        Self {
            rows: Vec::new(),
            index: FxHashMap::default(),
            generation: 1,
            changed: VecDeque::from([Vec::new()]),
        }
    }
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The generation that changes belong to.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn add(&mut self, key: WeightKey, values: SumsValues) -> bool {
        let number = match self.index.get(&key) {
            Some(&number) => number,
            None if self.rows.len() >= ROW_CAP => return false,
            None => {
                let number = self.rows.len() as u32;
                let values = SumsValues::default();
                let row = SumsRow { key, values };
                self.rows.push(Stamped { row, changed: 0 });
                self.index.insert(key, number);
                number
            }
        };
        let stamped = &mut self.rows[number as usize];
        stamped.row.values.add(values);
        if stamped.changed != self.generation {
            stamped.changed = self.generation;
            if let Some(last) = self.changed.back_mut() {
                last.push(number);
            }
        }
        true
    }

    /// The rows of `ended` threads become some of thread 0.
    pub(super) fn fold(&mut self, ended: FxHashSet<u32>) {
        self.change_keys(|key| {
            if ended.contains(&key.thread) {
                key.thread = 0;
            }
        });
    }

    /// Changes every key. Rows of one key become one.
    pub(super) fn change_keys(&mut self, change: impl Fn(&mut WeightKey)) {
        let generation = self.generation;
        let rows = std::mem::take(self).rows;
        self.generation = generation + 1;
        for Stamped { mut row, .. } in rows {
            change(&mut row.key);
            self.add(row.key, row.values);
        }
    }

    /// All rows.
    pub(super) fn iter(&self) -> impl Iterator<Item = &SumsRow> {
        self.rows.iter().map(|stamped| &stamped.row)
    }

    /// Somebody is about to read all changes up to now: what comes later belongs to the next
    /// generation. Returns the last one that has changes.
    pub(super) fn end_generation(&mut self) -> u64 {
        if self.changed.back().is_some_and(|last| !last.is_empty()) {
            self.generation += 1;
            self.changed.push_back(Vec::new());
        }
        // Where the lists are longer than the table, to look at all rows is as quick.
        let most = self.rows.len().max(1024);
        while self.changed.len() > GENERATIONS || (self.changed.len() > 1 && self.listed() > most) {
            self.changed.pop_front();
        }
        self.generation - 1
    }

    fn listed(&self) -> usize {
        self.changed.iter().map(Vec::len).sum()
    }

    /// The rows from number `from` on that have changed after the generation `since`, in the order
    /// of their numbers, and at most `most` of them. The number where it goes on comes with them.
    pub(super) fn since(
        &self,
        since: u64,
        from: usize,
        most: usize,
    ) -> (Vec<SumsRow>, Option<usize>) {
        let is_new = |&number: &usize| self.rows[number].changed > since;
        let oldest = (self.generation + 1).saturating_sub(self.changed.len() as u64);
        let mut numbers: Vec<usize> = if since + 1 >= oldest {
            let lists = self.changed.iter().skip((since + 1 - oldest) as usize);
            let listed = lists.flatten().map(|&number| number as usize);
            listed.filter(|&number| number >= from).collect()
        } else {
            (from..self.rows.len())
                .filter(is_new)
                .take(most + 1)
                .collect()
        };
        numbers.sort_unstable();
        numbers.dedup();
        let next = numbers.get(most).copied();
        numbers.truncate(most);
        let rows = numbers.into_iter().map(|number| self.rows[number].row);
        (rows.collect(), next)
    }
}
