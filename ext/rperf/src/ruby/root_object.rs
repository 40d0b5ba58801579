//! Objects that keep alive what Rust holds, for as long as the process lives: the collector finds
//! it by their mark functions. With the GVL, in hooks too where it isn't said otherwise.

use super::data_type::DataType;
use super::frames;
use rb_sys::VALUE;
use rperf_vm::FrameWord;
use std::sync::OnceLock;

/// An object of this kind, which runs write barriers.
pub struct RootObject {
    data_type: DataType,
    object: OnceLock<VALUE>,
}

impl RootObject {
    /// An object that isn't made yet. The type's functions take no data.
    pub const fn new(data_type: DataType) -> RootObject {
        RootObject {
            data_type,
            object: OnceLock::new(),
        }
    }

    /// Makes the object. Once, outside of hooks.
    pub fn make(&'static self) {
        self.object
            .get_or_init(|| self.data_type.permanent_object());
    }

    /// Tells the collector of words that have just become roots: live objects, which the mark
    /// function finds, and which were borrowed with the GVL.
    #[inline]
    pub fn keep_alive(&self, words: impl Iterator<Item = FrameWord>) {
        let Some(&object) = self.object.get() else {
            return;
        };
        for word in words {
            // SAFETY: with the GVL, which they borrow. Both are live objects. The barrier
            // allocates nothing and may be used in hooks.
            unsafe { rb_sys::rb_gc_writebarrier(object, frames::object(word)) };
        }
    }
}
