//! Rows of made-up mappings.

use super::*;
use crate::memory::mappings::mappings;
use crate::memory::told::{Malloc, MallocCounts, Objects, ToldHeap};

const KB: u64 = 1 << 10;
const PAGE: u64 = 4 * KB;
const RUBY_PAGE: u64 = 64 * KB;

/// A mapping of so many KB, all of it resident, and a part shared.
fn line(start: u64, kb: u64, rights: &str, name: &str, shared: u64) -> String {
    let end = start + kb * KB;
    let (pss, written) = (kb - shared / 2, kb - shared);
    format!(
        "{start:x}-{end:x} {rights} 00000000 00:00 0 {name}\nRss: {kb} kB\nPss: {pss} kB\n\
         Shared_Dirty: {shared} kB\nPrivate_Dirty: {written} kB\n"
    )
}

/// All pages are resident, and this process's alone.
fn all(start: u64, end: u64, _: u64) -> Option<Pages> {
    Some(Pages {
        resident: end - start,
        exclusive: end - start,
        swapped: 0,
    })
}

fn made_of(text: &str, threads: &[u64], told: &Told) -> Memory {
    let mappings = mappings(text);
    let reading = Reading {
        mappings: &mappings,
        threads,
        page: PAGE,
    };
    let memory = Memory::of(reading, told, all);
    let rss: u64 = mappings.iter().map(|it| it.resident.rss).sum();
    let pss: u64 = mappings.iter().map(|it| it.resident.pss).sum();
    let total = memory.rows.total();
    assert_eq!((total.rss, total.pss), (rss, pss));
    memory
}

fn kb(memory: &Memory) -> Vec<(RowKind, u64)> {
    let rows = memory.rows.iter();
    rows.map(|(kind, it)| (kind, it.rss / KB)).collect()
}

fn told(heap: &[(u64, u64, u64, u64)], in_use: u64, mapped: u64) -> Told {
    let pools = heap
        .iter()
        .map(|&(slot_bytes, live, first, count)| ToldPool {
            slot_bytes,
            slots: count * RUBY_PAGE / slot_bytes,
            live,
            pages: vec![(first, count)],
        });
    Told {
        heap: Some(ToldHeap {
            page_bytes: RUBY_PAGE,
            empty_pages: u64::from(!heap.is_empty()),
            pools: pools.collect(),
        }),
        malloc: Some(Malloc {
            allocator: "glibc".into(),
            counts: Some(MallocCounts {
                in_use: in_use * KB,
                mapped: mapped * KB,
                ..MallocCounts::default()
            }),
        }),
        ..Told::default()
    }
}

#[test]
fn each_resident_page_is_in_one_row() {
    use RowKind::*;
    let text = [
        line(0x55_0000_0000, 40, "r-xp", "/usr/bin/ruby3.4", 40),
        line(0x56_0000_0000, 100, "rw-p", "[heap]", 0),
        // Two pages of objects, an empty one, and blocks of malloc.
        line(0x7f_0000_0000, 128 + 64 + 500, "rw-p", "", 0),
        line(0x7f_1000_0000, 300, "r-xp", "", 0),
        line(0x7f_2000_0000, 80, "rw-p", "/usr/lib/libz.so.1", 20),
        line(0x7f_3000_0000, 7, "rw-s", "/dev/zero (deleted)", 7),
        line(0x7f_4000_0000, 16, "rw-p", "[stack]", 0),
        line(0x7f_5000_0000, 4, "r-xp", "[vdso]", 4),
    ];
    let told = told(&[(1024, 96, 0x7f_0000_0000 / RUBY_PAGE, 2)], 60, 450);
    let memory = made_of(&text.concat(), &[], &told);
    let expected = [
        (HeapLive, 96),
        (HeapFree, 32),
        (HeapEmpty, 64),
        (MallocInUse, 60 + 450),
        (MallocFree, 40),
        (JitCode, 300),
        (ThreadStacks, 16),
        (FilesRuby, 40),
        (FilesLibraries, 20),
        (FilesWritten, 60),
        (Shared, 7),
        (Other, 50 + 4),
    ];
    assert_eq!(kb(&memory), expected);
    assert_eq!(memory.pools[0].resident.rss, 128 * KB);
    assert_eq!((memory.handed_out / KB, memory.untouched), (510, 0));
    let files: Vec<_> = memory.files.iter().map(|it| &*it.path).collect();
    let expected = [
        "/usr/lib/libz.so.1",
        "/usr/bin/ruby3.4",
        "/dev/zero (deleted)",
    ];
    assert_eq!(files, expected);
}

#[test]
fn stacks_that_malloc_has_handed_out_are_not_in_use_twice() {
    let block = 0x7f_0000_0000;
    let text = line(block, 1024, "rw-p", "", 0);
    let mut told = told(&[], 0, 1024);
    told.vm_stacks = vec![(block + 16, 512 * KB)];
    told.objects = Some(Objects {
        count: 1,
        malloc: 100 * KB,
    });
    let memory = made_of(&text, &[], &told);
    use RowKind::*;
    let expected = [(MallocObjects, 100), (MallocCode, 412), (VmStacks, 512)];
    let rounded: Vec<_> = kb(&memory)
        .into_iter()
        .map(|(kind, kb)| (kind, kb / 4 * 4))
        .collect();
    assert_eq!(rounded[0], expected[0]);
    assert!(
        rounded[1].1.abs_diff(412) <= 8 && rounded[2].1.abs_diff(512) <= 8,
        "{rounded:?}"
    );
}

#[test]
fn what_malloc_has_handed_out_and_nobody_touched_is_told() {
    let text = line(0x7f_0000_0000, 300, "rw-p", "", 0);
    let mut told = told(&[], 0, 900);
    told.jit_data = 100 * KB;
    let memory = made_of(&text, &[], &told);
    let expected = [(RowKind::MallocInUse, 200), (RowKind::JitData, 100)];
    assert_eq!(kb(&memory), expected);
    assert_eq!(memory.untouched / KB, 600);
}

#[test]
fn another_malloc_says_what_it_keeps() {
    let text = line(0x7f_0000_0000, 300, "rw-p", "", 0);
    let mut told = told(&[], 0, 200);
    if let Some(counts) = told.malloc.as_mut().and_then(|it| it.counts.as_mut()) {
        counts.mapped_free = 70 * KB;
    }
    use RowKind::*;
    let expected = [(MallocInUse, 200), (MallocFree, 70), (Other, 30)];
    assert_eq!(kb(&made_of(&text, &[], &told)), expected);
    // Without any counts.
    let text = text + &line(0x56_0000_0000, 40, "rw-p", "[heap]", 0);
    let unknown = made_of(&text, &[], &Told::default());
    assert_eq!(kb(&unknown), [(HeapAndOther, 300), (MallocUnknown, 40)]);
}

#[test]
fn without_the_vm_its_heap_is_not_mistaken_for_mallocs() {
    let text = [
        line(0x56_0000_0000, 100, "rw-p", "[heap]", 0),
        line(0x7f_0000_0000, 1000, "rw-p", "", 0),
        line(0x7f_1000_0000, 64, "rw-p", "[anon:Ruby:heap_page_body]", 0),
    ];
    // Large blocks that nobody has touched, such as stacks of the VM.
    let mut told = told(&[], 70, 9000);
    use RowKind::*;
    let expected = [(HeapAndOther, 1064), (MallocInUse, 70), (MallocFree, 30)];
    let untouched = Some(9000 - 1064);
    for heap in [None, Some(ToldHeap::default())] {
        told.heap = heap;
        told.objects = Some(Objects::default());
        let memory = made_of(&text.concat(), &[], &told);
        assert_eq!(kb(&memory), expected);
        assert_eq!(Some(memory.untouched / KB), untouched);
    }
}

#[test]
fn heaps_of_arenas_are_mallocs_and_huge_rests_are_not_read() {
    let arena: u64 = 0x7f_8000_0000;
    let text = line(arena, 3 * 65_536 + 100, "rw-p", "", 0)
        + &format!(
            "{:x}-{:x} ---p 00000000 00:00 0\n",
            arena + 3 * 65_536 * KB + 100 * KB,
            arena + 4 * 65_536 * KB
        );
    let in_use = 3 * 65_536;
    let memory = made_of(&text, &[], &told(&[], in_use, 0));
    let expected = [(RowKind::MallocInUse, in_use), (RowKind::MallocFree, 100)];
    assert_eq!((kb(&memory), memory.heaps), (expected.into(), 4));
    // A page of objects at the end of 2 TB.
    let (start, end) = (0x10_0000_0000_u64, 0x210_0000_0000_u64);
    let text = format!("{start:x}-{end:x} rw-p 00000000 00:00 0\nRss: 99 kB\n");
    let told = told(&[(64, 0, end / RUBY_PAGE - 1, 1)], 0, 0);
    let mappings = mappings(&text);
    let reading = Reading {
        mappings: &mappings,
        threads: &[],
        page: PAGE,
    };
    let mut read = Vec::new();
    let memory = Memory::of(reading, &told, |start, end, most| {
        read.push((end - start, most));
        all(start, end, most)
    });
    assert_eq!(read, [(RUBY_PAGE, 99 * KB)]);
    assert_eq!(memory.rows.of(RowKind::HeapFree).rss, RUBY_PAGE);
    assert_eq!(memory.rows.total().rss, 99 * KB);
}

#[test]
fn without_pages_nothing_is_parted_and_all_adds_up() {
    let start = 0x7f_0000_0000;
    let mappings = mappings(&line(start, 256, "rw-p", "", 0));
    let told = told(&[(40, 7, start / RUBY_PAGE, 2)], 0, 0);
    let reading = Reading {
        mappings: &mappings,
        threads: &[],
        page: PAGE,
    };
    let memory = Memory::of(reading, &told, |_, _, _| None);
    assert!(memory.lacks_pages);
    assert_eq!(memory.rows.total().rss, 256 * KB);
}
