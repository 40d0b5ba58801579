//! The main Ractor, whose threads share the GVL that [`Gvl`] stands for, and others, each of which
//! has its own.

use super::other_gvl::OtherGvl;
use super::threads::RubyThread;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, Value, prelude::*};
use rb_sys::VALUE;
use rperf_engine::Gvl;
use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Key whose value is non-null in the main Ractor only; a pointer, by its address.
static KEY: OnceLock<usize> = OnceLock::new();

/// Makes the key that tells the main Ractor from others. On the main Ractor, once.
pub fn mark_main() {
    static MARK: u8 = 0;
    // The VM calls `free` with the value when the main Ractor ends.
    extern "C" fn free(_: *mut c_void) {}
    struct Type(rb_sys::rb_ractor_local_storage_type);
    // SAFETY: two function pointers, never written.
    unsafe impl Sync for Type {}
    static TYPE: Type = Type(rb_sys::rb_ractor_local_storage_type {
        mark: None,
        free: Some(free),
    });
    KEY.get_or_init(|| {
        let mark = (&raw const MARK).cast_mut().cast();
        // SAFETY: TYPE lives for ever, and this runs on the main Ractor with its GVL. The VM
        // hands the value back, no more.
        unsafe {
            let key = rb_sys::rb_ractor_local_storage_ptr_newkey(&raw const TYPE.0);
            rb_sys::rb_ractor_local_storage_ptr_set(key, mark);
            key.expose_provenance()
        }
    });
}

/// Whether the calling thread belongs to the main Ractor.
///
/// # Safety
/// It is a thread that runs Ruby code: not in STARTED or READY.
#[inline]
pub unsafe fn is_main() -> bool {
    KEY.get().is_some_and(|&key| {
        let key = std::ptr::with_exposed_provenance_mut(key);
        // SAFETY: the key is valid; the rest by this function's contract.
        !unsafe { rb_sys::rb_ractor_local_storage_ptr(key) }.is_null()
    })
}

/// The GVL that the calling thread holds.
pub enum AnyGvl<'g> {
    /// The main Ractor's.
    Main(Gvl<'g>),
    /// Another one's.
    Other(OtherGvl),
}

impl AnyGvl<'_> {
    /// For the head of a callback.
    ///
    /// # Safety
    /// The calling thread runs Ruby code, and as for [`Gvl::assume_held`].
    #[inline]
    pub unsafe fn assume_held() -> Self {
        // SAFETY: by this function's contract it holds the GVL of its Ractor.
        unsafe {
            if is_main() {
                AnyGvl::Main(Gvl::assume_held())
            } else {
                AnyGvl::Other(OtherGvl::assume_held())
            }
        }
    }
}

/// The beginning of what the VM keeps of a thread.
#[repr(C)]
struct VmThreadData {
    _list: [usize; 2],
    thread: VALUE,
    ractor: *const RactorData,
}

/// The beginning of what it keeps of a Ractor.
#[repr(C)]
struct RactorData {
    ractor: VALUE,
    number: u32,
}

/// The VM's data of threads and Ractors is of the form that is expected here.
static IS_KNOWN: AtomicBool = AtomicBool::new(false);

/// Looks whether this Ruby is one whose Ractors' numbers can be told. On the main Ractor, once.
pub fn learn_numbers(ruby: &Ruby) -> Result<(), Error> {
    let ractor: Value = ruby.class_object().const_get("Ractor")?;
    let main: Value = ractor.funcall("main", ())?;
    // SAFETY: on the main Ractor, which loads this extension with its GVL.
    let gvl = unsafe { Gvl::assume_held() };
    let data = data_of(RubyThread::current(&gvl));
    let is_known = data.is_some_and(|data| data.ractor == main.as_raw() && data.number == 1);
    IS_KNOWN.store(is_known, Relaxed);
    Ok(())
}

/// What the VM keeps of the Ractor of `thread`, the calling one, if it looks like that.
fn data_of(thread: RubyThread<'_>) -> Option<&RactorData> {
    // SAFETY: a Thread is an object with data, which is longer than what is read of it. It runs, so
    // its Ractor lives. `learn_numbers` looks whether the rest is of the expected form.
    unsafe {
        let data = rb_sys::macros::RTYPEDDATA_GET_DATA(thread.object());
        let data = data.cast_const().cast::<VmThreadData>().as_ref()?;
        let is_aligned = data.ractor.addr().is_multiple_of(align_of::<RactorData>());
        if data.thread == thread.object() && is_aligned {
            data.ractor.as_ref()
        } else {
            None
        }
    }
}

/// The number of the Ractor of `thread`, the calling one, as `Ractor#inspect` has it; 0 if it isn't
/// known.
#[cold]
pub fn number_of(thread: RubyThread<'_>) -> u32 {
    if !IS_KNOWN.load(Relaxed) {
        return 0;
    }
    data_of(thread).map_or(0, |data| data.number)
}

/// Whether there are other Ractors than the main one. Runs Ruby code.
pub fn are_there_others(ruby: &Ruby, _: &mut Gvl<'_>) -> Result<bool, Error> {
    let ractor: Value = ruby.class_object().const_get("Ractor")?;
    let count: usize = ractor.funcall("count", ())?;
    Ok(count > 1)
}
