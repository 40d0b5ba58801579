//! What the timer, the hooks and the sampling callback share: the last tick, who
//! holds the GVL, and whether the timer is armed. Only atomics; the timer's side
//! runs in a signal handler.

use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use crate::timer::calm::Calm;
use crate::timer::interruption::Interruption;
use crate::timer::other_holders::{Found, Interrupter, OtherHolders};
use crate::timer::timer_state::TimerState;
use rperf_vm::{NativeId, clock};
use std::sync::OnceLock;

/// How long, in ns, a timer that comes to rest asks for no further sampling callback while stacks are
/// captured at ticks: the thread that gets it may be running compiled code. It doubles with each
/// callback, as a tick for nobody wakes the worker, until a callback finds a thread that no event told
/// of.
const PROBE_INTERVAL_NS: u64 = 100_000_000;
const MOST_PROBE_INTERVAL_NS: u64 = 800_000_000;

/// How long, in ns, an interruption may stay unanswered before the thread is taken for
/// one that blocks it. On a busy machine one that doesn't may wait for a CPU as long.
const UNANSWERED_NS: u64 = 100_000_000;

/// How long, in ns, ticks leave a thread alone that collects garbage. Then its handler
/// looks whether it still does, or the event of the end was lost.
const LONG_COLLECTION_NS: u64 = 10_000_000;

/// What the timer has to do after a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterTick {
    /// Go on to the next tick.
    GoOn {
        /// No thread has held the GVL all the time since some ticks ago, or one of them fell
        /// into a collection, where running time stands still.
        in_slices: bool,
    },
    /// Nothing runs: stay quiet until someone arms the timer.
    Rest,
    /// There was no tick: somebody is about to stop the timer, or has done so.
    None,
}

/// The shared state.
#[derive(Debug)]
// A hand-over of the GVL writes to the first cache line only, up to `trigger`, which travels with the
// GVL; and now and then to the table of idle times.
#[repr(C, align(64))]
pub struct Ticks {
    /// The thread that holds the GVL, as far as events told: its seq in the lower
    /// half, the kernel's id of its native thread in the upper; 0 if none.
    holder: AtomicU64,
    /// Since when a thread with the GVL has collected garbage; 0 if none does.
    collecting_ns: AtomicU64,
    /// A thread has given the GVL up since the last tick.
    released: AtomicBool,
    /// No time counts just now: there are no ticks.
    paused: AtomicBool,
    /// The holder couldn't be interrupted, or reports a crash: send no interruption until
    /// the next safepoint, or until a thread gets the GVL.
    held: AtomicBool,
    /// A tick has asked for the sampling callback, which hasn't run since.
    asked: AtomicBool,
    /// How often the GVL was taken. Wraps around.
    resumptions: AtomicU32,
    timer: TimerState,
    /// See [`Ticks::new`].
    trigger: fn(),
    interrupt: Interrupt,
    /// Time of the last tick.
    tick_ns: AtomicU64,
    /// Up to when a tick that finds nobody asks for no sampling callback.
    probe_due_ns: AtomicU64,
    /// How long that is.
    probe_interval_ns: AtomicU64,
    triggers: AtomicU64,
    /// [`Calm::ticks`]. Only ticks write it.
    calm: AtomicU32,
    /// There was a pause in the session: it has slices even where one thread keeps the
    /// GVL.
    has_pauses: AtomicBool,
    /// The holder's stack is captured at the tick: it is interrupted.
    captures: AtomicBool,
    /// Threads often run without an event that says so.
    misses_resumptions: AtomicBool,
    /// The interruption of the thread that holds the GVL.
    interruption: Interruption,
    /// The threads of other Ractors that run.
    pub(crate) others: OtherHolders,
    /// See [`Ticks::at_each`].
    at_each: OnceLock<fn(u64)>,
}

/// Interrupts a native thread, and returns whether it could. Right before it sends the signal
/// it must call [`Interruption::commit`], and send none if that says no.
pub(crate) type Interrupt = fn(NativeId, &Interruption) -> bool;

impl Ticks {
    /// No tick yet, nobody holds the GVL, the timer rests. `trigger` asks the VM for the
    /// sampling callback; `interrupt` interrupts a native thread and returns whether it
    /// could. Both are async-signal-safe.
    pub(crate) fn new(trigger: fn(), interrupt: Interrupt) -> Self {
        Self {
            holder: AtomicU64::new(0),
            collecting_ns: AtomicU64::new(0),
            timer: TimerState::default(),
            released: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            has_pauses: AtomicBool::new(false),
            held: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            resumptions: AtomicU32::new(0),
            trigger,
            interrupt,
            tick_ns: AtomicU64::new(0),
            probe_due_ns: AtomicU64::new(0),
            probe_interval_ns: AtomicU64::new(PROBE_INTERVAL_NS),
            triggers: AtomicU64::new(0),
            calm: AtomicU32::new(Calm::COMPLETE.ticks()),
            captures: AtomicBool::new(false),
            misses_resumptions: AtomicBool::new(false),
            interruption: Interruption::default(),
            others: OtherHolders::new(Interrupter {
                look: |_| Found::Asleep,
                interrupt: |_, _| (),
            }),
            at_each: OnceLock::new(),
        }
    }

    /// Has each tick call this with its time. Async-signal-safe; set once.
    pub fn at_each(&self, call: fn(u64)) {
        let _ = self.at_each.set(call);
    }

    /// The ticks, which interrupt threads of other Ractors from now on, too.
    pub(crate) fn with_others(self, interrupter: Interrupter) -> Self {
        Self {
            others: OtherHolders::new(interrupter),
            ..self
        }
    }

    /// Whether the holder's stack is captured at the tick.
    #[cfg(test)]
    pub(crate) fn captures(&self) -> bool {
        self.captures.load(SeqCst)
    }

    /// Whether the stack of the thread that holds the GVL is captured at the tick.
    pub(crate) fn set_captures(&self, wanted: bool) {
        self.captures.store(wanted, SeqCst);
    }

    /// Threads often run without an event that says so: a tick follows each time that the GVL is given
    /// up, and asks for the callback if it finds nobody. Before the timer starts.
    pub(crate) fn expect_missing_resumptions(&self) {
        self.misses_resumptions.store(true, Relaxed);
        self.timer.never_stop();
    }

    /// The interruption has arrived at native thread `tid`. Async-signal-safe.
    pub(crate) fn answered(&self, tid: NativeId) {
        self.interruption.answered(tid);
    }

    /// No interruptions until [`Ticks::at_safepoint`], or until a thread gets the GVL.
    /// Async-signal-safe.
    pub(crate) fn hold_interrupts(&self) {
        self.held.store(true, SeqCst);
    }

    /// The holder is out of what it couldn't be interrupted in.
    #[inline]
    fn stop_holding(&self) {
        if self.held.load(Relaxed) {
            self.held.store(false, SeqCst);
        }
    }

    /// The sampling callback runs: nobody is in the kernel, nor collects garbage.
    pub fn at_safepoint(&self) {
        self.asked.store(false, Relaxed);
        if !self.has_holder() {
            self.probe_interval_ns.store(PROBE_INTERVAL_NS, Relaxed);
        }
        self.stop_holding();
        self.collecting_ns.store(0, Relaxed);
    }

    /// Asks the VM for the sampling callback. Async-signal-safe.
    pub fn trigger(&self) {
        self.asked.store(true, Relaxed);
        (self.trigger)();
    }

    /// Whether a tick has asked for the sampling callback, which hasn't run since.
    pub fn is_callback_due(&self) -> bool {
        self.asked.load(Relaxed)
    }

    /// The thread that holds the GVL, if that is known and it runs on native thread `tid`.
    /// Async-signal-safe.
    pub(crate) fn holder_on(&self, tid: NativeId) -> Option<u32> {
        let holder = self.holder.load(SeqCst);
        ((holder >> 32) as u32 == tid.0).then_some(holder as u32)
    }

    /// The number of the thread that holds the GVL; 0 if it isn't known.
    #[inline]
    pub fn holder_seq(&self) -> u32 {
        self.holder.load(Relaxed) as u32
    }

    /// Whether some thread is known to hold the GVL.
    #[inline]
    pub fn has_holder(&self) -> bool {
        self.holder.load(Relaxed) != 0
    }

    /// The native thread that holds the GVL, if that is known, and how often the GVL was taken until
    /// then. Any thread.
    pub fn holder(&self) -> Option<(NativeId, u32)> {
        let tid = self.holder_tid();
        tid.is_known()
            .then(|| (tid, self.resumptions.load(Relaxed)))
    }

    /// The native thread of the thread that holds the GVL, if it is known.
    fn holder_tid(&self) -> NativeId {
        NativeId((self.holder.load(SeqCst) >> 32) as u32)
    }

    /// Time of the last tick on the monotonic clock, or 0.
    #[inline]
    pub fn last_tick(&self) -> u64 {
        self.tick_ns.load(Relaxed)
    }

    /// Thread `seq` got the GVL, on native thread `tid`. Returns
    /// whether the caller has to arm the timer.
    #[inline]
    #[must_use = "a timer that rests must be armed"]
    pub fn set_holder(&self, seq: u32, tid: NativeId) -> bool {
        self.stop_holding();
        // SeqCst on both sides: either this sees the timer at rest, or who brings the timer to rest
        // sees the holder.
        let holder = u64::from(tid.0) << 32 | u64::from(seq);
        self.holder.swap(holder, SeqCst);
        // Only the GVL's holder writes: no lost update.
        let resumptions = self.resumptions.load(Relaxed);
        self.resumptions.store(resumptions.wrapping_add(1), Relaxed);
        self.timer.end_rest()
    }

    /// A thread of another Ractor runs. Returns whether the caller has to arm the timer.
    #[must_use = "a timer that rests must be armed"]
    pub(crate) fn arm_for_other(&self) -> bool {
        self.timer.end_rest()
    }

    /// The timer's state, for the source.
    pub(crate) fn timer(&self) -> &TimerState {
        &self.timer
    }

    /// Whether the timer is best stopped at `now`, as a thread has given the GVL up at this `place`:
    /// nobody runs, nor is expected to soon, and no callback is due that only a tick asks for. Begins an
    /// idle time.
    #[inline]
    pub(crate) fn ask_for_stop(&self, now: u64, place: impl FnOnce() -> usize) -> bool {
        self.timer.may_be_stopped(now)
            && now < self.probe_due_ns.load(Relaxed)
            && self.holder.load(Relaxed) == 0
            && !self.others.is_any_running()
            && self.timer.ask_for_stop(place(), now)
    }

    /// A thread has got the GVL at `now`.
    #[inline]
    pub(crate) fn end_idle_time(&self, now: u64) {
        self.timer.end_idle_time(now);
    }

    /// Brings the timer to rest, for its owner. If somebody runs by now, the caller stays the owner and
    /// this returns false.
    pub(crate) fn comes_to_rest(&self) -> bool {
        self.timer.rest();
        let is_idle = self.holder.load(SeqCst) == 0 && !self.others.is_any_running();
        is_idle || !self.timer.end_rest()
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

    /// Thread `seq`, the calling one, gives the GVL up. Afterwards no interruption is on its
    /// way to it. Nobody does that in a collection: if the end of one was not seen, this was
    /// it.
    #[inline]
    pub fn clear_holder(&self, seq: u32) {
        self.collecting_ns.store(0, Relaxed);
        if self.holder.load(Relaxed) as u32 == seq {
            self.leave();
        }
        self.released.store(true, Relaxed);
    }

    /// Nobody is known to hold the GVL.
    #[inline]
    fn leave(&self) {
        // SeqCst on both sides: either the timer sees that the thread has left, or the
        // thread sees that the timer means to interrupt it.
        let tid = NativeId((self.holder.swap(0, SeqCst) >> 32) as u32);
        self.interruption.leave(tid);
    }

    /// The thread with the GVL begins to collect garbage at `now`.
    #[inline]
    pub fn begin_collecting(&self, now: u64) {
        self.collecting_ns.store(now, Relaxed);
    }

    /// The thread with the GVL ends a piece of garbage collection.
    #[inline]
    pub fn end_collecting(&self) {
        self.collecting_ns.store(0, Relaxed);
    }

    /// Whether garbage is being collected, as far as events told.
    #[inline]
    pub fn is_collecting(&self) -> bool {
        self.collecting_ns.load(Relaxed) != 0
    }

    /// No ticks until [`Ticks::go_on`]: the timer comes to rest at its next expiry,
    /// which makes none, and nobody is known to hold the GVL.
    pub fn pause(&self) {
        self.paused.store(true, SeqCst);
        self.has_pauses.store(true, Relaxed);
        self.leave();
        self.others.clear();
    }

    /// Ends a pause. The next [`Ticks::set_holder`] says whether to arm the timer.
    pub fn go_on(&self) {
        self.others.clear();
        self.paused.store(false, SeqCst);
    }

    /// Whether the timer comes to rest in a pause; as for idleness, either this sees
    /// that the pause is over, or who ends it sees the timer disarmed.
    fn rests_in_pause(&self) -> bool {
        self.paused.load(SeqCst) && {
            self.timer.rest();
            self.paused.load(SeqCst) || !self.timer.end_rest()
        }
    }

    /// A tick: called by the timer, in a signal handler or on the worker. If it is to go on, the caller
    /// owns the timer until it sets it.
    pub fn tick(&self) -> AfterTick {
        if !self.timer.take() {
            return AfterTick::None;
        }
        if self.rests_in_pause() {
            return AfterTick::Rest;
        }
        let now = clock::monotonic_ns();
        self.tick_ns.store(now, Relaxed);
        if let Some(call) = self.at_each.get() {
            call(now);
        }
        let do_others_run = self.others.tick(self.captures.load(SeqCst));
        if self.holder.load(SeqCst) != 0 {
            self.triggers.fetch_add(1, Relaxed);
            self.sample_holder(now);
        } else if do_others_run {
            self.triggers.fetch_add(1, Relaxed);
        } else {
            // A thread can run without an event that says so, and then the callback is
            // what finds it. It costs a sleeping VM nothing.
            let is_due = now >= self.probe_due_ns.load(Relaxed);
            let is_likely = self.misses_resumptions.load(Relaxed);
            if is_due || is_likely || !self.captures.load(SeqCst) {
                let interval = self.probe_interval_ns.load(Relaxed);
                let next = (2 * interval).min(MOST_PROBE_INTERVAL_NS);
                self.probe_interval_ns.store(next, Relaxed);
                self.probe_due_ns.store(now + interval, Relaxed);
                self.trigger();
            }
            if self.comes_to_rest() {
                return AfterTick::Rest;
            }
        }
        let was_rest = self.released.swap(false, Relaxed) || self.is_collecting();
        let calm = Calm::of(self.calm.load(Relaxed)).after_tick(was_rest);
        self.calm.store(calm.ticks(), Relaxed);
        AfterTick::GoOn {
            in_slices: calm.in_slices()
                || self.holder.load(Relaxed) == 0
                || self.has_pauses.load(Relaxed),
        }
    }

    /// Has the holder's stack taken: at once, or at the next safepoint.
    fn sample_holder(&self, now: u64) {
        let tid = self.holder_tid();
        let captures = self.captures.load(SeqCst) && tid.is_known() && !self.held.load(SeqCst);
        if !captures {
            self.trigger();
        } else if self.interruption.is_of(tid) {
            if now.saturating_sub(self.interruption.since_ns()) >= UNANSWERED_NS {
                // The thread that was asked may have gone, and another have its number.
                self.interrupt_holder(tid, now);
                self.trigger();
            }
        } else if !self.collects_since_just_now(now) && !self.interrupt_holder(tid, now) {
            // It may sleep in the kernel. When it wakes, it runs there before it is out,
            // and until then poll and select take a signal for an early end.
            self.hold_interrupts();
            self.trigger();
        }
    }

    /// Interrupts native thread `tid`, unless it gives the GVL up just now. Returns false if it
    /// has the GVL and can't be interrupted.
    fn interrupt_holder(&self, tid: NativeId, now: u64) -> bool {
        self.interruption.begin(tid, now);
        let is_sent = self.holder_tid() == tid && (self.interrupt)(tid, &self.interruption);
        if is_sent {
            self.interruption.sent(tid);
        }
        is_sent || !self.interruption.withdraw(tid) || self.holder_tid() != tid
    }

    /// Whether the tick at `now` falls into a collection, so that it is none. One that is
    /// long may be over: the VM can lose the event.
    fn collects_since_just_now(&self, now: u64) -> bool {
        let since = self.collecting_ns.load(Relaxed);
        since != 0 && now.saturating_sub(since) < LONG_COLLECTION_NS
    }

    /// Whether the timer runs.
    pub fn armed(&self) -> bool {
        !self.timer.rests()
    }

    /// Ticks that asked for a sample while some thread ran.
    pub fn triggers(&self) -> u64 {
        self.triggers.load(Relaxed)
    }
}

#[cfg(test)]
mod tests;
