//! How far a session's epochs are. With the GVL, in collections too.

use super::ending_epoch::EndingEpoch;
use rperf_vm::{FrameNames, FrameWord, ResolvedFrame, names_memory};
use std::sync::Arc;

/// The present epoch, of which frames may have names, and the one before it as long as it is being ended:
/// at most one is.
#[derive(Debug, Default)]
pub(super) struct EpochState {
    /// How many call trees there were before this one.
    number: u64,
    /// Names of the call tree's first frames, which a snapshot has asked for, or somebody who watches.
    names: Vec<Arc<ResolvedFrame>>,
    /// The epoch that is being ended: its frames must stay alive until they have names.
    ending: Option<EndingEpoch>,
    /// Up to when an epoch ends only if its tree is full.
    pub(super) no_end_before: u64,
}

impl EpochState {
    /// Which call tree it is: no other one of this session has this number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Names of the call tree's first frames.
    pub(super) fn names(&self) -> &[Arc<ResolvedFrame>] {
        &self.names
    }

    /// The next frame has this name.
    pub(super) fn push_name(&mut self, name: ResolvedFrame) {
        self.names.push(Arc::new(name));
    }

    /// Keeps those of the call tree's names in `frames` that are new.
    pub(super) fn learn_names(&mut self, frames: &FrameNames) {
        let news = frames.names().get(self.names.len()..);
        self.names.extend_from_slice(news.unwrap_or_default());
    }

    /// Another call tree takes over. Returns the names of the old one's first frames.
    pub(super) fn begin_next(&mut self) -> Vec<Arc<ResolvedFrame>> {
        self.number += 1;
        std::mem::take(&mut self.names)
    }

    /// The epoch before the present one is being ended from now on.
    pub(super) fn begin_end(&mut self, ending: EndingEpoch) {
        self.ending = Some(ending);
    }

    /// The frame of the one that is being ended which is to be named next; `None` if all have names, or
    /// none is being ended.
    pub(super) fn next_unnamed(&self) -> Option<FrameWord> {
        self.ending.as_ref()?.frames.next()
    }

    /// Names `frame`, if it is still the next one.
    pub(super) fn name(&mut self, frame: FrameWord, name: ResolvedFrame) {
        if let Some(ending) = &mut self.ending {
            ending.frames.add(frame, name);
        }
    }

    /// Whether one is being ended.
    #[inline]
    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// The frames without names of the one that is being ended, which must stay alive.
    pub(super) fn unnamed(&self) -> impl Iterator<Item = &FrameWord> {
        self.ending.iter().flat_map(EndingEpoch::unnamed)
    }

    /// Ends the epoch, for whose end `spent_ns` have passed again, if all its frames have names.
    pub(super) fn end_if_named(&mut self, spent_ns: u64) -> Option<EndingEpoch> {
        let ending = self.ending.as_mut()?;
        ending.spent_ns += spent_ns;
        if ending.frames.next().is_some() {
            return None;
        }
        self.ending.take()
    }

    /// Bytes held.
    pub(super) fn memory(&self) -> usize {
        names_memory(&self.names) + self.ending.as_ref().map_or(0, EndingEpoch::memory)
    }
}
