//! `Rperf::Account`: an account as a program sees it. It tells what has passed so far while it is open,
//! and what it was when it is closed. On threads of the main Ractor, with the GVL.

use super::hooks;
use super::process::{self, ProcessAccounts};
use super::threads::{self, AccountedThread};
use crate::ruby::threads::{RubyThread, shares_native_threads};
use magnus::gc::Marker;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::typed_data::Obj;
use magnus::{
    DataTypeFunctions, Error, RClass, RModule, RString, Ruby, TypedData, Value, prelude::*,
};
use rb_sys::VALUE;
use rperf_accounts::{AccountOp, AccountOps, Figures, Opened};
use rperf_vm::{FiberWord, Gvl, GvlCell, NativeId, clock};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// What the Ruby object holds.
#[derive(TypedData)]
#[magnus(class = "Rperf::Account", free_immediately, mark, size)]
pub struct AccountObject {
    account: Account,
    /// A frozen String, or 0: the request, the job or the block.
    name: AtomicUsize,
}

/// An account, in whatever object.
pub struct Account(GvlCell<State>);

enum State {
    New,
    Open(Open),
    Closed(Closed),
}

/// An account that goes on no more.
#[derive(Default)]
struct Closed {
    /// `None` where it can't be told.
    figures: Option<Figures>,
    ops: Option<AccountOps>,
}

/// The values that an account has beside those that all have.
#[derive(Debug, Clone, Copy, Default)]
pub struct Further {
    /// The CPU time.
    pub cpu: bool,
    /// The calls of ops.
    pub ops: bool,
}

struct Open {
    /// `None` once it has ended.
    opened: Option<Opened>,
    thread: Arc<AccountedThread>,
    /// Where its thread's CPU clock stood, if that is asked for.
    cpu_ns: Option<u64>,
    native_id: NativeId,
    /// There was no other Ractor as it began.
    is_alone: bool,
}

impl DataTypeFunctions for AccountObject {
    fn mark(&self, marker: &Marker) {
        // SAFETY: in a collection.
        if let Some(fiber) = unsafe { self.account.fiber() } {
            // It stays at its place: it is known by that.
            // SAFETY: a fiber that was alive when the account was opened, and is marked each time since.
            marker.mark(unsafe { Value::from_raw(fiber) });
        }
        if let Some(name) = self.name() {
            marker.mark(name);
        }
    }
}

impl AccountObject {
    /// Its name.
    pub fn name(&self) -> Option<Value> {
        let name = self.name.load(Relaxed) as VALUE;
        // SAFETY: an object that `set_name` was given, and that is marked each time since.
        (name != 0).then(|| unsafe { Value::from_raw(name) })
    }

    /// Gives it a name, or takes it away.
    pub fn set_name(&self, name: Option<RString>) {
        let name = name.map_or(0, |it| RString::new_frozen(it).as_raw() as usize);
        self.name.store(name, Relaxed);
    }
}

impl Deref for AccountObject {
    type Target = Account;

    fn deref(&self) -> &Account {
        &self.account
    }
}

/// Defines the class, and makes the key of threads. On the main thread, once.
pub fn init(ruby: &Ruby, rperf: RModule) -> Result<RClass, Error> {
    threads::make_key();
    let class = rperf.define_class("Account", ruby.class_object())?;
    class.undef_default_alloc_func();
    // Looked for now, not at first use: an interrupt could come then.
    let _ = AccountObject::class(ruby);
    Ok(class)
}

/// A new account, which isn't open yet.
pub fn new(ruby: &Ruby, _: &Gvl<'_>) -> Obj<AccountObject> {
    ruby.obj_wrap(AccountObject {
        account: Account::new(),
        name: AtomicUsize::new(0),
    })
}

impl Account {
    /// An account that isn't open yet.
    pub fn new() -> Self {
        Self(GvlCell::new(State::New))
    }

    /// The fiber that it is open in, which whoever has the account marks.
    ///
    /// # Safety
    /// In a collection, which runs only where no borrower is at work; or on the thread that has the GVL.
    pub unsafe fn fiber(&self) -> Option<VALUE> {
        // SAFETY: by this function's contract.
        match unsafe { self.0.peek() } {
            State::Open(open) => open.opened.as_ref().map(|it| it.fiber().0 as VALUE),
            _ => None,
        }
    }

    /// Opens it in the present fiber of the calling thread.
    pub fn open(&self, gvl: &Gvl<'_>, with: Further) {
        let process = process::begun(gvl);
        hooks::begin(gvl);
        let thread = RubyThread::current(gvl);
        // Its object may be made by this.
        let fiber = thread.present_fiber();
        let accounted = threads::get_or_begin(process, gvl, thread);
        let cpu_ns = with.cpu.then(clock::thread_cpu_ns);
        let Some(opened) = accounted.open(gvl, fiber, with.ops) else {
            return;
        };
        let open = Open {
            opened: Some(opened),
            thread: accounted,
            cpu_ns,
            native_id: clock::thread_id(),
            is_alone: !process.other_ractors.load(Relaxed),
        };
        if let Some(mut state) = self.0.borrow(gvl) {
            *state = State::Open(open);
        }
    }

    /// Whether it goes on.
    pub fn is_open(&self, gvl: &Gvl<'_>) -> bool {
        let state = self.0.borrow(gvl);
        state.is_some_and(|it| matches!(*it, State::Open(_)))
    }

    /// Closes it, if it is open. The hooks may go with it.
    pub fn close(&self, gvl: &Gvl<'_>) {
        // Its object may be made by this: before anything is borrowed, as that may collect.
        let fiber = RubyThread::current(gvl).present_fiber();
        if let Some(mut state) = self.0.borrow(gvl) {
            *state = State::Closed(match &mut *state {
                State::New => Closed::default(),
                State::Open(open) => open.end(gvl, fiber).unwrap_or_default(),
                State::Closed(closed) => std::mem::take(closed),
            });
        }
        if let Some(process) = process::present(gvl) {
            hooks::end_if_none_is_open(process);
        }
    }

    /// What it says, up to now if it is open; nothing if it can't be told.
    pub fn figures(&self, gvl: &Gvl<'_>) -> Option<Figures> {
        match &*self.0.borrow(gvl)? {
            State::New => None,
            State::Open(open) => open.so_far(gvl),
            State::Closed(closed) => closed.figures,
        }
    }

    /// The calls of ops, up to now if it is open, those with the most time of their own first; nothing if it
    /// doesn't tell of them.
    pub fn ops(&self, gvl: &Gvl<'_>) -> Option<Vec<AccountOp>> {
        match &*self.0.borrow(gvl)? {
            State::New => None,
            State::Open(open) => {
                process::present(gvl).filter(|it| open.is_of(it))?;
                let accounts = open.thread.accounts.borrow(gvl)?;
                accounts.ops(open.opened.as_ref()?).map(AccountOps::sorted)
            }
            State::Closed(closed) => closed.ops.as_ref().map(AccountOps::sorted),
        }
    }
}

impl Open {
    /// Ends it, on the thread and in the fiber that it was opened in; elsewhere it says nothing.
    fn end(&mut self, gvl: &Gvl<'_>, fiber: FiberWord) -> Option<Closed> {
        let process = self.here(gvl)?;
        let at = threads::moment(process, gvl, clock::monotonic_ns());
        let mut accounts = self.thread.accounts.borrow(gvl)?;
        let opened = self.opened.take()?;
        let ops = accounts.take_ops(&opened);
        let figures = accounts.close(&opened, fiber, at);
        process.open.fetch_sub(1, SeqCst);
        drop(accounts);
        let figures = self.with_what_is_known(figures?);
        Some(Closed {
            figures: Some(figures),
            ops,
        })
    }

    fn so_far(&self, gvl: &Gvl<'_>) -> Option<Figures> {
        let at = |process| threads::moment(process, gvl, clock::monotonic_ns());
        if let Some(process) = self.here(gvl) {
            let accounts = self.thread.accounts.borrow(gvl)?;
            let figures = accounts.so_far(self.opened.as_ref()?, at(process), None);
            return figures.map(|it| self.with_what_is_known(it));
        }
        let process = process::present(gvl).filter(|it| self.is_of(it))?;
        if self.thread.is_over.load(Relaxed) {
            return None;
        }
        let ready_ns = Some(self.thread.ready_ns.load(Relaxed)).filter(|&it| it != 0);
        let accounts = self.thread.accounts.borrow(gvl)?;
        accounts.so_far(self.opened.as_ref()?, at(process), ready_ns)
    }

    fn is_of(&self, process: &ProcessAccounts) -> bool {
        std::ptr::eq(self.thread.process, process)
    }

    /// What all accounts share, if this is the process and the thread of this one.
    fn here(&self, gvl: &Gvl<'_>) -> Option<&'static ProcessAccounts> {
        let process = process::present(gvl).filter(|it| self.is_of(it))?;
        let is_here = RubyThread::current(gvl).id() == self.thread.id;
        (is_here && !self.thread.is_over.load(Relaxed)).then_some(process)
    }

    /// CPU time is that of the native thread, which isn't only this one's where several share it. What
    /// other Ractors do can't be told from it.
    fn with_what_is_known(&self, figures: Figures) -> Figures {
        let cpu_ns = self
            .cpu_ns
            .and_then(|since| clock::thread_cpu_ns().checked_sub(since));
        let is_own = !shares_native_threads() && clock::thread_id() == self.native_id;
        Figures {
            cpu_ns: cpu_ns.filter(|_| is_own),
            is_alone: self.is_alone && !self.thread.process.other_ractors.load(Relaxed),
            ..figures
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(opened) = self.opened.take() {
            self.thread.give_up(opened);
        }
    }
}
