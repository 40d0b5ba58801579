//! Which mappings, and which pieces of them, are heaps of glibc's arenas. All but the arena of `brk` have
//! their memory in heaps: each begins at a multiple of 64 MB, is as long, and is made accessible from its
//! beginning on as it grows. The kernel lists heaps that follow each other as one mapping.

use super::mappings::{Kind, Mapping};
use super::parts::{Part, Range};
use super::told::Told;
use rperf_model::Order;

/// What heaps begin at a multiple of, and how long they can become.
pub const HEAP: u64 = 64 << 20;

/// The heaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heaps {
    /// Where they are. Those that follow each other are one range.
    pub ranges: Vec<Range>,
    /// How many there are. An arena has one or more.
    pub count: u64,
}

/// A piece of a mapping that has the place of a heap.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start: u64,
    end: u64,
    /// See [`Mapping::is_unreserved`].
    is_unreserved: Option<bool>,
    /// How much of its mapping is resident, in thousandths.
    resident: u64,
    /// A heap with memory that isn't used yet follows it in its mapping.
    is_before_heap: bool,
}

/// Finds them. A heap is known by its last part, which it doesn't use yet and which can't be accessed. One
/// that is used up looks like any other mapping, so it has to be [alike](is_like), and malloc has to have
/// memory for which there is no other place, if it was asked.
pub fn heaps(mappings: &[Mapping], told: &Told) -> Heaps {
    let (mut known, mut full) = (Vec::new(), Vec::new());
    for (place, mapping) in mappings.iter().enumerate() {
        if is_plain(mapping) {
            let (whole, last) = pieces(mapping, mappings.get(place + 1));
            full.extend(whole);
            known.extend(last);
        }
    }
    let mut left = left_for_full(mappings, &known, told);
    full.retain(|it| is_like(it, &known, left.is_some()));
    full.order_by_key(|it| {
        let is_unreserved = it.is_unreserved == Some(true);
        let is_first = (is_unreserved, it.is_before_heap, it.resident);
        (std::cmp::Reverse(is_first), it.start)
    });
    full.retain(|_| {
        left.as_mut().is_none_or(|left| {
            // Half of one: malloc counts a moment before the kernel lists.
            let has_room = *left >= HEAP / 2;
            *left = left.saturating_sub(HEAP);
            has_room
        })
    });
    known.extend(full);
    known.order_by_key(|it| it.start);
    let mut ranges: Vec<Range> = Vec::new();
    for piece in &known {
        match ranges.last_mut() {
            Some(range) if range.end == piece.start => range.end = piece.end,
            _ => ranges.push(Range {
                start: piece.start,
                end: piece.end,
                part: Part::Arena,
            }),
        }
    }
    Heaps {
        ranges,
        count: known.len() as u64,
    }
}

/// Whether memory from malloc may be in it.
fn is_plain(mapping: &Mapping) -> bool {
    mapping.kind == Kind::Anonymous
        && mapping.is_writable
        && !mapping.is_executable
        && !mapping.is_shared
}

/// The pieces with the length of a heap, and the last one if it can't be accessed from some place on.
fn pieces(mapping: &Mapping, next: Option<&Mapping>) -> (Vec<Piece>, Option<Piece>) {
    let Some(mut start) = mapping.start.checked_next_multiple_of(HEAP) else {
        return (Vec::new(), None);
    };
    let resident = mapping.resident.rss.saturating_mul(1000) / mapping.size().max(1);
    let piece = |start, end| Piece {
        start,
        end,
        is_unreserved: mapping.is_unreserved,
        resident,
        is_before_heap: false,
    };
    let mut full: Vec<Piece> = Vec::new();
    while start.checked_add(HEAP).is_some_and(|it| it <= mapping.end) {
        full.push(piece(start, start + HEAP));
        start += HEAP;
    }
    let is_heap = start < mapping.end
        && next.is_some_and(|next| {
            !next.is_accessible
                && next.start == mapping.end
                && start.checked_add(HEAP).is_some_and(|it| next.end <= it)
        });
    full.iter_mut().for_each(|it| it.is_before_heap = is_heap);
    (full, is_heap.then(|| piece(start, mapping.end)))
}

/// Whether a piece has the rights of a heap: the kernel reserves no memory for heaps, unless it does so for
/// all that is mapped. Where nobody knows how much malloc has, and the kernel doesn't tell either, only
/// a heap that follows in the same mapping does.
fn is_like(piece: &Piece, known: &[Piece], is_counted: bool) -> bool {
    match piece.is_unreserved {
        Some(true) => true,
        _ if piece.is_before_heap => true,
        same => is_counted && known.iter().any(|it| it.is_unreserved == same),
    }
}

/// How much of malloc's memory has to be in heaps that are used up; `None` if it wasn't asked.
fn left_for_full(mappings: &[Mapping], known: &[Piece], told: &Told) -> Option<u64> {
    let counts = told.malloc.as_ref()?.counts?;
    let in_break = mappings.iter().filter(|it| it.kind == Kind::Break);
    let in_break: u64 = in_break.map(Mapping::size).sum();
    let in_known: u64 = known.iter().map(|it| it.end - it.start).sum();
    let all = counts.in_use.saturating_add(counts.free);
    Some(all.saturating_sub(in_break).saturating_sub(in_known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mappings::mappings;
    use crate::memory::told::{Malloc, MallocCounts};

    const MB: u64 = 1 << 20;

    /// Mappings of so many MB, each with its rights and the kernel's flags.
    fn those(lines: &[(u64, u64, &str, &str)]) -> Vec<Mapping> {
        let lines = lines.iter();
        let line = |&(start, mb, rights, flags): &(u64, u64, &str, &str)| {
            let end = start + mb * MB;
            let flags = match flags {
                "" => String::new(),
                flags => format!("VmFlags: rd wr mr mw me {flags} \n"),
            };
            format!("{start:x}-{end:x} {rights} 00000000 00:00 0\nRss: 4 kB\n{flags}")
        };
        mappings(&lines.map(line).collect::<String>())
    }

    fn with_malloc(mb: u64) -> Told {
        Told {
            malloc: Some(Malloc {
                allocator: "glibc".into(),
                counts: Some(MallocCounts {
                    in_use: mb * MB - MB,
                    free: MB,
                    ..MallocCounts::default()
                }),
            }),
            ..Told::default()
        }
    }

    /// The number of heaps, and the MB of each range.
    fn found(lines: &[(u64, u64, &str, &str)], told: &Told) -> (u64, Vec<u64>) {
        let found = heaps(&those(lines), told);
        let sizes = found.ranges.iter().map(|it| (it.end - it.start) / MB);
        (found.count, sizes.collect())
    }

    #[test]
    fn a_heap_goes_up_to_where_nothing_can_be_accessed() {
        let nobody = Told::default();
        let rest = |start: u64, mb: u64| (start, mb, "---p", "");
        let one = (HEAP, 9, "rw-p", "");
        let at = HEAP + 9 * MB;
        assert_eq!(found(&[one, rest(at, 55)], &nobody), (1, vec![9]));
        for none in [
            vec![one, rest(at, 56)],
            vec![one],
            vec![one, rest(at + MB, 54)],
            vec![(HEAP + MB, 8, "rw-p", ""), rest(at, 55)],
            vec![(HEAP, 9, "r--p", ""), rest(at, 55)],
        ] {
            assert_eq!(found(&none, &nobody).0, 0, "{none:?}");
        }
    }

    #[test]
    fn heaps_that_have_become_one_mapping_are_cut() {
        // As a thread with 300,000 Strings of 1 KB has them.
        let lines = [
            (0x7ff5_8c00_0000, 39, "rw-p", "nr"),
            (0x7ff5_8e70_0000, 25, "---p", "nr"),
            (0x7ff5_9000_0000, 64, "rw-p", "nr"),
            (0x7ff5_97ce_0000, 3, "rw-p", "ac"),
            (0x7ff5_9800_0000, 128, "rw-p", "nr"),
            (0x7ff5_a000_0000, 64, "rw-p", "nr"),
            (0x7ff5_a401_0000, 9, "rw-p", "ac"),
        ];
        let all = (5, vec![39, 64, 192]);
        assert_eq!(found(&lines, &with_malloc(39 + 256)), all);
        assert_eq!(found(&lines, &Told::default()), all);
        // Followed by one that isn't used up.
        let start = 0x7f32_f400_0000;
        let lines = [
            (start, 128 + 7, "rw-p", ""),
            (start + 135 * MB, 57, "---p", ""),
        ];
        assert_eq!(found(&lines, &Told::default()), (3, vec![135]));
        assert_eq!(found(&lines, &with_malloc(135)), (3, vec![135]));
    }

    #[test]
    fn a_large_block_of_a_programs_own_is_no_heap() {
        let start = 0x7f32_0000_0000;
        let own = (start, 256, "rw-p", "ac");
        let arena = [
            (start + HEAP * 8, 9, "rw-p", "nr"),
            (start + HEAP * 8 + 9 * MB, 55, "---p", "nr"),
        ];
        let both = [own, arena[0], arena[1]];
        for told in [Told::default(), with_malloc(9), with_malloc(500)] {
            assert_eq!(found(&both, &told), (1, vec![9]), "{told:?}");
        }
        // Not even where no memory was reserved for it, or the kernel doesn't tell.
        for flags in ["nr", ""] {
            let own = (start, 256, "rw-p", flags);
            let arena = arena.map(|(start, mb, rights, _)| (start, mb, rights, flags));
            let both = [own, arena[0], arena[1]];
            assert_eq!(found(&both, &with_malloc(9)), (1, vec![9]));
            // Only as much as malloc has.
            assert_eq!(found(&both, &with_malloc(9 + 128)), (3, vec![128, 9]));
        }
        assert_eq!(found(&[(start, 64, "rw-p", "")], &Told::default()).0, 0);
    }
}
