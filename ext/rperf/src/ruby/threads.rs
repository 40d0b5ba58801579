//! The register of threads: from a Ruby thread to what is kept for it. The VM's thread-specific
//! slot leads there. Used by hooks and methods, with the GVL.

use super::other_gvl::OtherGvl;
use rb_sys::VALUE;
use rperf_sampling::ThreadSlot;
use rperf_sampling::threads::{NewList, ThreadState};
use rperf_vm::{FiberWord, Gvl, VmThread};
use std::env;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Key of a thread's state.
static STATE: ThreadKey = ThreadKey::new();

/// Key of the slot of a thread of another Ractor, and of the serial of a thread of the main one.
static OWN: ThreadKey = ThreadKey::new();

/// Makes the keys, once per process. With the GVL.
pub fn make_keys() {
    STATE.make();
    OWN.make();
}

/// Key of a word that each thread may have. The VM has only 8 such keys.
pub struct ThreadKey(OnceLock<rb_sys::rb_internal_thread_specific_key_t>);

impl ThreadKey {
    /// A key that isn't made yet.
    pub const fn new() -> Self {
        Self(OnceLock::new())
    }

    /// Makes the key. Once, with the GVL.
    pub fn make(&self) {
        // SAFETY: takes nothing.
        let new = || unsafe { rb_sys::rb_internal_thread_specific_key_create() };
        self.0.get_or_init(new);
    }

    /// The word of `thread`; null if it has none.
    #[inline]
    pub fn get(&self, thread: RubyThread<'_>) -> *mut c_void {
        let word = self.0.get().map(|&key| {
            // SAFETY: the thread is alive, and the key valid.
            unsafe { rb_sys::rb_internal_thread_specific_get(thread.object, key) }
        });
        word.unwrap_or(ptr::null_mut())
    }

    /// From now on `thread` has this word.
    pub fn set(&self, thread: RubyThread<'_>, word: *mut c_void) {
        if let Some(&key) = self.0.get() {
            // SAFETY: the thread is alive, and the key valid.
            unsafe { rb_sys::rb_internal_thread_specific_set(thread.object, key, word) };
        }
    }
}

/// What the thread that holds a Ractor's GVL has as proof of it.
pub trait HeldGvl {}

impl HeldGvl for Gvl<'_> {}

impl HeldGvl for OtherGvl {}

/// A thread whose object is alive as long as this is.
#[derive(Clone, Copy)]
pub struct RubyThread<'g> {
    object: VALUE,
    alive: PhantomData<&'g ()>,
}

impl<'g> RubyThread<'g> {
    /// The calling thread.
    #[inline]
    pub fn current(_: &'g impl HeldGvl) -> Self {
        // SAFETY: whoever holds the GVL is a Ruby thread, whose object lives as long as it runs.
        unsafe { Self::from_raw(rb_sys::rb_thread_current()) }
    }

    /// The thread with this object.
    ///
    /// # Safety
    /// It is a Thread, and alive for `'g`.
    #[inline]
    pub unsafe fn from_raw(object: VALUE) -> Self {
        Self {
            object,
            alive: PhantomData,
        }
    }

    /// The thread that the engine knows as `thread`.
    ///
    /// # Safety
    /// The conditions are those of [`RubyThread::from_raw`].
    #[inline]
    pub unsafe fn from_vm(thread: VmThread) -> Self {
        // SAFETY: by this function's contract.
        unsafe { Self::from_raw(thread.0 as VALUE) }
    }

    /// The present fiber of this thread, the calling one. Makes its object, if nobody has asked
    /// for it before: in hooks and in the signal handler only where that is known.
    #[inline]
    pub fn present_fiber(self) -> FiberWord {
        // SAFETY: on a Ruby thread. Where the object is there, it only reads.
        FiberWord(unsafe { rb_sys::rb_fiber_current() } as usize)
    }

    /// The thread as the engine knows it.
    #[inline]
    pub fn id(self) -> VmThread {
        vm_thread(self.object)
    }

    /// The object.
    #[inline]
    pub fn object(self) -> VALUE {
        self.object
    }

    /// The thread's state, if it has been announced.
    #[inline]
    pub fn known_state<'a>(self, _: &'a Gvl<'_>) -> Option<&'a ThreadState> {
        // SAFETY: states are freed with the GVL, which is held, and where no Ruby thread uses
        // this one's: it has ended, or no hook is left.
        unsafe { self.known_state_without_gvl() }
    }

    /// The thread's state, if it has been announced, for the thread itself as it ends.
    ///
    /// # Safety
    /// In a hook on the thread: its state is kept until its end is noted there, or the hook
    /// has been removed.
    #[inline]
    pub unsafe fn known_state_without_gvl<'a>(self) -> Option<&'a ThreadState> {
        // SAFETY: the word is null or points to a state that lives by this function's contract.
        unsafe { STATE.get(self).cast::<ThreadState>().as_ref() }
    }

    /// The state of a thread of the main Ractor, announced in `new_threads` if it is new.
    #[inline]
    pub fn state<'a>(
        self,
        gvl: &'a Gvl<'_>,
        new_threads: &NewList<ThreadState>,
    ) -> &'a ThreadState {
        self.known_state(gvl)
            .unwrap_or_else(|| self.announce(gvl, new_threads))
    }

    /// Makes a state for the thread, which replaces one that a forked child has inherited.
    #[cold]
    pub fn announce<'a>(
        self,
        _: &'a Gvl<'_>,
        new_threads: &NewList<ThreadState>,
    ) -> &'a ThreadState {
        let state = new_threads.push(ThreadState::new(self.id()));
        STATE.set(self, state.cast());
        // SAFETY: the list has made the session its owner; it lives as `known_state` says.
        unsafe { &*state }
    }

    /// The serial of a thread of the main Ractor: no other thread of this process has it.
    pub fn serial(self, _: &Gvl<'_>) -> u64 {
        static LAST: AtomicUsize = AtomicUsize::new(0);
        let known = OWN.get(self).addr();
        if known > 0 {
            return known as u64;
        }
        let serial = LAST.fetch_add(1, Relaxed) + 1;
        OWN.set(self, ptr::without_provenance_mut(serial));
        serial as u64
    }

    /// What is kept for the thread, the calling one, of another Ractor than the main one.
    pub fn other_slot(self, _: &OtherGvl) -> &'static ThreadSlot {
        // SAFETY: the word is null, or what is put there below, which is freed only when the thread
        // has ended.
        let slot = unsafe { OWN.get(self).cast::<ThreadSlot>().as_ref() };
        slot.unwrap_or_else(|| {
            let slot: &ThreadSlot = Box::leak(Box::default());
            OWN.set(self, ptr::from_ref(slot).cast_mut().cast());
            slot
        })
    }

    /// Has `look` find the thread's words in the VM's data: it gets the place of one among them, and
    /// what that one is meanwhile. For a thread of the main Ractor.
    pub fn with_mark<T>(self, _: &Gvl<'_>, look: impl FnOnce(usize, usize) -> T) -> Option<T> {
        static MARK: u8 = 0;
        let place = usize::try_from(*OWN.0.get()?).ok()?;
        let mark = (&raw const MARK).cast_mut().cast::<c_void>();
        // No other thread looks at it meanwhile.
        let before = OWN.get(self);
        OWN.set(self, mark);
        let found = look(place, mark.addr());
        OWN.set(self, before);
        Some(found)
    }

    /// Lets the thread forget its state.
    pub fn forget_state(self) {
        STATE.set(self, ptr::null_mut());
    }
}

/// The thread with this object, which isn't looked at.
#[inline]
pub fn vm_thread(object: VALUE) -> VmThread {
    VmThread(object as usize)
}

/// Whether native threads may run several Ruby threads of the main Ractor: then a CPU clock is nobody's.
pub fn shares_native_threads() -> bool {
    static SHARES: OnceLock<bool> = OnceLock::new();
    *SHARES.get_or_init(|| env::var_os("RUBY_MN_THREADS").is_some_and(|it| it == "1"))
}
