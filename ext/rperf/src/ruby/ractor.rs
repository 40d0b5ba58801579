//! The main Ractor, whose threads share the GVL that [`Gvl`] stands for, and others, each of which
//! has its own.

use super::kept_method::KeptMethod;
use super::other_gvl::OtherGvl;
use super::threads::RubyThread;
use super::version::{self, ThreadLayout};
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby, TryConvert, Value, prelude::*};
use rb_sys::VALUE;
use rperf_vm::{Checked, Gvl, Memory, Unknown};
use std::ffi::c_void;
use std::sync::OnceLock;

/// Key whose value is non-null in the main Ractor only; a pointer, by its address.
static KEY: OnceLock<usize> = OnceLock::new();

/// Ractor.count. A program may have its own.
static COUNT: OnceLock<KeptMethod> = OnceLock::new();

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

/// Where the VM's data of threads and Ractors has its fields, or why that isn't known.
static LAYOUT: OnceLock<Result<&ThreadLayout, Unknown>> = OnceLock::new();

/// Looks whether this Ruby is one whose Ractors' numbers can be told. On the main Ractor, once.
pub fn learn_numbers(ruby: &Ruby) -> Result<(), Error> {
    let ractor: Value = ruby.class_object().const_get("Ractor")?;
    let main: Value = ractor.funcall("main", ())?;
    if let Some(count) = KeptMethod::of(ruby, ractor, "count") {
        let _ = COUNT.set(count);
    }
    // SAFETY: on the main Ractor, which loads this extension with its GVL.
    let gvl = unsafe { Gvl::assume_held() };
    let thread = RubyThread::current(&gvl);
    LAYOUT.get_or_init(|| {
        let layout = version::thread_layout()?;
        let memory = Checked::new().ok_or(Unknown::Access)?;
        let is_so = has_layout(&memory, layout, thread, main.as_raw()) == Some(true);
        is_so.then_some(layout).ok_or(Unknown::Form)
    });
    Ok(())
}

/// Whether the data of `thread`, the calling one, and of its Ractor, the `main` one, is where this
/// says. `None` if a word leads nowhere.
fn has_layout(
    memory: &impl Memory,
    layout: &ThreadLayout,
    thread: RubyThread<'_>,
    main: VALUE,
) -> Option<bool> {
    let data = data_of(thread);
    let word = |base: usize, offset: usize| memory.word(base.checked_add(offset)?);
    let ractor = word(data, layout.ractor)?;
    let is_thread = word(data, layout.object)? == thread.object() as usize;
    let is_ractor = word(ractor, layout.ractor_object)? == main as usize;
    let number = memory.half_word(ractor.checked_add(layout.ractor_number)?)?;
    Some(is_thread && is_ractor && number == 1)
}

/// Where the VM keeps its data of `thread`.
pub(super) fn data_of(thread: RubyThread<'_>) -> usize {
    // SAFETY: a Thread is an object with data.
    unsafe { rb_sys::macros::RTYPEDDATA_GET_DATA(thread.object()) }.expose_provenance()
}

/// The layout of that, if it was found to be right. Async-signal-safe.
pub fn known_layout() -> Result<&'static ThreadLayout, Unknown> {
    LAYOUT.get().copied().unwrap_or(Err(Unknown::Form))
}

/// The number of the Ractor of `thread`, the calling one, as `Ractor#inspect` has it; 0 if it isn't
/// known.
#[cold]
pub fn number_of(thread: RubyThread<'_>) -> u32 {
    let Ok(layout) = known_layout() else {
        return 0;
    };
    // SAFETY: `has_layout` has looked whether the data is of this form. The thread runs, so its
    // Ractor lives.
    unsafe {
        let ractor = read::<usize>(data_of(thread) + layout.ractor);
        read::<u32>(ractor + layout.ractor_number)
    }
}

/// The execution context of `thread`, the calling one; 0 if it isn't known.
pub fn context_of(thread: RubyThread<'_>) -> usize {
    // SAFETY: as for `number_of`.
    known_layout().map_or(0, |layout| unsafe {
        read(data_of(thread) + layout.context)
    })
}

/// # Safety
/// There is a `T` at this address.
unsafe fn read<T: Copy>(address: usize) -> T {
    // SAFETY: by this function's contract.
    unsafe { std::ptr::with_exposed_provenance::<T>(address).read() }
}

/// Whether there are other Ractors than the main one. Runs Ruby code.
pub fn are_there_others(ruby: &Ruby, _: &mut Gvl<'_>) -> Result<bool, Error> {
    let count = COUNT
        .get()
        .map_or_else(|| Ok(ruby.qnil().as_value()), KeptMethod::call)?;
    Ok(usize::try_convert(count)? > 1)
}
