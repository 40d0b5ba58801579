//! An op that goes on: what belongs to the label set that its fiber has meanwhile. With the GVL.

use crate::accounts::object::{Account, Further};
use crate::ruby::threads::RubyThread;
use magnus::Value;
use magnus::rb_sys::{AsRawValue, FromRawValue};
use rb_sys::VALUE;
use rperf_accounts::{Figures, Sums};
use rperf_vm::{Gvl, GvlCell, OpNumber};

/// What is known of it. The set that has it keeps the objects alive.
pub struct OpenOp {
    number: OpNumber,
    /// The label set that was there before; nil for none.
    outer: VALUE,
    /// The set with which the op began that it is inside of; nil for none.
    within: VALUE,
    account: Account,
    nested: GvlCell<Nested>,
}

/// What the ops inside of it took.
#[derive(Clone, Copy, Default)]
pub struct Nested {
    /// In states.
    pub sums: Sums,
    /// While other fibers had control.
    pub suspended_ns: u64,
}

impl OpenOp {
    /// An op that isn't open yet.
    pub fn new(number: OpNumber, outer: VALUE, within: VALUE) -> Self {
        Self {
            number,
            outer,
            within,
            account: Account::new(),
            nested: GvlCell::new(Nested::default()),
        }
    }

    /// Gives all objects that it refers to to `mark`.
    ///
    /// # Safety
    /// In a collection.
    pub unsafe fn each_object(&self, mut mark: impl FnMut(VALUE)) {
        mark(self.outer);
        mark(self.within);
        // SAFETY: by this function's contract.
        if let Some(fiber) = unsafe { self.account.fiber() } {
            mark(fiber);
        }
    }

    /// Opens its account in the present fiber; `set` is the object that has it.
    pub fn open(&self, gvl: &Gvl<'_>, set: Value) {
        self.account.open(gvl, Further::default());
        let fiber = RubyThread::current(gvl).present_fiber().0 as VALUE;
        // SAFETY: both are alive: the set refers to the fiber now. It may be old already.
        unsafe { rb_sys::rb_gc_writebarrier(set.as_raw(), fiber) };
    }

    /// Closes its account: what it took, and what the ops inside of it took; nothing if that can't be
    /// told.
    pub fn close(&self, gvl: &Gvl<'_>) -> Option<(Figures, Nested)> {
        self.account.close(gvl);
        let nested = *self.nested.borrow(gvl)?;
        Some((self.account.figures(gvl)?, nested))
    }

    /// Its number.
    pub fn number(&self) -> OpNumber {
        self.number
    }

    /// Whether it has ended, or never began.
    pub fn is_over(&self, gvl: &Gvl<'_>) -> bool {
        !self.account.is_open(gvl)
    }

    /// An op inside of it has taken so much.
    pub fn add_nested(&self, gvl: &Gvl<'_>, figures: &Figures) {
        if let Some(mut nested) = self.nested.borrow(gvl) {
            nested.sums = nested.sums.plus(&figures.sums);
            nested.suspended_ns = nested.suspended_ns.saturating_add(figures.suspended_ns);
        }
    }

    /// The label set that was there before; nil for none.
    pub fn outer(&self) -> Value {
        // SAFETY: as long as the set is there that has this, which the caller holds.
        unsafe { Value::from_raw(self.outer) }
    }

    /// The set with which the op began that it is inside of; nil for none.
    pub fn within(&self) -> Value {
        // SAFETY: as above.
        unsafe { Value::from_raw(self.within) }
    }
}
