//! What is said of a run beside its numbers: the version, the Ruby, the program, and the labels
//! that all samples have. With the GVL, outside of hooks.

use super::own_files;
use crate::text;
use magnus::rb_sys::FromRawValue;
use magnus::{Ruby, Value, prelude::*};
use rperf_model::{Note, Profile};
use rperf_session::program_roots::program_roots;
use rperf_session::settings::{self as table, Settings};
use std::path::PathBuf;
use std::sync::OnceLock;

/// The directory that the program was in as it loaded the extension. Programs change to others.
static WORKING_DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Remembers the directory that the program is in.
pub fn init() {
    WORKING_DIRECTORY.get_or_init(|| std::env::current_dir().ok());
}

/// The first notes of a profile; `mode` is one of them.
pub fn notes(ruby: &Ruby, mode: String) -> Vec<Note> {
    let description: Option<String> = ruby
        .class_object()
        .const_get::<_, Value>("RUBY_DESCRIPTION")
        .ok()
        .and_then(text::of_string);
    let lines = [
        format!("rperf {}", env!("CARGO_PKG_VERSION")),
        mode,
        description.unwrap_or_default(),
    ];
    lines.map(Note::from).into()
}

/// The name of the program. An interrupt that came meanwhile isn't met here, where it would be
/// lost.
pub fn program() -> String {
    // SAFETY: only looks a variable up.
    let program = unsafe { Value::from_raw(rb_sys::rb_gv_get(c"$0".as_ptr())) };
    text::of_string(program).unwrap_or_default()
}

/// The directories that belong to the program of this name, which the file system is asked for.
pub fn roots(program: &str) -> Vec<String> {
    let Some(Some(directory)) = WORKING_DIRECTORY.get() else {
        return Vec::new();
    };
    let roots = program_roots(directory, program).into_iter();
    let texts = roots.filter_map(|root| root.into_os_string().into_string().ok());
    texts.collect()
}

/// The profile with the directories of the program and of rperf, and with the labels that the settings give to
/// all samples. Asks the file system, without the GVL.
pub fn described(settings: &Settings, mut profile: Profile) -> Profile {
    for root in roots(&profile.meta.program) {
        profile.meta.add_root(&root);
    }
    own_files::describe(&mut profile);
    if let Some(table::Value::Labels(labels)) = settings.get(&table::LABELS) {
        let labels: Vec<_> = labels
            .iter()
            .map(|(key, value)| (&**key, &**value))
            .collect();
        profile.label_rest(&labels);
    }
    profile
}
