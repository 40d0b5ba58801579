//! The label sets of fibers. A fiber's set is an object in its fiber-local variables, where
//! hooks find it without running any Ruby code, and in its Fiber storage, from which the fibers
//! that it makes inherit it. Fiber storage goes to new threads too: there it is not used, labels
//! don't leave their thread. With the GVL, in hooks too where it isn't said otherwise.

use super::open_op::OpenOp;
use super::running;
use crate::ruby::data_type::DataType;
use crate::ruby::threads::RubyThread;
use magnus::rb_sys::{AsRawId, AsRawValue, FromRawValue};
use magnus::value::OpaqueId;
use magnus::{ArgList, Error, RHash, RModule, Ruby, StaticSymbol, Thread, Value, prelude::*};
use rb_sys::{ID, VALUE};
use rperf_sampling::NotedLabels;
use rperf_vm::{Gvl, LabelSet, RequestNumber, SessionId};
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Name of the fiber-local variable, and key in the Fiber storage.
const KEY: &str = "__rperf_label_set__";

pub(super) const NIL: VALUE = rb_sys::Qnil as VALUE;

/// What is looked up once per process.
pub(super) struct LabelHandles {
    key: ID,
    symbol: VALUE,
    fiber_class: VALUE,
    /// Its methods `[]` and `[]=`.
    aref: OpaqueId,
    aset: OpaqueId,
    pub(super) set_class: VALUE,
    /// For fibers that are known to have inherited nothing.
    pub(super) none: VALUE,
}

pub(super) static HANDLES: OnceLock<LabelHandles> = OnceLock::new();

/// What the Ruby object holds.
pub struct SetObject {
    pub set: LabelSet,
    /// The labels as the program sees them.
    pub(super) pairs: Box<[LabelPair]>,
    /// What it was made of, if it may be made of that again.
    pub(super) origin: Option<Origin>,
    /// No other set of this process has it.
    pub(super) number: u64,
    /// The session that it was made in.
    pub session: SessionId,
    /// The serial of its thread.
    pub(super) thread: u64,
    /// The key of the label that names the request that it is of; nil without one.
    pub(super) request_key: VALUE,
    /// The set that the op began with which it is in; nil without one, and in that set itself.
    pub(super) op_set: VALUE,
    /// The op that began with it.
    pub(super) op: Option<Box<OpenOp>>,
}

/// What a label set was made of.
pub struct Origin {
    /// The number of another set, or what stands for none.
    pub base: u64,
    /// The labels that it got, of which each is in its pairs. Empty: these are all.
    pub changes: Box<[LabelPair]>,
}

/// A key, which is a Symbol, and a value. The set that has it keeps both alive.
#[derive(Clone, Copy)]
pub struct LabelPair(VALUE, VALUE);

impl LabelPair {
    /// A pair for a new set; until that is there, the caller keeps both alive.
    pub fn new(key: Value, value: Value) -> Self {
        Self(key.as_raw(), value.as_raw())
    }

    /// The key, to be compared.
    pub fn key(self) -> VALUE {
        self.0
    }

    /// The value.
    pub fn value(self) -> Value {
        value(self.1)
    }
}

/// The session of label sets that are of none.
pub(super) const NO_SESSION: SessionId = SessionId(0);

static TYPE: DataType =
    DataType::new(c"rperf label set", Some(mark)).with_barriers(Some(free), memory_size);

unsafe extern "C" fn mark(data: *mut c_void) {
    // SAFETY: the VM passes the data from `wrap`; the objects are alive as they are marked
    // each time.
    unsafe {
        for pair in &(*data.cast::<SetObject>()).pairs {
            rb_sys::rb_gc_mark(pair.0);
            rb_sys::rb_gc_mark(pair.1);
        }
        let set = &*data.cast::<SetObject>();
        rb_sys::rb_gc_mark(set.request_key);
        rb_sys::rb_gc_mark(set.op_set);
        if let Some(op) = &set.op {
            op.each_object(|object| rb_sys::rb_gc_mark(object));
        }
    }
}

unsafe extern "C" fn free(data: *mut c_void) {
    // SAFETY: the data is from `Box::into_raw` in `wrap`, and the VM frees it once.
    drop(unsafe { Box::from_raw(data.cast::<SetObject>()) });
}

unsafe extern "C" fn memory_size(data: *const c_void) -> rb_sys::size_t {
    // SAFETY: as in `mark`.
    let object = unsafe { &*data.cast::<SetObject>() };
    let changes = object.origin.as_ref().map_or(0, |it| it.changes.len());
    let pairs = (object.pairs.len() + changes) * size_of::<LabelPair>();
    let op = object.op.as_ref().map_or(0, |_| size_of::<OpenOp>());
    (size_of::<SetObject>() + pairs + op + object.set.memory()) as rb_sys::size_t
}

/// Defines the class of label sets. On the main thread, once.
pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let set_class = native.define_class("LabelSet", ruby.class_object())?;
    set_class.undef_default_alloc_func();
    let fiber_class: Value = ruby.class_object().const_get("Fiber")?;
    let none = SetObject {
        set: LabelSet::empty(),
        pairs: Box::default(),
        origin: None,
        number: 0,
        session: NO_SESSION,
        thread: 0,
        request_key: NIL,
        op_set: NIL,
        op: None,
    };
    let key = ruby.intern(KEY);
    let handles = HANDLES.get_or_init(|| LabelHandles {
        key: key.as_raw(),
        symbol: StaticSymbol::from(key).as_raw(),
        fiber_class: fiber_class.as_raw(),
        aref: ruby.intern("[]").into(),
        aset: ruby.intern("[]=").into(),
        set_class: set_class.as_raw(),
        none: none.wrap(set_class.as_raw()),
    });
    for object in [handles.fiber_class, handles.set_class, handles.none] {
        // Kept for ever, at its place.
        ruby.gc_register_mark_object(value(object));
    }
    Ok(())
}

impl SetObject {
    /// The Ruby object for it.
    pub(super) fn wrap(self, class: VALUE) -> VALUE {
        let data: *mut c_void = Box::into_raw(Box::new(self)).cast();
        // SAFETY: the type's functions fit. The new object is young, so its references need no
        // write barrier.
        unsafe { TYPE.wrap(class, data) }
    }

    /// The label set in `object`, which is on the caller's stack, if it is one.
    pub fn get(object: &Value) -> Option<&SetObject> {
        Self::in_object(object.as_raw())
    }

    /// The label set in `object`, which is alive for `'a`, if it is one.
    #[inline]
    fn in_object<'a>(object: VALUE) -> Option<&'a SetObject> {
        // SAFETY: the data is from `wrap`, and lives as long as the object.
        TYPE.data_of(object)
            .map(|data| unsafe { &*data.cast::<SetObject>() })
    }

    /// The labels that made it of `base`, if it was made of that, and may be again.
    pub fn changes_of(&self, base: u64) -> Option<&[LabelPair]> {
        let origin = self.origin.as_ref().filter(|it| it.base == base)?;
        Some(if origin.changes.is_empty() {
            &self.pairs
        } else {
            &origin.changes
        })
    }

    /// Whether it is of a request.
    pub fn is_of_request(&self) -> bool {
        self.set.request() != RequestNumber::NONE
    }

    /// A set with the same labels, for a request that the label with this key names. What is made of it is
    /// made as of this one.
    pub(super) fn in_request(&self, request: RequestNumber, key: VALUE) -> Self {
        let origin = self.origin.as_ref().map(|origin| Origin {
            base: origin.base,
            changes: Box::default(),
        });
        Self {
            set: self.set.in_request(request),
            pairs: self.pairs.clone(),
            origin,
            request_key: key,
            op: None,
            ..*self
        }
    }

    /// The op that began with it.
    pub fn op(&self) -> Option<&OpenOp> {
        self.op.as_deref()
    }

    /// The key of the label that names its request.
    pub fn request_key(&self) -> Option<Value> {
        self.is_of_request().then(|| value(self.request_key))
    }

    /// Whether all its texts are always the same: it may be made again.
    pub fn is_constant(&self) -> bool {
        self.origin.is_some()
    }

    /// The labels as the program sees them.
    pub fn pairs(&self) -> &[LabelPair] {
        &self.pairs
    }

    /// The labels as a new Hash.
    pub fn to_hash(&self, ruby: &Ruby) -> Result<RHash, Error> {
        let hash = ruby.hash_new();
        for pair in &self.pairs {
            hash.aset(value(pair.0), value(pair.1))?;
        }
        Ok(hash)
    }
}

/// The number of what a set is made of: `outer`, or, if that is nil, no labels of `thread`.
pub fn base_of(gvl: &Gvl<'_>, thread: RubyThread<'_>, outer: &Value) -> u64 {
    match SetObject::get(outer) {
        Some(set) => set.number,
        // Those of threads are another series.
        None => thread.serial(gvl) | 1 << 63,
    }
}

/// A new object for `set`, made for `thread`, the calling one, in the running session. `pairs` is
/// what the program sees, and `origin` as in the object. Outside of hooks.
pub fn new_object(
    gvl: &Gvl<'_>,
    thread: RubyThread<'_>,
    set: LabelSet,
    pairs: Box<[LabelPair]>,
    origin: Option<Origin>,
) -> Option<Value> {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    let object = SetObject {
        set,
        pairs,
        origin,
        number: NUMBERS.fetch_add(1, Relaxed),
        session: running(gvl).map_or(NO_SESSION, |it| it.id),
        thread: thread.serial(gvl),
        request_key: NIL,
        op_set: NIL,
        op: None,
    };
    Some(value(object.wrap(HANDLES.get()?.set_class)))
}

/// The labels that `thread`'s present fiber has in the running session. Makes no object and runs no
/// Ruby code.
#[inline]
pub fn of_thread<'g>(gvl: &Gvl<'_>, thread: RubyThread<'g>) -> Option<&'g LabelSet> {
    let running = running(gvl).filter(|it| it.uses_labels())?;
    // The set is in a variable of the fiber, which runs no code of the VM's as long as the token
    // that `thread` borrows isn't lent.
    let set = SetObject::in_object(HANDLES.get()?.local(thread))?;
    (set.session == running.id).then_some(&set.set)
}

/// The present fiber of `thread`, the calling one, and its labels in the running session. As
/// [`RubyThread::present_fiber`].
#[inline]
pub fn noted<'g>(gvl: &Gvl<'_>, thread: RubyThread<'g>) -> NotedLabels<'g> {
    NotedLabels {
        fiber: thread.present_fiber(),
        set: of_thread(gvl, thread),
    }
}

/// The object with the label set of `thread`'s present fiber, if it is of the running session.
pub fn object_of(gvl: &Gvl<'_>, thread: RubyThread<'_>) -> Option<Value> {
    let object = value(HANDLES.get()?.local(thread));
    let set = SetObject::get(&object)?;
    is_present(gvl, set).then_some(object)
}

/// Whether a set is of the running session.
pub fn is_present(gvl: &Gvl<'_>, set: &SetObject) -> bool {
    running(gvl).is_some_and(|it| it.id == set.session)
}

/// Whether any fiber has had labels in the running session.
pub fn are_used(gvl: &Gvl<'_>) -> bool {
    running(gvl).is_some_and(|it| it.uses_labels())
}

/// Makes `set`, or nil for no labels, the label set of `thread`'s present fiber. `thread` is the
/// calling one.
pub fn set_local(thread: RubyThread<'_>, set: Value) {
    if let Some(handles) = HANDLES.get() {
        // Without labels it is known to have none: they aren't looked for anew.
        let set = if set.is_nil() {
            value(handles.none)
        } else {
            set
        };
        handles.set_local(thread, set);
    }
}

/// Makes `set` what fibers inherit that the present one will make. An interrupt can come as it
/// is done.
pub fn set_inherited(gvl: &mut Gvl<'_>, set: Value) -> Result<(), Error> {
    let Some(handles) = HANDLES.get() else {
        return Ok(());
    };
    let arguments = (value(handles.symbol), set);
    handles.storage(gvl, handles.aset, arguments).map(drop)
}

/// An object that this file has from the VM.
pub(super) fn value(object: VALUE) -> Value {
    // SAFETY: it is one, and alive: a handle, or from where the caller says.
    unsafe { Value::from_raw(object) }
}

impl LabelHandles {
    /// The label set of `thread`'s present fiber, or nil.
    #[inline]
    pub(super) fn local(&self, thread: RubyThread<'_>) -> VALUE {
        self.variable(thread, None)
    }

    /// The current thread is `thread`. One that is frozen keeps what it has.
    pub(super) fn set_local(&self, thread: RubyThread<'_>, set: Value) {
        let object = Thread::from_value(value(thread.object()));
        if object.is_some_and(|object| !object.is_frozen()) {
            self.variable(thread, Some(set));
        }
    }

    /// The variable of `thread`'s present fiber, which becomes `new`, if that is given: then the thread
    /// is the current one, and not frozen.
    #[inline]
    fn variable(&self, thread: RubyThread<'_>, new: Option<Value>) -> VALUE {
        // SAFETY: a live thread of this Ractor, whose fiber doesn't change while the
        // caller has the GVL. A look-up in a table, no more; and writing fails for a frozen one only.
        unsafe {
            match new {
                None => rb_sys::rb_thread_local_aref(thread.object(), self.key),
                Some(new) => rb_sys::rb_thread_local_aset(thread.object(), self.key, new.as_raw()),
            }
        }
    }

    /// What the present fiber has in its storage under our key.
    pub(super) fn inherited(&self, gvl: &mut Gvl<'_>) -> Result<Value, Error> {
        self.storage(gvl, self.aref, (value(self.symbol),))
    }

    /// Calls a method on the present fiber's storage. Runs Ruby code.
    fn storage(
        &self,
        _: &mut Gvl<'_>,
        method: OpaqueId,
        arguments: impl ArgList,
    ) -> Result<Value, Error> {
        value(self.fiber_class).funcall(method, arguments)
    }
}
