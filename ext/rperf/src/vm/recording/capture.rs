//! The stack of a thread, taken now, and samples made at it. In hooks, in the sampling callback
//! and in methods, with the GVL.

use super::roots;
use crate::vm::state::frames::RubyFrames;
use crate::vm::state::label_set;
use crate::vm::state::session::RunningSession;
use crate::vm::state::threads::RubyThread;
use rperf_engine::{Accounting, Backtrace, Dues, Gvl, LastStack, Position, Session, Stack};

/// Whose backtrace to take.
#[derive(Clone, Copy)]
pub enum Whose<'a> {
    /// The calling thread's.
    Current(RubyThread<'a>),
    /// So many frames of the calling thread's, from the root.
    CurrentUpTo(RubyThread<'a>, usize),
    /// Another thread's.
    Other(RubyThread<'a>),
}

impl<'a> Whose<'a> {
    /// The thread.
    fn thread(self) -> RubyThread<'a> {
        match self {
            Whose::Current(thread) | Whose::CurrentUpTo(thread, _) | Whose::Other(thread) => thread,
        }
    }
}

/// Takes the backtrace of `whose` thread.
pub fn take<'b>(gvl: &Gvl<'_>, backtrace: &'b mut Backtrace, whose: Whose<'_>) -> Stack<'b> {
    if let Whose::Other(thread) = whose {
        let depth = backtrace.take_by(|frames, lines| thread.backtrace(frames, lines));
        return backtrace.stack(depth);
    }
    let frames = RubyFrames::new(gvl);
    let depth = backtrace.take(&frames);
    if depth > 0 {
        backtrace.complete_line_of_leaf(&frames);
    }
    match whose {
        Whose::CurrentUpTo(_, frames) => backtrace.stack_up_to(frames, depth),
        _ => backtrace.stack(depth),
    }
}

/// Records the `dues` of `whose` thread at its stack, with the labels of its present fiber.
pub fn record(
    gvl: &Gvl<'_>,
    session: &RunningSession,
    (engine, backtrace): (&mut Session, &mut Backtrace),
    (now, dues): (u64, Dues),
    (accounting, last): (&mut Accounting, &mut LastStack),
    whose: Whose<'_>,
) {
    let stack = dues.needs_stack().then(|| take(gvl, backtrace, whose));
    let position = Position {
        stack,
        last,
        labels: label_set::of_thread(session, whose.thread()),
    };
    roots::keep_alive(engine.record(now, accounting, dues, position));
}
