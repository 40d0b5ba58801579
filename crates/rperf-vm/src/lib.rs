//! The words of the VM, as sampling and tracing use them: frames, threads and fibers, the token of
//! the GVL, the call tree and the names of its frames, labels, the objects that a program makes, the
//! progress of collections, clocks and native threads.
//!
//! The bridge (`ext/rperf`) hands the VM's words in and answers the questions of [`VmFrames`]; a word
//! is opaque here, and no Ruby is called. Sessions, workers and ticks are the business of the crates
//! above. With the feature `fake-vm` there is a VM for tests.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod allocations;
mod backtrace;
mod call_tree;
pub mod clock;
mod dither;
mod frame_blocks;
mod frame_code;
mod frame_names;
mod gc_progress;
mod gc_watch;
mod gvl;
mod ids;
mod labels;
pub mod native_thread;
mod object_rows;
mod others_ready;
mod session_slot;
mod stack_digest;
mod sync;
#[cfg(target_os = "linux")]
pub mod system_calls;
mod thread_names;
mod vm;
mod waiters;

pub use allocations::{AllocationSite, AllocationSums, Allocations};
pub use backtrace::{Backtrace, MAX_DEPTH};
pub use call_tree::{
    CapturedNode, CapturedTree, FOLDED, Interned, LastStack, Stack, TRUNCATED, TreeSize,
    equal_from_the_end,
};
pub use dither::Dither;
pub use frame_blocks::{blocks_around, object_of, within_blocks};
pub use frame_code::{FrameCode, tells_line};
pub use frame_names::{FrameNames, JobId, NamingJobs, ResolvedFrame, names_memory};
pub use gc_progress::{GcEvent, GcMoment, GcPhase, GcProgress, GcTime, GcWork};
pub use gc_watch::GC_WATCH;
pub use gvl::{Gvl, GvlCell, GvlRef};
pub use ids::{FiberWord, FrameWord, NativeId, SessionId, VmThread};
pub use labels::{LabelSet, LabelTable, LabelTexts, OpNumber, RequestNumber};
pub use object_rows::{HIDDEN_CLASS, KnownOfObjects, ObjectRow, add_object_columns};
pub use others_ready::OthersReady;
pub use session_slot::{SessionPart, SessionSlot};
pub use stack_digest::StackDigest;
pub use thread_names::{NotedName, ThreadNames, VmName};
#[cfg(any(test, feature = "fake-vm"))]
pub use vm::fake;
pub use vm::{
    BlockLayout, Checked, FrameKinds, FrameLayout, LateFrames, LateFramesFound, MayFault, Memory,
    MethodWord, TickVm, Unknown, VmFrames,
};
pub use waiters::{Waiters, Waits};
