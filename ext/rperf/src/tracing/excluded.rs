//! Which frames of a trace its profile leaves out: those that the settings name, and rperf's own. On
//! the thread that makes the profile, without the GVL.

use crate::profile::own_files;
use rperf_model::{FrameKind, Note};
use rperf_session::settings::{EXCLUDE, EXCLUDE_COMMON, Excluded, Settings, Source};
use rperf_tracing::Exclusion;
use rperf_vm::ResolvedFrame;
use std::path::Path;

/// Files of these are parts of an app that users have put there.
const PARTS_OF_APPS: [&str; 7] = [
    "/viewer",
    "/pprof_endpoint",
    "/web",
    "/rack",
    "/middleware",
    "/sidekiq",
    "/active_job",
];

/// What the names of this extension's methods begin with.
const OWN_METHODS: &str = "Rperf::Native";

/// For each frame whether it is left out; `notes` get what there is to say of it. Patterns for files
/// begin in `directory`.
pub fn find(
    settings: &Settings,
    directory: &Path,
    names: &[ResolvedFrame],
    notes: &mut Vec<Note>,
) -> Vec<Exclusion> {
    let excluded = Excluded::new(settings, directory);
    let frames = names.iter().map(|it| (&*it.name, &*it.path));
    let (asked, unseen) = excluded.find(frames);
    let exclusions = names
        .iter()
        .zip(asked)
        .map(|(name, is_asked)| match is_asked {
            true => Exclusion::Asked,
            false if is_own(name) => own(name),
            false if is_loader(name) => Exclusion::Loader,
            false if FrameKind::of(&name.path) == FrameKind::Internal => Exclusion::Core,
            false => Exclusion::None,
        });
    for setting in [&EXCLUDE, &EXCLUDE_COMMON] {
        if let Some(value) = settings.get(setting) {
            let value = value.spelled(Source::Variable);
            let label = setting.label(Source::Flag);
            notes.push(match setting.name == EXCLUDE.name {
                true => Note::traced(format_args!("left out: {}", value.display())),
                false => Note::traced(format_args!("left out: {label}")),
            });
        }
    }
    let unseen = unseen.into_iter();
    notes.extend(unseen.map(|it| Note::traced_here(format_args!("nothing to leave out of {it}"))));
    exclusions.collect()
}

/// `-rrperf` is loaded by these, before the program.
fn is_loader(frame: &ResolvedFrame) -> bool {
    frame.name == "Kernel#require"
}

/// Core methods below frames that don't run the program's code are our doing, too.
fn own(frame: &ResolvedFrame) -> Exclusion {
    let rest = own_files::start().and_then(|own| frame.path.strip_prefix(own));
    let passes_on = rest.is_some_and(|rest| {
        rest.starts_with("/api/") || rest.starts_with("/hooks/") && frame.name.contains('#')
    });
    match passes_on {
        true => Exclusion::PassesOn,
        false => Exclusion::Own,
    }
}

fn is_own(frame: &ResolvedFrame) -> bool {
    let is_ours = |own: &str| {
        let rest = frame.path.strip_prefix(own);
        let is_part = |rest: &str| PARTS_OF_APPS.iter().any(|it| rest.starts_with(it));
        rest.is_some_and(|rest| rest == ".rb" || rest.starts_with('/') && !is_part(rest))
    };
    frame.name.starts_with(OWN_METHODS) || own_files::start().is_some_and(is_ours)
}
