//! What the timer, the hooks and the sampling callback share: the last tick, who
//! holds the GVL, and whether the timer is armed. Only atomics; the timer's side
//! runs in a signal handler.

use crate::{clock, leaf::signal};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

/// Ticks without a runner after which the timer stops.
const IDLE_TICKS: u32 = 8;

/// What the timer has to do after a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTick {
    /// Go on to the next tick.
    GoOn {
        /// No thread has held the GVL all the time since the last tick, or the tick fell
        /// into a collection, where running time stands still.
        in_slices: bool,
    },
    /// Nothing runs: stay quiet until someone arms the timer.
    Rest,
}

/// The shared state.
#[derive(Debug)]
// The hooks write to one cache line only, which travels with the GVL.
#[repr(C, align(64))]
pub struct Ticks {
    /// The thread that holds the GVL, as far as events told: its seq in the lower
    /// half, the kernel's id of its native thread in the upper; 0 if none.
    holder: AtomicU64,
    armed: AtomicBool,
    /// A thread has given the GVL up since the last tick.
    released: AtomicBool,
    /// A thread with the GVL collects garbage.
    collecting: AtomicBool,
    /// No time counts just now: there are no ticks.
    paused: AtomicBool,
    /// There was a pause in the session: it has slices even where one thread keeps the
    /// GVL.
    has_pauses: AtomicBool,
    idle: AtomicU32,
    /// How often the GVL was taken. Wraps around.
    resumptions: AtomicU32,
    /// Asks the VM for the sampling callback; async-signal-safe.
    trigger: fn(),
    /// Time of the last tick.
    tick_ns: AtomicU64,
    triggers: AtomicU64,
    /// The holder is to be interrupted at a tick, and asks for the callback itself.
    interrupts: AtomicBool,
    /// The last interruption has not arrived yet.
    unanswered: AtomicBool,
    /// The last one came to a thread that had better be left alone until the next
    /// safepoint.
    held: AtomicBool,
}

impl Ticks {
    /// No tick yet, nobody holds the GVL, the timer rests.
    pub fn new(trigger: fn()) -> Self {
        Self {
            holder: AtomicU64::new(0),
            armed: AtomicBool::new(false),
            released: AtomicBool::new(false),
            collecting: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            has_pauses: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            resumptions: AtomicU32::new(0),
            trigger,
            tick_ns: AtomicU64::new(0),
            triggers: AtomicU64::new(0),
            interrupts: AtomicBool::new(false),
            unanswered: AtomicBool::new(false),
            held: AtomicBool::new(false),
        }
    }

    /// Whether the thread that holds the GVL is interrupted at a tick.
    pub(crate) fn set_interrupts(&self, wanted: bool) {
        self.interrupts.store(wanted, SeqCst);
    }

    /// The interruption has arrived. Async-signal-safe.
    pub(crate) fn answered(&self) {
        self.unanswered.store(false, SeqCst);
    }

    /// No interruptions until [`Ticks::at_safepoint`]. Async-signal-safe.
    pub(crate) fn hold_interrupts(&self) {
        self.held.store(true, SeqCst);
    }

    /// The sampling callback runs.
    pub fn at_safepoint(&self) {
        if self.held.load(Relaxed) {
            self.held.store(false, SeqCst);
        }
    }

    /// Asks the VM for the sampling callback. Async-signal-safe.
    pub(crate) fn trigger(&self) {
        (self.trigger)();
    }

    /// The native thread of the thread that holds the GVL, or 0.
    pub fn holder_tid(&self) -> u32 {
        (self.holder.load(SeqCst) >> 32) as u32
    }

    /// Time of the last tick on the monotonic clock, or 0.
    #[inline]
    pub fn last_tick(&self) -> u64 {
        self.tick_ns.load(Relaxed)
    }

    /// Thread `seq` got the GVL, on native thread `tid` (0 if not known). Returns
    /// whether the caller has to arm the timer.
    #[inline]
    #[must_use = "a timer that rests must be armed"]
    pub fn set_holder(&self, seq: u32, tid: u32) -> bool {
        // SeqCst on both sides: either this sees the timer disarmed, or the timer
        // sees the holder before it comes to rest.
        let holder = u64::from(tid) << 32 | u64::from(seq);
        self.holder.swap(holder, SeqCst);
        self.idle.store(0, Relaxed);
        // Only the GVL's holder writes: no lost update.
        let resumptions = self.resumptions.load(Relaxed);
        self.resumptions.store(resumptions.wrapping_add(1), Relaxed);
        !self.armed.load(SeqCst) && !self.armed.swap(true, SeqCst)
    }

    /// How often the GVL was taken, if nobody has it now: whoever takes it next
    /// need not wait for it, if the number is the same then.
    #[inline]
    pub fn free_since(&self) -> Option<u32> {
        let resumptions = self.resumptions.load(Relaxed);
        (self.holder.load(Relaxed) == 0).then_some(resumptions)
    }

    /// Whether the GVL was taken since [`Ticks::free_since`] said this number.
    #[inline]
    pub fn taken_since(&self, resumptions: u32) -> bool {
        self.resumptions.load(Relaxed) != resumptions
    }

    /// Thread `seq` gives the GVL up.
    #[inline]
    pub fn clear_holder(&self, seq: u32) {
        if self.holder.load(Relaxed) as u32 == seq {
            self.holder.store(0, Relaxed);
        }
        self.released.store(true, Relaxed);
    }

    /// A thread with the GVL begins to collect garbage, or ends it.
    #[inline]
    pub fn set_collecting(&self, collecting: bool) {
        self.collecting.store(collecting, Relaxed);
    }

    /// No ticks until [`Ticks::go_on`]: the timer comes to rest at its next expiry,
    /// which makes none, and nobody is known to hold the GVL.
    pub fn pause(&self) {
        self.paused.store(true, SeqCst);
        self.has_pauses.store(true, Relaxed);
        self.holder.store(0, SeqCst);
    }

    /// Ends a pause. The next [`Ticks::set_holder`] says whether to arm the timer.
    pub fn go_on(&self) {
        self.paused.store(false, SeqCst);
    }

    /// Whether the timer comes to rest in a pause; as for idleness, either this sees
    /// that the pause is over, or who ends it sees the timer disarmed.
    fn rests_in_pause(&self) -> bool {
        self.paused.load(SeqCst) && {
            self.armed.store(false, SeqCst);
            self.paused.load(SeqCst) || self.armed.swap(true, SeqCst)
        }
    }

    /// A tick: called by the timer, in a signal handler or on the worker.
    pub fn tick(&self) -> AfterTick {
        if self.rests_in_pause() {
            return AfterTick::Rest;
        }
        self.tick_ns.store(clock::monotonic_ns(), Relaxed);
        if self.holder.load(SeqCst) != 0 {
            self.triggers.fetch_add(1, Relaxed);
        } else if self.idle.fetch_add(1, Relaxed) >= IDLE_TICKS {
            self.armed.store(false, SeqCst);
            if self.holder.load(SeqCst) == 0 || self.armed.swap(true, SeqCst) {
                return AfterTick::Rest;
            }
        }
        // Without a holder too: a thread can run without an event that says so,
        // and then the callback is what finds it. It costs a sleeping VM nothing.
        if !self.interrupt_holder() {
            self.trigger();
        }
        let released = self.released.swap(false, Relaxed);
        AfterTick::GoOn {
            in_slices: released
                || self.collecting.load(Relaxed)
                || self.holder.load(Relaxed) == 0
                || self.has_pauses.load(Relaxed),
        }
    }

    /// Interrupts the holder, if that is wanted. Returns whether it will ask for the
    /// callback: not if it has blocked the last interruption.
    fn interrupt_holder(&self) -> bool {
        let tid = self.holder_tid();
        if tid == 0 || !self.interrupts.load(SeqCst) || self.held.load(SeqCst) {
            return false;
        }
        let is_blocked = self.unanswered.swap(true, SeqCst);
        signal::interrupt(tid) && !is_blocked
    }

    /// Whether the timer runs.
    pub fn armed(&self) -> bool {
        self.armed.load(SeqCst)
    }

    /// Ticks that asked for a sample while some thread ran.
    pub fn triggers(&self) -> u64 {
        self.triggers.load(Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_after_idle_ticks_and_the_next_holder_arms_it() {
        let ticks = Ticks::new(|| ());
        assert!(ticks.set_holder(1, 0), "the first holder arms");
        assert!(!ticks.set_holder(1, 0), "once");
        for _ in 0..100 {
            assert_eq!(ticks.tick(), AfterTick::GoOn { in_slices: false });
        }
        ticks.clear_holder(2);
        let after_other = ticks.tick();
        assert_eq!(
            after_other,
            AfterTick::GoOn { in_slices: true },
            "1 still runs"
        );
        ticks.clear_holder(1);
        let until_rest = (0..100)
            .take_while(|_| ticks.tick() != AfterTick::Rest)
            .count();
        assert_eq!(until_rest as u32, IDLE_TICKS);
        assert!(!ticks.armed());
        let free = ticks.free_since().expect("nobody has the GVL");
        assert!(!ticks.taken_since(free));
        assert!(ticks.set_holder(2, 0), "the next holder arms it again");
        assert!(ticks.taken_since(free));
        assert_eq!(ticks.free_since(), None);
        assert_eq!(ticks.triggers(), 101);
        assert!(ticks.last_tick() > 0);
    }

    #[test]
    fn it_rests_in_a_pause_and_the_first_holder_after_it_arms_it() {
        let ticks = Ticks::new(|| panic!("no tick in a pause"));
        assert!(ticks.set_holder(1, 0));
        ticks.pause();
        assert!(ticks.armed(), "until the next expiry");
        ticks.go_on();
        assert!(!ticks.set_holder(1, 0), "a short pause needs no arming");
        ticks.pause();
        assert_eq!(ticks.tick(), AfterTick::Rest);
        assert!(!ticks.armed());
        assert_eq!((ticks.triggers(), ticks.last_tick()), (0, 0));
        ticks.go_on();
        assert!(ticks.set_holder(1, 0));
    }
}
