//! The methods of `Rperf::Native` that belong to sessions. Defined on the main thread, when the
//! extension is loaded; called on threads of the main Ractor, with the GVL: others than that
//! may not call methods of this extension.

mod accounts;
pub mod clients;
#[cfg(feature = "measure")]
mod measure;
mod ops;
mod rack;
mod requests;
pub mod session;
#[cfg(feature = "measure")]
mod session_words;
mod suite;
mod token;

pub use token::gvl;

use crate::fork;
use crate::labels::scope::LeftOps;
use crate::labels::{self, endpoint, scope};
use crate::message;
use crate::probes::tracing::targets;
use crate::profile::own_files;
use crate::ruby::ractor;
use crate::running::chosen::Notes;
use crate::running::derived_labels::Begins;
use crate::running::{facts, roots};
use crate::settings::SettingsObject;
use crate::text;
use crate::tracing;
use magnus::{Error, Object, RArray, RHash, RModule, RString, Ruby, Value, function};
use rperf_port::task::Why;

/// Defines the methods.
pub fn init(ruby: &Ruby, rperf: RModule, native: RModule) -> Result<(), Error> {
    accounts::init(ruby, rperf, native)?;
    suite::init(native)?;
    ops::init(native)?;
    rack::init(native)?;
    native.define_singleton_method("start", function!(start, 1))?;
    native.define_singleton_method("stop_into", function!(stop_into, 1))?;
    native.define_singleton_method("snapshot", function!(snapshot, 1))?;
    native.define_singleton_method("running?", function!(facts::is_running, 0))?;
    native.define_singleton_method("of_clients?", function!(facts::is_of_clients, 0))?;
    native.define_singleton_method("give_way", function!(give_way, 1))?;
    native.define_singleton_method("enter", function!(enter, 3))?;
    native.define_singleton_method("enter_request", function!(enter_request, 2))?;
    native.define_singleton_method("leave", function!(leave, 1))?;
    native.define_singleton_method("leave_request", function!(leave_request, 1))?;
    native.define_singleton_method("enter_at_once", function!(requests::enter_at_once, 2))?;
    native.define_singleton_method("leave_at_once", function!(requests::leave_at_once, 1))?;
    native.define_singleton_method("labels", function!(labels, 0))?;
    native.define_singleton_method("pause", function!(pause, 1))?;
    native.define_singleton_method("unpause", function!(unpause, 1))?;
    native.define_singleton_method("hold", function!(hold, 1))?;
    native.define_singleton_method("endpoint", function!(endpoint::name, 3))?;
    native.define_singleton_method("endpoint_path", function!(endpoint::path, 1))?;
    native.define_singleton_method("call_point", function!(call_point, 0))?;
    native.define_singleton_method("note_targets", function!(note_targets, 4))?;
    native.define_singleton_method("forking", function!(fork::announce, 1))?;
    native.define_singleton_method("forget_in_child", function!(forget_in_child, 0))?;
    native.define_singleton_method("own_files", function!(note_own_files, 1))?;
    native.define_singleton_method("say", function!(message::say_for_ruby, 1))?;
    native.define_singleton_method("process", function!(process, 0))?;
    define_for_all_ractors(native)?;
    native.define_singleton_method("here?", function!(is_here, 1))?;
    native.define_singleton_method("of_another_user?", function!(is_of_another_user, 0))?;
    #[cfg(feature = "measure")]
    measure::init(native)?;
    Ok(())
}

/// `Native.start(settings)`: begins a session with these `NativeSettings`. Fails if one is
/// running.
fn start(ruby: &Ruby, settings: &SettingsObject) -> Result<bool, Error> {
    clients::start_programs(ruby, &mut gvl(ruby), settings)
}

/// `Native.give_way(ends)`: ends a session that clients of the port have begun, as the program ends,
/// or begins its own.
fn give_way(ruby: &Ruby, ends: bool) -> Result<(), Error> {
    let why = if ends { Why::Ends } else { Why::BeginsOwn };
    clients::give_way(ruby, &mut gvl(ruby), why)
}

/// `Native.stop_into(array)`: ends the session, and pushes its profile, if there is one. A method of C
/// can be interrupted as it returns, and then nobody gets what it returns.
fn stop_into(ruby: &Ruby, array: RArray) -> Result<(), Error> {
    let (profile, interrupts) = clients::stop_programs(ruby, &mut gvl(ruby))?;
    if let Some(profile) = profile {
        array.push(profile)?;
    }
    interrupts.raise()
}

/// `Native.snapshot(clear)`: the profile up to now, which is let go of if `clear`; or
/// nil without a session.
fn snapshot(ruby: &Ruby, clear: bool) -> Result<Option<Value>, Error> {
    session::snapshot(ruby, &mut gvl(ruby), clear)
}

/// See [`scope::enter`].
fn enter(ruby: &Ruby, undo: RArray, labels: Option<RHash>, counts: bool) -> Result<(), Error> {
    scope::enter(ruby, &mut gvl(ruby), undo, labels, counts, Begins::Block)
}

/// `Native.enter_request(undo, labels)`: as `Native.enter` for a section, of a request or a job, which
/// begins with it.
fn enter_request(ruby: &Ruby, undo: RArray, labels: Option<RHash>) -> Result<(), Error> {
    let mut gvl = gvl(ruby);
    let number = requests::next(&gvl);
    scope::enter(ruby, &mut gvl, undo, labels, true, Begins::Work(number))?;
    requests::begin(ruby, &mut gvl, undo, number)
}

/// See [`scope::leave`].
fn leave(ruby: &Ruby, undo: RArray) -> Result<(), Error> {
    scope::leave(&mut gvl(ruby), undo, LeftOps::GoOn)
}

/// `Native.leave_request(undo)`: as `Native.leave`; and the request ends that has begun with it. Labels are
/// undone if that fails, too.
fn leave_request(ruby: &Ruby, undo: RArray) -> Result<(), Error> {
    let mut gvl = gvl(ruby);
    let ended = requests::end(ruby, &gvl, undo);
    scope::leave(&mut gvl, undo, LeftOps::End)?;
    ended
}

/// See [`scope::pause`].
fn pause(ruby: &Ruby, undo: RArray) -> Result<(), Error> {
    scope::pause(ruby, &gvl(ruby), undo)
}

/// See [`scope::unpause`].
fn unpause(ruby: &Ruby, undo: RArray) -> Result<(), Error> {
    scope::unpause(ruby, &mut gvl(ruby), undo)
}

/// See [`scope::hold`].
fn hold(ruby: &Ruby, on: bool) -> Result<bool, Error> {
    scope::hold(ruby, &mut gvl(ruby), on)
}

/// See [`labels::labels`].
fn labels(ruby: &Ruby) -> Result<Option<RHash>, Error> {
    labels::labels(ruby, &mut gvl(ruby))
}

/// `Native.own_files(path)`: the paths of rperf's own files begin so. Profiles say it, and traces leave
/// methods of these files out.
fn note_own_files(path: RString) {
    own_files::note(text::content(path));
}

/// `Native.call_point`: a TracePoint that counts the calls of the method that it is enabled for.
fn call_point(ruby: &Ruby) -> Value {
    targets::point(&gvl(ruby))
}

/// `Native.note_targets(lines, found, not_found, not_traceable)`: what the profile is to say of chosen
/// methods, and the names of those that are there, of those that aren't, and of those that are there
/// and have no calls that can be traced.
fn note_targets(
    ruby: &Ruby,
    lines: Vec<String>,
    found: Vec<String>,
    not_found: Vec<String>,
    not_traceable: Vec<String>,
) {
    let notes = Notes {
        lines,
        found,
        not_found,
        not_traceable,
    };
    tracing::targets::note(&gvl(ruby), notes);
}

/// Defines the methods that other Ractors may call.
fn define_for_all_ractors(native: RModule) -> Result<(), Error> {
    // SAFETY: on the main thread, which loads the extension. The methods that are defined meanwhile read what
    // belongs to the calling Ractor alone, and atomics.
    unsafe { rb_sys::rb_ext_ractor_safe(true) };
    let define = || {
        native.define_singleton_method("main_ractor?", function!(is_main_ractor, 0))?;
        native.define_singleton_method("profiled?", function!(is_profiled, 0))?;
        native.define_singleton_method("accounted?", function!(is_accounted, 0))?;
        native.define_singleton_method("wanted?", function!(is_wanted, 0))
    };
    let defined = define();
    // SAFETY: as above; all other methods are for the main Ractor.
    unsafe { rb_sys::rb_ext_ractor_safe(false) };
    defined
}

/// `Native.main_ractor?`: whether the main Ractor calls it. A program may have redefined Ractor.main?.
fn is_main_ractor() -> bool {
    // SAFETY: methods run on Ruby threads, with the GVL of their Ractor.
    unsafe { ractor::is_main() }
}

/// `Native.profiled?`: whether labels and sections mean anything here and now.
fn is_profiled() -> bool {
    facts::is_running() && is_main_ractor()
}

/// `Native.accounted?`: whether requests and jobs of this Ractor get accounts.
fn is_accounted() -> bool {
    accounts::are_on() && is_main_ractor()
}

/// `Native.wanted?`: whether requests and jobs are to be told of: one question, because mostly they aren't,
/// and what a busy server hasn't called for a while takes microseconds.
fn is_wanted() -> bool {
    (facts::is_running() || accounts::are_on()) && is_main_ractor()
}

/// `Native.of_another_user?`: whether the program's file makes it run as another user than its caller.
fn is_of_another_user() -> bool {
    rperf_session::privileges::are_of_another_user()
}

/// `Native.process`: the number of this process.
fn process() -> u32 {
    std::process::id()
}

/// `Native.here?(process)`: whether this is the process of that number.
fn is_here(process: u32) -> bool {
    process == std::process::id()
}

/// In a forked child: what it inherited and nobody owns is let go of.
fn forget_in_child(ruby: &Ruby) {
    let gvl = gvl(ruby);
    roots::forget_unnamed(&gvl);
    clients::forget_in_child();
    if !facts::is_running() {
        fork::remove_inherited_hooks();
    }
}
