//! The begin and the end of chosen methods, and what was counted of them. On a thread of the main
//! Ractor, with the GVL, outside of hooks. Runs no Ruby code.

use crate::profile::errors;
use crate::ruby::frames::RubyVm;
use crate::ruby::resolve;
use crate::ruby::threads::RubyThread;
use crate::running::chosen::{Notes, OTHER_RACTORS, TARGETS, Targets};
use crate::running::trace_roots as roots;
use crate::trace::hooks;
use crate::vm::api::Finish;
use magnus::{Error, Ruby};
use rperf_session::settings::{Clock, Settings};
use rperf_tracing::{CallColumns, TraceClock, TraceVm, TracedFrame};
use rperf_vm::{FrameWord, Gvl, ResolvedFrame};
use std::sync::atomic::Ordering::Relaxed;

/// From here on chosen methods are counted, if the settings name some.
pub fn begin(gvl: &Gvl<'_>, settings: &Settings) {
    if settings.only().is_empty() {
        return;
    }
    let clock = match settings.clock() {
        // That of ticks is refused.
        Clock::Best | Clock::Tick => TraceClock::best(),
        Clock::Monotonic => TraceClock::Monotonic,
    };
    OTHER_RACTORS.store(false, Relaxed);
    let targets = TARGETS.put(gvl, Box::new(Targets::new(clock)));
    let thread = RubyThread::current(gvl);
    if let Some(mut tracer) = targets.tracer.borrow(gvl) {
        tracer.name_fiber(targets.number_of(thread), thread.present_fiber().0);
    }
    hooks::add_fiber_hook();
}

/// Notes what is to be said of chosen methods.
pub fn note(gvl: &Gvl<'_>, notes: Notes) {
    if let Some(targets) = TARGETS.get(gvl)
        && let Some(mut known) = targets.notes.borrow(gvl)
    {
        *known = notes;
    }
}

/// What was counted so far, to be added to a profile; it is let go of if `clear`.
pub fn take(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    settings: &Settings,
    clear: bool,
) -> Result<Option<Finish>, Error> {
    let Some(targets) = TARGETS.get(gvl) else {
        return Ok(None);
    };
    let end = targets.clock.reading();
    let snapshot = targets.tracer.borrow(gvl).map(|mut it| it.snapshot(end));
    let Some(snapshot) = snapshot else {
        let message = "can't read the trace inside one of the VM's callbacks";
        return Err(errors::rperf(ruby, message));
    };
    let mut notes = targets
        .notes
        .borrow(gvl)
        .map_or_else(Notes::default, |it| it.clone());
    if targets.has_failed() {
        let line = "an internal error ended it early; the numbers are of the time before";
        notes.lines.push(line.into());
    }
    if OTHER_RACTORS.load(Relaxed) {
        let line = "calls in other Ractors than the main one are not counted";
        notes.lines.push(line.into());
    }
    let names = names(gvl);
    if clear
        && let Some(targets) = TARGETS.get(gvl)
        && let Some(mut tracer) = targets.tracer.borrow(gvl)
    {
        tracer.clear(end);
        roots::keep_targets_alive(&mut tracer);
    }
    let columns = match settings.is_traced() {
        true => CallColumns::Alone,
        false => CallColumns::BesideSamples,
    };
    Ok(Some(Box::new(move |profile| {
        let mut profile = snapshot.add_to(profile, &names, columns, &notes.lines);
        let (found, not_found) = (&notes.found, &notes.not_found);
        profile
            .meta
            .note_chosen(found, not_found, &notes.not_traceable);
        profile
    })))
}

/// The names of all frames. That of a method that a block defines is its own, the place is the
/// block's.
fn names(gvl: &mut Gvl<'_>) -> Vec<ResolvedFrame> {
    let frame_at = |gvl: &Gvl<'_>, row| TARGETS.get(gvl)?.tracer.borrow(gvl)?.frame(row);
    let names = resolve::resolve_traced(gvl, |gvl, row| {
        let (frame, word) = frame_at(gvl, row)?;
        // The code of others has the method's name.
        let is_bare = RubyVm::new(gvl).is_bare_code(word);
        Some(if is_bare { frame } else { code_of(word) })
    });
    let code = resolve::resolve_traced(gvl, |gvl, row| Some(code_of(frame_at(gvl, row)?.1)));
    let pairs = names.into_iter().zip(code);
    pairs
        .map(|(name, code)| ResolvedFrame {
            name: name.name,
            ..code
        })
        .collect()
}

fn code_of(word: FrameWord) -> TracedFrame {
    TracedFrame { word, method: 0 }
}

/// From here on chosen methods are not counted.
pub fn end(gvl: &mut Gvl<'_>) {
    if TARGETS.is_empty() {
        return;
    }
    hooks::remove_fiber_hook();
    // SAFETY: hooks find it by a token of their own, and none is at work here.
    drop(unsafe { TARGETS.take(gvl) });
}
