//! Ruby's VM as all of the bridge sees it: threads, Ractors, frames and their names, and how hooks
//! and objects of ours are made known to it. Nothing here knows a session of any kind.

#[cfg(target_os = "linux")]
pub mod aside;
pub mod blocks;
pub mod compiler;
pub mod counters;
pub mod data_type;
pub mod event_hook;
pub mod frames;
pub mod gc_cause;
pub mod gc_hook;
pub mod heap;
pub mod kept_method;
pub mod live_threads;
pub mod memory;
#[cfg(target_os = "linux")]
pub mod object_graph;
pub mod object_hook;
pub mod other_gvl;
pub mod process;
pub mod ractor;
pub mod resolve;
pub mod root_object;
pub mod safepoint;
pub mod stdout;
pub mod thread_hook;
pub mod thread_names;
pub mod threads;
pub mod version;
pub mod vm_stack;
pub mod weak_map;

use magnus::{Error, Ruby};
use rperf_vm::Gvl;

/// Makes what is made once per process. On the main thread.
pub fn init(ruby: &Ruby) -> Result<(), Error> {
    counters::init(ruby);
    version::init(ruby);
    live_threads::init(ruby);
    threads::make_keys();
    weak_map::init(ruby);
    ractor::mark_main();
    ractor::learn_numbers(ruby)?;
    // SAFETY: on the main thread, which loads this extension with its GVL.
    frames::learn(&unsafe { Gvl::assume_held() });
    Ok(())
}
