//! ObjectSpace::WeakMap, in which numbers stand for objects that it doesn't keep alive: a number is gone
//! when its object is. It follows objects that compaction moves. Keys and values are compared by identity, so
//! no method of Integer is called.
//!
//! Its methods are those that it had when the extension was loaded, and they are called as functions of C
//! only: no TracePoint of the program hears of them, and no Ruby code runs meanwhile. Where these aren't found
//! there are no maps. On Ruby threads of the main Ractor, with the GVL, outside of hooks; no other thread runs
//! meanwhile.

use super::version::method_layout;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{RClass, Ruby, Value, prelude::*};
use rb_sys::{ID, VALUE};
use rperf_vm::{Checked, Gvl, Memory};
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

type Set = unsafe extern "C" fn(VALUE, VALUE, VALUE) -> VALUE;
type Get = unsafe extern "C" fn(VALUE, VALUE) -> VALUE;
type Keys = unsafe extern "C" fn(VALUE) -> VALUE;

/// The class, and the functions of its methods.
struct Handles {
    class: VALUE,
    set: Set,
    get: Get,
    keys: Keys,
}

static HANDLES: OnceLock<Handles> = OnceLock::new();

/// Learns the class and its methods. When the extension is loaded.
pub fn init(ruby: &Ruby) {
    if let Some(handles) = Handles::find(ruby) {
        let _ = HANDLES.set(handles);
    }
}

impl Handles {
    fn find(ruby: &Ruby) -> Option<Self> {
        let space: Value = ruby.class_object().const_get("ObjectSpace").ok()?;
        let class: RClass = space.funcall("const_get", ("WeakMap",)).ok()?;
        ruby.gc_register_mark_object(class);
        let function = |name: &CStr, arguments| {
            let symbol = ruby.to_symbol(name.to_str().ok()?);
            let method: Value = class.funcall("instance_method", (symbol,)).ok()?;
            let function = function_of(method.as_raw(), class.as_raw(), name, arguments);
            std::hint::black_box(method);
            function
        };
        // SAFETY: the functions that are found take the object and so many arguments.
        unsafe {
            Some(Self {
                class: class.as_raw(),
                set: transmute::<*mut c_void, Set>(function(c"[]=", 2)?),
                get: transmute::<*mut c_void, Get>(function(c"[]", 1)?),
                keys: transmute::<*mut c_void, Keys>(function(c"keys", 0)?),
            })
        }
    }
}

/// The function of a `method` of C that `owner` has under `name`, with so many arguments, if this Ruby keeps
/// it where those known do.
fn function_of(method: VALUE, owner: VALUE, name: &CStr, arguments: u32) -> Option<*mut c_void> {
    let (layout, memory) = (method_layout().ok()?, Checked::new()?);
    // SAFETY: the text ends with a 0; an UnboundMethod is an object with data.
    let (name, data) = unsafe {
        let name: ID = rb_sys::rb_intern(name.as_ptr());
        let data = rb_sys::macros::RTYPEDDATA_GET_DATA(method);
        (name as usize, data.expose_provenance())
    };
    let word = |base: usize, offset: usize| memory.word(base.checked_add(offset)?);
    let entry = (0..layout.entry).step_by(size_of::<usize>());
    let entry = entry
        .filter_map(|offset| word(data, offset))
        .find(|entry| {
            let owner = Some(owner as usize);
            word(*entry, layout.name) == Some(name) && word(*entry, layout.owner) == owner
        })?;
    let definition = word(entry, layout.definition)?;
    let is_of_c = word(definition, 0)? & layout.kind == layout.kind_of_c;
    let takes = memory.half_word(definition.checked_add(layout.arguments)?)?;
    let is_it = is_of_c && takes == arguments && word(definition, layout.original_name)? == name;
    let function = word(definition, layout.function)?;
    let function = std::ptr::with_exposed_provenance_mut(function);
    (is_it && is_of_vm(function)).then_some(function)
}

/// Whether it is code of the library that has the VM, as far as the system's linker tells.
fn is_of_vm(function: *mut c_void) -> bool {
    let known: unsafe extern "C" fn(VALUE) -> VALUE = rb_sys::rb_obj_alloc;
    let base = |address: *const c_void| {
        // SAFETY: all members may be zero; the call only reads, and looks any address up.
        unsafe {
            let mut found: libc::Dl_info = std::mem::zeroed();
            (libc::dladdr(address, &raw mut found) != 0).then_some(found.dli_fbase)
        }
    };
    base(function).is_some_and(|it| base(known as *const c_void) == Some(it))
}

/// A map of ours. Whoever has it keeps it alive.
#[derive(Clone, Copy)]
pub struct WeakMap(VALUE);

impl WeakMap {
    /// A new one, if its functions are known. The program doesn't find it: ObjectSpace.each_object leaves out
    /// what has no class.
    pub fn new(_: &Gvl<'_>) -> Option<Self> {
        let handles = HANDLES.get()?;
        // SAFETY: on a Ruby thread with the GVL; a class, whose allocator runs no Ruby code. The functions look
        // at the type of the data only.
        let map = protect(|| unsafe { rb_sys::rb_obj_hide(rb_sys::rb_obj_alloc(handles.class)) });
        map.ok().map(Self)
    }

    /// The object: the collector's root.
    pub fn object(&self) -> VALUE {
        self.0
    }

    /// From now on `number` stands for `object`. Returns whether there was memory for it.
    pub fn set(&self, _: &mut Gvl<'_>, number: u64, object: VALUE) -> bool {
        let Some(Handles { set, .. }) = HANDLES.get() else {
            return false;
        };
        // SAFETY: on a Ruby thread with the GVL; a map and objects that are alive; `protect` catches what
        // is raised.
        protect(|| unsafe { set(self.0, fixnum(number), object) }).is_ok()
    }

    /// The object that `number` stands for, if it lives.
    pub fn get(&self, _: &mut Gvl<'_>, number: u64) -> Option<VALUE> {
        let Handles { get, .. } = HANDLES.get()?;
        // SAFETY: as in `set`.
        let object = protect(|| unsafe { get(self.0, fixnum(number)) });
        object.ok().filter(|it| *it != rb_sys::Qnil as VALUE)
    }

    /// The numbers whose objects live.
    pub fn numbers(&self, _: &mut Gvl<'_>) -> Option<Vec<u64>> {
        let Handles { keys, .. } = HANDLES.get()?;
        // SAFETY: as in `set`; the function returns an Array, and asks nobody else.
        unsafe {
            let keys = protect(|| keys(self.0)).ok()?;
            let length = rb_sys::macros::RARRAY_LEN(keys).try_into().ok()?;
            let first = rb_sys::macros::RARRAY_CONST_PTR(keys);
            let numbers = std::slice::from_raw_parts(first, length).iter();
            let numbers = numbers.map(|number| number >> 1).collect();
            std::hint::black_box(keys);
            Some(numbers)
        }
    }
}

/// A number as an Integer that is no object; it has 62 bits at most.
fn fixnum(number: u64) -> VALUE {
    (number << 1 | 1) as VALUE
}
