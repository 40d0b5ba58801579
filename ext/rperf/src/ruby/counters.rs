//! What Ruby has counted since the process began: its collector and YJIT. On Ruby threads of the main
//! Ractor, with the GVL. No method of the program's is called.

use super::compiler;
use super::kept_method::KeptMethod;
use crate::interrupts::Interrupts;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{RHash, Ruby, TryConvert, Value, prelude::*};
use rb_sys::VALUE;
use rperf_session::process_stats::RubyStats;
use rperf_vm::Gvl;
use std::ffi::CStr;
use std::sync::OnceLock;

/// Methods of `RubyVM::YJIT`, as Ruby has them.
struct Yjit {
    is_enabled: KeptMethod,
    runtime_stats: KeptMethod,
}

/// `None` in a Ruby that is built without it.
static YJIT: OnceLock<Option<Yjit>> = OnceLock::new();

/// When the extension is loaded.
pub fn init(ruby: &Ruby) {
    YJIT.get_or_init(|| {
        let yjit = compiler::module(ruby, "YJIT")?;
        Some(Yjit {
            is_enabled: KeptMethod::of(ruby, yjit, "enabled?")?,
            runtime_stats: KeptMethod::of(ruby, yjit, "runtime_stats")?,
        })
    });
}

/// The Symbol of the number of objects that the process has made. A Symbol of the VM's own, which is never
/// collected.
static OBJECTS: OnceLock<VALUE> = OnceLock::new();

/// Makes [`objects`] work. On the main thread, once.
pub fn init_objects(ruby: &Ruby) {
    OBJECTS.get_or_init(|| ruby.sym_new("total_allocated_objects").as_raw());
}

/// How many objects the process has made. In hooks, too: it makes none.
#[inline]
pub fn objects(_: &Gvl<'_>) -> u64 {
    // SAFETY: with the GVL, and a key that each version has: it returns a number, and doesn't raise.
    OBJECTS
        .get()
        .map_or(0, |&key| unsafe { rb_sys::rb_gc_stat(key) } as u64)
}

/// Symbols of numbers of objects.
struct Live {
    /// Objects that the last marking has found alive, or this one so far.
    marked: VALUE,
    /// Objects that are there.
    all: VALUE,
}

/// `None` if the VM doesn't know both.
static LIVE: OnceLock<Option<Live>> = OnceLock::new();

/// Makes [`live_objects`] work. Returns whether it does. With the GVL, outside of hooks.
pub fn prepare_live_objects() -> bool {
    let live = LIVE.get_or_init(|| {
        let known = |name: &CStr| {
            // SAFETY: the text ends with a 0; an id always has a Symbol.
            let key = unsafe { rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr())) };
            // SAFETY: with the GVL; what is raised is caught, and the number isn't used as an object.
            let is_known = unsafe { protect(|| rb_sys::rb_gc_stat(key) as VALUE) }.is_ok();
            is_known.then_some(key)
        };
        Some(Live {
            marked: known(c"heap_marked_slots")?,
            all: known(c"heap_live_slots")?,
        })
    });
    live.is_some()
}

/// How many objects the last marking has found alive, if that can be known. `is_marking`: one is under way, which has
/// found some of them; then it is those that are there. It makes none.
pub fn live_objects(_: &Gvl<'_>, is_marking: bool) -> Option<u64> {
    let live = LIVE.get()?.as_ref()?;
    // SAFETY: with the GVL, and keys that the VM knows: it returns a number, and doesn't raise.
    let count = |key| unsafe { rb_sys::rb_gc_stat(key) } as u64;
    let marked = count(live.marked);
    Some(match is_marking {
        true => marked.max(count(live.all)),
        false => marked,
    })
}

/// The counters now.
pub fn counted(ruby: &Ruby, interrupts: &mut Interrupts) -> RubyStats {
    let (yjit_methods, yjit_ratio) = yjit(ruby, interrupts).unwrap_or_default();
    RubyStats {
        gc_count: of_collector(ruby, "count"),
        gc_minor: of_collector(ruby, "minor_gc_count"),
        gc_major: of_collector(ruby, "major_gc_count"),
        gc_time_ms: of_collector(ruby, "time"),
        allocated_objects: of_collector(ruby, "total_allocated_objects"),
        freed_objects: of_collector(ruby, "total_freed_objects"),
        yjit_methods,
        yjit_ratio,
    }
}

/// A counter of GC.stat; 0 if Ruby has none of this name.
fn of_collector(ruby: &Ruby, name: &str) -> u64 {
    let name = ruby.to_symbol(name).as_raw();
    // SAFETY: a Ruby thread with the GVL; with a Symbol the function returns a number, which isn't used
    // as an object, and raises if it doesn't know it.
    unsafe { protect(|| rb_sys::rb_gc_stat(name) as VALUE) }.unwrap_or(0) as u64
}

/// How many methods YJIT has compiled, and the share of instructions that ran in compiled code, which it
/// counts with --yjit-stats only.
fn yjit(ruby: &Ruby, interrupts: &mut Interrupts) -> Option<(Option<u64>, Option<f64>)> {
    let yjit = YJIT.get()?.as_ref()?;
    if !interrupts.if_possible(|| yjit.is_enabled.call())?.to_bool() {
        return None;
    }
    let stats = RHash::from_value(interrupts.if_possible(|| yjit.runtime_stats.call())?)?;
    Some((
        value(ruby, stats, "compiled_iseq_count"),
        value(ruby, stats, "ratio_in_yjit"),
    ))
}

fn value<T: TryConvert>(ruby: &Ruby, hash: RHash, key: &str) -> Option<T> {
    let value: Value = hash.get(ruby.to_symbol(key))?;
    T::try_convert(value).ok().filter(|_| !value.is_nil())
}
