//! The begin of chosen methods, what was counted of them, and the end of a session that has nothing
//! else. On a thread of the main Ractor, with the GVL, outside of hooks. Runs no Ruby code.

use crate::interrupts::Interrupts;
use crate::probes::{self, Lasts};
use crate::profile::{self, description, errors};
use crate::ruby::frames::RubyVm;
use crate::ruby::resolve;
use crate::ruby::threads::RubyThread;
use crate::running::chosen::{Notes, OTHER_RACTORS, chosen};
use crate::running::{self, roots, running};
use magnus::{Error, Ruby, Value};
use rperf_model::Profile;
use rperf_session::settings::Settings;
use rperf_tracing::{TargetedSnapshot, TraceVm, TracedFrame};
use rperf_vm::{FrameWord, Gvl, ResolvedFrame};
use std::process;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// From here on chosen methods are counted, if the session that has begun has some.
pub fn begin(gvl: &Gvl<'_>) {
    let Some(chosen) = chosen(gvl) else {
        return;
    };
    let thread = RubyThread::current(gvl);
    if let Some(mut tracer) = chosen.tracer.borrow(gvl) {
        tracer.name_fiber(chosen.number_of(thread), thread.present_fiber().0);
    }
    probes::add(gvl, Lasts::Session);
}

/// Notes what is to be said of chosen methods.
pub fn note(gvl: &Gvl<'_>, notes: Notes) {
    if let Some(chosen) = chosen(gvl)
        && let Some(mut known) = chosen.notes.borrow(gvl)
    {
        *known = notes;
    }
}

/// What was counted of chosen methods, with names.
pub struct TakenCalls {
    snapshot: TargetedSnapshot,
    names: Vec<ResolvedFrame>,
    notes: Notes,
    settings: Arc<Settings>,
}

/// What was counted so far; it is let go of if `clear`. `None` without chosen methods.
pub fn take(ruby: &Ruby, gvl: &mut Gvl<'_>, clear: bool) -> Result<Option<TakenCalls>, Error> {
    let (Some(known), Some(running)) = (chosen(gvl), running(gvl)) else {
        return Ok(None);
    };
    let settings = Arc::clone(&running.settings);
    let end = known.clock.reading();
    let snapshot = known.tracer.borrow(gvl).map(|mut it| it.snapshot(end));
    let Some(snapshot) = snapshot else {
        let message = "can't read the trace inside one of the VM's callbacks";
        return Err(errors::rperf(ruby, message));
    };
    let notes = known.notes.borrow(gvl);
    let mut notes = notes.map_or_else(Notes::default, |it| it.clone());
    if known.has_failed() {
        let line = "an internal error ended it early; the numbers are of the time before";
        notes.lines.push(line.into());
    }
    if OTHER_RACTORS.load(Relaxed) {
        let line = "calls in other Ractors than the main one are not counted";
        notes.lines.push(line.into());
    }
    let names = names(gvl);
    if clear
        && let Some(chosen) = chosen(gvl)
        && let Some(mut tracer) = chosen.tracer.borrow(gvl)
    {
        tracer.clear(end);
        roots::keep_chosen_alive(&mut tracer);
    }
    Ok(Some(TakenCalls {
        snapshot,
        names,
        notes,
        settings,
    }))
}

impl TakenCalls {
    /// The profile of samples with the calls.
    pub fn add_to(self, profile: Profile) -> Profile {
        let profile = self
            .snapshot
            .add_to(profile, &self.names, &self.notes.lines);
        with_names(profile, &self.notes)
    }

    /// The calls as a profile of their own, and the interrupts that have to wait until it is kept.
    /// `None` in a child that a handler of a signal has forked meanwhile: it is the parent's.
    fn into_profile(
        self,
        ruby: &Ruby,
        gvl: &mut Gvl<'_>,
    ) -> Result<(Option<Value>, Interrupts), Error> {
        let process = process::id();
        let (program, description) = (
            description::program(),
            description::notes(ruby, "mode: trace".to_owned()),
        );
        let mut interrupts = Interrupts::default();
        let profile = interrupts.without_gvl(gvl, move || {
            let Self {
                snapshot,
                names,
                notes,
                settings,
            } = self;
            let profile = snapshot.into_profile(&names, &notes.lines, program, description);
            description::described(&settings, with_names(profile, &notes))
        });
        if process != process::id() {
            return Ok((None, interrupts));
        }
        Ok((Some(profile::wrap(ruby, profile)?), interrupts))
    }
}

/// Ends the session, which has nothing but chosen methods; its profile, and the interrupts that have to
/// wait until it is kept.
pub fn stop_alone(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<(Option<Value>, Interrupts), Error> {
    let taken = take(ruby, gvl, false);
    probes::remove_all();
    let id = running(gvl).map(|it| it.id);
    // SAFETY: hooks find the session by a token of their own, and none is at work here.
    drop(id.and_then(|id| unsafe { running::end(gvl, id) }));
    match taken? {
        Some(taken) => taken.into_profile(ruby, gvl),
        None => Ok(Default::default()),
    }
}

/// The profile of a session that has nothing but chosen methods, up to now; it is let go of if `clear`.
pub fn snapshot_alone(
    ruby: &Ruby,
    gvl: &mut Gvl<'_>,
    clear: bool,
) -> Result<(Option<Value>, Interrupts), Error> {
    match take(ruby, gvl, clear)? {
        Some(taken) => taken.into_profile(ruby, gvl),
        None => Ok(Default::default()),
    }
}

fn with_names(mut profile: Profile, notes: &Notes) -> Profile {
    let (found, not_found) = (&notes.found, &notes.not_found);
    profile
        .meta
        .note_chosen(found, not_found, &notes.not_traceable);
    profile
}

/// The names of all frames. That of a method that a block defines is its own, the place is the
/// block's.
fn names(gvl: &mut Gvl<'_>) -> Vec<ResolvedFrame> {
    let frame_at = |gvl: &Gvl<'_>, row| chosen(gvl)?.tracer.borrow(gvl)?.frame(row);
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
