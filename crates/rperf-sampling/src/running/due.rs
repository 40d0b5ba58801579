//! What an event has made due, and its recording. The event's call returns it; the bridge takes
//! the stack that it needs, and hands both back. With the GVL, in hooks too.

use super::{GvlState, RunningSession};
use crate::accounting::Dues;
use crate::counters::{CaptureCounters, StackCounts};
use crate::recording::{Position, SampleStack};
use crate::threads::{GvlPart, ThreadState};
use rperf_model::NodeId;
use rperf_vm::{Backtrace, FrameWord, Gvl, GvlRef, LabelSet, Stack, StackDigest, VmThread, clock};
use std::ops::{Deref, Range};

/// What an event leaves for the bridge to do: mostly nothing.
#[derive(Debug)]
#[must_use = "what is due and not recorded is lost"]
#[allow(
    clippy::large_enum_variant,
    reason = "hooks allocate nothing, and only what is due is ever written or moved"
)]
pub enum FollowUp<'a> {
    /// Nothing.
    None,
    /// [`RunningSession::record`].
    Record(Wanted<'a>),
    /// Samples were made of stacks that were taken before.
    KeepAlive(NewFrames<'a>),
}

/// What is due on one thread, and the stack that it needs.
#[derive(Debug)]
#[must_use = "what is due and not recorded is lost"]
pub struct Wanted<'a> {
    /// The thread whose labels are needed, and mostly its stack. It is alive.
    pub thread: VmThread,
    /// Which stack is needed.
    pub stack: WantedStack,
    kept: Kept<'a>,
    known: Known,
    now_ns: u64,
    /// From here on the time that it takes counts as the session's own.
    began_ns: Option<u64>,
    dues: Dues,
}

/// The stack that a sample needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WantedStack {
    /// None: the thread's last stacks are known.
    None,
    /// The calling thread's, but no more frames from the root than these.
    Current(usize),
    /// Another thread's.
    Other,
}

/// What is known of a stack before it is taken.
#[derive(Debug, Clone, Copy)]
enum Known {
    /// Nothing.
    Nothing,
    /// Its digest, by which the thread's next wait may know it again.
    Digest(StackDigest),
    /// Its node.
    Node(NodeId),
}

/// All frames of a stack.
const ALL: usize = usize::MAX;

/// Where the thread's state is.
#[derive(Debug)]
enum Kept<'a> {
    /// At hand.
    State(&'a ThreadState),
    /// In a row of [`GvlState::threads`].
    Row(usize),
}

/// Frames that have just entered the frame table. All are alive, and none has left it as long as
/// this is there.
#[derive(Debug)]
#[must_use = "the garbage collector has to learn of new frames before it can run"]
pub struct NewFrames<'a> {
    state: Option<GvlRef<'a, GvlState>>,
    rows: Range<usize>,
}

impl<'a> NewFrames<'a> {
    /// Takes the frames of the session that the collector hasn't been told of.
    pub(super) fn take(mut state: GvlRef<'a, GvlState>) -> Self {
        let rows = state.engine.take_new_frames();
        let state = Some(state);
        NewFrames { state, rows }
    }

    pub(super) const NONE: NewFrames<'static> = NewFrames {
        state: None,
        rows: 0..0,
    };
}

impl Deref for NewFrames<'_> {
    type Target = [FrameWord];

    fn deref(&self) -> &[FrameWord] {
        let frames = self
            .state
            .as_ref()
            .map(|state| state.engine.tree().frames());
        frames.map_or(&[], |frames| &frames[self.rows.clone()])
    }
}

impl<'a> FollowUp<'a> {
    /// The `dues` of `thread`, the calling one, as of `now`: most events make nothing due, and
    /// don't come here.
    #[cold]
    pub(super) fn due(thread: &'a ThreadState, now_ns: u64, dues: Dues) -> Self {
        let began_ns = clock::monotonic_ns();
        let wanted = Wanted::of_current(thread, now_ns, dues);
        FollowUp::Record(wanted.counted_from(began_ns))
    }
}

impl<'a> Wanted<'a> {
    /// The `dues` of `thread`, the calling one, at its stack as of `now`.
    pub(super) fn of_current(thread: &'a ThreadState, now_ns: u64, dues: Dues) -> Self {
        let stack = WantedStack::Current(ALL);
        Self::new(thread.thread, Kept::State(thread), stack, now_ns, dues)
    }

    /// The `dues` of the thread in `row`.
    pub(super) fn of_row(
        row: usize,
        thread: VmThread,
        is_current: bool,
        now_ns: u64,
        dues: Dues,
    ) -> Self {
        let stack = if is_current {
            WantedStack::Current(ALL)
        } else {
            WantedStack::Other
        };
        Self::new(thread, Kept::Row(row), stack, now_ns, dues)
    }

    fn new(thread: VmThread, kept: Kept<'a>, stack: WantedStack, now_ns: u64, dues: Dues) -> Self {
        let stack = if dues.needs_stack() {
            stack
        } else {
            WantedStack::None
        };
        Wanted {
            thread,
            stack,
            kept,
            known: Known::Nothing,
            now_ns,
            began_ns: None,
            dues,
        }
    }

    /// Counts the time from `began_ns` to the end of recording as the session's own.
    pub(super) fn counted_from(mut self, began_ns: u64) -> Self {
        self.began_ns = Some(began_ns);
        self
    }

    /// At most so many frames of the stack, from the root.
    pub(super) fn up_to(mut self, frames: usize) -> Self {
        if let WantedStack::Current(most) = &mut self.stack {
            *most = frames;
        }
        self
    }
}

impl RunningSession {
    /// Where the bridge takes a stack to; `None` if it does so further up the same stack.
    pub fn backtrace<'a>(&'a self, gvl: &'a Gvl<'_>) -> Option<GvlRef<'a, Backtrace>> {
        self.stacks.of_event.borrow(gvl)
    }

    /// Whether the stack that is wanted is that of the thread's last wait, so that it need not be taken:
    /// its `digest` tells, which is asked for after waits alone.
    #[inline]
    pub fn knows_stack(
        &self,
        gvl: &Gvl<'_>,
        wanted: &mut Wanted<'_>,
        digest: impl FnOnce() -> Option<StackDigest>,
    ) -> bool {
        let Kept::State(thread) = wanted.kept else {
            return false;
        };
        if wanted.stack != WantedStack::Current(ALL) || !wanted.dues.is_off_gvl() {
            return false;
        }
        let (Some(digest), Some(part)) = (digest(), thread.gvl_part(gvl)) else {
            return false;
        };
        let node = part.last_stack.wait_with(digest);
        wanted.known = node.map_or(Known::Digest(digest), Known::Node);
        node.is_some()
    }

    /// Records what is due, with these labels, which are those of the thread's present fiber. `stack` is
    /// the one that is wanted, or `None` if it is known.
    pub fn record<'a>(
        &'a self,
        gvl: &'a Gvl<'_>,
        wanted: Wanted<'_>,
        stack: Option<Stack<'_>>,
        labels: Option<&LabelSet>,
    ) -> NewFrames<'a> {
        let Some(mut state) = self.state(gvl) else {
            return NewFrames::NONE;
        };
        let is_off_gvl = wanted.dues.is_off_gvl();
        let GvlState {
            engine, threads, ..
        } = &mut *state;
        let thread = match wanted.kept {
            Kept::State(thread) => Some(thread),
            Kept::Row(row) => threads.get(row).map(|thread| &**thread),
        };
        if let Some(mut part) = thread.and_then(|thread| thread.gvl_part(gvl))
            && let GvlPart {
                accounting: Some(accounting),
                last_stack: last,
                ..
            } = &mut *part
        {
            let position = Position {
                stack: match wanted.known {
                    Known::Node(node) => Some(SampleStack::Node(node)),
                    _ => stack.map(SampleStack::Frames),
                },
                last,
                labels,
            };
            engine.record(wanted.now_ns, accounting, wanted.dues, position);
            if let Known::Node(_) = wanted.known {
                engine.count_capture(CaptureCounters {
                    known_waits: 1,
                    ..CaptureCounters::default()
                });
            }
            if let Known::Digest(digest) = wanted.known
                && stack.is_some_and(|stack| !stack.cut)
            {
                last.note_wait(digest);
            }
        }
        if let Some(began_ns) = wanted.began_ns {
            let now = clock::monotonic_ns();
            let stacks = StackCounts::off_gvl(u64::from(is_off_gvl));
            engine.count_sampling(now, stacks, now.saturating_sub(began_ns));
        }
        NewFrames::take(state)
    }

    /// What is left to do after an event that made nothing due, but may have made samples of
    /// stacks taken before.
    #[inline]
    pub(super) fn after_drain<'a>(&'a self, gvl: &'a Gvl<'_>, has_drained: bool) -> FollowUp<'a> {
        if has_drained {
            self.state(gvl).map_or(FollowUp::None, |state| {
                FollowUp::KeepAlive(NewFrames::take(state))
            })
        } else {
            FollowUp::None
        }
    }
}
