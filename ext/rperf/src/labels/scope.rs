//! `Native.enter` and `Native.leave`: the begin and the end of a block that has labels, or
//! is a section of a deferred session, or both; and pauses. `Rperf.label`, `Rperf.profile` and the
//! middleware call them, on threads of the main Ractor, with the GVL.
//!
//! An interrupt (`Timeout`, `Thread#kill`) can come as a method of C returns: its work is
//! done, but its caller never learns the result. So the caller hands in an Array, in which
//! each step is noted that is to be undone: the label set that was there before (nil for
//! none), and the number of the session whose section has begun.

use super::cache::Changes;
use super::{add, add_constant, put};
use crate::profile::errors;
use crate::ruby::threads::RubyThread;
use crate::running::derived_labels::{self, Begins};
use crate::running::{Kind, Running, session};
use crate::sampling::section::{self, Pause, Switch};
use crate::tracing::section::TRACING;
use magnus::{Error, Integer, RArray, RHash, Ruby, Value};
use rperf_sampling::Sections;
use rperf_vm::Gvl;

/// `Native.enter(undo, labels, counts)`: adds the Hash `labels`, unless that is nil, to the
/// labels of the present fiber; then, if `counts`, a section begins. Does nothing without
/// a session.
pub fn enter(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    labels: Option<RHash>,
    counts: bool,
    begins: Begins,
) -> Result<(), Error> {
    let Some(session) = session(gvl) else {
        return Ok(());
    };
    let counts = counts && session.has_sections;
    if let Some(labels) = labels {
        add(ruby, gvl, undo, labels, begins)?;
    }
    if counts {
        section::enter(ruby, gvl, switch_of, undo)?;
    }
    Ok(())
}

/// How time begins and ends to count in a session; not at all where chosen methods are counted
/// alone.
fn switch_of(session: &Running) -> Option<&'static Switch> {
    match session.kind {
        Kind::Sampling(_) => Some(&section::SAMPLING),
        Kind::Tracing(_) => Some(&TRACING),
        Kind::Calibration(_) | Kind::Chosen => None,
    }
}

/// `Native.pause(undo)`: a pause for a block begins, which is noted in `undo`.
pub fn pause(ruby: &Ruby, gvl: &Gvl<'_>, undo: RArray) -> Result<(), Error> {
    check_pausable(ruby, gvl)?;
    let id = section::pause(gvl, switch_of, Pause::Block);
    id.map_or(Ok(()), |id| undo.push(id))
}

/// `Native.unpause(undo)`: it ends, if it has begun. Its session may be over.
pub fn unpause(ruby: &Ruby, gvl: &mut Gvl<'_>, undo: RArray) -> Result<(), Error> {
    let id: Option<u64> = undo.pop()?;
    if id.is_none() {
        return Ok(());
    }
    let (_, interrupts) = section::resume(ruby, gvl, switch_of, Pause::Block, id)?;
    interrupts.raise()
}

/// `Native.hold(on)`: a pause begins that lasts until it is ended, or ends. Returns whether that
/// is news.
pub fn hold(ruby: &Ruby, gvl: &mut Gvl<'_>, on: bool) -> Result<bool, Error> {
    check_pausable(ruby, gvl)?;
    if on {
        return Ok(section::pause(gvl, switch_of, Pause::Held).is_some());
    }
    let (is_news, interrupts) = section::resume(ruby, gvl, switch_of, Pause::Held, None)?;
    interrupts.raise().map(|()| is_news)
}

/// Fails if a session runs that can't be paused.
fn check_pausable(ruby: &Ruby, gvl: &Gvl<'_>) -> Result<(), Error> {
    if session(gvl).is_none_or(|it| it.chosen.is_none()) {
        return Ok(());
    }
    let message = "a session that counts chosen methods (only:) can't be paused";
    Err(errors::rperf(ruby, message))
}

/// `Native.enter_at_once(undo, labels)`: as `enter` for a section, if nothing of it can fail:
/// whatever is raised is an interrupt, which comes as this is done. Returns whether it is.
pub fn enter_at_once(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    labels: Option<RHash>,
    begins: Begins,
) -> Result<bool, Error> {
    let opens = |session: &Running| {
        session.has_sections && session.sections().is_some_and(Sections::is_none)
    };
    let opens_none = !session(gvl).is_some_and(opens);
    let changes = labels.map(Changes::of).transpose()?;
    let is_possible = opens_none && !matches!(changes, Some(None));
    let Some(session) = session(gvl).filter(|_| is_possible) else {
        return Ok(is_possible);
    };
    let counts = session.has_sections;
    if let Some(changes) = changes.flatten() {
        add_constant(ruby, gvl, undo, changes, begins)?;
    }
    if counts {
        section::enter(ruby, gvl, switch_of, undo)?;
    }
    Ok(true)
}

/// `Native.leave_at_once(undo)`: as `leave`, if no section ends that is the last one. Returns
/// whether it is done.
pub fn leave_at_once(gvl: &mut Gvl<'_>, undo: RArray) -> Result<bool, Error> {
    let ends = |session: &Running| {
        session.has_sections && session.sections().is_some_and(Sections::is_last)
    };
    let closes_none = !session(gvl).is_some_and(ends);
    if closes_none {
        leave(gvl, undo, LeftOps::End)?;
    }
    Ok(closes_none)
}

/// What becomes of ops that have begun within what is left, and go on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum LeftOps {
    /// The ops go on: their library ends them later.
    GoOn,
    /// Nothing will end them: their request, job or test is over.
    End,
}

/// `Native.leave(undo)`: undoes what `enter` has noted, the last step first. So a section
/// ends with its own labels, and all is done when the first interrupt can come.
pub fn leave(gvl: &mut Gvl<'_>, undo: RArray, ops: LeftOps) -> Result<(), Error> {
    while !undo.is_empty() {
        let step: Value = undo.pop()?;
        match Integer::from_value(step) {
            Some(number) => section::leave(gvl, switch_of, number.to_u64()?),
            None => {
                let set = match ops {
                    LeftOps::GoOn => {
                        derived_labels::with_open_op(gvl, RubyThread::current(gvl), step)
                    }
                    LeftOps::End => derived_labels::without_ended_ops(gvl, step),
                };
                put(gvl, set)?;
            }
        }
    }
    Ok(())
}
