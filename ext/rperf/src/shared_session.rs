//! `Rperf::Native`'s functions for sessions of several processes, which the crate rperf-session
//! does. On a thread of the main Ractor, with the GVL.

use crate::profile::{self, errors, stat};
use crate::settings::{self, SettingsObject};
use magnus::{Error, RArray, RHash, RModule, Ruby, Symbol, Value, function, prelude::*};
use rperf_model::Profile;
use rperf_session::environment::Environment;
use rperf_session::event::Event;
use rperf_session::output::Descriptor;
use rperf_session::process_stats::ProcessStats;
use rperf_session::status::Status;
use rperf_session::{directory, merge};
use std::path::PathBuf;

/// Defines the functions on `native`.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("create_session_directory", function!(create_directory, 0))?;
    native.define_singleton_method("remove_session_directory", function!(remove_directory, 1))?;
    native.define_singleton_method("write_session_settings", function!(write_settings, 4))?;
    native.define_singleton_method("member_profile_path", function!(member_profile_path, 2))?;
    native.define_singleton_method("tell", function!(tell, 4))?;
    native.define_singleton_method("merge_session", function!(merge_session, 2))?;
    native.define_singleton_method("stats_line", function!(stats_line, 1))?;
    native.define_singleton_method("descriptor", function!(descriptor, 1))
}

fn create_directory(ruby: &Ruby) -> Result<PathBuf, Error> {
    directory::create().map_err(|error| errors::rperf(ruby, error.to_string()))
}

fn remove_directory(directory: PathBuf) {
    directory::remove(&directory);
}

/// `write_session_settings(directory, settings, initiator, library)`: for the Rubies that are going to
/// take part; returns them as a Hash.
fn write_settings(
    ruby: &Ruby,
    directory: PathBuf,
    settings: &SettingsObject,
    initiator: String,
    library: PathBuf,
) -> Result<RHash, Error> {
    let environment = Environment::new(&settings.0, &initiator, &library)
        .map_err(|error| errors::rperf(ruby, error.to_string()))?;
    environment.write_settings(&directory).map_err(|error| {
        let directory = directory.display();
        errors::rperf(ruby, format!("can't write to {directory}: {error}"))
    })?;
    let hash = ruby.hash_new();
    for (name, value) in environment.settings() {
        hash.aset(name.as_str(), settings::text(ruby, value))?;
    }
    Ok(hash)
}

/// `member_profile_path(directory, begun_ns)`: where this process leaves its profile.
fn member_profile_path(directory: PathBuf, begun_ns: u64) -> PathBuf {
    directory::profile_path(&directory, std::process::id() as i32, begun_ns)
}

/// `tell(directory, event, number, stats)`: `number` is the process's for `:forked` and `:declined`,
/// else when this one began to be profiled; `stats` are for `:delivered`, else nil. If the
/// session has ended nobody wants to know.
fn tell(
    ruby: &Ruby,
    directory: PathBuf,
    event: Symbol,
    number: u64,
    stats: Option<String>,
) -> Result<(), Error> {
    let name = event.name()?;
    let stats = stats.map(|line| ProcessStats::parse(&line));
    let event = Event::named(&name, number, stats)
        .ok_or_else(|| errors::argument(ruby, format!("there is no event :{name}")))?;
    let _ = event.tell(&directory);
    Ok(())
}

/// What Ruby and the system have counted in this process, as text.
fn stats_line(ruby: &Ruby, hash: RHash) -> Result<String, Error> {
    Ok(stat::figures(ruby, hash)?.process.to_line())
}

/// `merge_session(directory, profile)`: the profile with what other processes have left
/// in the directory, how many processes there are in it, the others' statistics as text,
/// and lines for the user.
fn merge_session(ruby: &Ruby, directory: PathBuf, own: Value) -> Result<RArray, Error> {
    let own = profile::copy(own)?;
    // For the compiler: what is merged has `own` in it.
    let empty = Profile::new(own.schema.clone());
    let status = Status::read(&directory);
    let pid = std::process::id() as i32;
    let merged = merge::merge(&directory, &status, Some((pid, own)));
    let result = ruby.ary_new();
    result.push(profile::wrap(ruby, merged.profile.unwrap_or(empty))?)?;
    result.push(merged.processes)?;
    result.push(merged.stats.to_line())?;
    let mut remarks: Vec<_> = merged.unmerged.iter().map(ToString::to_string).collect();
    remarks.extend(merge::silence(&status));
    result.push(ruby.ary_from_iter(remarks))?;
    Ok(result)
}

/// The number of the open descriptor that a path names, or nil.
fn descriptor(path: PathBuf) -> Option<i32> {
    Descriptor::named_by(&path).map(Descriptor::number)
}
