//! Types of Ruby objects that hold data of ours, and what they do in a collection. The objects
//! are made with the GVL, outside of hooks.

use rb_sys::{RUBY_DATA_FUNC, VALUE, rbimpl_typeddata_flags as flags, size_t};
use std::ffi::{CStr, c_void};
use std::mem::MaybeUninit;

/// Tells how much memory an object's data takes.
pub type MemorySize = unsafe extern "C" fn(*const c_void) -> size_t;

/// A type of object.
pub struct DataType(rb_sys::rb_data_type_t);

// SAFETY: function pointers and constants, never written.
unsafe impl Sync for DataType {}

impl DataType {
    /// A type whose objects don't run write barriers: they are marked in every collection.
    pub const fn new(name: &'static CStr, mark: RUBY_DATA_FUNC) -> DataType {
        // SAFETY: all members are pointers, optional functions and numbers: zero is none of each.
        // Versions of Ruby have different ones.
        let mut plain: rb_sys::rb_data_type_t = unsafe { MaybeUninit::zeroed().assume_init() };
        plain.wrap_struct_name = name.as_ptr();
        plain.function.dmark = mark;
        plain.flags = flags::RUBY_TYPED_FREE_IMMEDIATELY as VALUE;
        DataType(plain)
    }

    /// A type whose objects run write barriers: once old, they are skipped in minor collections.
    pub const fn with_barriers(mut self, free: RUBY_DATA_FUNC, size: MemorySize) -> DataType {
        self.0.function.dfree = free;
        self.0.function.dsize = Some(size);
        self.0.flags |= flags::RUBY_TYPED_WB_PROTECTED as VALUE;
        self
    }

    /// A new object of `class` that holds `data`.
    ///
    /// # Safety
    /// The type's functions fit `data`, which isn't null, and `class` is a class.
    pub unsafe fn wrap(&'static self, class: VALUE, data: *mut c_void) -> VALUE {
        // SAFETY: by this function's contract, and the type lives for ever.
        unsafe { rb_sys::rb_data_typed_object_wrap(class, data, &raw const self.0) }
    }

    /// A new object without data, which lives as long as the process. The type's functions
    /// don't use any.
    pub fn permanent_object(&'static self) -> VALUE {
        // The VM marks only objects with non-null data.
        static DATA: u8 = 0;
        let data: *mut c_void = (&raw const DATA).cast_mut().cast();
        // SAFETY: by this function's description; the object is alive as it is registered.
        unsafe {
            let object = self.wrap(rb_sys::rb_cObject, data);
            rb_sys::rb_gc_register_mark_object(object);
            object
        }
    }

    /// The data of `object`, if it is of this type.
    #[inline]
    pub fn data_of(&'static self, object: VALUE) -> Option<*mut c_void> {
        // SAFETY: the first takes any VALUE; the second doesn't raise for one of this type.
        unsafe {
            let is_one = rb_sys::rb_typeddata_is_kind_of(object, &raw const self.0) != 0;
            is_one.then(|| rb_sys::rb_check_typeddata(object, &raw const self.0))
        }
    }
}
