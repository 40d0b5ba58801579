//! Ruby's compilers, as modules in RubyVM. On Ruby threads, with the GVL.

use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::{RClass, RModule, Ruby, prelude::*};

/// The module of the compiler with this name; `None` if Ruby was built without it. No exception is
/// raised on the way: `ruby -d` would print it.
pub fn module(ruby: &Ruby, name: &str) -> Option<RModule> {
    let vm: RClass = ruby.class_object().const_get("RubyVM").ok()?;
    let id = ruby.intern(name);
    // SAFETY: a class and an ID, both from Ruby. It looks a name up, and runs no Ruby code.
    let is_there = unsafe { rb_sys::rb_const_defined(vm.as_raw(), id.as_raw()) } != 0;
    is_there.then(|| vm.const_get(name).ok())?
}
