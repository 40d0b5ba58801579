//! From what was taken from a session to a profile: the worker's reply is waited for, frames get
//! their names, and the profile is made. On the Ruby thread that stops the session or takes a
//! snapshot; it needs no session, and other threads run in between.

use crate::interrupts::{Interrupts, LIMIT};
use crate::probes::sampling::gc;
use crate::profile::{self, description, errors};
use crate::ruby::version::{self, Lacks};
use crate::ruby::{blocks, frames, ractor, resolve, thread_names};
use crate::running::roots;
use crate::running::sampling::sampling;
use crate::running::session_sums::TakenSums;
use magnus::{Error, Ruby, Value};
use rperf_model::{Note, Profile};
use rperf_sampling::{Capture, Snapshot, Taken, WorkerEnded};
use rperf_session::settings::Settings;
use rperf_vm::{CapturedNode, FrameNames, Gvl, JobId, SessionId, Unknown};
use std::mem;
use std::process;
use std::sync::Arc;

/// What is recorded, with its frames.
pub type TakenFrames = Result<(Taken, FrameNames), WorkerEnded>;

/// All that is known when the worker has replied.
pub type Completed = Result<(Snapshot, Vec<CapturedNode>), WorkerEnded>;

/// Waits for that; `None` in a forked child.
pub type Wait = Box<dyn FnOnce() -> Option<Completed> + Send>;

/// Makes the profile of samples the one that is asked for.
pub type Finish = Box<dyn FnOnce(Profile) -> Profile + Send>;

/// What was taken, and whatever else belongs to it. `T` is [`Taken`], and later what it becomes.
pub struct TakenProfile<T> {
    taken: T,
    settings: Arc<Settings>,
    /// The frames, which are kept alive.
    frames: JobId,
    /// The session that has these frames still, and the number of its call tree: they have to be
    /// named once.
    pub tree: Option<(SessionId, u64)>,
    /// What was summed beside samples.
    sums: TakenSums,
    /// The frames and classes of that, which are kept alive.
    words: JobId,
    pub finish: Option<Finish>,
}

/// What was taken, when the worker has replied.
pub type CompleteProfile = TakenProfile<(Snapshot, Vec<CapturedNode>)>;

impl TakenProfile<Taken> {
    /// Keeps the frames alive. No collection has run since they were taken.
    pub fn keep(
        ruby: &Ruby,
        gvl: &Gvl<'_>,
        settings: Arc<Settings>,
        taken: TakenFrames,
        sums: TakenSums,
    ) -> Result<Self, Error> {
        let (taken, frames) = taken.map_err(|error| errors::rperf(ruby, error.to_string()))?;
        let frames = roots::keep_until_named(gvl, frames);
        // Kept as the frames are, or not at all.
        let words = roots::keep_words_until_named(gvl, sums.words());
        let (frames, words) = frames
            .zip(words)
            .ok_or_else(|| errors::rperf(ruby, "can't read the profile inside a collection"))?;
        Ok(Self {
            taken,
            settings,
            frames,
            tree: None,
            sums,
            words,
            finish: None,
        })
    }

    /// Has `without_gvl` wait for the worker. `None` in a child that a handler of a signal has
    /// forked meanwhile: it has no worker.
    pub fn complete(
        self,
        ruby: &Ruby,
        gvl: &mut Gvl<'_>,
        without_gvl: impl FnOnce(&mut Gvl<'_>, Wait) -> Option<Completed>,
    ) -> Result<Option<CompleteProfile>, Error> {
        let taken = self.taken;
        let process = process::id();
        let wait: Wait = Box::new(move || {
            if process == process::id() {
                Some(taken.complete())
            } else {
                // Its locks are in whatever state the fork has found them.
                mem::forget(taken);
                None
            }
        });
        let Some(completed) = without_gvl(gvl, wait) else {
            return Ok(None);
        };
        let taken = completed.map_err(|error| {
            roots::take_named(gvl, self.frames);
            roots::take_named(gvl, self.words);
            errors::rperf(ruby, error.to_string())
        })?;
        Ok(Some(TakenProfile {
            taken,
            settings: self.settings,
            frames: self.frames,
            tree: self.tree,
            sums: self.sums,
            words: self.words,
            finish: self.finish,
        }))
    }
}

impl CompleteProfile {
    /// The profile as a Ruby object, and the interrupts that have to wait until it is kept. `None`
    /// in a child that a handler of a signal has forked: the profile is the parent's.
    pub fn into_profile(
        self,
        ruby: &Ruby,
        gvl: &mut Gvl<'_>,
        mut interrupts: Interrupts,
    ) -> Result<(Option<Value>, Interrupts), Error> {
        let process = process::id();
        let frames = named(gvl, self.frames, &mut interrupts);
        let words = named(gvl, self.words, &mut interrupts);
        if process != process::id() {
            return Ok((None, interrupts));
        }
        self.learn_names(gvl, &frames);
        let (program, notes) = self.description(ruby);
        let missing = self.missing();
        let Self {
            taken: (mut snapshot, nodes),
            settings,
            mut sums,
            finish,
            ..
        } = self;
        let profile = interrupts.without_gvl(gvl, move || {
            snapshot.texts.ops = mem::take(&mut sums.op_names);
            let mut profile = snapshot.into_profile(&nodes, frames.names(), program, notes);
            profile.meta.missing = missing;
            sums.add_to(&mut profile, words.names());
            let profile = match finish {
                Some(finish) => finish(profile),
                None => profile,
            };
            description::described(&settings, profile)
        });
        if process != process::id() {
            return Ok((None, interrupts));
        }
        Ok((Some(profile::wrap(ruby, profile)?), interrupts))
    }

    /// Lets the session know the names, if it has these frames still.
    fn learn_names(&self, gvl: &Gvl<'_>, frames: &FrameNames) {
        if let Some((id, tree)) = self.tree
            && let Some(session) = sampling(gvl).filter(|session| session.id == id)
            && let Some(mut state) = session.state(gvl)
        {
            state.engine.learn_names(tree, frames);
        }
    }

    /// The program's name, and what is to be said of the whole run.
    fn description(&self, ruby: &Ruby) -> (String, Vec<Note>) {
        let settings = &self.settings;
        let (snapshot, _) = &self.taken;
        let mode = format!(
            "mode: {}, frequency: {} Hz",
            settings.mode(),
            settings.frequency()
        );
        let mut notes = description::notes(ruby, mode);
        notes.push(Note::from(match snapshot.capture {
            Capture::Tick => "capture: tick",
            Capture::Safepoint => {
                "capture: safepoint (methods that reach one soon get the time of others, and each \
                 tick interrupts compiled code)"
            }
        }));
        notes.extend(self.sums.note_on_others());
        if self.sums.has_objects() && gc::HOOK.has_missed() {
            notes.push(version::NOTE_ON_SILENT_OBJECTS.into());
        }
        let others = snapshot.other_ractors();
        if others > 0 {
            // Without numbers all have one label.
            let number = ractor::known_layout().is_ok().then_some(others);
            notes.push(version::note_on_other_ractors(number).into());
        }
        (description::program(), notes)
    }

    /// What all samples lack, and why, for people.
    fn missing(&self) -> Vec<String> {
        let (snapshot, _) = &self.taken;
        let missing = snapshot.missing;
        let kinds = || frames::unknown_kinds().unwrap_or(Unknown::Form);
        let numbers = ractor::known_layout().err();
        version::missing([
            (Lacks::TickStacks, missing.tick_stacks.then(kinds)),
            (Lacks::CompiledLines, missing.compiled_lines),
            (
                Lacks::RactorNumbers,
                numbers.filter(|_| snapshot.other_ractors() > 0),
            ),
            (Lacks::Blocks, blocks::unknown()),
            (Lacks::ThreadNames, thread_names::unknown()),
        ])
    }
}

/// Names what `job` keeps alive. Other threads run meanwhile.
fn named(gvl: &mut Gvl<'_>, job: JobId, interrupts: &mut Interrupts) -> FrameNames {
    while name_some(gvl, job) {
        interrupts.let_others_run(gvl);
    }
    roots::take_named(gvl, job)
}

/// Names some of what `job` keeps alive. Returns whether there is more.
pub(super) fn name_some(gvl: &mut Gvl<'_>, job: JobId) -> bool {
    let next = |gvl: &Gvl<'_>, named| {
        roots::with_unnamed(gvl, job, |frames| {
            if let Some((frame, name)) = named {
                frames.add(frame, name);
            }
            frames.next()
        })?
    };
    resolve::name_frames(gvl, LIMIT, next)
}
