//! What is needed to record samples: the thread's stack, and the recorder that the
//! accounting is given. Under the GVL, in hooks.

use super::Session;
use crate::Values;
use crate::accounting::{Place, Recorder};
use crate::call_tree::{FrameWord, LastStack};
use crate::labels::LabelSet;
use rperf_model::{NodeId, State};

/// A stack as the bridge captured it, leaf first; `lines` may be empty.
#[derive(Debug, Clone, Copy)]
pub struct Stack<'a> {
    /// The frames.
    pub frames: &'a [FrameWord],
    /// Their lines.
    pub lines: &'a [u32],
    /// Frames at the root may be missing: there was no room for them.
    pub cut: bool,
}

/// What is needed besides the session to record a sample of one thread.
pub trait StackSource {
    /// Takes the thread's backtrace; `None` if that isn't possible now.
    fn capture(&mut self) -> Option<Stack<'_>>;
    /// Told of each frame that enters the frame table, right after it did.
    fn new_frame(&mut self, frame: FrameWord);
}

/// Records the samples of one thread and one event.
#[derive(Debug)]
pub struct SessionRecorder<'a, S> {
    pub(super) session: &'a mut Session,
    pub(super) now: u64,
    pub(super) last: &'a mut LastStack,
    pub(super) labels: Option<&'a LabelSet>,
    pub(super) source: S,
}

impl<S: StackSource> SessionRecorder<'_, S> {
    fn capture(&mut self, count: u64) -> Option<NodeId> {
        let stack = self.source.capture()?;
        let cut = stack.cut;
        // Told before any collection can run: nothing here calls the VM.
        let known = self.session.tree.frames().len();
        let interned = self
            .session
            .tree
            .intern(stack.frames, stack.lines, self.last);
        for &frame in &self.session.tree.frames()[known..] {
            self.source.new_frame(frame);
        }
        if interned.truncated || cut {
            self.session.counters.truncated += count;
        }
        Some(interned.node)
    }
}

impl<S: StackSource> Recorder for SessionRecorder<'_, S> {
    fn record(&mut self, thread: u32, state: State, values: Values) -> Option<Place> {
        // A sample may stand for no tick, but is one.
        let count = values.count.max(1);
        let Some(node) = self.capture(count) else {
            self.session.counters.uncaptured.add(values);
            return None;
        };
        let labels = self.labels;
        let place = Place {
            node,
            labels: labels.map_or(0, |set| self.session.labels.number(set, count)),
        };
        self.record_at(place, thread, state, values);
        Some(place)
    }

    fn record_at(&mut self, place: Place, thread: u32, state: State, values: Values) {
        self.session.push(self.now, place, thread, state, values);
    }

    fn take_orphaned(&mut self, state: State) -> Values {
        std::mem::take(&mut self.session.orphaned[state as usize])
    }

    fn leave_orphaned(&mut self, state: State, values: Values) {
        self.session.orphaned[state as usize].add(values);
    }
}
