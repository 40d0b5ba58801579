//! ObjectSpace::WeakMap, in which numbers stand for objects that it doesn't keep alive: a number is gone
//! when its object is. It follows objects that compaction moves. Its methods are those that it had when the
//! extension was loaded; keys and values are compared by identity, so no method of Integer is called.
//!
//! They are called as functions of C, where these are found, so that no TracePoint of the program hears of
//! them. On Ruby threads of the main Ractor, with the GVL, outside of hooks; no other thread runs meanwhile.

use super::kept_method::KeptMethod;
use super::version::method_layout;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{RClass, Ruby, Value, prelude::*};
use rb_sys::{ID, VALUE};
use rperf_vm::{Checked, Gvl, Memory};
use std::ffi::{CStr, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

/// The class, and its methods.
struct Handles {
    class: VALUE,
    set: Method<unsafe extern "C" fn(VALUE, VALUE, VALUE) -> VALUE>,
    get: Method<unsafe extern "C" fn(VALUE, VALUE) -> VALUE>,
    keys: Method<unsafe extern "C" fn(VALUE) -> VALUE>,
    /// A method only: as a function it would take the block of whichever method runs for its own.
    delete: KeptMethod,
}

static HANDLES: OnceLock<Handles> = OnceLock::new();

/// A method of instances.
struct Method<F> {
    /// Its function, if that is found.
    function: Option<F>,
    /// `UnboundMethod#bind_call` of it.
    bind_call: KeptMethod,
}

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
        let unbound = |name: &str| -> Option<Value> {
            let method: Value = class
                .funcall("instance_method", (ruby.to_symbol(name),))
                .ok()?;
            ruby.gc_register_mark_object(method);
            Some(method)
        };
        let bind_call = |method| KeptMethod::of(ruby, method, "bind_call");
        let [set, get] = [unbound("[]=")?, unbound("[]")?];
        let [keys, delete] = [unbound("keys")?, unbound("delete")?];
        let owner = class.as_raw();
        // SAFETY: the functions that are found take the object and so many arguments.
        unsafe {
            Some(Self {
                class: owner,
                set: Method {
                    function: function_of(set.as_raw(), owner, c"[]=", 2)
                        .map(|it| transmute::<*mut c_void, _>(it)),
                    bind_call: bind_call(set)?,
                },
                get: Method {
                    function: function_of(get.as_raw(), owner, c"[]", 1)
                        .map(|it| transmute::<*mut c_void, _>(it)),
                    bind_call: bind_call(get)?,
                },
                keys: Method {
                    function: function_of(keys.as_raw(), owner, c"keys", 0)
                        .map(|it| transmute::<*mut c_void, _>(it)),
                    bind_call: bind_call(keys)?,
                },
                delete: bind_call(delete)?,
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
    /// A new one, if there is the class.
    pub fn new(_: &Gvl<'_>) -> Option<Self> {
        let handles = HANDLES.get()?;
        // SAFETY: on a Ruby thread with the GVL; a class, whose allocator runs no Ruby code.
        let map = protect(|| unsafe { rb_sys::rb_obj_alloc(handles.class) });
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
        let number = fixnum(number);
        // SAFETY: on a Ruby thread with the GVL; a map and objects that are alive; `protect` catches what
        // is raised.
        let is_set = match set.function {
            // SAFETY: as above.
            Some(function) => protect(|| unsafe { function(self.0, number, object) }),
            None => set.bind_call.call_with(&[self.0, number, object]),
        };
        is_set.is_ok()
    }

    /// The object that `number` stands for, if it lives.
    pub fn get(&self, _: &mut Gvl<'_>, number: u64) -> Option<VALUE> {
        let Handles { get, .. } = HANDLES.get()?;
        // SAFETY: as in `set`.
        let object = match get.function {
            // SAFETY: as there.
            Some(function) => protect(|| unsafe { function(self.0, fixnum(number)) }),
            None => get.bind_call.call_with(&[self.0, fixnum(number)]),
        };
        object.ok().filter(|it| *it != rb_sys::Qnil as VALUE)
    }

    /// The numbers whose objects live.
    pub fn numbers(&self, _: &mut Gvl<'_>) -> Option<Vec<u64>> {
        let Handles { keys, .. } = HANDLES.get()?;
        // SAFETY: as in `set`; the method returns an Array, and asks nobody else.
        unsafe {
            let keys = match keys.function {
                Some(function) => protect(|| function(self.0)),
                None => keys.bind_call.call_with(&[self.0]),
            };
            let keys = keys.ok()?;
            let length = rb_sys::macros::RARRAY_LEN(keys).try_into().ok()?;
            let first = rb_sys::macros::RARRAY_CONST_PTR(keys);
            let numbers = std::slice::from_raw_parts(first, length).iter();
            let numbers = numbers.map(|number| number >> 1).collect();
            std::hint::black_box(keys);
            Some(numbers)
        }
    }

    /// Forgets a number.
    pub fn delete(&self, _: &mut Gvl<'_>, number: u64) {
        if let Some(handles) = HANDLES.get() {
            let _ = handles.delete.call_with(&[self.0, fixnum(number)]);
        }
    }
}

/// A number as an Integer that is no object; it has 62 bits at most.
fn fixnum(number: u64) -> VALUE {
    (number << 1 | 1) as VALUE
}
