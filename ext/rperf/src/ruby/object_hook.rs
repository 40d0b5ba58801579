//! The hook on new objects: how it comes and goes, and what an object is that was just made. On the
//! thread that makes it, with the VM's lock; a collection doesn't run meanwhile. Internal events
//! switch no tracing of Ruby code on, and YJIT's code stays compiled. Objects of other Ractors aren't
//! told.

use super::event_hook::can_remove_internal;
use super::ractor::{self, AnyGvl};
use super::version::slot_size;
use rb_sys::{
    RUBY_INTERNAL_EVENT_NEWOBJ as NEWOBJ, VALUE,
    rb_event_hook_flag_t::RUBY_EVENT_HOOK_FLAG_RAW_ARG as RAW_ARG, rb_trace_arg_t,
    ruby_value_type as value_type,
};
use rperf_sampling::objects::Countdown;
use rperf_sampling::other_ractors;
use rperf_vm::{FrameWord, Gvl};
use std::mem::transmute;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Whether an object is the VM's own, and none of the program's, by its flags and class: an
/// instruction sequence or the like, the place of a module among a class's ancestors, or data of C
/// without a class, such as a table of methods.
fn is_vms_own(flags: VALUE, class: VALUE) -> bool {
    const IMEMO: VALUE = value_type::RUBY_T_IMEMO as VALUE;
    const ICLASS: VALUE = value_type::RUBY_T_ICLASS as VALUE;
    const DATA: VALUE = value_type::RUBY_T_DATA as VALUE;
    match flags & value_type::RUBY_T_MASK as VALUE {
        IMEMO | ICLASS => true,
        DATA => class == 0,
        _ => false,
    }
}

/// Whether the program doesn't see an object: it has no class.
///
/// # Safety
/// It is an object, which lives.
pub unsafe fn is_hidden(object: VALUE) -> bool {
    // SAFETY: by this function's contract. An object begins with its flags and its class.
    let [_, class] = unsafe { (object as *const [VALUE; 2]).read() };
    class == 0
}

/// What is told of all new objects.
pub trait OnNewObject {
    /// An object was made, on the calling thread of the main Ractor.
    fn made(gvl: &Gvl<'_>, object: NewObject);
}

/// What is told of those new objects that a countdown of their bytes ends within.
pub trait OnDrawnObject {
    /// The bytes until the next one.
    const COUNTDOWN: &'static Countdown;

    /// The countdown ends within this object, which was made on the calling thread of the main Ractor;
    /// `None`: the object is the VM's own.
    fn drawn(gvl: &Gvl<'_>, object: Option<NewObject>);

    /// An object of a program was made on a thread of another Ractor, which is the calling one.
    fn made_elsewhere();
}

/// A new object.
#[derive(Clone, Copy)]
pub struct NewObject {
    /// The object.
    pub word: FrameWord,
    /// Its class; 0 if the program doesn't see it.
    pub class: usize,
    /// The bytes of its slot; 0 if this Ruby doesn't say.
    pub bytes: u64,
}

/// The hook of a kind of session.
pub struct ObjectHook {
    callback: RawCallback,
    is_added: AtomicBool,
}

impl ObjectHook {
    /// A hook for all objects that isn't registered.
    pub const fn on_all<T: OnNewObject>() -> Self {
        Self::new(on_new_object::<T>)
    }

    /// A hook for objects that are drawn, which isn't registered.
    pub const fn on_drawn<T: OnDrawnObject>() -> Self {
        Self::new(count_down::<T>)
    }

    const fn new(callback: RawCallback) -> Self {
        Self {
            callback,
            is_added: AtomicBool::new(false),
        }
    }

    /// Registers it. With the GVL, outside of hooks.
    pub fn add(&self) {
        if self.is_added.swap(true, Relaxed) {
            return;
        }
        // SAFETY: with this flag the VM calls a function of this form.
        unsafe {
            let callback = transmute::<RawCallback, PlainCallback>(self.callback);
            let (data, flag) = (rb_sys::Qnil as VALUE, RAW_ARG);
            rb_sys::rb_add_event_hook2(Some(callback), NEWOBJ, data, flag);
        }
    }

    /// Removes it, if it is there and can be removed; else nobody is told. With the GVL, outside of hooks.
    pub fn remove(&self) {
        if can_remove_internal() && self.is_added.swap(false, Relaxed) {
            // SAFETY: removes by function.
            unsafe {
                let callback = transmute::<RawCallback, PlainCallback>(self.callback);
                rb_sys::rb_remove_event_hook(Some(callback));
            }
        }
    }
}

/// A callback that takes the event itself, and one of the usual form.
type RawCallback = unsafe extern "C" fn(VALUE, *mut rb_trace_arg_t);
type PlainCallback = unsafe extern "C" fn(u32, VALUE, VALUE, rb_sys::ID, VALUE);

unsafe extern "C" fn on_new_object<T: OnNewObject>(_: VALUE, event: *mut rb_trace_arg_t) {
    // SAFETY: the VM passes a valid event of this kind, on a thread that runs Ruby code.
    unsafe {
        let AnyGvl::Main(gvl) = AnyGvl::assume_held() else {
            return;
        };
        let object = rb_sys::rb_tracearg_object(event);
        if let Some(object) = NewObject::of(object, || bytes_of(object)) {
            T::made(&gvl, object);
        }
    }
}

unsafe extern "C" fn count_down<T: OnDrawnObject>(_: VALUE, event: *mut rb_trace_arg_t) {
    // SAFETY: the VM passes a valid event of this kind, on a thread that runs Ruby code.
    unsafe {
        let object = rb_sys::rb_tracearg_object(event);
        if other_ractors() && !ractor::is_main() {
            if NewObject::of(object, || 0).is_some() {
                T::made_elsewhere();
            }
            return;
        }
        let bytes = bytes_of(object);
        if T::COUNTDOWN.ends_within(bytes as i64) {
            drawn::<T>(object, bytes);
        }
    }
}

/// # Safety
/// On a thread with the main Ractor's GVL that has just made this object.
#[cold]
unsafe fn drawn<T: OnDrawnObject>(object: VALUE, bytes: u64) {
    // SAFETY: by this function's contract.
    unsafe { T::drawn(&Gvl::assume_held(), NewObject::of(object, || bytes)) };
}

/// The bytes of the slot of an object; 0 if this Ruby doesn't say.
///
/// # Safety
/// It is one.
#[inline]
unsafe fn bytes_of(object: VALUE) -> u64 {
    // SAFETY: by this function's contract.
    slot_size().map_or(0, |size| unsafe { size(object) } as u64)
}

impl NewObject {
    /// What this object is; `None` if it is the VM's own.
    ///
    /// # Safety
    /// It was made just now, with the GVL.
    #[inline]
    unsafe fn of(object: VALUE, bytes: impl FnOnce() -> u64) -> Option<Self> {
        // SAFETY: by this function's contract. An object begins with its flags and its class.
        let [flags, class] = unsafe { (object as *const [VALUE; 2]).read() };
        (!is_vms_own(flags, class)).then(|| Self {
            word: object as FrameWord,
            class: class as usize,
            bytes: bytes(),
        })
    }
}
