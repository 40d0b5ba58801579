//! What [`Tracer`] does as threads get the GVL and give it up, and as they collect garbage: time
//! goes to the frame that is innermost then, by the state of its thread. At events, under the GVL.

use crate::fiber::Fiber;
use crate::tracer::{MAX_THREADS, ThreadNumber, Tracer};
use crate::tree::ROOT;
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
        let Some(state) = self.threads.get_mut(thread.0 as usize) else {
            return;
        };
        // A profile in between may have read a clock that events only have a note of.
        let now = now.max(self.last);
        if let Some(since) = state.away_since.take() {
            let node = self.fibers[state.fiber]
                .top()
                .map_or(ROOT, |top| top.charge);
            if self.level.timed {
                let until = self.pauses.since.unwrap_or(now);
                state.sums.states.add_away(node, since, ready, until);
            }
        }
        (self.thread, self.fiber) = (thread.0 as usize, state.fiber);
        if self.pauses.since.is_some() {
            return self.runs_in_pause();
        }
        self.last = now;
        self.enter_cpu(thread);
    }

    /// The thread has this name.
    #[inline]
    pub fn note_name(&mut self, thread: ThreadNumber, name: &impl VmName) {
        // The last number may be that of several threads.
        if thread.0 as usize + 1 < MAX_THREADS
            && let Some(state) = self.threads.get_mut(thread.0 as usize)
            && state.noted_name.differs(name)
        {
            state.name = state.noted_name.note(name);
        }
    }

    /// The thread that runs gives the GVL up.
    pub fn suspended(&mut self, thread: ThreadNumber, now: u64) {
        if thread.0 as usize == self.thread && self.pauses.since.is_none() {
            self.charge(now);
            self.leave_cpu();
            let last = self.last;
            if let Some(state) = self.threads.get_mut(self.thread) {
                state.away_since = Some(last);
            }
        }
    }

    /// The thread that runs is at a piece of a collection. `is_marking`: the collection is in its
    /// marking phase, which may take several pieces.
    pub fn collecting(&mut self, event: GcEvent, is_marking: bool, now: u64) {
        if !self.level.timed {
            return;
        }
        match self.collecting {
            Some(state) if event != GcEvent::Enter => {
                let top = self.fibers.get(self.fiber).and_then(Fiber::top);
                let node = top.map_or(ROOT, |top| top.charge);
                if let Some(thread) = self.threads.get_mut(self.thread) {
                    let times = &mut thread.sums.states;
                    times.add(node, state, now.saturating_sub(self.last));
                }
                self.last = self.last.max(now);
                self.end_cpu_window(state);
            }
            _ => {
                self.charge(now);
                self.end_cpu_window(State::Running);
            }
        }
        self.collecting = match event {
            GcEvent::Exit => None,
            GcEvent::Enter => Some(phase(is_marking)),
            GcEvent::MarkBegin | GcEvent::MarkEnd => self.collecting.map(|_| phase(is_marking)),
        };
    }

    /// Brings all threads up to now, or to the begin of a pause. `ready` says of those that are alive since when they have
    /// been ready to run, 0 if they aren't; the others stay as they are.
    pub fn flush(&mut self, now: u64, ready: impl Fn(ThreadNumber) -> Option<u64>) {
        self.charge_unless_paused(now);
        if !self.level.timed {
            return;
        }
        if self.pauses.since.is_none() {
            self.end_cpu_window(State::Running);
        }
        let now = self.pauses.since.unwrap_or(now);
        for (number, thread) in self.threads.iter_mut().enumerate() {
            if let Some(since) = thread.away_since
                && number != self.thread
                && let Some(ready) = ready(ThreadNumber(number as u32))
            {
                let top = self.fibers[thread.fiber].top();
                let node = top.map_or(ROOT, |top| top.charge);
                thread.sums.states.add_away(node, since, ready, now);
                thread.away_since = Some(now);
            }
        }
    }
}
