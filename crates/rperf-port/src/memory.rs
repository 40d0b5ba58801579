//! What memory is of, as far as only the program knows: what the VM says, and what malloc has counted.
//! The VM's answer is made on a Ruby thread, and becomes a message on the port's.

pub(crate) mod malloc;

use rperf_protocol::json::written;
use rperf_protocol::memory::{Heap, Memory, ObjectsAnswer, Pool, Stacks};
use rperf_protocol::stacks::Source;
use rperf_report::memory::told::Told;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the VM knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VmMemory {
    /// Its heap; `None` if it can't be looked at.
    pub heap: Option<Heap>,
    /// Why it can't.
    pub note: Option<String>,
    /// Its stacks.
    pub stacks: Stacks,
    /// Its objects, if they are asked for.
    pub objects: Option<ObjectsAnswer>,
}

/// A time as messages have it.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What is told of the memory of this process by itself: `heap` and `stacks` of the VM, and what malloc
/// has counted.
pub fn told(heap: Option<Heap>, stacks: Stacks) -> Told {
    let answer = Memory {
        heap,
        malloc: malloc::counted(),
        stacks: Some(stacks),
        ..Memory::default()
    };
    answer.told()
}

/// The pages of a heap, by the bytes of their slots, as they are found.
#[derive(Debug, Default)]
pub struct Pages(BTreeMap<u64, Vec<u64>>);

impl Pages {
    /// Adds the page with this number, which has such slots.
    pub fn add(&mut self, slot_bytes: u64, number: u64) {
        self.0.entry(slot_bytes).or_default().push(number);
    }

    /// The pools of these slots, as `(bytes of a slot, slots, live ones)`, with their pages.
    pub fn pools(mut self, known: &[(u64, u64, u64)]) -> Vec<Pool> {
        let known: BTreeMap<u64, (u64, u64)> = known
            .iter()
            .map(|&(bytes, slots, live)| (bytes, (slots, live)))
            .collect();
        for &bytes in known.keys() {
            self.0.entry(bytes).or_default();
        }
        let pools = self.0.into_iter().map(|(slot_bytes, numbers)| {
            let (slots, live) = known.get(&slot_bytes).copied().unwrap_or_default();
            Pool {
                live,
                pages: in_rows(numbers),
                slot_bytes,
                slots,
            }
        });
        pools.collect()
    }
}

/// The numbers as pairs: one, and how many follow each other from there.
fn in_rows(mut numbers: Vec<u64>) -> Vec<(u64, u64)> {
    numbers.sort_unstable();
    let mut rows: Vec<(u64, u64)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((first, count)) if *first + *count == number => *count += 1,
            // The same page twice.
            Some((first, count)) if *first + *count > number => {}
            _ => rows.push((number, 1)),
        }
    }
    rows
}

/// The answer to `/v1/memory` when the VM has said what it knows, as JSON. `is_woken`: the main thread
/// had to be woken for that.
pub fn of_vm(memory: VmMemory, is_woken: bool, elapsed_ns: u64) -> String {
    written(&Memory {
        elapsed_ns,
        heap: memory.heap,
        malloc: malloc::counted(),
        note: memory.note,
        objects: memory.objects,
        source: Source::Vm,
        stacks: Some(memory.stacks),
        woken: is_woken,
    })
}

/// The answer without the VM, and why there is no more.
pub fn of_system(note: &str, is_woken: bool, elapsed_ns: u64) -> String {
    written(&Memory {
        elapsed_ns,
        malloc: malloc::counted(),
        note: Some(note.into()),
        woken: is_woken,
        ..Memory::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_protocol::json::read;

    #[test]
    fn pages_that_follow_each_other_are_told_as_one() {
        let mut pages = Pages::default();
        for (bytes, number) in [(40, 7), (80, 1), (40, 5), (40, 6), (40, 9), (40, 9)] {
            pages.add(bytes, number);
        }
        let pools = pages.pools(&[(40, 300, 200), (160, 0, 0)]);
        let found = pools
            .iter()
            .map(|it| (it.slot_bytes, it.live, &it.pages[..]));
        let expected = [
            (40, 200, &[(5, 3), (9, 1)][..]),
            (80, 0, &[(1, 1)]),
            (160, 0, &[]),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn answers_have_what_the_vm_says_and_what_malloc_counts() {
        let vm = VmMemory {
            heap: Some(Heap {
                page_bytes: 65_536,
                ..Heap::default()
            }),
            ..VmMemory::default()
        };
        let answer: Memory = read(of_vm(vm, true, 5).as_bytes()).expect("an answer");
        assert_eq!(
            (answer.source, answer.elapsed_ns, answer.woken),
            (Source::Vm, 5, true)
        );
        assert_eq!(answer.told().heap.map(|it| it.page_bytes), Some(65_536));
        let ractors = VmMemory {
            note: Some("others".into()),
            ..VmMemory::default()
        };
        let answer: Memory = read(of_vm(ractors, false, 5).as_bytes()).expect("an answer");
        assert_eq!(
            (answer.heap, answer.note.as_deref()),
            (None, Some("others"))
        );
        let answer: Memory = read(of_system("why", false, 5).as_bytes()).expect("an answer");
        assert_eq!(answer.note.as_deref(), Some("why"));
        assert_eq!(answer.malloc.is_some(), cfg!(target_os = "linux"));
    }
}
