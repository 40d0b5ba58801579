//! The label sets of fibers. A fiber's set is an object in its fiber-local variables, where
//! hooks find it without running any Ruby code, and in its Fiber storage, from which the fibers
//! that it makes inherit it. Fiber storage goes to new threads too: there it is not used, labels
//! don't leave their thread. With the GVL, in hooks too where it isn't said otherwise.

use super::data_type::DataType;
use super::session::{StartedSession, session};
use super::threads::RubyThread;
use magnus::rb_sys::{AsRawId, AsRawValue, FromRawValue, protect};
use magnus::{Error, RModule, Ruby, StaticSymbol, Value, prelude::*};
use rb_sys::{ID, VALUE};
use rperf_engine::{Gvl, LabelSet, RunningSession, SessionId};
use std::ffi::c_void;
use std::sync::OnceLock;

/// Name of the fiber-local variable, and key in the Fiber storage.
const KEY: &str = "__rperf_label_set__";

const NIL: VALUE = rb_sys::Qnil as VALUE;

/// What is looked up once per process.
struct LabelHandles {
    key: ID,
    symbol: VALUE,
    fiber_class: VALUE,
    set_class: VALUE,
    /// For fibers that are known to have inherited nothing.
    none: VALUE,
}

static HANDLES: OnceLock<LabelHandles> = OnceLock::new();

/// What the Ruby object holds.
pub struct SetObject {
    pub set: LabelSet,
    /// The Hash that the program sees.
    hash: VALUE,
    /// The session that it was made in.
    pub session: SessionId,
    /// The serial of its thread.
    thread: u64,
}

/// The session of label sets that are of none.
const NO_SESSION: SessionId = SessionId(0);

static TYPE: DataType =
    DataType::new(c"rperf label set", Some(mark)).with_barriers(Some(free), memory_size);

unsafe extern "C" fn mark(data: *mut c_void) {
    // SAFETY: the VM passes the data from `wrap`; the Hash is alive as it is marked
    // each time.
    unsafe { rb_sys::rb_gc_mark((*data.cast::<SetObject>()).hash) };
}

unsafe extern "C" fn free(data: *mut c_void) {
    // SAFETY: the data is from `Box::into_raw` in `wrap`, and the VM frees it once.
    drop(unsafe { Box::from_raw(data.cast::<SetObject>()) });
}

unsafe extern "C" fn memory_size(data: *const c_void) -> rb_sys::size_t {
    // SAFETY: as in `mark`.
    let set = unsafe { &(*data.cast::<SetObject>()).set };
    (size_of::<SetObject>() + set.memory()) as rb_sys::size_t
}

/// Defines the class of label sets. On the main thread, once.
pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    let set_class = native.define_class("LabelSet", ruby.class_object())?;
    set_class.undef_default_alloc_func();
    let fiber_class: Value = ruby.class_object().const_get("Fiber")?;
    let none = SetObject {
        set: LabelSet::empty(),
        hash: NIL,
        session: NO_SESSION,
        thread: 0,
    };
    let key = ruby.intern(KEY);
    let handles = HANDLES.get_or_init(|| LabelHandles {
        key: key.as_raw(),
        symbol: StaticSymbol::from(key).as_raw(),
        fiber_class: fiber_class.as_raw(),
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
    fn wrap(self, class: VALUE) -> VALUE {
        let data: *mut c_void = Box::into_raw(Box::new(self)).cast();
        // SAFETY: the type's functions fit. The new object is young, so its reference to the
        // Hash needs no write barrier.
        unsafe { TYPE.wrap(class, data) }
    }

    /// The label set in `object`, which is on the caller's stack, if it is one.
    pub fn get(object: &Value) -> Option<&SetObject> {
        Self::in_object(object.as_raw())
    }

    /// The same for an object that is alive for `'a`.
    #[inline]
    fn in_object<'a>(object: VALUE) -> Option<&'a SetObject> {
        // SAFETY: the data is from `wrap`, and lives as long as the object.
        TYPE.data_of(object)
            .map(|data| unsafe { &*data.cast::<SetObject>() })
    }

    /// The Hash that the program sees.
    pub fn hash(&self) -> Value {
        // The set is alive, and marks its Hash.
        value(self.hash)
    }
}

/// A new object for `set`, made for `thread` in the running session. `hash` is what the program
/// sees. Outside of hooks.
pub fn new_object(
    gvl: &Gvl<'_>,
    thread: RubyThread<'_>,
    set: LabelSet,
    hash: Value,
) -> Option<Value> {
    let session = session(gvl);
    // Between sections the thread may not be known yet.
    let serial = |session: &StartedSession| thread.state(gvl, &session.new_threads).serial;
    let object = SetObject {
        set,
        hash: hash.as_raw(),
        session: session.map_or(NO_SESSION, |session| session.id),
        thread: session.map_or(0, serial),
    };
    Some(value(object.wrap(HANDLES.get()?.set_class)))
}

/// The labels that `thread`'s present fiber has in the session. Makes no object and runs no Ruby
/// code.
#[inline]
pub fn of_thread<'g>(session: &RunningSession, thread: RubyThread<'g>) -> Option<&'g LabelSet> {
    let handles = HANDLES.get().filter(|_| session.uses_labels())?;
    // The set is in a variable of the fiber, which runs no code of the VM's as long as the token
    // that `thread` borrows isn't lent.
    let set = SetObject::in_object(handles.local(thread))?;
    (set.session == session.id).then_some(&set.set)
}

/// The object with the label set of `thread`'s present fiber, if it is of `session`.
pub fn object_of(session: &RunningSession, thread: RubyThread<'_>) -> Option<Value> {
    let object = value(HANDLES.get()?.local(thread));
    let is_of_session = |set: &SetObject| set.session == session.id;
    SetObject::get(&object)
        .is_some_and(is_of_session)
        .then_some(object)
}

/// Whether any fiber has had labels in the running session.
pub fn are_used(gvl: &Gvl<'_>) -> bool {
    session(gvl).is_some_and(|session| session.uses_labels())
}

/// Gives the present fiber of the calling thread the labels that it has inherited, if it is a
/// new one. Runs Ruby code, outside of hooks but the fiber hook. Fails if an
/// interrupt, such as a Timeout's, comes meanwhile.
pub fn adopt(gvl: &mut Gvl<'_>) -> Result<(), Error> {
    let Some(handles) = HANDLES.get() else {
        return Ok(());
    };
    // Whether the fiber has labels, or is known to have none.
    if handles.local(RubyThread::current(gvl)) != NIL {
        return Ok(());
    }
    let inherited = handles.inherited(gvl)?;
    let thread = RubyThread::current(gvl);
    let is_used = is_used(gvl, &inherited, thread);
    handles.set_local(
        thread,
        if is_used {
            inherited.as_raw()
        } else {
            handles.none
        },
    );
    Ok(())
}

/// Whether a label set from the Fiber storage is of this session and `thread`.
fn is_used(gvl: &Gvl<'_>, set: &Value, thread: RubyThread<'_>) -> bool {
    let (Some(session), Some(set)) = (session(gvl), SetObject::get(set)) else {
        return false;
    };
    let state = thread.known_state(gvl);
    set.session == session.id && state.is_some_and(|state| set.thread == state.serial)
}

/// Makes `set` the label set of `thread`'s present fiber. `thread` is the calling one.
pub fn set_local(thread: RubyThread<'_>, set: Value) {
    if let Some(handles) = HANDLES.get() {
        handles.set_local(thread, set.as_raw());
    }
}

/// Makes `set` what fibers inherit that the present one will make. Runs Ruby code, and an
/// interrupt can come.
pub fn set_inherited(_: &mut Gvl<'_>, set: Value) -> Result<(), Error> {
    let Some(handles) = HANDLES.get() else {
        return Ok(());
    };
    let (class, key) = (value(handles.fiber_class), value(handles.symbol));
    class.funcall::<_, _, Value>("[]=", (key, set)).map(drop)
}

/// An object that this file has from the VM.
fn value(object: VALUE) -> Value {
    // SAFETY: it is one, and alive: a handle, or from where the caller says.
    unsafe { Value::from_raw(object) }
}

impl LabelHandles {
    /// The label set of `thread`'s present fiber, or nil.
    #[inline]
    fn local(&self, thread: RubyThread<'_>) -> VALUE {
        // SAFETY: a live thread of this Ractor, whose fiber doesn't change while the
        // caller has the GVL. A look-up in a table, no more.
        unsafe { rb_sys::rb_thread_local_aref(thread.object(), self.key) }
    }

    /// The current thread is `thread`. One that is frozen keeps what it has.
    fn set_local(&self, thread: RubyThread<'_>, set: VALUE) {
        let thread = thread.object();
        // SAFETY: any object may be asked, and a live thread that isn't frozen doesn't raise.
        unsafe {
            if rb_sys::rb_obj_frozen_p(thread) == rb_sys::Qfalse as VALUE {
                rb_sys::rb_thread_local_aset(thread, self.key, set);
            }
        }
    }

    /// What the present fiber has in its storage under our key.
    fn inherited(&self, _: &mut Gvl<'_>) -> Result<Value, Error> {
        let inherited = protect(|| {
            // SAFETY: a class, the name of a method, and one argument; `protect`
            // catches what it raises.
            unsafe {
                let aref = rb_sys::rb_intern(c"[]".as_ptr());
                rb_sys::rb_funcallv(self.fiber_class, aref, 1, &raw const self.symbol)
            }
        });
        inherited.map(value)
    }
}
