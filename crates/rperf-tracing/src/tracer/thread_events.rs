//! What [`Tracer`] does as threads get the GVL and give it up, and as they collect garbage: time
//! goes to the frame that is innermost then, by the state of its thread. At events, under the GVL.

use crate::tracer::Tracer;
use crate::tree::threads::ThreadNumber;
use rperf_model::State;
use rperf_vm::{GcEvent, VmName};

/// What a collection is at.
fn phase(is_marking: bool) -> State {
    match is_marking {
        true => State::GcMarking,
        false => State::GcSweeping,
    }
}

impl Tracer {
    /// A thread has got the GVL. It was `ready` to run since then; 0 if that isn't known.
    pub fn resumed(&mut self, thread: ThreadNumber, ready: u64, now: u64) {
        let Some(state) = self.threads.get_mut(thread) else {
            return;
        };
        // A profile in between may have read a clock that events only have a note of.
        let now = now.max(self.time.last);
        if let Some(since) = state.away_since.take() {
            let node = self.fibers[state.fiber].charged();
            if self.level.timed {
                let until = self.time.counts_until(now);
                state.sums.states.add_away(node, since, ready, until);
            }
        }
        self.fibers.run(state.fiber);
        self.threads.run(thread);
        if self.time.is_paused() {
            return self.runs_in_pause();
        }
        self.time.last = now;
        self.enter_cpu(thread);
    }

    /// The thread has this name.
    #[inline]
    pub fn note_name(&mut self, thread: ThreadNumber, name: &impl VmName) {
        // The last number may be that of several threads.
        if thread != ThreadNumber::LAST
            && let Some(state) = self.threads.get_mut(thread)
            && state.noted_name.differs(name)
        {
            state.name = state.noted_name.note(name);
        }
    }

    /// The thread that runs gives the GVL up.
    pub fn suspended(&mut self, thread: ThreadNumber, now: u64) {
        if thread == self.threads.running_number() && !self.time.is_paused() {
            self.charge(now);
            self.leave_cpu();
            if let Some(state) = self.threads.get_running_mut() {
                state.away_since = Some(self.time.last);
            }
        }
    }

    /// The thread that runs is at a piece of a collection. `is_marking`: the collection is in its
    /// marking phase, which may take several pieces.
    pub fn collecting(&mut self, event: GcEvent, is_marking: bool, now: u64) {
        if !self.level.timed {
            return;
        }
        match self.threads.collecting {
            Some(state) if event != GcEvent::Enter => {
                let (node, gap) = (self.fibers.charged(), self.time.gap(now));
                if let Some(thread) = self.threads.get_running_mut() {
                    thread.sums.states.add(node, state, gap);
                }
                self.time.come_to(now);
                self.end_cpu_window(state);
            }
            _ => {
                self.charge(now);
                self.end_cpu_window(State::Running);
            }
        }
        let collecting = &mut self.threads.collecting;
        *collecting = match event {
            GcEvent::Exit => None,
            GcEvent::Enter => Some(phase(is_marking)),
            GcEvent::MarkBegin | GcEvent::MarkEnd => collecting.map(|_| phase(is_marking)),
        };
    }

    /// Brings all threads up to now, or to the begin of a pause. `ready` says of those that are alive since when they have
    /// been ready to run, 0 if they aren't; the others stay as they are.
    pub fn flush(&mut self, now: u64, ready: impl Fn(ThreadNumber) -> Option<u64>) {
        self.charge_unless_paused(now);
        if !self.level.timed {
            return;
        }
        if !self.time.is_paused() {
            self.end_cpu_window(State::Running);
        }
        let (now, running) = (self.time.counts_until(now), self.threads.running_number());
        for (number, thread) in self.threads.numbered_mut() {
            if let Some(since) = thread.away_since
                && number != running
                && let Some(ready) = ready(number)
            {
                let node = self.fibers[thread.fiber].charged();
                thread.sums.states.add_away(node, since, ready, now);
                thread.away_since = Some(now);
            }
        }
    }
}
