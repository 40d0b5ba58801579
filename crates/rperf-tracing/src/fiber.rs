//! The stack of open frames of one fiber, as the events tell it. At the bottom is what was taken
//! from the VM at once, whose ends only show by how deep the VM's stack is then. Under the GVL.

use crate::event::TraceVm;
use crate::tree::ROOT;
use rperf_vm::FrameWord;

pub(crate) mod fibers;

/// Stacks of fibers that are gone keep room for so many frames, for the next fiber.
const KEPT_ROOM: usize = 64;

/// How we know of an open frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    /// An event told of it.
    Told,
    /// No event did; the VM shows it.
    Shown,
    /// No event did, and the VM doesn't show it: only its depth is noted.
    Hidden,
}

/// An open frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) node: u32,
    /// The node that its time goes to: that of its caller, for a method of C that no event told
    /// of. All that the caller did up to its next event would be the method's otherwise.
    pub(crate) charge: u32,
    pub(crate) depth: u32,
    /// The frame as the VM shows it; of a method of C that was told, 0. If it is hidden, the one
    /// that is shown below it.
    pub(crate) word: FrameWord,
    /// How many frames from here down have no event that tells of their ends: they are looked at
    /// again at the next call. 0 if this one has.
    pub(crate) run: u32,
    /// Hidden frames are or were among those of the run: it may be less deep than noted, and its
    /// noted place may be another's.
    pub(crate) may_be_higher: bool,
    pub(crate) known: Known,
    /// A method that a block defines: the event of the block has come, too.
    pub(crate) is_told_twice: bool,
}

impl Open {
    /// A frame that an event told of.
    #[inline]
    pub(crate) fn told(node: u32, depth: u32, word: FrameWord) -> Self {
        Self {
            node,
            charge: node,
            depth,
            word,
            run: 0,
            may_be_higher: false,
            known: Known::Told,
            is_told_twice: false,
        }
    }

    #[inline]
    pub(crate) fn is_told(&self) -> bool {
        self.known == Known::Told
    }
}

/// A fiber, or the part of a thread that is in none.
#[derive(Debug, Default)]
pub(crate) struct Fiber {
    pub(crate) stack: Vec<Open>,
    /// How many of these, from the bottom, were taken from the VM at once.
    pub(crate) base: usize,
    /// How deep the VM's stack was then.
    pub(crate) base_depth: u32,
    /// Returns were lost, and the next call looks whether its caller is right.
    pub(crate) has_lost: bool,
    /// How deep the frame was whose rescue clause was told last: `retry` may begin it anew.
    pub(crate) rescued_depth: u32,
}

impl Fiber {
    #[inline]
    pub(crate) fn top(&self) -> Option<&Open> {
        self.stack.last()
    }

    /// The node that time goes to.
    #[inline]
    pub(crate) fn charged(&self) -> u32 {
        self.top().map_or(ROOT, |top| top.charge)
    }

    /// Whether only the base is left.
    #[inline]
    pub(crate) fn is_at_base(&self) -> bool {
        self.stack.len() == self.base
    }

    /// Drops frames above the base for as long as `is_gone`.
    #[inline]
    pub(crate) fn drop_while(&mut self, is_gone: impl Fn(&Open) -> bool) {
        let above = self.stack.get(self.base..).unwrap_or_default();
        let last = above.iter().rposition(|open| !is_gone(open));
        self.stack
            .truncate(self.base + last.map_or(0, |last| last + 1));
    }

    /// Whether our stack surely goes on as `frames` do, which are the VM's below what begins, leaf
    /// first: those of the `run` that no event tells the end of, and one or two more. Where the
    /// first of these looks like one of the run, some may have given way to hidden ones; where it
    /// looks like the second, and hidden ones were in the run, they may have given way to a clause.
    /// The frames don't tell then.
    #[inline]
    pub(crate) fn still_has(&self, vm: &impl TraceVm, frames: &[FrameWord], run: usize) -> bool {
        let may_be_higher = self.top().is_some_and(|top| top.may_be_higher);
        let mut ours = self.shown();
        let is_known = |frame: &FrameWord| match ours.next() {
            Some(0) => vm.is_c_method(*frame),
            our => our == Some(*frame),
        };
        if !frames.iter().all(is_known) {
            return false;
        }
        match frames.get(run) {
            Some(last) if frames[..run].contains(last) => false,
            Some(last) => !may_be_higher || frames.get(run + 1).is_some_and(|it| it != last),
            None => ours.next().is_none(),
        }
    }

    /// The words of the frames that the VM shows, topmost first.
    pub(crate) fn shown(&self) -> impl Iterator<Item = FrameWord> {
        let shown = self
            .stack
            .iter()
            .rev()
            .filter(|open| open.known != Known::Hidden);
        shown.map(|open| open.word)
    }

    /// A new fiber has taken the place of one that is gone.
    pub(crate) fn clear(&mut self) {
        self.stack.clear();
        self.stack.shrink_to(KEPT_ROOM);
        (self.base, self.base_depth, self.rescued_depth) = (0, 0, 0);
        self.has_lost = false;
    }
}
