//! Why the last collection ran, as the VM tells. To ask makes no objects and reads only, so hooks on
//! collections may; but a VM with another collector may not know the question, and would raise: so it is
//! asked once before.

use magnus::rb_sys::protect;
use rb_sys::VALUE;
use rperf_model::GcCause;
use std::ffi::CStr;
use std::sync::OnceLock;

/// The VM's words: Symbols of ids, which are neither freed nor moved.
struct Words {
    major_by: VALUE,
    gc_by: VALUE,
    newobj: VALUE,
    malloc: VALUE,
    method: VALUE,
    capi: VALUE,
    stress: VALUE,
    nofree: VALUE,
    oldgen: VALUE,
    shady: VALUE,
    oldmalloc: VALUE,
    force: VALUE,
}

/// `None`: the VM doesn't tell.
static WORDS: OnceLock<Option<Words>> = OnceLock::new();

/// Makes the words. With the GVL, outside of hooks.
pub fn prepare() {
    WORDS.get_or_init(|| {
        let symbol = |name: &CStr| {
            // SAFETY: the text ends with a 0; an id always has a Symbol.
            unsafe { rb_sys::rb_id2sym(rb_sys::rb_intern(name.as_ptr())) }
        };
        let words = Words {
            major_by: symbol(c"major_by"),
            gc_by: symbol(c"gc_by"),
            newobj: symbol(c"newobj"),
            malloc: symbol(c"malloc"),
            method: symbol(c"method"),
            capi: symbol(c"capi"),
            stress: symbol(c"stress"),
            nofree: symbol(c"nofree"),
            oldgen: symbol(c"oldgen"),
            shady: symbol(c"shady"),
            oldmalloc: symbol(c"oldmalloc"),
            force: symbol(c"force"),
        };
        // SAFETY: with the GVL; what is raised is caught.
        let can_tell = |key| protect(|| unsafe { info(key) }).is_ok();
        (can_tell(words.major_by) && can_tell(words.gc_by)).then_some(words)
    });
}

/// Whether the VM tells, once the words are made.
pub fn is_known() -> bool {
    WORDS.get().is_some_and(Option::is_some)
}

/// Why the last collection ran that has begun in the heap of the calling thread's Ractor; `None` if the
/// VM doesn't tell. With the GVL, in hooks on collections too, once the words are made.
pub fn latest() -> Option<GcCause> {
    let words = WORDS.get()?.as_ref()?;
    // SAFETY: with the GVL; the VM knows both keys.
    let (major_by, gc_by) = unsafe { (info(words.major_by), info(words.gc_by)) };
    Some(words.cause(major_by, gc_by))
}

/// What the VM knows of that collection under a key, a Symbol. For a Symbol it makes no object.
///
/// # Safety
/// With the GVL. It raises if it doesn't know the key.
unsafe fn info(key: VALUE) -> VALUE {
    // SAFETY: by this function's contract.
    unsafe { rb_sys::rb_gc_latest_gc_info(key) }
}

impl Words {
    /// Who asks for a collection gets a major one for whatever reason there is for one just then: it is
    /// the asking that counts. Only `GC.stress` makes a new object force a major one.
    fn cause(&self, major_by: VALUE, gc_by: VALUE) -> GcCause {
        let is_minor = major_by == rb_sys::Qnil as VALUE;
        match gc_by {
            by if by == self.method && is_minor => GcCause::MinorStart,
            by if by == self.method => GcCause::MajorStart,
            by if by == self.capi && !is_minor => GcCause::MajorCapi,
            by if by == self.stress && !is_minor => GcCause::MajorStress,
            by if by == self.newobj && is_minor => GcCause::MinorNewobj,
            by if by == self.malloc && is_minor => GcCause::MinorMalloc,
            _ if major_by == self.oldgen => GcCause::MajorOldgen,
            _ if major_by == self.shady => GcCause::MajorShady,
            _ if major_by == self.oldmalloc => GcCause::MajorOldmalloc,
            _ if major_by == self.nofree => GcCause::MajorNofree,
            by if by == self.newobj && major_by == self.force => GcCause::MajorStress,
            by if by == self.malloc && major_by == self.force => GcCause::MajorForce,
            _ => GcCause::Other,
        }
    }
}
