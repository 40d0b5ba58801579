//! The labels of the fiber at hand. A fiber's label set is an object in its
//! fiber-local variables, where hooks find it without running any Ruby code, and in
//! its Fiber storage, from which the fibers that it makes inherit it. Fiber storage
//! goes to new threads too: there it is not heeded, labels don't leave their thread.
//!
//! With the GVL: the hooks and the sampling callback read labels, the methods of
//! `Rperf::Native` (scope.rs) change them.

use crate::vm::state::tick_guard::AtWork;
use crate::vm::hooks::fiber as fiber_hook;
use crate::vm::recording::resolve;
use crate::vm::hooks::thread as thread_hook;
use crate::vm::recording::tick_capture;
use crate::vm::{Live, PROCESS, Process, guarded_in_main_ractor, running};
use crate::profile::errors;
use magnus::encoding::EncodingCapable;
use magnus::r_hash::ForEach;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{
    Error, RArray, RHash, RModule, RString, Ruby, Symbol, TryConvert, Value, kwargs, prelude::*,
};
use rb_sys::{ID, VALUE};
use rperf_engine::LabelSet;
use std::ffi::c_void;
use std::hint::black_box;
use std::ptr;
use std::sync::atomic::{Ordering::Relaxed, Ordering::SeqCst};

/// Name of the fiber-local variable, and key in the Fiber storage.
const KEY: &std::ffi::CStr = c"__rperf_label_set__";

/// What is looked up once per process.
pub struct Names {
    key: ID,
    symbol: VALUE,
    fiber_class: VALUE,
    set_class: VALUE,
    /// For fibers that are known to have inherited nothing.
    none: VALUE,
}

/// What the Ruby object holds.
struct SetObject {
    set: LabelSet,
    /// The Hash that the program sees.
    hash: VALUE,
    /// The session that it was made in.
    session: u64,
    /// The serial of its thread.
    thread: u64,
}

/// Defines the class of label sets. On the main thread, once.
pub fn init(ruby: &Ruby, native: RModule) -> Result<Names, Error> {
    let set_class = native.define_class("LabelSet", ruby.class_object())?;
    set_class.undef_default_alloc_func();
    // SAFETY: the name is a C string; its ID and Symbol are for ever.
    let key = unsafe { rb_sys::rb_intern(KEY.as_ptr()) };
    let fiber_class: Value = ruby.class_object().const_get("Fiber")?;
    let none = SetObject {
        set: LabelSet::empty(),
        hash: ruby.qnil().as_raw(),
        session: 0,
        thread: 0,
    };
    let names = Names {
        key,
        // SAFETY: as for the ID.
        symbol: unsafe { rb_sys::rb_id2sym(key) },
        fiber_class: fiber_class.as_raw(),
        set_class: set_class.as_raw(),
        none: none.wrap(set_class.as_raw()),
    };
    for object in [names.fiber_class, names.set_class, names.none] {
        // SAFETY: registers a live object to be kept for ever, at its place.
        unsafe { rb_sys::rb_gc_register_mark_object(object) };
    }
    Ok(names)
}

/// The labels that `thread`'s present fiber has, for a sample. Makes no object and
/// runs no Ruby code: in hooks too.
///
/// `thread` is a thread of the main Ractor whose object is alive; the caller has
/// the GVL, and uses the result only until other code of the VM's can run.
#[inline]
pub fn of_thread<'a>(live: &Live, thread: VALUE) -> Option<&'a LabelSet> {
    if !live.uses_labels.load(Relaxed) {
        return None;
    }
    let set = SetObject::get(PROCESS.get()?.labels.local(thread));
    set.filter(|set| set.session == live.number)
        .map(|set| &set.set)
}

/// Whether any fiber has had labels in the running session.
pub fn are_used() -> bool {
    running().is_some_and(|live| live.uses_labels.load(Relaxed))
}

/// Whether the present fiber of `thread`, the current one, has labels, or is known to
/// have none.
#[inline]
pub fn are_known(process: &Process, thread: VALUE) -> bool {
    process.labels.local(thread) != rb_sys::Qnil as VALUE
}

/// Gives the present fiber of `thread`, the current one, the labels that it has
/// inherited, if it is a new one. Outside of hooks but fiber_hook's. Fails if an
/// interrupt, such as a Timeout's, comes meanwhile.
pub fn adopt(process: &Process, thread: VALUE) -> Result<(), Error> {
    let names = &process.labels;
    if !are_known(process, thread) {
        let inherited = names.inherited()?;
        // Other threads may have run meanwhile.
        let valid = is_heeded(process, inherited, thread);
        names.set_local(thread, if valid { inherited } else { names.none });
    }
    Ok(())
}

/// Makes samples of the stacks that were taken before the calling thread, `thread`,
/// switched to its present fiber: with the labels of the one before.
pub fn drain_at_switch(process: &Process, live: &Live, thread: VALUE) {
    let Some(state) = thread_hook::known_state(process, thread) else {
        return;
    };
    // SAFETY: the fiber hook runs with the GVL, and holds no other reference to the part.
    let part = unsafe { state.gvl_part() };
    tick_capture::drain(live, part, &AtWork::begin());
}

/// Notes the labels of the present fiber of `thread`, the calling one, for when it
/// switches to another one.
pub fn note_current(process: &Process, live: &Live, thread: VALUE) {
    if let Some(state) = thread_hook::known_state(process, thread) {
        // SAFETY: with the GVL, and no other reference to the part is held.
        let part = unsafe { state.gvl_part() };
        part.fiber_labels = of_thread(live, thread).map(LabelSet::share);
    }
}

/// Whether a label set from the Fiber storage is of this session and `thread`.
fn is_heeded(process: &Process, set: VALUE, thread: VALUE) -> bool {
    let (Some(live), Some(set)) = (running(), SetObject::get(set)) else {
        return false;
    };
    let state = thread_hook::known_state(process, thread);
    set.session == live.number && state.is_some_and(|state| set.thread == state.serial)
}

/// `Native.labels`: the Hash of the present fiber's labels in this session; nil if it has
/// none.
pub fn labels(ruby: &Ruby) -> Result<Value, Error> {
    Ok(hash_of(ruby, present(ruby)?))
}

/// Merges the Hash `changes` into the labels of the present fiber; nil takes a label away.
/// Notes the set to be put back in `undo`, and returns the Hash of all labels.
pub fn add(ruby: &Ruby, undo: RArray, changes: RHash) -> Result<Value, Error> {
    let outer = present(ruby)?;
    let inner = merged(ruby, outer, changes)?;
    undo.push(outer)?;
    put(inner)?;
    Ok(hash_of(ruby, inner))
}

/// Makes `set`, or nil for no labels, the label set of the present fiber and those that it
/// will make.
pub fn put(set: Value) -> Result<(), Error> {
    let Some(process) = PROCESS.get() else {
        return Ok(());
    };
    let names = &process.labels;
    // SAFETY: a Ruby thread with the GVL.
    let thread = unsafe { rb_sys::rb_thread_current() };
    // What ran at the last ticks ran with the labels that there were. The handler is kept
    // off until the new ones are there.
    let guard = AtWork::begin();
    guarded_in_main_ractor(|process, live| tick_capture::drain_current(process, live, &guard));
    names.set_local(thread, set.as_raw());
    drop(guard);
    if let Some(live) = running() {
        if !set.is_nil() {
            live.uses_labels.store(true, SeqCst);
            fiber_hook::add_if_needed(live);
        }
        note_current(process, live, thread);
    }
    // SAFETY: a class and a Symbol.
    let (class, key) = unsafe {
        let class = Value::from_raw(names.fiber_class);
        (class, Value::from_raw(names.symbol))
    };
    // Last, as this is where an interrupt can come.
    let _: Value = class.funcall("[]=", (key, set))?;
    Ok(())
}

/// The label set of the present fiber in this session, or nil.
fn present(ruby: &Ruby) -> Result<Value, Error> {
    let nothing = ruby.qnil().as_value();
    let Some(process) = PROCESS.get().filter(|_| are_used()) else {
        return Ok(nothing);
    };
    // SAFETY: a Ruby thread with the GVL.
    let thread = unsafe { rb_sys::rb_thread_current() };
    adopt(process, thread)?;
    let Some(live) = running() else {
        return Ok(nothing);
    };
    note_current(process, live, thread);
    let set = process.labels.local(thread);
    match SetObject::get(set) {
        // SAFETY: an object from a variable of this fiber.
        Some(object) if object.session == live.number => Ok(unsafe { Value::from_raw(set) }),
        _ => Ok(nothing),
    }
}

/// A new label set: `outer`, or nothing if it is nil, with `changes` merged in.
fn merged(ruby: &Ruby, outer: Value, changes: RHash) -> Result<Value, Error> {
    let process = PROCESS
        .get()
        .ok_or_else(|| errors::rperf(ruby, "rperf is not set up"))?;
    let hash: RHash = match SetObject::get(outer.as_raw()) {
        Some(_) => hash_of(ruby, outer).funcall("dup", ())?,
        None => ruby.hash_new(),
    };
    let mut texts = Vec::with_capacity(changes.len());
    changes.foreach(|key: Value, value: Value| {
        let key = match Symbol::from_value(key) {
            Some(key) => key,
            None => ruby.to_symbol(text(ruby, key)?),
        };
        if value.is_nil() {
            let _: Value = hash.delete(key)?;
        } else {
            hash.aset(key, value)?;
        }
        let value = Some(value).filter(|value| !value.is_nil());
        let value = value.map(|value| text(ruby, value)).transpose()?;
        texts.push((text(ruby, key.as_value())?, value));
        Ok(ForEach::Continue)
    })?;
    hash.freeze();
    let empty = LabelSet::empty();
    let base = SetObject::get(outer.as_raw()).map_or(&empty, |outer| &outer.set);
    let mut object = SetObject {
        set: base.with(texts),
        hash: hash.as_raw(),
        session: 0,
        thread: 0,
    };
    if let Some(live) = running() {
        // SAFETY: a Ruby thread with the GVL.
        let thread = unsafe { rb_sys::rb_thread_current() };
        // Between sections it may not be known yet.
        let state = thread_hook::state_of(process, live, thread);
        object.thread = state.serial;
        object.session = live.number;
    }
    let object = object.wrap(process.labels.set_class);
    // Keeps both on the stack until here.
    black_box((outer.as_raw(), hash.as_raw()));
    // SAFETY: the object was just made.
    Ok(unsafe { Value::from_raw(object) })
}

/// What `value` is shown as: by its to_s, as UTF-8.
fn text(ruby: &Ruby, value: Value) -> Result<String, Error> {
    // SAFETY: any object may be asked; `protect` catches what its to_s raises.
    let string = protect(|| unsafe { rb_sys::rb_obj_as_string(value.as_raw()) })?;
    // SAFETY: a valid VALUE.
    let string = RString::try_convert(unsafe { Value::from_raw(string) })?;
    let is_bytes = || string.enc_get() == ruby.ascii8bit_encindex();
    let converted: Result<RString, Error> = if string.is_utf8_compatible_encoding() || is_bytes() {
        Ok(string)
    } else {
        let replace = ruby.to_symbol("replace");
        string.funcall(
            "encode",
            ("UTF-8", kwargs!("invalid" => replace, "undef" => replace)),
        )
    };
    let string = match converted {
        // Ruby knows no way to convert it.
        Err(error) if error.is_kind_of(ruby.exception_encoding_error()) => string,
        converted => converted?,
    };
    Ok(resolve::text(string.as_value()).unwrap_or_default())
}

/// The Hash of a label set; nil for nil.
fn hash_of(ruby: &Ruby, set: Value) -> Value {
    let hash = SetObject::get(set.as_raw()).map(|set| set.hash);
    // SAFETY: the set is alive, and it marks its Hash.
    hash.map_or(ruby.qnil().as_value(), |hash| unsafe {
        Value::from_raw(hash)
    })
}

impl Names {
    /// The label set of `thread`'s present fiber, or nil.
    #[inline]
    fn local(&self, thread: VALUE) -> VALUE {
        // SAFETY: a live thread of this Ractor, whose fiber doesn't change while the
        // caller has the GVL. A look-up in a table, no more.
        unsafe { rb_sys::rb_thread_local_aref(thread, self.key) }
    }

    /// The current thread is `thread`. One that is frozen keeps what it has.
    fn set_local(&self, thread: VALUE, set: VALUE) {
        // SAFETY: any object may be asked.
        let is_frozen = unsafe { rb_sys::rb_obj_frozen_p(thread) } != rb_sys::Qfalse as VALUE;
        if !is_frozen {
            // SAFETY: a live thread that isn't frozen: it doesn't raise.
            unsafe { rb_sys::rb_thread_local_aset(thread, self.key, set) };
        }
    }

    /// What the present fiber has in its storage under our key.
    fn inherited(&self) -> Result<VALUE, Error> {
        protect(|| {
            // SAFETY: a class, the name of a method, and one argument; `protect`
            // catches what it raises.
            unsafe {
                let aref = rb_sys::rb_intern(c"[]".as_ptr());
                rb_sys::rb_funcallv(self.fiber_class, aref, 1, &raw const self.symbol)
            }
        })
    }
}

impl SetObject {
    /// The Ruby object for it.
    fn wrap(self, class: VALUE) -> VALUE {
        let data: *mut c_void = Box::into_raw(Box::new(self)).cast();
        // SAFETY: the type lives for ever and its functions fit. The new object is
        // young, so its reference to the Hash needs no write barrier.
        unsafe { rb_sys::rb_data_typed_object_wrap(class, data, &raw const SET_TYPE.0) }
    }

    /// What the object holds, if it is a label set. The caller sees to it that the
    /// object is alive as long as it uses the result: with the GVL, no code of the
    /// VM's runs meanwhile.
    #[inline]
    fn get<'a>(object: VALUE) -> Option<&'a SetObject> {
        // SAFETY: takes any VALUE.
        let is_set = unsafe { rb_sys::rb_typeddata_is_kind_of(object, &raw const SET_TYPE.0) };
        // SAFETY: of this type, so it doesn't raise, and the data is from `wrap`.
        (is_set != 0).then(|| unsafe {
            &*rb_sys::rb_check_typeddata(object, &raw const SET_TYPE.0).cast::<SetObject>()
        })
    }
}

struct SetType(rb_sys::rb_data_type_t);
// SAFETY: function pointers and constants, never written.
unsafe impl Sync for SetType {}

static SET_TYPE: SetType = SetType(rb_sys::rb_data_type_t {
    wrap_struct_name: c"rperf label set".as_ptr(),
    function: rb_sys::rb_data_type_struct__bindgen_ty_1 {
        dmark: Some(mark),
        dfree: Some(free),
        dsize: Some(memory_size),
        dcompact: None,
        reserved: [ptr::null_mut(); 1],
    },
    parent: ptr::null(),
    data: ptr::null_mut(),
    flags: rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_WB_PROTECTED as VALUE
        | rb_sys::rbimpl_typeddata_flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE,
});

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
