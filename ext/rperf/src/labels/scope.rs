//! `Native.enter` and `Native.leave`: the begin and the end of a block that has labels, or
//! is a section of a deferred session, or both; and pauses. `Rperf.label`, `Rperf.profile` and the
//! middleware call them, on threads of the main Ractor, with the GVL.
//!
//! An interrupt (`Timeout`, `Thread#kill`) can come as a method of C returns: its work is
//! done, but its caller never learns the result. So the caller hands in an Array, in which
//! each step is noted that is to be undone: the label set that was there before (nil for
//! none), and the number of the session whose section has begun.

use super::{add, are_constant, put};
use crate::profile::errors;
use crate::trace::api::section::TRACING;
use crate::vm::api::section::{self, Pause, Switch};
use crate::vm::state::session::{StartedSession, session};
use magnus::{Error, Integer, RArray, RHash, Ruby, Value};
use rperf_engine::Gvl;

/// `Native.enter(undo, labels, counts)`: adds the Hash `labels`, unless that is nil, to the
/// labels of the present fiber; then, if `counts`, a section begins. Does nothing without
/// a session.
pub fn enter(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    labels: Option<RHash>,
    counts: bool,
) -> Result<(), Error> {
    let Some(session) = session(gvl) else {
        return Ok(());
    };
    let switch = switch_of(session).filter(|_| counts);
    if let Some(labels) = labels {
        add(ruby, gvl, undo, labels)?;
    }
    match switch {
        Some(switch) => section::enter(ruby, gvl, switch, undo),
        None => Ok(()),
    }
}

/// How time begins and ends to count in a session; not at all where chosen methods are counted
/// alone.
fn switch_of(session: &StartedSession) -> Option<&'static Switch> {
    match session.settings.is_traced() {
        false => Some(&section::SAMPLING),
        true if session.settings.only().is_empty() => Some(&TRACING),
        true => None,
    }
}

/// `Native.pause(undo)`: a pause for a block begins, which is noted in `undo`.
pub fn pause(ruby: &Ruby, gvl: &Gvl<'_>, undo: RArray) -> Result<(), Error> {
    let switch = switch(ruby, gvl)?;
    let id = switch.and_then(|switch| section::pause(gvl, switch, Pause::Block));
    id.map_or(Ok(()), |id| undo.push(id))
}

/// `Native.unpause(undo)`: it ends, if it has begun.
pub fn unpause(ruby: &Ruby, gvl: &mut Gvl<'_>, undo: RArray) -> Result<(), Error> {
    let id: Option<u64> = undo.pop()?;
    let (Some(id), Some(switch)) = (id, switch(ruby, gvl)?) else {
        return Ok(());
    };
    let (_, interrupts) = section::resume(ruby, gvl, switch, Pause::Block, Some(id))?;
    interrupts.raise()
}

/// `Native.hold(on)`: a pause begins that lasts until it is ended, or ends. Returns whether that
/// is news.
pub fn hold(ruby: &Ruby, gvl: &mut Gvl<'_>, on: bool) -> Result<bool, Error> {
    let Some(switch) = switch(ruby, gvl)? else {
        return Ok(false);
    };
    if on {
        return Ok(section::pause(gvl, switch, Pause::Held).is_some());
    }
    let (is_news, interrupts) = section::resume(ruby, gvl, switch, Pause::Held, None)?;
    interrupts.raise().map(|()| is_news)
}

/// That of the running session, if there is one. Fails if it can't be paused.
fn switch(ruby: &Ruby, gvl: &Gvl<'_>) -> Result<Option<&'static Switch>, Error> {
    match session(gvl) {
        None => Ok(None),
        Some(session) if session.settings.only().is_empty() => Ok(switch_of(session)),
        Some(_) => {
            let message = "a session that counts chosen methods (only:) can't be paused";
            Err(errors::rperf(ruby, message))
        }
    }
}

/// `Native.enter_at_once(undo, labels)`: as `enter` for a section, if nothing of it can fail:
/// whatever is raised is an interrupt, which comes as this is done. Returns whether it is.
pub fn enter_at_once(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    undo: RArray,
    labels: Option<RHash>,
) -> Result<bool, Error> {
    let opens_none =
        session(gvl).is_none_or(|it| switch_of(it).is_none() || !it.sections.is_none());
    let is_possible = opens_none && labels.map_or(Ok(true), are_constant)?;
    if is_possible {
        enter(ruby, gvl, undo, labels, true)?;
    }
    Ok(is_possible)
}

/// `Native.leave_at_once(undo)`: as `leave`, if no section ends that is the last one. Returns
/// whether it is done.
pub fn leave_at_once(gvl: &mut Gvl<'_>, undo: RArray) -> Result<bool, Error> {
    let closes_none = session(gvl).is_none_or(|session| !session.sections.is_last());
    if closes_none {
        leave(gvl, undo)?;
    }
    Ok(closes_none)
}

/// `Native.leave(undo)`: undoes what `enter` has noted, the last step first. So a section
/// ends with its own labels, and all is done when the first interrupt can come.
pub fn leave(gvl: &mut Gvl<'_>, undo: RArray) -> Result<(), Error> {
    while !undo.is_empty() {
        let step: Value = undo.pop()?;
        match Integer::from_value(step) {
            Some(number) => {
                if let Some(switch) = session(gvl).and_then(switch_of) {
                    section::leave(gvl, switch, number.to_u64()?);
                }
            }
            None => put(gvl, step)?,
        }
    }
    Ok(())
}
