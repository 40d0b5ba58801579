//! What the memory of this process is of at its end, for the page of `rperf stat`.

use crate::interrupts::Interrupts;
use crate::native;
use crate::ruby::memory::known;
use magnus::{RModule, Ruby, prelude::*};
use rperf_port::memory::told;
use rperf_session::process_id::ProcessId;
use rperf_session::process_memory::Taken;
use rperf_session::process_stats::MemoryStats;

/// Looks at it; `None` where the system doesn't tell.
pub fn at_end(ruby: &Ruby, interrupts: &mut Interrupts) -> Option<MemoryStats> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let (heap, stacks) = interrupts.if_possible(|| {
        let rperf: RModule = ruby.class_object().const_get("Rperf")?;
        known(ruby, &mut native::gvl(ruby), rperf.const_get("Helper")?)
    })?;
    interrupts.without_its_gvl(|| {
        let pid = ProcessId::own().pid;
        let taken = Taken::of(pid).ok()?;
        let memory = taken.rows(pid, &told(heap, stacks));
        (!memory.lacks_pages).then(|| MemoryStats::of(&memory))
    })
}
