//! The register of threads: from a Ruby thread to what is kept for it. The VM's thread-specific
//! slot leads there. Used by hooks and methods, with the GVL.

use super::other_gvl::OtherGvl;
use rb_sys::VALUE;
use rperf_engine::threads::{NewList, ThreadState};
use rperf_engine::{FiberWord, Gvl, ThreadSlot, VmThread};
use std::marker::PhantomData;
use std::ptr;
use std::sync::OnceLock;

/// Key of a thread's state; the VM has only 8 such keys.
static KEY: OnceLock<rb_sys::rb_internal_thread_specific_key_t> = OnceLock::new();

/// The same for threads of other Ractors.
static OTHER_KEY: OnceLock<rb_sys::rb_internal_thread_specific_key_t> = OnceLock::new();

/// Makes the keys, once per process. With the GVL.
pub fn make_keys() {
    for key in [&KEY, &OTHER_KEY] {
        // SAFETY: takes nothing.
        key.get_or_init(|| unsafe { rb_sys::rb_internal_thread_specific_key_create() });
    }
}

/// A thread whose object is alive as long as this is.
#[derive(Clone, Copy)]
pub struct RubyThread<'g> {
    object: VALUE,
    alive: PhantomData<&'g Gvl<'g>>,
}

impl<'g> RubyThread<'g> {
    /// The calling thread.
    #[inline]
    pub fn current(_: &'g Gvl<'_>) -> Self {
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
    /// As for [`RubyThread::from_raw`].
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

    /// The pointer in the thread's slot; null if nothing is.
    #[inline]
    fn slot(self) -> *mut ThreadState {
        let slot = KEY.get().map(|&key| {
            // SAFETY: the thread is alive, and the key valid.
            unsafe { rb_sys::rb_internal_thread_specific_get(self.object, key) }
        });
        slot.map_or(ptr::null_mut(), |slot| slot.cast())
    }

    fn set_slot(self, state: *mut ThreadState) {
        if let Some(&key) = KEY.get() {
            // SAFETY: the thread is alive, and the key valid.
            unsafe { rb_sys::rb_internal_thread_specific_set(self.object, key, state.cast()) };
        }
    }

    /// The thread's state, if it has been announced.
    #[inline]
    pub fn known_state<'a>(self, _: &'a Gvl<'_>) -> Option<&'a ThreadState> {
        // SAFETY: states are freed with the GVL, which is held, and where no Ruby thread uses
        // this one's: it has ended, or no hook is left.
        unsafe { self.known_state_without_gvl() }
    }

    /// The same for the thread itself as it ends.
    ///
    /// # Safety
    /// In a hook on the thread: its state is kept until its end is noted there, or the hook
    /// has been removed.
    #[inline]
    pub unsafe fn known_state_without_gvl<'a>(self) -> Option<&'a ThreadState> {
        // SAFETY: the slot is null or points to a state that lives by this function's contract.
        unsafe { self.slot().as_ref() }
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
        self.set_slot(state);
        // SAFETY: the list has made the session its owner; it lives as `known_state` says.
        unsafe { &*state }
    }

    /// What is kept for the thread, the calling one, if it is of another Ractor than the main one.
    pub fn other_slot(self, _: &OtherGvl) -> Option<&'static ThreadSlot> {
        let key = *OTHER_KEY.get()?;
        // SAFETY: the thread is alive, and the key valid; what is in the slot was put there below,
        // and is freed only when the thread has ended.
        unsafe {
            let slot = rb_sys::rb_internal_thread_specific_get(self.object, key);
            if let Some(slot) = slot.cast::<ThreadSlot>().as_ref() {
                return Some(slot);
            }
            let slot: &ThreadSlot = Box::leak(Box::default());
            let pointer = ptr::from_ref(slot).cast_mut().cast();
            rb_sys::rb_internal_thread_specific_set(self.object, key, pointer);
            Some(slot)
        }
    }

    /// Lets the thread forget its state.
    pub fn forget_state(self) {
        self.set_slot(ptr::null_mut());
    }
}

/// The thread with this object, which isn't looked at.
#[inline]
pub fn vm_thread(object: VALUE) -> VmThread {
    VmThread(object as usize)
}
