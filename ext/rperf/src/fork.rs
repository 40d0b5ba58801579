//! fork: the child has neither worker nor timer. It drops the parent's session
//! without freeing it (other threads may have been at work on it) and runs on
//! unprofiled until it starts a session of its own.
//!
//! The thread hook is away while the fork happens. The VM holds a read lock
//! while a hook runs, and a lock that another thread held at the fork is held
//! for ever in the child, where the next one to add or remove a hook would hang.
//! Locks of the VM's that a thread holds as it runs hooks would be held for ever,
//! too, so threads that are about to leave hooks are given a moment.

use crate::accounts::hooks as account_hooks;
use crate::probes;
use crate::ruby::thread_hook;
use crate::running::sampling::{Ending, sampling};
use crate::running::{self, running};
use rperf_sampling::reset_at_work;
use rperf_sampling::threads::native;
use rperf_vm::Gvl;
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

thread_local! {
    static FORKING: Cell<bool> = const { Cell::new(false) };
}

/// The hook was removed for the fork that is under way.
static PAUSED: AtomicBool = AtomicBool::new(false);

/// Registers the handlers, once per process.
pub fn watch() {
    // SAFETY: the handlers are valid for ever.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

/// Process._fork begins or ends on the calling thread (lib/rperf/hooks/fork_guard.rb).
/// Only such a fork is known to happen on a Ruby thread with the GVL: a C
/// extension may fork on any thread, where nothing of the VM may be called.
pub fn announce(forking: bool) {
    FORKING.set(forking);
}

/// The token of a thread that has announced a fork.
fn announced<'g>() -> Option<Gvl<'g>> {
    // SAFETY: Process._fork runs on a Ruby thread of the main Ractor, and keeps the GVL all along.
    FORKING.get().then(|| unsafe { Gvl::assume_held() })
}

/// Has faults reach their handlers while `work` runs. Ruby blocks all signals before it forks; but to
/// register a hook takes memory, for which the VM may collect, and a collection that compacts relies on
/// its handler of faults.
fn with_faults_handled(work: impl FnOnce()) {
    let mut faults = MaybeUninit::<libc::sigset_t>::uninit();
    let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises `faults`, and the first pthread_sigmask `blocked`.
    unsafe {
        libc::sigemptyset(faults.as_mut_ptr());
        libc::sigaddset(faults.as_mut_ptr(), libc::SIGSEGV);
        libc::sigaddset(faults.as_mut_ptr(), libc::SIGBUS);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, faults.as_ptr(), blocked.as_mut_ptr());
    }
    work();
    // SAFETY: the set is initialised.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, blocked.as_ptr(), ptr::null_mut()) };
}

unsafe extern "C" fn before() {
    let Some(gvl) = announced() else {
        return;
    };
    // One that was inherited is no session's, and to remove it could hang.
    let is_paused = running(&gvl).is_some() && thread_hook::is_registered();
    if is_paused {
        PAUSED.store(true, SeqCst);
        thread_hook::remove();
    }
    let had_accounts = account_hooks::before_fork(&gvl);
    if is_paused || had_accounts || sampling(&gvl).is_some_and(|it| it.sections.ended_just_now()) {
        with_faults_handled(thread_hook::wait_for_stragglers);
    }
}

unsafe extern "C" fn in_parent() {
    let Some(gvl) = announced() else {
        return;
    };
    let was_paused = PAUSED.swap(false, SeqCst);
    with_faults_handled(|| {
        if was_paused {
            probes::add_on_threads(&gvl);
        }
        account_hooks::in_parent(&gvl);
    });
}

/// Before fork returns in the child: only atomics and system calls.
unsafe extern "C" fn in_child() {
    PAUSED.store(false, SeqCst);
    running::abandon();
    Ending::forget();
    native::forget_id();
    reset_at_work();
    rperf_sampling::forget_in_child();
    rperf_port::forget_in_child();
    account_hooks::forget_in_child();
}

/// In the child, once Ruby runs again: removes what it inherited. Returns whether
/// it could: a thread hook that was not paused for the fork (it was made without
/// the GVL) stays and does nothing, as removing it could hang.
pub fn remove_inherited_hooks() -> bool {
    probes::remove_inherited();
    !thread_hook::is_registered()
}
