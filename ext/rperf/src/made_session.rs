//! `Rperf::NativeMadeSession`: a session of several processes that this process has made, and merges. On
//! threads of the main Ractor, with the GVL; a collection may let go of one on any thread.

use crate::interrupts::Interrupts;
use crate::message;
use crate::profile::{self, errors};
use crate::settings::SettingsObject;
use crate::variables;
use magnus::{Error, RArray, RModule, Ruby, TypedData, Value, function, method, prelude::*};
use rperf_model::Profile;
use rperf_session::directory;
use rperf_session::environment::Environment;
use rperf_session::merge::{self, Merged};
use rperf_session::settings::{Inherit, Settings};
use rperf_session::status::Status;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// All of this process and, in a forked one, its parent's.
static MADE: Mutex<Vec<Weak<MadeSession>>> = Mutex::new(Vec::new());

/// The process that is about to go on as a daemon, in a child; 0 if there is none.
static BECOMES_DAEMON: AtomicU32 = AtomicU32::new(0);

/// What the Ruby object holds.
#[magnus::wrap(class = "Rperf::NativeMadeSession", free_immediately)]
pub struct MadeSessionObject(pub Arc<MadeSession>);

/// The session.
pub struct MadeSession {
    process: u32,
    settings: Arc<Settings>,
    directory: PathBuf,
    /// How all programs that are started from now on take part; `None`: only forked ones do.
    environment: Option<Environment>,
    is_hidden: AtomicBool,
    is_over: AtomicBool,
}

/// Defines `Rperf::NativeMadeSession`.
pub fn init(ruby: &Ruby, rperf: RModule) -> Result<(), Error> {
    let class = rperf.define_class("NativeMadeSession", ruby.class_object())?;
    class.undef_default_alloc_func();
    // Looked for now, not at first use: an interrupt could come then.
    let _ = MadeSessionObject::class(ruby);
    class.define_singleton_method("make", function!(make, 3))?;
    class.define_method("directory", method!(MadeSessionObject::directory, 0))?;
    class.define_method("mine?", method!(MadeSessionObject::is_mine, 0))?;
    class.define_method("merge_into", method!(MadeSessionObject::merge_into, 2))?;
    class.define_method("close", method!(MadeSessionObject::close, 0))
}

/// `make(settings, initiator, library)`: with a new directory; fails if there is no place for it.
fn make(
    ruby: &Ruby,
    settings: &SettingsObject,
    initiator: String,
    library: PathBuf,
) -> Result<MadeSessionObject, Error> {
    let mut session = MadeSession {
        process: process::id(),
        settings: Arc::clone(&settings.0),
        directory: directory::create().map_err(|error| errors::rperf(ruby, error.to_string()))?,
        environment: None,
        is_hidden: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    };
    if settings.0.inherit() == Inherit::All {
        let environment = session.written_environment(&settings.0, &initiator, &library);
        session.environment = Some(environment.map_err(|text| errors::rperf(ruby, text))?);
    }
    let session = Arc::new(session);
    session.show();
    let mut made = made();
    made.retain(|it| it.strong_count() > 0);
    made.push(Arc::downgrade(&session));
    Ok(MadeSessionObject(session))
}

fn made() -> std::sync::MutexGuard<'static, Vec<Weak<MadeSession>>> {
    MADE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sessions of this process that aren't over.
fn open() -> Vec<Arc<MadeSession>> {
    let made = made();
    let open = made.iter().filter_map(Weak::upgrade);
    open.filter(|it| it.is_mine() && !it.is_over.load(SeqCst))
        .collect()
}

/// The one that the children join of a session with these settings.
pub fn of(settings: &Arc<Settings>) -> Option<Arc<MadeSession>> {
    let is_of = |made: &Arc<MadeSession>| Arc::ptr_eq(&made.settings, settings);
    open().into_iter().find(is_of)
}

/// Hides this process's sessions: it becomes another program, which is to see nothing of them.
pub fn hide_all() {
    for session in open() {
        session.hide();
    }
}

/// Shows this process's sessions again: it has not become another program.
pub fn show_all() {
    for session in open() {
        session.show_again();
    }
}

/// Notes that this process is about to go on as a daemon, in a child.
pub fn note_daemon() {
    BECOMES_DAEMON.store(process::id(), SeqCst);
}

/// The daemon runs: the sessions that its parent has made ended with the parent.
pub fn close_of_parent() {
    let parent = BECOMES_DAEMON.swap(0, SeqCst);
    let sessions: Vec<_> = made().iter().filter_map(Weak::upgrade).collect();
    for session in sessions.iter().filter(|it| it.process == parent) {
        session.end();
    }
}

impl MadeSession {
    /// Whether this process merges the profiles.
    fn is_mine(&self) -> bool {
        self.process == process::id()
    }

    /// The environment for the programs that take part, whose settings are in the directory.
    fn written_environment(
        &self,
        settings: &Settings,
        initiator: &str,
        library: &Path,
    ) -> Result<Environment, String> {
        let environment =
            Environment::new(settings, initiator, library).map_err(|error| error.to_string())?;
        environment
            .write_settings(&self.directory)
            .map_err(|error| {
                let directory = self.directory.display();
                format!("can't write to {directory}: {error}")
            })?;
        Ok(environment)
    }

    /// Programs that are started see it: it is the only way that works however they are started.
    fn show(&self) {
        if let Some(environment) = &self.environment {
            for (name, value) in environment.variables(&self.directory) {
                variables::set(&name, Some(&value));
            }
        }
    }

    fn hide(&self) {
        if self.is_hidden.swap(true, SeqCst) {
            return;
        }
        if let Some(environment) = &self.environment {
            for (name, value) in environment.variables_without() {
                variables::set(&name, value.as_deref());
            }
        }
    }

    fn show_again(&self) {
        if self.is_hidden.swap(false, SeqCst) {
            self.show();
        }
    }

    /// `own` with all that other processes have left. What can't be merged is said to the user.
    pub fn merged(&self, own: &Profile, interrupts: &mut Interrupts) -> Merged {
        let (merged, silence) = interrupts.without_its_gvl(|| {
            let status = Status::read(&self.directory);
            let own = (process::id() as i32, own.clone());
            let merged = merge::merge(&self.directory, &status, Some(own));
            (merged, merge::silence(&status))
        });
        for unmerged in &merged.unmerged {
            message::say(interrupts, &unmerged.to_string());
        }
        for line in silence {
            message::say(interrupts, &line);
        }
        merged
    }

    /// Ends the session for children that come now, if this process has made it.
    pub fn close(&self) {
        if self.is_mine() {
            self.end();
        }
    }

    fn end(&self) {
        if !self.is_over.swap(true, SeqCst) {
            self.hide();
            directory::remove(&self.directory);
        }
    }
}

/// A session that is never stopped leaves no directory either. Programs may be started still, but the
/// environment is changed with the GVL only.
impl Drop for MadeSession {
    fn drop(&mut self) {
        if self.is_mine() && !self.is_over.swap(true, SeqCst) {
            directory::remove(&self.directory);
        }
    }
}

impl MadeSessionObject {
    /// `#directory`
    fn directory(&self) -> PathBuf {
        self.0.directory.clone()
    }

    /// `#mine?`
    fn is_mine(&self) -> bool {
        self.0.is_mine()
    }

    /// `#merge_into(array, profile)`: adds the profile with what other processes have left, which is there
    /// also if a handler of a signal has raised something meanwhile.
    fn merge_into(ruby: &Ruby, rb_self: &Self, array: RArray, own: Value) -> Result<(), Error> {
        let own = profile::shared(own)?;
        let mut interrupts = Interrupts::default();
        let merged = rb_self.0.merged(&own, &mut interrupts).profile;
        array.push(profile::wrap(
            ruby,
            merged.unwrap_or_else(|| Profile::clone(&own)),
        )?)?;
        interrupts.raise()
    }

    /// `#close`
    fn close(&self) {
        self.0.close();
    }
}
