//! The hooks of accounts: threads that get the GVL and give it up, collections, and switches between
//! fibers. They are there from the first account on, until a program ends its accounts.

use super::process::{self, ProcessAccounts};
use super::threads::{self, AccountedThread, moment};
use crate::ruby::event_hook::EventHook;
use crate::ruby::gc_hook::{self, GcHook, OnCollection};
use crate::ruby::process::collections;
use crate::ruby::ractor::{self, AnyGvl};
use crate::ruby::thread_hook::ThreadHook;
use crate::ruby::threads::RubyThread;
use rb_sys::{
    ID, RUBY_EVENT_FIBER_SWITCH as FIBER_SWITCH, RUBY_INTERNAL_THREAD_EVENT_EXITED as EXITED,
    RUBY_INTERNAL_THREAD_EVENT_READY as READY, RUBY_INTERNAL_THREAD_EVENT_RESUMED as RESUMED,
    RUBY_INTERNAL_THREAD_EVENT_SUSPENDED as SUSPENDED, VALUE, rb_event_flag_t,
    rb_internal_thread_event_data_t,
};
use rperf_accounts::{Moment, ThreadAccounts};
use rperf_vm::{GC_WATCH, GcEvent, Gvl, VmThread, clock};
use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

static ON_THREADS: ThreadHook = ThreadHook::new();
static ON_COLLECTIONS: GcHook<Collections> = GcHook::new();

/// The hook on switches of fibers. Its event comes from C code of the VM's: no Ruby code is compiled
/// anew for it.
static ON_SWITCHES: EventHook = EventHook::new(on_switch, FIBER_SWITCH);

/// Whether the hooks on collections and on switches are registered. A forked child inherits them.
static ARE_ADDED: AtomicBool = AtomicBool::new(false);

/// How many hooks on collections had been registered when these two were.
static ADDITIONS_SEEN: AtomicU64 = AtomicU64::new(0);

/// The hook on threads was removed for the fork that is under way.
static IS_PAUSED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The thread of the main Ractor that has run last on this native one.
    static LAST_RUN: Cell<VmThread> = const { Cell::new(VmThread(0)) };
}

/// Whether the hooks are registered.
pub fn are_there() -> bool {
    ON_THREADS.is_registered()
}

/// Registers the hooks, unless they are there. With the GVL, outside of hooks.
pub fn begin(gvl: &Gvl<'_>) {
    if !ON_THREADS.is_registered() {
        LAST_RUN.set(RubyThread::current(gvl).id());
        ON_THREADS.add(on_thread, READY | RESUMED | SUSPENDED | EXITED);
    }
    if !ARE_ADDED.load(SeqCst) {
        add_on_events();
    } else if GC_WATCH.is_silent(collections, clock::monotonic_ns) {
        GC_WATCH.listen(clock::monotonic_ns());
        remove_on_events();
        add_on_events();
    } else if ADDITIONS_SEEN.load(Relaxed) != gc_hook::additions() {
        // A session has found them silent, and registered its own anew.
        remove_on_events();
        add_on_events();
    }
}

/// Forgets all accounts that are kept. The hooks go as soon as no account is open. With the GVL,
/// outside of hooks.
pub fn end(gvl: &Gvl<'_>) {
    let Some(process) = process::present(gvl) else {
        return;
    };
    if let Some(mut table) = process.table.borrow(gvl) {
        *table = Default::default();
    }
    process.is_on.store(false, Relaxed);
    process.ends.store(true, SeqCst);
    end_if_none_is_open(process);
}

/// A session that had accounts of requests is over: the hooks go as soon as no account is open, unless
/// the program has begun accounts of its own. With the GVL, outside of hooks.
pub fn end_with_session(gvl: &Gvl<'_>) {
    if let Some(process) = process::present(gvl).filter(|it| !it.is_on.load(Relaxed)) {
        process.ends.store(true, SeqCst);
        end_if_none_is_open(process);
    }
}

/// Removes the hooks, if the program has ended its accounts, and none is open. With the GVL, outside of
/// hooks.
pub fn end_if_none_is_open(process: &ProcessAccounts) {
    if process.ends.load(SeqCst) && process.open.load(SeqCst) == 0 {
        ON_THREADS.remove();
        remove_on_events();
        process.waiters.clear(clock::monotonic_ns());
        process.ends.store(false, SeqCst);
    }
}

fn add_on_events() {
    ARE_ADDED.store(true, SeqCst);
    ON_COLLECTIONS.add();
    ON_SWITCHES.add();
    ADDITIONS_SEEN.store(gc_hook::additions(), Relaxed);
}

fn remove_on_events() {
    if ARE_ADDED.swap(false, SeqCst) {
        ON_COLLECTIONS.remove();
        ON_SWITCHES.remove();
    }
}

/// Removes the hook on threads for a fork. Returns whether it was there. With the GVL.
pub fn before_fork(gvl: &Gvl<'_>) -> bool {
    // One that was inherited is nobody's, and to remove it could hang.
    let is_there = process::present(gvl).is_some() && ON_THREADS.is_registered();
    if is_there {
        IS_PAUSED.store(true, SeqCst);
        ON_THREADS.remove();
    }
    is_there
}

/// Adds it again, after the fork. With the GVL.
pub fn in_parent(_: &Gvl<'_>) {
    if IS_PAUSED.swap(false, SeqCst) {
        ON_THREADS.add(on_thread, READY | RESUMED | SUSPENDED | EXITED);
    }
}

/// In a forked child, whose accounts begin anew. Async-signal-safe.
pub fn forget_in_child() {
    IS_PAUSED.store(false, SeqCst);
    process::forget_in_child();
}

unsafe extern "C" fn on_thread(
    event: rb_event_flag_t,
    data: *const rb_internal_thread_event_data_t,
    _: *mut c_void,
) {
    let Some(process) = process::shared() else {
        return;
    };
    // SAFETY: the VM passes valid event data. But for READY, it is of the calling thread, which is alive,
    // and has its Ractor's GVL in RESUMED and SUSPENDED.
    unsafe {
        let thread = RubyThread::from_raw((*data).thread);
        match event {
            READY => ready(process, thread),
            EXITED => {
                process.waiters.leave(thread.id(), clock::monotonic_ns());
                threads::ended(thread);
            }
            _ if ractor::is_main() => {
                let gvl = Gvl::assume_held();
                if event == RESUMED {
                    resumed(process, &gvl, thread);
                } else if let Some(accounted) = threads::known(process, &gvl, thread) {
                    // READY can't come before the GVL is given up.
                    accounted.ready_ns.store(0, Relaxed);
                    let now_ns = clock::monotonic_ns();
                    with_accounts(accounted, &gvl, now_ns, ThreadAccounts::suspended);
                }
            }
            RESUMED => {
                process.other_ractors.store(true, Relaxed);
                let now_ns = clock::monotonic_ns();
                process.waiters.leave_foreign(thread.id(), now_ns);
            }
            _ => {}
        }
    }
}

/// `thread` waits for the GVL. Without it, on any native thread: one without accounts may wait for
/// another GVL, if there are other Ractors, and then isn't counted.
///
/// # Safety
/// In READY.
unsafe fn ready(process: &'static ProcessAccounts, thread: RubyThread<'_>) {
    let now_ns = clock::monotonic_ns();
    // SAFETY: by this function's contract.
    let accounted = unsafe { threads::ready(process, thread) };
    if let Some(accounted) = accounted
        && accounted.ready_ns.load(Relaxed) == 0
    {
        accounted.ready_ns.store(now_ns, Relaxed);
    }
    let is_of_main = accounted.is_some() || LAST_RUN.get() == thread.id();
    if is_of_main || !process.other_ractors.load(Relaxed) {
        process.waiters.join(thread.id(), now_ns);
    }
}

fn resumed(process: &'static ProcessAccounts, gvl: &Gvl<'_>, thread: RubyThread<'_>) {
    LAST_RUN.set(thread.id());
    let now_ns = clock::monotonic_ns();
    process.waiters.leave(thread.id(), now_ns);
    if let Some(accounted) = threads::known(process, gvl, thread) {
        let ready_ns = accounted.ready_ns.swap(0, Relaxed);
        with_accounts(accounted, gvl, now_ns, |accounts, at| {
            accounts.resumed(at, Some(ready_ns).filter(|&it| it != 0));
        });
    }
}

fn with_accounts(
    thread: &AccountedThread,
    gvl: &Gvl<'_>,
    now_ns: u64,
    work: impl FnOnce(&mut ThreadAccounts, Moment),
) {
    if let Some(mut accounts) = thread.accounts.borrow(gvl)
        && !accounts.is_done()
    {
        work(&mut accounts, moment(thread.process, gvl, now_ns));
    }
}

/// What the collector tells.
struct Collections;

impl OnCollection for Collections {
    fn collecting(gvl: AnyGvl<'_>, event: GcEvent, _: bool) {
        let AnyGvl::Main(gvl) = gvl else {
            return;
        };
        let Some(process) = process::shared() else {
            return;
        };
        match event {
            GcEvent::Enter => process.collects_since.store(clock::monotonic_ns(), Relaxed),
            GcEvent::Exit => {
                let since = process.collects_since.swap(0, Relaxed);
                let thread = RubyThread::current(&gvl);
                if since != 0
                    && let Some(accounted) = threads::known(process, &gvl, thread)
                    && let Some(mut accounts) = accounted.accounts.borrow(&gvl)
                {
                    accounts.collected(clock::monotonic_ns().saturating_sub(since));
                }
            }
            GcEvent::MarkBegin | GcEvent::MarkEnd => {}
        }
    }
}

unsafe extern "C" fn on_switch(_: u32, _: VALUE, _: VALUE, _: ID, _: VALUE) {
    let Some(process) = process::shared() else {
        return;
    };
    // SAFETY: on a thread that runs Ruby code.
    let AnyGvl::Main(gvl) = (unsafe { AnyGvl::assume_held() }) else {
        return;
    };
    let thread = RubyThread::current(&gvl);
    if let Some(accounted) = threads::known(process, &gvl, thread) {
        let fiber = thread.present_fiber();
        with_accounts(accounted, &gvl, clock::monotonic_ns(), |accounts, at| {
            accounts.switched(fiber, at)
        });
    }
}
