//! What the resident memory (RSS) of a process is made of. Each resident page belongs to one row, so the
//! rows add up to the RSS of the reading. It is made of what the kernel says of the mappings and pages
//! of a process, and of what the program [tells](Told), which is handed in: nothing is read here.

pub mod mappings;
pub mod parts;
mod places;
pub mod rows;
pub mod told;

use mappings::{Kind, Mapping, Resident};
use parts::{Pages, Part, shared_out};
use rows::{RowKind, Rows};
use std::collections::BTreeMap;
use told::{Told, ToldPool};

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// Its mappings, in the order of their addresses.
    pub mappings: &'a [Mapping],
    /// For each thread but the first an address in the block that the C library keeps at the upper end
    /// of its stack.
    pub threads: &'a [u64],
    /// The bytes of a page of memory.
    pub page: u64,
}

/// The resident memory of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// The rows.
    pub rows: Rows,
    /// The pools of Ruby's heap.
    pub pools: Vec<Pool>,
    /// Bytes that malloc has handed out, and that were never touched, or are swapped out: they aren't
    /// resident. 0 if it couldn't be asked.
    pub untouched: u64,
    /// What malloc has handed out in all, without the VM's stacks of threads; 0 likewise.
    pub handed_out: u64,
    /// The files that are mapped, those with the most first.
    pub files: Vec<File>,
    /// How many arenas glibc's malloc has.
    pub arenas: u64,
    /// Pages couldn't be counted one by one, so no mapping was parted.
    pub lacks_pages: bool,
}

/// A pool of slots of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pool {
    /// The bytes of a slot.
    pub slot_bytes: u64,
    /// Its slots.
    pub slots: u64,
    /// Slots that have an object.
    pub live: u64,
    /// How much of its pages is resident.
    pub resident: Resident,
}

/// A file that is mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct File {
    /// Its path.
    pub path: String,
    /// How much of it is resident.
    pub resident: Resident,
    /// The part of that which the process has written to.
    pub written: u64,
}

impl Memory {
    /// The rows of a process. `pages` counts the pages from one address to another, in bytes; `None` if
    /// that can't be done.
    pub fn of(
        reading: Reading<'_>,
        told: &Told,
        mut pages: impl FnMut(u64, u64) -> Option<Pages>,
    ) -> Self {
        let Reading { mappings, page, .. } = reading;
        let ranges = places::ranges(mappings, reading.threads, told, page.max(1));
        let mut files: BTreeMap<&str, File> = BTreeMap::new();
        let pools = told.heap.as_ref().map_or(&[][..], |heap| &heap.pools);
        let mut found = Found {
            pools: vec![Resident::default(); pools.len()],
            ..Found::default()
        };
        for (place, mapping) in mappings.iter().enumerate() {
            if mapping.kind == Kind::File {
                found.add_file(mapping, files.entry(&mapping.name).or_default());
                continue;
            }
            let home = home_of(mapping, places::is_arena(mappings, place));
            let is_arena = home == Home::Arena;
            found.arenas_seen += u64::from(is_arena);
            let stacks = ranges.bytes_within(mapping, Part::VmStack);
            *(if is_arena {
                &mut found.stacks_in_arenas
            } else {
                &mut found.stacks_mapped
            }) += stacks;
            if mapping.resident == Resident::default() {
                continue;
            }
            let parts = ranges.within(mapping).filter(|_| mapping.is_anonymous());
            let Some(parts) = parts else {
                found.add(home, mapping.resident);
                continue;
            };
            let counted: Option<Vec<Pages>> = match parts.len() {
                1 => Some(vec![Pages::default()]),
                _ => parts.iter().map(|it| pages(it.start, it.end)).collect(),
            };
            let Some(counted) = counted else {
                found.lacks_pages = true;
                found.add(home, mapping.resident);
                continue;
            };
            let shares = shared_out(&mapping.resident, &counted);
            for (range, resident) in parts.iter().zip(shares) {
                found.add_part(range.part, home, resident);
            }
        }
        let mut files: Vec<File> = files.into_values().collect();
        files.sort_by(|one, other| {
            (other.resident.rss, &one.path).cmp(&(one.resident.rss, &other.path))
        });
        found.finish(told, pools, files)
    }
}

/// What a mapping is of, where no part of it is known better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// An arena of malloc.
    Arena,
    /// This row.
    Row(RowKind),
    /// It isn't known: malloc's large blocks are among these.
    Unknown,
}

fn home_of(mapping: &Mapping, is_arena: bool) -> Home {
    let name = &*mapping.name;
    let has = |text: &str| name.contains(text);
    match mapping.kind {
        Kind::Break => Home::Arena,
        Kind::MainStack => Home::Row(RowKind::ThreadStacks),
        Kind::Kernel => Home::Row(RowKind::Other),
        _ if mapping.is_shared || has("[anon_shmem") => Home::Row(RowKind::Shared),
        _ if mapping.is_executable || has("jit") => Home::Row(RowKind::JitCode),
        _ if is_arena || has("glibc: malloc") => Home::Arena,
        _ if has("pthread stack") => Home::Row(RowKind::ThreadStacks),
        _ if has("fiber_pool") => Home::Row(RowKind::FiberStacks),
        // A page that the VM hasn't told of has no objects.
        _ if has("heap_page_body") => Home::Row(RowKind::HeapEmpty),
        _ if name.is_empty() => Home::Unknown,
        _ => Home::Row(RowKind::Other),
    }
}

/// Names of files that have no content on a disk.
const MEMORY_FILES: [&str; 4] = ["/dev/zero", "/memfd:", "/SYSV", "/dev/shm/"];

fn row_of_file(mapping: &Mapping) -> RowKind {
    let name = mapping.name.trim_end_matches(" (deleted)");
    let base = name.rsplit('/').next().unwrap_or(name);
    match base {
        _ if MEMORY_FILES.iter().any(|it| name.starts_with(it)) => RowKind::Shared,
        base if base.starts_with("libruby")
            || base.starts_with("ruby") && !base.contains(".so") =>
        {
            RowKind::FilesRuby
        }
        base if base.ends_with(".so") || base.contains(".so.") => RowKind::FilesLibraries,
        _ => RowKind::FilesOther,
    }
}

/// What was found so far.
#[derive(Default)]
struct Found {
    rows: Rows,
    pools: Vec<Resident>,
    arenas: Resident,
    unknown: Resident,
    stacks_in_arenas: u64,
    stacks_mapped: u64,
    arenas_seen: u64,
    lacks_pages: bool,
}

impl Found {
    fn add(&mut self, home: Home, resident: Resident) {
        match home {
            Home::Arena => self.arenas += resident,
            Home::Row(kind) => self.rows.add(kind, resident),
            Home::Unknown => self.unknown += resident,
        }
    }

    fn add_part(&mut self, part: Part, home: Home, resident: Resident) {
        match part {
            Part::Pool(place) => self.pools[place] += resident,
            Part::VmStack => self.rows.add(RowKind::VmStacks, resident),
            Part::ThreadStack => self.rows.add(RowKind::ThreadStacks, resident),
            Part::FiberStack => self.rows.add(RowKind::FiberStacks, resident),
            Part::Rest => self.add(home, resident),
        }
    }

    fn add_file(&mut self, mapping: &Mapping, file: &mut File) {
        file.path.clone_from(&mapping.name);
        let whole = mapping.resident;
        file.resident += whole;
        let written = match mapping.is_shared {
            true => 0,
            false => mapping.written.min(whole.rss - whole.shared.min(whole.rss)),
        };
        file.written += written;
        let own = Resident {
            rss: written,
            pss: written.min(whole.pss),
            shared: 0,
            swap: whole.swap,
        };
        self.rows.add(RowKind::FilesWritten, own);
        let clean = Resident {
            rss: whole.rss - own.rss,
            pss: whole.pss - own.pss,
            shared: whole.shared,
            swap: 0,
        };
        self.rows.add(row_of_file(mapping), clean);
    }

    fn finish(mut self, told: &Told, pools: &[ToldPool], files: Vec<File>) -> Memory {
        let mut shown = Vec::new();
        for (pool, &resident) in pools.iter().zip(&self.pools) {
            let live = pool.live.saturating_mul(pool.slot_bytes).min(resident.rss);
            let parts = [
                (RowKind::HeapLive, live),
                (RowKind::HeapFree, resident.rss - live),
            ];
            self.rows.add_divided(resident, &parts);
            shown.push(Pool {
                slot_bytes: pool.slot_bytes,
                slots: pool.slots,
                live: pool.live,
                resident,
            });
        }
        let (handed_out, untouched) = self.malloc(told);
        Memory {
            rows: self.rows,
            pools: shown,
            untouched,
            handed_out,
            files,
            arenas: self.arenas_seen,
            lacks_pages: self.lacks_pages,
        }
    }

    /// Makes rows of what malloc has, and of what isn't known. Returns what malloc has handed out, and the
    /// part of that which isn't resident.
    fn malloc(&mut self, told: &Told) -> (u64, u64) {
        let (arenas, unknown) = (self.arenas, self.unknown);
        let empty = told
            .heap
            .as_ref()
            .map_or(0, |heap| heap.empty_pages.saturating_mul(heap.page_bytes));
        let empty = empty.min(unknown.rss);
        let left = unknown.rss - empty;
        let Some(counts) = told.malloc.as_ref().and_then(|it| it.counts) else {
            self.rows.add(RowKind::MallocUnknown, arenas);
            let parts = [(RowKind::HeapEmpty, empty), (RowKind::Other, left)];
            self.rows.add_divided(unknown, &parts);
            return (0, 0);
        };
        // Stacks of the VM are handed out, too, and have a row of their own.
        let in_arenas = counts.in_use.saturating_sub(self.stacks_in_arenas);
        let mapped = counts.mapped.saturating_sub(self.stacks_mapped);
        let used_there = in_arenas.min(arenas.rss);
        let used_mapped = mapped.min(left);
        let free = counts.mapped_free.min(left - used_mapped);
        let handed_out = in_arenas.saturating_add(mapped);
        let used = used_there + used_mapped;
        let mut parts = parts_in_use(told, used);
        let scaled = parts::divided(used_there, &parts.iter().map(|it| it.1).collect::<Vec<_>>());
        let of_arenas = parts.iter().zip(scaled).map(|(it, bytes)| (it.0, bytes));
        let of_arenas = of_arenas.chain([(RowKind::MallocFree, arenas.rss - used_there)]);
        self.rows
            .add_divided(arenas, &of_arenas.collect::<Vec<_>>());
        let scaled = parts::divided(
            used_mapped,
            &parts.iter().map(|it| it.1).collect::<Vec<_>>(),
        );
        parts
            .iter_mut()
            .zip(scaled)
            .for_each(|(it, bytes)| it.1 = bytes);
        parts.extend([
            (RowKind::MallocFree, free),
            (RowKind::HeapEmpty, empty),
            (RowKind::Other, left - used_mapped - free),
        ]);
        self.rows.add_divided(unknown, &parts);
        (handed_out, handed_out - used)
    }
}

/// What malloc has handed out and is resident, by what it is for. What isn't resident is taken to be of
/// none that is known: contents of objects are written to, and stacks of ended threads hardly are.
fn parts_in_use(told: &Told, used: u64) -> Vec<(RowKind, u64)> {
    let jit = told.jit_data.min(used);
    let left = used - jit;
    let mut parts = vec![(RowKind::JitData, jit)];
    match &told.objects {
        Some(objects) => {
            let of_objects = objects.malloc.min(left);
            parts.extend([
                (RowKind::MallocObjects, of_objects),
                (RowKind::MallocCode, left - of_objects),
            ]);
        }
        None => parts.push((RowKind::MallocInUse, left)),
    }
    parts
}

#[cfg(test)]
mod tests;
