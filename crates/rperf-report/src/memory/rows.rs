//! The rows: what resident memory is of.

use super::mappings::Resident;
use super::parts::divided;
use std::collections::BTreeMap;

/// A row, in the order in which they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowKind {
    /// Slots that have an object.
    HeapLive,
    /// Slots without one, in pages that are resident.
    HeapFree,
    /// Pages without any object.
    HeapEmpty,
    /// Where the VM hasn't told of its heap: that, large blocks of malloc, and anonymous memory that
    /// isn't known.
    HeapAndOther,
    /// Contents of objects, from malloc.
    MallocObjects,
    /// Memory from malloc for all else: C code and the VM.
    MallocCode,
    /// Memory that malloc has handed out: both of these, where objects weren't walked.
    MallocInUse,
    /// Memory that malloc hasn't handed out, and not given back to the system.
    MallocFree,
    /// Memory of a malloc that nobody could ask.
    MallocUnknown,
    /// Machine code that a compiler has made.
    JitCode,
    /// What the compiler knows of it, which it has from malloc.
    JitData,
    /// The VM's stacks of threads.
    VmStacks,
    /// The native stacks of threads.
    ThreadStacks,
    /// The stacks of fibers.
    FiberStacks,
    /// Ruby's executable and library.
    FilesRuby,
    /// Other libraries, such as those of gems.
    FilesLibraries,
    /// Files that are mapped.
    FilesOther,
    /// Pages of files that the process has written to, and so has for itself.
    FilesWritten,
    /// Memory that is shared with other processes by being mapped so.
    Shared,
    /// Anonymous memory that isn't known.
    Other,
    /// Where two readings are compared: what only one of them knows apart.
    Together,
}

impl RowKind {
    /// All of them.
    pub const ALL: [RowKind; 21] = [
        RowKind::HeapLive,
        RowKind::HeapFree,
        RowKind::HeapEmpty,
        RowKind::HeapAndOther,
        RowKind::MallocObjects,
        RowKind::MallocCode,
        RowKind::MallocInUse,
        RowKind::MallocFree,
        RowKind::MallocUnknown,
        RowKind::JitCode,
        RowKind::JitData,
        RowKind::VmStacks,
        RowKind::ThreadStacks,
        RowKind::FiberStacks,
        RowKind::FilesRuby,
        RowKind::FilesLibraries,
        RowKind::FilesOther,
        RowKind::FilesWritten,
        RowKind::Shared,
        RowKind::Other,
        RowKind::Together,
    ];

    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            RowKind::HeapLive => "heap_live",
            RowKind::HeapFree => "heap_free",
            RowKind::HeapEmpty => "heap_empty",
            RowKind::HeapAndOther => "heap_and_other",
            RowKind::MallocObjects => "malloc_objects",
            RowKind::MallocCode => "malloc_code",
            RowKind::MallocInUse => "malloc_in_use",
            RowKind::MallocFree => "malloc_free",
            RowKind::MallocUnknown => "malloc_unknown",
            RowKind::JitCode => "jit_code",
            RowKind::JitData => "jit_data",
            RowKind::VmStacks => "vm_stacks",
            RowKind::ThreadStacks => "thread_stacks",
            RowKind::FiberStacks => "fiber_stacks",
            RowKind::FilesRuby => "files_ruby",
            RowKind::FilesLibraries => "files_libraries",
            RowKind::FilesOther => "files_other",
            RowKind::FilesWritten => "files_written",
            RowKind::Shared => "shared",
            RowKind::Other => "other",
            RowKind::Together => "not_parted",
        }
    }

    /// The kind of row with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }

    /// What it is called for people.
    pub fn title(self) -> &'static str {
        match self {
            RowKind::HeapLive => "Ruby heap: live objects",
            RowKind::HeapFree => "Ruby heap: free slots",
            RowKind::HeapEmpty => "Ruby heap: empty pages",
            RowKind::HeapAndOther => "Ruby heap, large blocks, other",
            RowKind::MallocObjects => "malloc: of objects",
            RowKind::MallocCode => "malloc: of C code and the VM",
            RowKind::MallocInUse => "malloc: in use",
            RowKind::MallocFree => "malloc: free, not given back",
            RowKind::MallocUnknown => "malloc: in use and free",
            RowKind::JitCode => "JIT: code",
            RowKind::JitData => "JIT: data",
            RowKind::VmStacks => "stacks: of threads, the VM's",
            RowKind::ThreadStacks => "stacks: of threads, native",
            RowKind::FiberStacks => "stacks: of fibers",
            RowKind::FilesRuby => "files: Ruby",
            RowKind::FilesLibraries => "files: libraries",
            RowKind::FilesOther => "files: others",
            RowKind::FilesWritten => "files: written to",
            RowKind::Shared => "shared memory",
            RowKind::Other => "other anonymous memory",
            RowKind::Together => "not known apart in both",
        }
    }
}

/// Rows with what is resident of each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rows(BTreeMap<RowKind, Resident>);

impl Rows {
    /// Adds to a row. Where there is nothing, no row is made.
    pub fn add(&mut self, kind: RowKind, resident: Resident) {
        if resident != Resident::default() {
            *self.0.entry(kind).or_default() += resident;
        }
    }

    /// What a row has; nothing if it isn't there.
    pub fn of(&self, kind: RowKind) -> Resident {
        self.0.get(&kind).copied().unwrap_or_default()
    }

    /// All of them, in their order.
    pub fn iter(&self) -> impl Iterator<Item = (RowKind, Resident)> + '_ {
        self.0.iter().map(|(&kind, &resident)| (kind, resident))
    }

    /// What all of them have.
    pub fn total(&self) -> Resident {
        let mut total = Resident::default();
        self.0.values().for_each(|&it| total += it);
        total
    }

    /// Adds what is resident to several rows, by these weights.
    pub fn add_divided(&mut self, resident: Resident, parts: &[(RowKind, u64)]) {
        let weights: Vec<u64> = parts.iter().map(|it| it.1).collect();
        let rss = divided(resident.rss, &weights);
        let by = |total: u64| match resident.rss {
            0 => divided(total, &weights),
            _ => divided(total, &rss),
        };
        let (pss, shared, swap) = (by(resident.pss), by(resident.shared), by(resident.swap));
        for (place, &(kind, _)) in parts.iter().enumerate() {
            self.add(
                kind,
                Resident {
                    rss: rss[place],
                    pss: pss[place],
                    shared: shared[place],
                    swap: swap[place],
                },
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_names_of_their_own_and_add_up() {
        for kind in RowKind::ALL {
            assert_eq!(RowKind::from_name(kind.name()), Some(kind));
        }
        let mut sorted = RowKind::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, RowKind::ALL);
        assert_eq!(RowKind::from_name("x"), None);
        let resident = Resident {
            rss: 100,
            pss: 51,
            shared: 7,
            swap: 3,
        };
        let mut rows = Rows::default();
        rows.add_divided(
            resident,
            &[(RowKind::MallocFree, 1), (RowKind::MallocInUse, 2)],
        );
        rows.add(RowKind::Other, Resident::default());
        assert_eq!((rows.total(), rows.iter().count()), (resident, 2));
        assert_eq!(rows.of(RowKind::MallocFree).rss, 33);
        assert_eq!(rows.of(RowKind::MallocFree).pss, 16);
        let swapped = Resident {
            swap: 9,
            ..Resident::default()
        };
        rows.add_divided(swapped, &[(RowKind::HeapLive, 2), (RowKind::HeapFree, 1)]);
        assert_eq!(rows.of(RowKind::HeapLive).swap, 6);
    }
}
