//! Pauses of the made-up VM: the program goes on, and only switches of threads and fibers are told.

use super::frames::View;
use super::{Machine, State};
use crate::{ThreadNumber, TraceVm};

impl Machine {
    /// Whether calls are told.
    pub(super) fn is_counting(&self) -> bool {
        self.tracer.is_some() && self.paused_since.is_none()
    }

    /// The time that has counted so far.
    pub fn counted(&self) -> u64 {
        self.paused_since.unwrap_or(self.now) - self.paused
    }

    /// Times in states that count.
    fn add_away(&mut self) {
        for (number, thread) in self.threads.iter().enumerate() {
            if number != self.thread && thread.number.is_some() {
                let ready = match thread.ready {
                    0 => self.now,
                    ready => ready.max(thread.away_since),
                };
                *self.states.entry(State::GvlBlocked).or_default() += ready - thread.away_since;
                *self.states.entry(State::GvlWait).or_default() += self.now - ready;
            }
        }
    }

    pub(super) fn pause(&mut self) {
        if !self.is_counting() {
            return;
        }
        let now = self.now;
        self.add_away();
        if let Some(tracer) = &mut self.tracer {
            tracer.pause(now);
        }
        self.paused_since = Some(now);
        // Where it goes on, a stack is taken from the VM.
        let fibers = self.threads.iter_mut().flat_map(|it| &mut it.fibers);
        fibers.flatten().for_each(|frame| frame.is_known = false);
    }

    pub(super) fn resume(&mut self) {
        let Some(since) = self.paused_since.take() else {
            return;
        };
        let Some(mut tracer) = self.tracer.take() else {
            return;
        };
        self.paused += self.now - since;
        tracer.resume(self.now, |thread| Some(self.ready_since(thread)));
        for (place, thread) in self.threads.iter_mut().enumerate() {
            (thread.away_since, thread.ready) = match thread.ready {
                // It has been ready since before.
                1.. if place != self.thread => (self.now, self.now),
                _ => (self.now, 0),
            };
            let Some(number) = thread.number.filter(|it| tracer.lacks_stack(*it)) else {
                continue;
            };
            let view = View(thread.fibers[thread.fiber].clone());
            let mut frames = vec![0; 1000];
            let found = view.frames(&mut frames);
            view.mark_blocks(&mut frames[..found]);
            let depth = (place == self.thread).then(|| view.depth());
            tracer.adopt_stack(&view, number, &frames[..found], depth);
        }
        let present: Option<ThreadNumber> = self.threads[self.thread].number;
        if let Some(present) = present {
            tracer.resumed(present, 0, self.now);
        }
        self.tracer = Some(tracer);
    }
}
