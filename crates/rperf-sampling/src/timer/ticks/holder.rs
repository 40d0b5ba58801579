//! Who holds the GVL, as far as events told. Hooks write it at each hand-over; the timer's signal
//! handler reads it.

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use rperf_vm::NativeId;

/// How long, in ns, ticks leave a thread alone that collects garbage. Then its handler
/// looks whether it still does, or the event of the end was lost.
const LONG_COLLECTION_NS: u64 = 10_000_000;

/// The thread that holds the GVL, and what it is in the middle of. Only who has the GVL writes, but
/// that ticks take `released`, and that they and the handler set `is_spared`.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Holder {
    /// Its seq in the lower half, the kernel's id of its native thread in the upper; 0 if nobody is
    /// known to hold the GVL.
    thread: AtomicU64,
    /// Since when a thread with the GVL has collected garbage; 0 if none does.
    collecting_ns: AtomicU64,
    /// How often the GVL was taken. Wraps around.
    resumptions: AtomicU32,
    /// A thread has given the GVL up since the last tick.
    released: AtomicBool,
    /// The holder couldn't be interrupted, or reports a crash: send no interruption until
    /// the next safepoint, or until a thread gets the GVL.
    is_spared: AtomicBool,
}

impl Holder {
    /// Nobody holds the GVL.
    pub(super) fn nobody() -> Self {
        Self {
            thread: AtomicU64::new(0),
            collecting_ns: AtomicU64::new(0),
            resumptions: AtomicU32::new(0),
            released: AtomicBool::new(false),
            is_spared: AtomicBool::new(false),
        }
    }

    /// Thread `seq` got the GVL, on native thread `tid`.
    #[inline]
    pub(super) fn enter(&self, seq: u32, tid: NativeId) {
        self.stop_sparing();
        let thread = u64::from(tid.0) << 32 | u64::from(seq);
        self.thread.swap(thread, SeqCst);
        // Only the GVL's holder writes: no lost update.
        let resumptions = self.resumptions.load(Relaxed);
        self.resumptions.store(resumptions.wrapping_add(1), Relaxed);
    }

    /// Nobody is known to hold the GVL. Returns the native thread that was.
    #[inline]
    pub(super) fn leave(&self) -> NativeId {
        NativeId((self.thread.swap(0, SeqCst) >> 32) as u32)
    }

    /// The number of the thread; 0 if it isn't known.
    #[inline]
    pub(super) fn seq(&self) -> u32 {
        self.thread.load(Relaxed) as u32
    }

    /// Its number, if it is known and runs on native thread `tid`.
    pub(super) fn seq_on(&self, tid: NativeId) -> Option<u32> {
        let thread = self.thread.load(SeqCst);
        ((thread >> 32) as u32 == tid.0).then_some(thread as u32)
    }

    /// Its native thread, if that is known.
    pub(super) fn tid(&self) -> NativeId {
        NativeId((self.thread.load(SeqCst) >> 32) as u32)
    }

    /// Whether some thread is known to hold the GVL.
    #[inline]
    pub(super) fn is_known(&self) -> bool {
        self.thread.load(Relaxed) != 0
    }

    /// Whether some thread is known to hold the GVL, in one order with what the timer's state has
    /// become.
    pub(super) fn is_known_in_order(&self) -> bool {
        self.thread.load(SeqCst) != 0
    }

    /// How often the GVL was taken.
    #[inline]
    pub(super) fn resumptions(&self) -> u32 {
        self.resumptions.load(Relaxed)
    }

    /// A thread has given the GVL up.
    #[inline]
    pub(super) fn note_release(&self) {
        self.released.store(true, Relaxed);
    }

    /// Whether a thread has given the GVL up since this was asked last.
    pub(super) fn take_release(&self) -> bool {
        self.released.swap(false, Relaxed)
    }

    /// The holder can't be interrupted at the moment. Async-signal-safe.
    pub(super) fn spare(&self) {
        self.is_spared.store(true, SeqCst);
    }

    /// The holder is out of what it couldn't be interrupted in.
    #[inline]
    pub(super) fn stop_sparing(&self) {
        if self.is_spared.load(Relaxed) {
            self.is_spared.store(false, SeqCst);
        }
    }

    /// Whether the holder can't be interrupted at the moment.
    pub(super) fn is_spared(&self) -> bool {
        self.is_spared.load(SeqCst)
    }

    /// The holder begins to collect garbage at `now`.
    #[inline]
    pub(super) fn begin_collecting(&self, now: u64) {
        self.collecting_ns.store(now, Relaxed);
    }

    /// The holder collects no garbage.
    #[inline]
    pub(super) fn end_collecting(&self) {
        self.collecting_ns.store(0, Relaxed);
    }

    /// Whether the holder collects garbage.
    #[inline]
    pub(super) fn is_collecting(&self) -> bool {
        self.collecting_ns.load(Relaxed) != 0
    }

    /// Whether the tick at `now` falls into a collection, so that it is none. One that is
    /// long may be over: the VM can lose the event.
    pub(super) fn collects_since_just_now(&self, now: u64) -> bool {
        let since = self.collecting_ns.load(Relaxed);
        since != 0 && now.saturating_sub(since) < LONG_COLLECTION_NS
    }
}
