//! What the timer, the hooks and the sampling callback share: the last tick, who
//! holds the GVL, and whether the timer is armed. Only atomics; the timer's side
//! runs in a signal handler.

mod callback;
mod holder;
mod interrupts;
mod made;
mod pauses;
mod probes;

use crate::timer::other_holders::{Found, Interrupter, OtherHolders};
use crate::timer::timer_state::TimerState;
use callback::Callback;
use holder::Holder;
pub(crate) use interrupts::Interrupt;
use interrupts::Interrupts;
use made::MadeTicks;
use pauses::Pauses;
use probes::Probes;
use rperf_vm::{NativeId, clock};

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
// A hand-over of the GVL writes to the first cache line only, up to `callback`, which travels with the
// GVL; and now and then to the table of idle times.
#[repr(C, align(64))]
pub struct Ticks {
    holder: Holder,
    timer: TimerState,
    callback: Callback,
    probes: Probes,
    interrupts: Interrupts,
    made: MadeTicks,
    pauses: Pauses,
    /// The threads of other Ractors that run.
    pub(crate) others: OtherHolders,
}

impl Ticks {
    /// No tick yet, nobody holds the GVL, the timer rests. `trigger` asks the VM for the
    /// sampling callback; `interrupt` interrupts a native thread and returns whether it
    /// could. Both are async-signal-safe.
    pub(crate) fn new(trigger: fn(), interrupt: Interrupt) -> Self {
        Self {
            holder: Holder::nobody(),
            timer: TimerState::default(),
            callback: Callback::new(trigger),
            probes: Probes::new(),
            interrupts: Interrupts::new(interrupt),
            made: MadeTicks::new(),
            pauses: Pauses::new(),
            others: OtherHolders::new(Interrupter {
                look: |_| Found::Asleep,
                interrupt: |_, _| (),
            }),
        }
    }

    /// Has each tick call this with its time. Async-signal-safe; set once.
    pub fn at_each(&self, call: fn(u64)) {
        self.made.at_each(call);
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
        self.interrupts.captures()
    }

    /// Whether the stack of the thread that holds the GVL is captured at the tick.
    pub(crate) fn set_captures(&self, wanted: bool) {
        self.interrupts.set_captures(wanted);
    }

    /// Threads often run without an event that says so: a tick follows each time that the GVL is given
    /// up, and asks for the callback if it finds nobody. Before the timer starts.
    pub(crate) fn expect_missing_resumptions(&self) {
        self.probes.make_always_due();
        self.timer.never_stop();
    }

    /// The interruption has arrived at native thread `tid`. Async-signal-safe.
    pub(crate) fn answered(&self, tid: NativeId) {
        self.interrupts.answered(tid);
    }

    /// No interruptions until [`Ticks::at_safepoint`], or until a thread gets the GVL.
    /// Async-signal-safe.
    pub(crate) fn hold_interrupts(&self) {
        self.holder.spare();
    }

    /// The sampling callback runs: nobody is in the kernel, nor collects garbage.
    pub fn at_safepoint(&self) {
        self.callback.has_come();
        if !self.has_holder() {
            self.probes.note_found();
        }
        self.holder.stop_sparing();
        self.holder.end_collecting();
    }

    /// Asks the VM for the sampling callback. Async-signal-safe.
    pub fn trigger(&self) {
        self.callback.ask();
    }

    /// Whether a tick has asked for the sampling callback, which hasn't run since.
    pub fn is_callback_due(&self) -> bool {
        self.callback.is_due()
    }

    /// The thread that holds the GVL, if that is known and it runs on native thread `tid`.
    /// Async-signal-safe.
    pub(crate) fn holder_on(&self, tid: NativeId) -> Option<u32> {
        self.holder.seq_on(tid)
    }

    /// The number of the thread that holds the GVL; 0 if it isn't known.
    #[inline]
    pub fn holder_seq(&self) -> u32 {
        self.holder.seq()
    }

    /// Whether some thread is known to hold the GVL.
    #[inline]
    pub fn has_holder(&self) -> bool {
        self.holder.is_known()
    }

    /// The native thread that holds the GVL, if that is known, and how often the GVL was taken until
    /// then. Any thread.
    pub fn holder(&self) -> Option<(NativeId, u32)> {
        let tid = self.holder.tid();
        tid.is_known().then(|| (tid, self.holder.resumptions()))
    }

    /// Time of the last tick on the monotonic clock, or 0.
    #[inline]
    pub fn last_tick(&self) -> u64 {
        self.made.last_ns()
    }

    /// Thread `seq` got the GVL, on native thread `tid`. Returns
    /// whether the caller has to arm the timer.
    #[inline]
    #[must_use = "a timer that rests must be armed"]
    pub fn set_holder(&self, seq: u32, tid: NativeId) -> bool {
        // SeqCst on both sides: either this sees the timer at rest, or who brings the timer to rest
        // sees the holder.
        self.holder.enter(seq, tid);
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
            && !self.probes.is_time_for_one(now)
            && !self.holder.is_known()
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
        let is_idle = !self.holder.is_known_in_order() && !self.others.is_any_running();
        is_idle || !self.timer.end_rest()
    }

    /// How often the GVL was taken, if nobody has it now: whoever takes it next
    /// need not wait for it, if the number is the same then.
    #[inline]
    pub fn free_since(&self) -> Option<u32> {
        let resumptions = self.holder.resumptions();
        (!self.holder.is_known()).then_some(resumptions)
    }

    /// Whether the GVL was taken since [`Ticks::free_since`] said this number.
    #[inline]
    pub fn taken_since(&self, resumptions: u32) -> bool {
        self.holder.resumptions() != resumptions
    }

    /// Thread `seq`, the calling one, gives the GVL up. Afterwards no interruption is on its
    /// way to it. Nobody does that in a collection: if the end of one was not seen, this was
    /// it.
    #[inline]
    pub fn clear_holder(&self, seq: u32) {
        self.holder.end_collecting();
        if self.holder.seq() == seq {
            self.leave();
        }
        self.holder.note_release();
    }

    /// Nobody is known to hold the GVL.
    #[inline]
    fn leave(&self) {
        // SeqCst on both sides: either the timer sees that the thread has left, or the
        // thread sees that the timer means to interrupt it.
        let tid = self.holder.leave();
        self.interrupts.leave(tid);
    }

    /// The thread with the GVL begins to collect garbage at `now`.
    #[inline]
    pub fn begin_collecting(&self, now: u64) {
        self.holder.begin_collecting(now);
    }

    /// The thread with the GVL ends a piece of garbage collection.
    #[inline]
    pub fn end_collecting(&self) {
        self.holder.end_collecting();
    }

    /// Whether garbage is being collected, as far as events told.
    #[inline]
    pub fn is_collecting(&self) -> bool {
        self.holder.is_collecting()
    }

    /// No ticks until [`Ticks::go_on`]: the timer comes to rest at its next expiry,
    /// which makes none, and nobody is known to hold the GVL.
    pub fn pause(&self) {
        self.pauses.begin();
        self.leave();
        self.others.clear();
    }

    /// Ends a pause. The next [`Ticks::set_holder`] says whether to arm the timer.
    pub fn go_on(&self) {
        self.others.clear();
        self.pauses.end();
    }

    /// Whether the timer comes to rest in a pause; as for idleness, either this sees
    /// that the pause is over, or who ends it sees the timer disarmed.
    fn rests_in_pause(&self) -> bool {
        self.pauses.is_on() && {
            self.timer.rest();
            self.pauses.is_on() || !self.timer.end_rest()
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
        self.made.begin(now);
        let do_others_run = self.others.tick(self.interrupts.captures());
        if self.holder.is_known_in_order() {
            self.made.count_trigger();
            self.sample_holder(now);
        } else if do_others_run {
            self.made.count_trigger();
        } else {
            // A thread can run without an event that says so, and then the callback is
            // what finds it. It costs a sleeping VM nothing.
            let is_due = self.probes.is_time_for_one(now);
            let is_likely = self.probes.are_always_due();
            if is_due || is_likely || !self.interrupts.captures() {
                self.probes.note(now);
                self.trigger();
            }
            if self.comes_to_rest() {
                return AfterTick::Rest;
            }
        }
        let was_rest = self.holder.take_release() || self.is_collecting();
        let calm = self.made.calm_after(was_rest);
        AfterTick::GoOn {
            in_slices: calm.in_slices() || !self.holder.is_known() || self.pauses.was_one(),
        }
    }

    /// Has the holder's stack taken: at once, or at the next safepoint.
    fn sample_holder(&self, now: u64) {
        let (holder, interrupts) = (&self.holder, &self.interrupts);
        let tid = holder.tid();
        let captures = interrupts.captures() && tid.is_known() && !holder.is_spared();
        if !captures {
            self.trigger();
        } else if interrupts.awaits(tid) {
            if interrupts.is_blocked(now) {
                // The thread that was asked may have gone, and another have its number.
                interrupts.interrupt(holder, tid, now);
                self.trigger();
            }
        } else if !holder.collects_since_just_now(now) && !interrupts.interrupt(holder, tid, now) {
            // It may sleep in the kernel. When it wakes, it runs there before it is out,
            // and until then poll and select take a signal for an early end.
            self.hold_interrupts();
            self.trigger();
        }
    }

    /// Whether the timer runs.
    pub fn armed(&self) -> bool {
        !self.timer.rests()
    }

    /// Ticks that asked for a sample while some thread ran.
    pub fn triggers(&self) -> u64 {
        self.made.triggers()
    }
}

#[cfg(test)]
mod tests;
