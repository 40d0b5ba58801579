//! The files of rperf's own Ruby code: those of a gem, or of a checkout. Noted as rperf is loaded, read
//! as profiles are made; any thread.

use rperf_model::Profile;
use std::sync::OnceLock;

/// The path of the gem's first file without its extension, with which those of all others begin.
static START: OnceLock<String> = OnceLock::new();

/// From now on it is known which files are the gem's own.
pub fn note(start: String) {
    let _ = START.set(start);
}

/// The path of the gem's first file without its extension.
pub fn start() -> Option<&'static str> {
    START.get().map(String::as_str)
}

/// The directory that has them.
pub fn directory() -> Option<&'static str> {
    Some(start()?.rsplit_once('/')?.0)
}

/// Notes in `profile` where these files lie, so that its readers know them.
pub fn describe(profile: &mut Profile) {
    if let Some(directory) = directory() {
        profile.meta.add_rperf_directory(directory);
    }
}
