//! What a reading of memory knows apart, and how two readings that know different things are compared:
//! rows that only one of them knows apart are put together in both. Used by the command; any thread.

use crate::memory::{Lack, MemoryFile, MemoryRow};
use rperf_report::memory::rows::RowKind;

/// What a reading knows apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Ruby's heap.
    heap: bool,
    /// What malloc has handed out.
    malloc: bool,
    /// Which pages are resident.
    pages: bool,
    /// Contents of objects.
    objects: bool,
}

impl Known {
    /// What this reading knows.
    pub fn of(file: &MemoryFile) -> Self {
        let lacks = |of: fn(&Lack) -> bool| file.lacks.iter().any(of);
        Known {
            heap: !lacks(|it| matches!(it, Lack::Port | Lack::Answer(_) | Lack::HeapPages)),
            malloc: file.malloc.is_some() && !lacks(|it| *it == Lack::Malloc),
            pages: !lacks(|it| *it == Lack::Pages),
            objects: file.objects.is_some(),
        }
    }
}

/// Two readings with rows that both know.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparable {
    /// The earlier one.
    pub base: MemoryFile,
    /// The later one.
    pub now: MemoryFile,
    /// What was put together, in lines for people.
    pub notes: Vec<String>,
}

impl Comparable {
    /// Puts rows together.
    pub fn of(base: &MemoryFile, now: &MemoryFile) -> Self {
        let (one, other) = (Known::of(base), Known::of(now));
        let folded = |file: &MemoryFile| {
            let mut rows: Vec<MemoryRow> = Vec::new();
            for row in &file.rows {
                let name = common(&row.name, one, other);
                match rows.iter_mut().find(|it| it.name == name) {
                    Some(row_there) => row_there.amounts += row.amounts,
                    None => rows.push(MemoryRow {
                        name: name.into(),
                        amounts: row.amounts,
                    }),
                }
            }
            MemoryFile {
                rows,
                ..file.clone()
            }
        };
        let mut notes = Vec::new();
        let knows = |it: Known| (it.heap, it.malloc, it.pages);
        if knows(one) != knows(other) {
            notes.push(format!(
                "One of the two knows less than the other, so '{}' has what only one of them knows apart.",
                RowKind::Together.title()
            ));
        }
        if one.objects != other.objects {
            notes.push(format!(
                "Objects were walked ('--objects') {}, so '{}' has both of malloc's rows.",
                if one.objects {
                    "only before"
                } else {
                    "only now"
                },
                RowKind::MallocInUse.title()
            ));
        }
        Comparable {
            base: folded(base),
            now: folded(now),
            notes,
        }
    }
}

/// The row that has this one in both.
fn common(name: &str, one: Known, other: Known) -> &str {
    use RowKind::*;
    let Some(kind) = RowKind::from_name(name) else {
        return name;
    };
    let is_malloc = matches!(
        kind,
        MallocObjects | MallocCode | MallocInUse | MallocFree | MallocUnknown | JitData
    );
    let is_rest = is_malloc || matches!(kind, HeapAndOther | Other);
    let is_of_vm = matches!(
        kind,
        HeapLive | HeapFree | HeapEmpty | VmStacks | FiberStacks
    );
    let together = (one.pages != other.pages && kind == ThreadStacks)
        || ((one.pages, one.heap) != (other.pages, other.heap) && (is_of_vm || is_rest))
        || (one.malloc != other.malloc && is_rest);
    match kind {
        _ if together => Together.name(),
        MallocObjects | MallocCode if one.objects != other.objects => MallocInUse.name(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{Amounts, MemoryMalloc, MemoryObjects};

    fn file(rows: &[(&str, u64)], lacks: &[Lack], with_objects: bool) -> MemoryFile {
        let rows = rows.iter().map(|&(name, rss_bytes)| MemoryRow {
            name: name.into(),
            amounts: Amounts {
                rss_bytes,
                ..Amounts::default()
            },
        });
        MemoryFile {
            rows: rows.collect(),
            malloc: Some(MemoryMalloc::default()),
            objects: with_objects.then(MemoryObjects::default),
            lacks: lacks.to_vec(),
            ..MemoryFile::default()
        }
    }

    fn rows(file: &MemoryFile) -> Vec<(&str, u64)> {
        let rows = file.rows.iter();
        rows.map(|it| (&*it.name, it.amounts.rss_bytes)).collect()
    }

    #[test]
    fn rows_that_one_does_not_know_are_put_together_in_both() {
        let full = [
            ("heap_live", 5),
            ("malloc_objects", 2),
            ("malloc_code", 1),
            ("thread_stacks", 4),
            ("files_ruby", 9),
            ("other", 3),
        ];
        let base = file(&full, &[], true);
        let less = [
            ("heap_and_other", 8),
            ("malloc_in_use", 3),
            ("files_ruby", 9),
        ];
        let now = file(&less, &[Lack::Answer("it waits".into())], false);
        let both = Comparable::of(&base, &now);
        let expected = [("not_parted", 11), ("thread_stacks", 4), ("files_ruby", 9)];
        assert_eq!(rows(&both.base), expected);
        assert_eq!(rows(&both.now), [("not_parted", 11), ("files_ruby", 9)]);
        assert_eq!(both.notes.len(), 2);
        // Without a walk of objects there is one row of malloc.
        let now = file(&[("malloc_in_use", 7), ("later", 1)], &[], false);
        let both = Comparable::of(&base, &now);
        assert_eq!(both.base.row("malloc_in_use").rss_bytes, 3);
        assert_eq!(both.base.row("heap_live").rss_bytes, 5);
        assert_eq!(rows(&both.now), [("malloc_in_use", 7), ("later", 1)]);
        assert!(both.notes[0].contains("only before"), "{:?}", both.notes);
        // The same is compared as it is.
        let both = Comparable::of(&base, &base);
        assert_eq!((&both.now, both.notes.len()), (&base, 0));
    }

    #[test]
    fn without_mallocs_counts_the_heap_stays() {
        let base = file(&[("heap_live", 5), ("malloc_free", 2)], &[], false);
        let now = [("heap_live", 6), ("malloc_unknown", 3), ("other", 1)];
        let both = Comparable::of(&base, &file(&now, &[Lack::Malloc], false));
        assert_eq!(rows(&both.now), [("heap_live", 6), ("not_parted", 4)]);
        let now = file(&now, &[Lack::Pages], false);
        let both = Comparable::of(&base, &now);
        assert_eq!(rows(&both.base), [("not_parted", 7)]);
    }
}
