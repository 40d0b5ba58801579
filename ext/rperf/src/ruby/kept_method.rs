//! Methods of Ruby's as they were when the extension was loaded: a program may put its own in their place.
//! On Ruby threads of the main Ractor, with the GVL.

use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, Ruby, Value};
use rb_sys::VALUE;
use std::ptr;

/// A method of an object. The collector leaves it alone for ever.
pub struct KeptMethod(VALUE);

impl KeptMethod {
    /// The object's method of this name, if it has one. When the extension is loaded.
    pub fn of(ruby: &Ruby, object: impl AsRawValue, name: &str) -> Option<Self> {
        let name = ruby.to_symbol(name).as_raw();
        let object = object.as_raw();
        // SAFETY: a Ruby thread with the GVL, and valid objects; `protect` catches what is raised if there
        // is no such method, and returns a valid VALUE.
        let method =
            unsafe { Value::from_raw(protect(|| rb_sys::rb_obj_method(object, name)).ok()?) };
        ruby.gc_register_mark_object(method);
        Some(Self(method.as_raw()))
    }

    /// What it returns without arguments. Runs Ruby's own code.
    pub fn call(&self) -> Result<Value, Error> {
        // SAFETY: a Ruby thread with the GVL, and a Method that is never collected; `protect` catches what
        // it raises, and returns a valid VALUE.
        unsafe {
            protect(|| rb_sys::rb_method_call(0, ptr::null(), self.0)).map(|it| Value::from_raw(it))
        }
    }
}
