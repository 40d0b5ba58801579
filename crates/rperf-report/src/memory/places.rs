//! Where in a process's mappings stacks and pages of objects are. On Linux.

use super::mappings::{Kind, Mapping};
use super::parts::{Part, Range, Ranges};
use super::told::Told;

/// Pages by which a fiber's stack may be longer than was asked for.
const ROUNDED: u64 = 2;

/// The ranges of all that is known. `threads`: an address in the block that the C library keeps at the
/// upper end of each thread's stack.
pub fn ranges(mappings: &[Mapping], threads: &[u64], told: &Told, page: u64) -> Ranges {
    let mut ranges = Ranges::default();
    if let Some(heap) = &told.heap {
        let pools = heap.pools.iter().enumerate();
        let pages = pools.flat_map(|(place, pool)| {
            let pages = pool.pages.iter();
            pages.filter_map(move |&(first, count)| {
                Some(Range {
                    start: first.checked_mul(heap.page_bytes)?,
                    end: first.checked_add(count)?.checked_mul(heap.page_bytes)?,
                    part: Part::Pool(place),
                })
            })
        });
        ranges.add(pages.collect());
    }
    ranges.add(thread_stacks(mappings, threads, page));
    ranges.add(fiber_stacks(mappings, threads, told.fiber_stack, page));
    let stacks = told.vm_stacks.iter().filter_map(|&(start, size)| {
        Some(Range {
            start: start / page * page,
            end: start.checked_add(size)?.checked_next_multiple_of(page)?,
            part: Part::VmStack,
        })
    });
    ranges.add(stacks.collect());
    ranges
}

/// Whether memory of threads, fibers and malloc may be in it.
fn is_plain(mapping: &Mapping) -> bool {
    mapping.kind == Kind::Anonymous && mapping.is_writable && !mapping.is_shared
}

/// A thread's stack is below its block. What else is in its mapping comes after it, as the page below a
/// stack can't be accessed, or another stack ends there.
fn thread_stacks(mappings: &[Mapping], threads: &[u64], page: u64) -> Vec<Range> {
    let mut threads = threads.to_vec();
    threads.sort_unstable();
    let mut found: Vec<Range> = Vec::new();
    for block in threads {
        let place = mappings.partition_point(|it| it.end <= block);
        let Some(mapping) = mappings.get(place) else {
            break;
        };
        if !is_plain(mapping) || mapping.start > block {
            continue;
        }
        let before = found.last().map_or(0, |it| it.end);
        let end = block.next_multiple_of(page).saturating_add(page);
        found.push(Range {
            start: mapping.start.max(before),
            end: end.min(mapping.end),
            part: Part::ThreadStack,
        });
    }
    found
}

/// Fibers' stacks follow each other, each behind a page that can't be accessed.
fn fiber_stacks(mappings: &[Mapping], threads: &[u64], size: u64, page: u64) -> Vec<Range> {
    let mut found: Vec<Range> = Vec::new();
    if size == 0 {
        return found;
    }
    // The last one's end, and size.
    let mut last = (0, 0);
    for pair in mappings.windows(2) {
        let (guard, mapping) = (&pair[0], &pair[1]);
        let is_guarded = !guard.is_accessible && guard.size() == page && guard.end == mapping.start;
        let has_thread = || {
            let mut threads = threads.iter();
            threads.any(|it| (mapping.start..mapping.end).contains(it))
        };
        if !is_guarded || !is_plain(mapping) || has_thread() {
            continue;
        }
        let bytes = mapping.size();
        let own = match last {
            _ if (size..=size.saturating_add(ROUNDED * page)).contains(&bytes) => bytes,
            // What follows the last stack may have become one mapping with it.
            (end, size) if end == guard.start && bytes > size => size,
            _ => continue,
        };
        last = (mapping.start + own, own);
        found.push(Range {
            start: mapping.start,
            end: mapping.start + own,
            part: Part::FiberStack,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mappings::mappings;

    const PAGE: u64 = 4096;

    /// A line for each.
    fn those(lines: &[(u64, u64, &str)]) -> Vec<Mapping> {
        let lines = lines.iter();
        let line = |&(start, pages, rights): &(u64, u64, &str)| {
            let end = start + pages * PAGE;
            format!("{start:x}-{end:x} {rights} 00000000 00:00 0\n")
        };
        mappings(&lines.map(line).collect::<String>())
    }

    fn of(range: &Range) -> (u64, u64) {
        (range.start / PAGE, range.end / PAGE)
    }

    #[test]
    fn a_stack_ends_behind_its_threads_block() {
        let there = those(&[
            (0x1000, 1, "---p"),
            (0x2000, 20, "rw-p"),
            (0x1_0000_0000, 8, "r-xp"),
        ]);
        // Two threads in one mapping, and what no thread has.
        let found = thread_stacks(&there, &[0x9800, 0x5800, 0x1_0000_0800, 7], PAGE);
        let places: Vec<_> = found.iter().map(of).collect();
        assert_eq!(places, [(2, 7), (7, 11)]);
    }

    #[test]
    fn fibers_stacks_have_their_size_and_a_guard() {
        let there = those(&[
            (0x1000, 1, "---p"),
            (0x2000, 4, "rw-p"),
            (0x6000, 1, "---p"),
            (0x7000, 4, "rw-p"),
            (0xb000, 1, "---p"),
            (0xc000, 9, "rw-p"),
            (0x20000, 1, "---p"),
            (0x21000, 9, "rw-p"),
            (0x40000, 4, "rw-p"),
        ]);
        let places = |threads: &[u64]| {
            let found = fiber_stacks(&there, threads, 3 * PAGE, PAGE);
            found.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(places(&[]), [(2, 6), (7, 11), (12, 16)]);
        assert_eq!(places(&[0x7010]), [(2, 6)]);
        assert_eq!(fiber_stacks(&there, &[], 0, PAGE), []);
    }
}
