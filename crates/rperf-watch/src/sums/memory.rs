//! What the memory of programs is of, beside their times.

use rperf_format::{Known, MemoryFile, memory_lacks};
use std::sync::Arc;

/// A row of a program's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRow {
    /// What it is called for people.
    pub title: Arc<str>,
    /// The resident bytes of it.
    pub rss: u64,
    /// How much that was when it was looked at first, and the same was known.
    pub at_first: u64,
}

/// The rows of a first look, by their titles.
type First = Vec<(Arc<str>, u64)>;

/// A program's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessMemory {
    /// The rows.
    pub rows: Vec<MemoryRow>,
    /// Why there are none.
    pub why_not: Option<Arc<str>>,
    /// What isn't known, in lines.
    pub lacks: Vec<String>,
    /// The first look with what was known at it: a program that waits tells less.
    first: Vec<(Known, First)>,
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
                memory.lacks.clear();
                return;
            }
        };
        memory.why_not = None;
        memory.lacks = memory_lacks(file);
        let known = Known::of(file);
        let rows = file.rows.iter();
        let rows = rows.map(|row| (Arc::from(row.title()), row.amounts.rss_bytes));
        let rows: First = rows.collect();
        let place = memory.first.iter().position(|it| it.0 == known);
        let place = place.unwrap_or_else(|| {
            memory.first.push((known, rows.clone()));
            memory.first.len() - 1
        });
        let first = &memory.first[place].1;
        let in_first = |title: &str| first.iter().find(|it| &*it.0 == title);
        let new = rows.iter().map(|(title, rss)| MemoryRow {
            title: Arc::clone(title),
            rss: *rss,
            at_first: in_first(title).map_or(0, |it| it.1),
        });
        memory.rows = new.collect();
        // What has gone was there at first.
        let gone = first.iter().filter(|it| it.1 > 0);
        let gone = gone.filter(|it| !rows.iter().any(|row| row.0 == it.0));
        memory.rows.extend(gone.map(|(title, bytes)| MemoryRow {
            title: Arc::clone(title),
            rss: 0,
            at_first: *bytes,
        }));
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
        // Less is known, and then as much as before.
        let mut less = file(&[("b", 4)]);
        less.lacks = vec![rperf_format::Lack::Port];
        memory.set(Ok(&less));
        assert_eq!((memory.total(), memory.lacks.len()), ((4, 4), 1));
        memory.set(Ok(&file(&[("b", 9)])));
        assert_eq!((memory.total(), memory.lacks.len()), ((9, 11), 0));
        memory.set(Err("why".into()));
        assert_eq!(
            (memory.rows.len(), memory.why_not.as_deref()),
            (0, Some("why"))
        );
    }
}
