//! Which addresses belong to what: ranges that don't overlap, and how the resident bytes of a mapping
//! are shared among them.

use super::mappings::{Mapping, Resident};
use rperf_model::Order;

/// What a range of addresses is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// Pages of objects, in the pool at this place.
    Pool(usize),
    /// The VM's stack of a thread.
    VmStack,
    /// The native stack of a thread.
    ThreadStack,
    /// The stack of a fiber.
    FiberStack,
    /// A heap of an arena of malloc.
    Arena,
    /// None of these.
    Rest,
}

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Its first address.
    pub start: u64,
    /// The one behind its last.
    pub end: u64,
    /// What it is of.
    pub part: Part,
}

/// Ranges in the order of their addresses, which don't overlap.
#[derive(Debug, Clone, Default)]
pub struct Ranges(Vec<Range>);

impl Ranges {
    /// Adds ranges. Of what is there already, nothing is taken away.
    pub fn add(&mut self, mut new: Vec<Range>) {
        new.retain(|it| it.start < it.end);
        new.order_by_key(|it| it.start);
        let there = std::mem::take(&mut self.0);
        let mut there = there.into_iter().peekable();
        // Up to here all is taken.
        let mut taken = 0;
        for mut range in new {
            range.start = range.start.max(taken);
            while let Some(known) = there.next_if(|it| it.start < range.end) {
                let before = Range {
                    end: range.end.min(known.start),
                    ..range
                };
                self.0.extend(Some(before).filter(|it| it.start < it.end));
                range.start = range.start.max(known.end);
                taken = taken.max(known.end);
                self.0.push(known);
            }
            if range.start < range.end {
                taken = range.end;
                self.0.push(range);
            }
        }
        self.0.extend(there);
    }

    /// The ranges that begin or end in the mapping, cut to it, with [`Part::Rest`] in between; `None` if there
    /// are none.
    pub fn within(&self, mapping: &Mapping) -> Option<Vec<Range>> {
        let known = self.known(mapping.start, mapping.end);
        let mut found = Vec::new();
        let mut place = mapping.start;
        let rest = |start, end| Range {
            start,
            end,
            part: Part::Rest,
        };
        for range in known {
            let start = range.start.max(mapping.start);
            let end = range.end.min(mapping.end);
            if place < start {
                found.push(rest(place, start));
            }
            found.push(Range {
                start,
                end,
                part: range.part,
            });
            place = end;
        }
        if found.is_empty() {
            return None;
        }
        if place < mapping.end {
            found.push(rest(place, mapping.end));
        }
        Some(found)
    }

    /// The ranges that have addresses between these.
    fn known(&self, start: u64, end: u64) -> impl Iterator<Item = &Range> {
        let first = self.0.partition_point(|it| it.end <= start);
        self.0[first..].iter().take_while(move |it| it.start < end)
    }

    /// The bytes of those of this kind between two addresses.
    pub fn bytes_within(&self, start: u64, end: u64, part: Part) -> u64 {
        let found = self.known(start, end).filter(|it| it.part == part);
        found.map(|it| it.end.min(end) - it.start.max(start)).sum()
    }
}

/// Pages of a range, as the kernel counts them one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pages {
    /// Resident.
    pub resident: u64,
    /// The part of those that only this process maps.
    pub exclusive: u64,
    /// Swapped out.
    pub swapped: u64,
}

/// The resident bytes of a mapping as `whole` has them, shared among its ranges by what was counted in
/// each. They add up to the whole, whatever has changed between the two readings; what nobody was
/// counted for goes to the last range.
pub fn shared_out(whole: &Resident, counted: &[Pages]) -> Vec<Resident> {
    let exclusive = whole.rss.saturating_sub(whole.shared);
    let of_shared = whole.pss.saturating_sub(exclusive);
    let column = |total: u64, weight: &dyn Fn(&Pages) -> u64| {
        let weights: Vec<u64> = counted.iter().map(weight).collect();
        divided(total, &weights)
    };
    let rss = column(whole.rss, &|it| it.resident);
    let shared = column(whole.shared, &|it| it.resident - it.exclusive);
    let swap = column(whole.swap, &|it| it.swapped);
    let own = column(whole.pss - of_shared.min(whole.pss), &|it| it.exclusive);
    let of_shared = column(of_shared.min(whole.pss), &|it| it.resident - it.exclusive);
    (0..counted.len())
        .map(|place| Resident {
            rss: rss[place],
            shared: shared[place],
            pss: own[place] + of_shared[place],
            swap: swap[place],
        })
        .collect()
}

/// The total in parts by these weights, which add up to it. Without any weight the last one has all.
pub fn divided(total: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|&it| u128::from(it)).sum();
    let mut parts = vec![0; weights.len()];
    if sum == 0 {
        if let Some(last) = parts.last_mut() {
            *last = total;
        }
        return parts;
    }
    // By what is reached, so no rounding is lost.
    let (mut reached, mut given) = (0_u128, 0_u64);
    for (part, &weight) in parts.iter_mut().zip(weights) {
        reached += u128::from(weight);
        let until = (u128::from(total) * reached / sum) as u64;
        *part = until - given;
        given = until;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::mappings::Kind;
    use proptest::prelude::*;

    fn range(start: u64, end: u64, part: Part) -> Range {
        Range { start, end, part }
    }

    fn mapping(start: u64, end: u64) -> Mapping {
        Mapping {
            start,
            end,
            is_accessible: true,
            is_writable: true,
            is_executable: false,
            is_shared: false,
            is_unreserved: None,
            kind: Kind::Anonymous,
            name: String::new(),
            resident: Resident::default(),
            written: 0,
        }
    }

    #[test]
    fn who_comes_first_keeps_what_it_has() {
        let mut ranges = Ranges::default();
        ranges.add(vec![
            range(40, 50, Part::Pool(1)),
            range(10, 20, Part::Pool(0)),
        ]);
        ranges.add(vec![
            range(5, 45, Part::VmStack),
            range(48, 60, Part::ThreadStack),
        ]);
        let expected = [
            range(5, 10, Part::VmStack),
            range(10, 20, Part::Pool(0)),
            range(20, 40, Part::VmStack),
            range(40, 50, Part::Pool(1)),
            range(50, 60, Part::ThreadStack),
        ];
        assert_eq!(ranges.0, expected);
        let within = ranges.within(&mapping(15, 80)).expect("some");
        assert_eq!(within[0], range(15, 20, Part::Pool(0)));
        assert_eq!(within.last(), Some(&range(60, 80, Part::Rest)));
        assert_eq!(ranges.within(&mapping(60, 80)), None);
        assert_eq!(ranges.bytes_within(0, 30, Part::VmStack), 15);
    }

    proptest! {
        #[test]
        fn ranges_never_overlap_and_cover_all_that_was_added(
            sets in prop::collection::vec(prop::collection::vec((0_u64..99, 0_u64..30), 0..9), 0..4),
        ) {
            let mut ranges = Ranges::default();
            let mut owners = [None; 200];
            for (place, set) in sets.iter().enumerate() {
                let new = set.iter().map(|&(start, size)| range(start, start + size, Part::Pool(place)));
                ranges.add(new.collect());
                for &(start, size) in set {
                    for owner in &mut owners[start as usize..(start + size) as usize] {
                        owner.get_or_insert(place);
                    }
                }
            }
            let mut found = [None; 200];
            for it in &ranges.0 {
                let Part::Pool(place) = it.part else { unreachable!() };
                for owner in &mut found[it.start as usize..it.end as usize] {
                    prop_assert_eq!(owner.replace(place), None);
                }
            }
            prop_assert_eq!(found, owners);
        }

        #[test]
        fn parts_add_up(total in 0_u64..1 << 50, weights in prop::collection::vec(0_u64..1 << 40, 1..9)) {
            let parts = divided(total, &weights);
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
        }

        #[test]
        fn what_is_resident_is_shared_out_whole(
            pages in prop::collection::vec((0_u64..99, 0_u64..99, 0_u64..9), 1..9),
            (rss, shared, pss) in (0_u64..1 << 40, 0_u64..1 << 40, 0_u64..1 << 40),
        ) {
            let counted: Vec<_> = pages.iter().map(|&(exclusive, more, swapped)| Pages {
                resident: exclusive + more,
                exclusive,
                swapped,
            }).collect();
            let whole = Resident { rss, shared, pss, swap: 7 };
            let mut sum = Resident::default();
            for part in shared_out(&whole, &counted) {
                sum += part;
            }
            prop_assert_eq!(sum, whole);
        }
    }

    #[test]
    fn shared_pages_count_for_a_part() {
        // 4 pages alone, 8 with another process.
        let whole = Resident {
            rss: 12,
            pss: 8,
            shared: 8,
            swap: 0,
        };
        let pages = |resident, exclusive| Pages {
            resident,
            exclusive,
            swapped: 0,
        };
        let parts = shared_out(&whole, &[pages(6, 4), pages(6, 0)]);
        let of = |place: usize| (parts[place].rss, parts[place].pss, parts[place].shared);
        assert_eq!((of(0), of(1)), ((6, 5, 2), (6, 3, 6)));
    }
}
