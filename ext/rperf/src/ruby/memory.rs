//! What the VM knows of its memory: where its heap has its pages, and its threads their stacks. With the
//! GVL, which is held without a break while the pages are listed.

use super::heap::{Quiet, each_page};
use super::live_threads::LiveThreads;
use super::vm_stack;
use crate::text;
use magnus::{Error, RArray, RModule, RString, Ruby, TryConvert, prelude::*};
use rperf_port::memory::{Pages, nanoseconds};
use rperf_protocol::memory::{Heap, Stacks};
use rperf_vm::{Checked, Gvl};
use std::time::Instant;

/// What Ruby says of a heap: its collector, the bytes of a page, pages without an object, the bytes that
/// a compiler has from malloc, those of a fiber's stack, and the pools: bytes of a slot, slots, live ones.
type Facts = (RString, u64, u64, u64, u64, RArray);

/// What it knows; of the heap nothing if there are other Ractors. `helper` is the module that asks Ruby.
/// Runs Ruby code.
pub fn known(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    helper: RModule,
) -> Result<(Option<Heap>, Stacks), Error> {
    let vm = stacks(ruby, gvl)?;
    // First: what is counted is that of a collection that has ended.
    let mut found = Vec::new();
    let listed = Quiet::of(ruby, gvl)?.map(|quiet| {
        let began = Instant::now();
        each_page(&quiet, |start, _, slot_bytes| {
            found.push((slot_bytes as u64, start as u64))
        });
        began.elapsed()
    });
    let facts: RArray = helper.funcall("memory", ())?;
    let (collector, page_bytes, empty_pages, jit_bytes, fiber_bytes, pools) =
        Facts::try_convert(facts.as_value())?;
    let Some(held) = listed else {
        return Ok((None, Stacks { fiber_bytes, vm }));
    };
    let pools = pools.to_vec::<u64>()?;
    let (pools, _) = pools.as_chunks::<3>();
    let pools: Vec<_> = pools
        .iter()
        .map(|&[bytes, slots, live]| (bytes, slots, live))
        .collect();
    let mut pages = Pages::default();
    // Another collector has none.
    for (slot_bytes, start) in found.into_iter().filter(|_| page_bytes > 0) {
        pages.add(slot_bytes, start / page_bytes);
    }
    let heap = Heap {
        collector: text::content(collector),
        empty_pages,
        held_ns: nanoseconds(held),
        jit_bytes,
        page_bytes,
        pools: pages.pools(&pools),
    };
    Ok((Some(heap), Stacks { fiber_bytes, vm }))
}

/// The VM's stacks of all threads.
fn stacks(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Vec<(u64, u64)>, Error> {
    let live = LiveThreads::list(ruby, gvl)?;
    let Some(memory) = Checked::new() else {
        return Ok(Vec::new());
    };
    let stacks = live.threads();
    let stacks = stacks.filter_map(|thread| vm_stack::of(gvl, &memory, thread));
    Ok(stacks
        .map(|(start, bytes)| (start as u64, bytes as u64))
        .collect())
}
