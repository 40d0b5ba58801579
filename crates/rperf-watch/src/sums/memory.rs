//! What the memory of programs is of, beside their times.

use rperf_format::MemoryFile;
use std::sync::Arc;

/// A row of a program's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// What it is called for people.
    pub title: Arc<str>,
    /// The resident bytes of it.
    pub rss: u64,
    /// How much that was when it was looked at first.
    pub at_first: u64,
}

/// A program's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The rows.
    pub rows: Vec<MemoryRow>,
    /// Why there are none.
    pub why_not: Option<Arc<str>>,
}

impl ProcessMemory {
    /// The resident bytes of all rows: now, and when they were looked at first.
    pub fn total(&self) -> (u64, u64) {
        let sum = |of: fn(&MemoryRow) -> u64| self.rows.iter().map(of).fold(0, u64::saturating_add);
        (sum(|it| it.rss), sum(|it| it.at_first))
    }
}

impl ProcessMemory {
    /// Notes what the memory is of now, or why that isn't known.
    pub(super) fn set(&mut self, found: Result<&MemoryFile, String>) {
        let memory = self;
        let file = match found {
            Ok(file) => file,
            Err(why) => {
                memory.why_not = Some(why.into());
                memory.rows.clear();
                return;
            }
        };
        memory.why_not = None;
        let is_first = memory.rows.is_empty();
        let mut before = std::mem::take(&mut memory.rows);
        let rows = file.rows.iter().map(|row| {
            let (title, rss) = (row.title(), row.amounts.rss_bytes);
            let known = before.iter().position(|it| &*it.title == title);
            match known.map(|place| before.swap_remove(place)) {
                Some(known) => MemoryRow { rss, ..known },
                None => MemoryRow {
                    title: title.into(),
                    rss,
                    at_first: if is_first { rss } else { 0 },
                },
            }
        });
        memory.rows = rows.collect();
        // What has gone was there at first.
        let gone = before.into_iter().filter(|it| it.at_first > 0);
        memory
            .rows
            .extend(gone.map(|it| MemoryRow { rss: 0, ..it }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_format::{Amounts, MemoryRow as FileRow};

    fn file(rows: &[(&str, u64)]) -> MemoryFile {
        let rows = rows.iter().map(|&(name, rss_bytes)| FileRow {
            name: name.into(),
            amounts: Amounts {
                rss_bytes,
                ..Amounts::default()
            },
        });
        MemoryFile {
            rows: rows.collect(),
            ..MemoryFile::default()
        }
    }

    #[test]
    fn rows_know_how_much_they_had_at_first() {
        let mut memory = ProcessMemory::default();
        let mut look = |rows: &[(&str, u64)]| {
            memory.set(Ok(&file(rows)));
            let rows = memory.rows.iter();
            let rows = rows.map(|it| (it.title.to_string(), it.rss, it.at_first));
            (rows.collect::<Vec<_>>(), memory.total())
        };
        let (_, total) = look(&[("a", 5), ("b", 6)]);
        assert_eq!(total, (11, 11));
        let (rows, total) = look(&[("b", 9), ("c", 2)]);
        let rows: Vec<_> = rows.iter().map(|it| (&*it.0, it.1, it.2)).collect();
        assert_eq!(rows, [("b", 9, 6), ("c", 2, 0), ("a", 0, 5)]);
        assert_eq!(total, (11, 11));
        memory.set(Err("why".into()));
        assert_eq!(
            (memory.rows.len(), memory.why_not.as_deref()),
            (0, Some("why"))
        );
    }
}
