//! `Rperf::Native`'s functions for sessions of several processes, which the crate
//! rperf-session does. On a thread of the main Ractor, with the GVL.

use crate::profile::{self, errors, stat};
use magnus::{Error, RArray, RHash, RModule, Ruby, Value, function, prelude::*};
use rperf_model::Profile;
use rperf_session::process_id::ProcessId;
use rperf_session::status::Status;
use rperf_session::{merge, session_folder};
use std::path::PathBuf;

/// Defines the functions on `native`.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("create_session_folder", function!(create_folder, 0))?;
    native.define_singleton_method("remove_session_folder", function!(remove_folder, 1))?;
    native.define_singleton_method("merge_session", function!(merge_session, 2))?;
    native.define_singleton_method("process_start", function!(process_start, 0))?;
    native.define_singleton_method("figures_line", function!(figures_line, 1))
}

fn create_folder(ruby: &Ruby) -> Result<PathBuf, Error> {
    session_folder::create().map_err(|message| errors::rperf(ruby, message))
}

fn remove_folder(folder: PathBuf) {
    session_folder::remove(&folder);
}

/// When this process started, in the kernel's ticks.
fn process_start() -> u64 {
    ProcessId::own().start
}

/// What Ruby and the system have counted in this process, as text.
fn figures_line(ruby: &Ruby, hash: RHash) -> Result<String, Error> {
    Ok(stat::figures(ruby, hash)?.process.to_line())
}

/// `merge_session(folder, profile)`: the profile with what other processes have left
/// in the folder, how many processes there are in it, the others' figures as text,
/// and lines for the user.
fn merge_session(ruby: &Ruby, folder: PathBuf, own: Value) -> Result<RArray, Error> {
    let own = profile::copy(own)?;
    // For the compiler: what is merged has `own` in it.
    let empty = Profile::new(own.schema.clone());
    let status = Status::read(&folder);
    let pid = std::process::id() as i32;
    let merged = merge::merge(&folder, &status, Some((pid, own)));
    let result = ruby.ary_new();
    result.push(profile::wrap(ruby, merged.profile.unwrap_or(empty))?)?;
    result.push(merged.processes)?;
    result.push(merged.figures.to_line())?;
    let mut remarks = merged.remarks;
    remarks.extend(merge::silence(&status));
    result.push(ruby.ary_from_iter(remarks))?;
    Ok(result)
}
