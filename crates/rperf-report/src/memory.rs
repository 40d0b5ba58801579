//! What the resident memory (RSS) of a process is made of. Each resident page belongs to one row, so the
//! rows add up to the RSS of the reading. It is made of what the kernel says of the mappings and pages
//! of a process, and of what the program [tells](Told), which is handed in: nothing is read here.

mod arenas;
pub mod mappings;
pub mod parts;
mod places;
pub mod rows;
pub mod told;

use mappings::{Kind, Mapping, Resident};
use parts::{Pages, Part, Range, shared_out};
use rows::{RowKind, Rows};
use rperf_model::Order;
use std::collections::BTreeMap;
use told::{Objects, Told, ToldPool};

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
    /// resident. 0 if it couldn't be asked; at least so many if Ruby's heap isn't known.
    pub untouched: u64,
    /// What malloc has handed out in all, without the VM's stacks of threads; 0 likewise.
    pub handed_out: u64,
    /// The files that are mapped, those with the most first.
    pub files: Vec<File>,
    /// How many heaps the arenas of glibc's malloc have, beside the one of `brk`. An arena has one or more.
    pub heaps: u64,
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
    /// The rows of a process. `pages` counts the pages from one address to another, in bytes, until it
    /// has found so many that are resident or swapped out; `None` if that can't be done.
    pub fn of(
        reading: Reading<'_>,
        told: &Told,
        mut pages: impl FnMut(u64, u64, u64) -> Option<Pages>,
    ) -> Self {
        let Reading { mappings, page, .. } = reading;
        let mut ranges = places::ranges(mappings, reading.threads, told, page.max(1));
        let heaps = arenas::heaps(mappings, told);
        let stacks = |start, end| ranges.bytes_within(start, end, Part::VmStack);
        let stacks_in_heaps: u64 = heaps.ranges.iter().map(|it| stacks(it.start, it.end)).sum();
        let (in_break, elsewhere): (Vec<&Mapping>, Vec<_>) =
            mappings.iter().partition(|it| it.kind == Kind::Break);
        let stacks_of = |those: Vec<&Mapping>| -> u64 {
            let those = those.into_iter();
            those.map(|it| stacks(it.start, it.end)).sum()
        };
        let stacks_in_arenas = stacks_of(in_break) + stacks_in_heaps;
        let stacks_mapped = stacks_of(elsewhere) - stacks_in_heaps;
        ranges.add(heaps.ranges);
        let mut files: BTreeMap<&str, File> = BTreeMap::new();
        let pools = told.heap.as_ref().map_or(&[][..], |heap| &heap.pools);
        let mut found = Found {
            pools: vec![Resident::default(); pools.len()],
            stacks_in_arenas,
            stacks_mapped,
            heaps: heaps.count,
            knows_heap: told.heap.as_ref().is_some_and(|it| it.page_bytes > 0),
            ..Found::default()
        };
        for mapping in mappings {
            if mapping.kind == Kind::File {
                found.add_file(mapping, files.entry(&mapping.name).or_default());
                continue;
            }
            if mapping.resident == Resident::default() {
                continue;
            }
            let home = home_of(mapping, found.knows_heap);
            let parts = ranges.within(mapping).filter(|_| mapping.is_anonymous());
            let Some(parts) = parts else {
                found.add(home, mapping.resident);
                continue;
            };
            let Some(counted) = counted(&parts, &mapping.resident, &mut pages) else {
                found.lacks_pages = true;
                let of_arenas = ranges.bytes_within(mapping.start, mapping.end, Part::Arena);
                match of_arenas > mapping.size() / 2 {
                    true => found.add(Home::Arena, mapping.resident),
                    false => found.add(home, mapping.resident),
                }
                continue;
            };
            let shares = shared_out(&mapping.resident, &counted);
            for (range, resident) in parts.iter().zip(shares) {
                found.add_part(range.part, home, resident);
            }
        }
        let mut files: Vec<File> = files.into_values().collect();
        files.order_by(|one, other| {
            (other.resident.rss, &one.path).cmp(&(one.resident.rss, &other.path))
        });
        found.finish(told, pools, files)
    }
}

/// What is resident of each part of a mapping. What isn't of a known part is of the rest, which may be
/// huge and hardly used, so it isn't read.
fn counted(
    parts: &[Range],
    whole: &Resident,
    pages: &mut impl FnMut(u64, u64, u64) -> Option<Pages>,
) -> Option<Vec<Pages>> {
    let mut counted = vec![Pages::default(); parts.len()];
    if parts.len() == 1 {
        return Some(counted);
    }
    let mut left = Pages {
        resident: whole.rss,
        exclusive: whole.rss.saturating_sub(whole.shared),
        swapped: whole.swap,
    };
    for (part, found) in parts.iter().zip(&mut counted) {
        if part.part == Part::Rest {
            continue;
        }
        *found = pages(part.start, part.end, left.resident + left.swapped)?;
        left.resident = left.resident.saturating_sub(found.resident);
        left.exclusive = left.exclusive.saturating_sub(found.exclusive);
        left.swapped = left.swapped.saturating_sub(found.swapped);
    }
    left.exclusive = left.exclusive.min(left.resident);
    if let Some(rest) = parts.iter().position(|it| it.part == Part::Rest) {
        counted[rest] = left;
    }
    Some(counted)
}

/// What a mapping is of, where no part of it is known better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// Arenas of malloc.
    Arena,
    /// The row that the mapping counts for.
    Row(RowKind),
    /// Memory of an unknown use, such as malloc's large blocks.
    Unknown,
}

fn home_of(mapping: &Mapping, knows_heap: bool) -> Home {
    let name = &*mapping.name;
    let has = |text: &str| name.contains(text);
    match mapping.kind {
        Kind::Break => Home::Arena,
        Kind::MainStack => Home::Row(RowKind::ThreadStacks),
        Kind::Kernel => Home::Row(RowKind::Other),
        _ if mapping.is_shared || has("[anon_shmem") => Home::Row(RowKind::Shared),
        _ if mapping.is_executable || has("jit") => Home::Row(RowKind::JitCode),
        _ if has("glibc: malloc") => Home::Arena,
        _ if has("pthread stack") => Home::Row(RowKind::ThreadStacks),
        _ if has("fiber_pool") => Home::Row(RowKind::FiberStacks),
        // A page that the VM hasn't told of has no objects.
        _ if has("heap_page_body") && knows_heap => Home::Row(RowKind::HeapEmpty),
        _ if has("heap_page_body") => Home::Unknown,
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
    heaps: u64,
    knows_heap: bool,
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
            Part::Arena => self.add(Home::Arena, resident),
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
            heaps: self.heaps,
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
            let parts = [(RowKind::HeapEmpty, empty), (self.rest(), left)];
            self.rows.add_divided(unknown, &parts);
            return (0, 0);
        };
        // Stacks of the VM are handed out, too, and have a row of their own.
        let in_arenas = counts.in_use.saturating_sub(self.stacks_in_arenas);
        let mapped = counts.mapped.saturating_sub(self.stacks_mapped);
        let used_there = in_arenas.min(arenas.rss);
        // Without Ruby's heap nobody knows which of what isn't known are large blocks of malloc.
        let (used_mapped, free) = match self.knows_heap {
            true => {
                let used = mapped.min(left);
                (used, counts.mapped_free.min(left - used))
            }
            false => (0, 0),
        };
        let handed_out = in_arenas.saturating_add(mapped);
        let used = used_there + used_mapped;
        let objects = told.objects.filter(|_| self.knows_heap);
        let mut parts = parts_in_use(told.jit_data, objects, used);
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
            (self.rest(), left - used_mapped - free),
        ]);
        self.rows.add_divided(unknown, &parts);
        let untouched = match self.knows_heap {
            true => handed_out - used,
            false => in_arenas - used_there + mapped.saturating_sub(left),
        };
        (handed_out, untouched)
    }

    /// The row of what isn't known.
    fn rest(&self) -> RowKind {
        match self.knows_heap {
            true => RowKind::Other,
            false => RowKind::HeapAndOther,
        }
    }
}

/// What malloc has handed out and is resident, by what it is for. What isn't resident is taken to be of
/// none that is known: contents of objects are written to, and stacks of ended threads hardly are.
fn parts_in_use(jit_data: u64, objects: Option<Objects>, used: u64) -> Vec<(RowKind, u64)> {
    let jit = jit_data.min(used);
    let left = used - jit;
    let mut parts = vec![(RowKind::JitData, jit)];
    match objects {
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
