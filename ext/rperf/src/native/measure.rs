//! What benchmarks and specs ask of the extension itself: hooks that do nothing, as
//! the floor that a profiler's own cost is set against, what a sample costs, and the comparison
//! of traced stacks with the VM's. With the feature `measure`.

use super::session_words::session_words;
use super::token::gvl;
use crate::probes::sampling::thread;
use crate::probes::tracing::calls;
use crate::ruby::event_hook::EventHook;
use crate::ruby::frames::{RubyVm, take_complete};
use crate::ruby::thread_hook::{self, ThreadHook};
use crate::ruby::{gc_cause, gc_hook};
use crate::running::sampling::sampling;
use crate::running::tracing::check_stacks;
use crate::sampling::objects_made;
use magnus::{Error, Object, RHash, RModule, Ruby, Symbol, function};
use rb_sys::{ID, VALUE};
use rperf_sampling::Mode;
use rperf_tracing::TraceLevel;
use rperf_vm::{Backtrace, CapturedTree, GcTime, GcWork, LastStack, clock};
use std::hint::black_box;

/// Samples between two readings of the clock: its own cost is then negligible.
const BATCH: u32 = 100;

/// The thread hook that does nothing.
static EMPTY_HOOK: ThreadHook = ThreadHook::new();

static EMPTY_GC_HOOK: EventHook = EventHook::new(no_gc_event, gc_hook::EVENTS);

/// Defines the methods of `Rperf::Native`.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("add_empty_hooks", function!(add_empty_hooks, 1))?;
    native.define_singleton_method("add_empty_trace", function!(add_empty_trace, 1))?;
    native.define_singleton_method("check_traces", function!(check_stacks, 0))?;
    native.define_singleton_method("remove_empty_hooks", function!(remove_empty_hooks, 0))?;
    native.define_singleton_method("sample_cost", function!(sample_cost, 3))?;
    native.define_singleton_method("end_in_copy", function!(objects_made::end_in_copy, 0))?;
    native.define_singleton_method("gc_cause_cost", function!(gc_cause_cost, 1))?;
    native.define_singleton_method("session_words", function!(session_words, 0))?;
    native.define_singleton_method("hooks?", function!(thread_hook::is_registered, 0))
}

/// Registers the same events as a session in `mode`, with callbacks that do
/// nothing.
fn add_empty_hooks(ruby: &Ruby, mode: Symbol) -> Result<(), Error> {
    let mode = Mode::from_name(&mode.name()?)
        .ok_or_else(|| Error::new(ruby.exception_arg_error(), "mode must be :cpu or :wall"))?;
    remove_empty_hooks();
    EMPTY_HOOK.add(thread_hook::do_nothing, thread::events(mode));
    EMPTY_GC_HOOK.add();
    Ok(())
}

/// Registers the same events of calls as a session that traces at `level`, with a callback that
/// does nothing.
fn add_empty_trace(ruby: &Ruby, level: Symbol) -> Result<(), Error> {
    let level = TraceLevel::from_name(&level.name()?).ok_or_else(|| {
        let message = "calls must be ruby, all, count or count-all";
        Error::new(ruby.exception_arg_error(), message)
    })?;
    calls::add_empty(level);
    Ok(())
}

/// Removes the empty hooks on threads and on collections.
fn remove_empty_hooks() {
    EMPTY_HOOK.remove();
    EMPTY_GC_HOOK.remove();
}

unsafe extern "C" fn no_gc_event(_: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {}

/// What a piece of a collection costs more as its cause is told: the least of `rounds` batches, in ns. Adds
/// that many made-up pieces to the running session.
fn gc_cause_cost(ruby: &Ruby, rounds: u32) -> Option<f64> {
    let gvl = gvl(ruby);
    let session = sampling(&gvl)?;
    let mut work = GcWork {
        enter_ns: 0,
        exit_ns: 1_000,
        cpu_ns: 1_000,
        marking: GcTime::default(),
        tick_before_ns: 0,
        is_first: false,
        cause: None,
    };
    let mut batch = || {
        let began = clock::monotonic_ns();
        for _ in 0..BATCH {
            work.cause = black_box(gc_cause::latest());
            session.gc.by_cause.add(black_box(&work));
        }
        clock::monotonic_ns().saturating_sub(began)
    };
    let least = (0..rounds).map(|_| batch()).min()?;
    Some(least as f64 / f64::from(BATCH))
}

/// Medians over `rounds` batches, in ns, for the stack at hand: `bare_ns` for a
/// backtrace alone, `sampled_ns` for capturing and interning it, `clocks_ns` for
/// the clocks that a sample reads besides. Of the last stack `kept_permille` are
/// known from the root; the rest is looked up.
fn sample_cost(ruby: &Ruby, rounds: u32, kept_permille: u32, lines: bool) -> Result<RHash, Error> {
    let gvl = gvl(ruby);
    let vm = RubyVm::new(&gvl);
    let mut backtrace = Backtrace::new(lines);
    // The frames are on this thread's stack, and so alive; nothing here runs a
    // collection.
    let mut tree = CapturedTree::new(1 << 20);
    let mut last = LastStack::default();
    let mut bare = Vec::new();
    let mut sampled = Vec::new();
    let mut clocks = Vec::new();
    let mut depth = 0;
    for _ in 0..rounds {
        bare.push(per_call(|| {
            let taken = take_complete(vm, &mut backtrace);
            depth = black_box(backtrace.stack(taken)).frames.len();
        }));
        sampled.push(per_call(|| {
            last.keep(last.depth() * kept_permille as usize / 1000);
            let taken = take_complete(vm, &mut backtrace);
            let stack = backtrace.stack(taken);
            black_box(tree.intern(stack.frames, stack.lines, &mut last));
        }));
        clocks.push(per_call(|| {
            black_box((clock::monotonic_ns(), clock::thread_cpu_ns()));
        }));
    }
    let result = ruby.hash_new();
    result.aset(ruby.to_symbol("depth"), depth)?;
    for (name, costs) in [
        ("bare_ns", &mut bare),
        ("sampled_ns", &mut sampled),
        ("clocks_ns", &mut clocks),
    ] {
        result.aset(ruby.to_symbol(name), median(costs))?;
    }
    Ok(result)
}

fn per_call(mut call: impl FnMut()) -> f64 {
    let started = clock::monotonic_ns();
    (0..BATCH).for_each(|_| call());
    (clock::monotonic_ns() - started) as f64 / f64::from(BATCH)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
