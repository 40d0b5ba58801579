//! The profile of a program that is profiled as a whole: how it is delivered when the program ends, becomes
//! another one, or goes on as a daemon. On threads of the main Ractor, with the GVL. All of it is native,
//! because a program may have redefined any method, and its handlers of signals may raise wherever a
//! method of Ruby returns: here what they raise waits until the profile is delivered.

mod alone;
mod member;
mod memory;

use crate::interrupts::{Interrupts, is_of_signal, let_others_run};
use crate::made_session::{self, MadeSessionObject};
use crate::message;
use crate::native::{clients, gvl, session};
use crate::profile;
use crate::profile::errors;
use crate::running::{facts, running};
use crate::settings::{self, SettingsObject};
use crate::without_gvl::without_gvl;
use alone::Alone;
use magnus::value::Qfalse;
use magnus::{Error, Integer, RArray, RHash, RModule, RString, Ruby, Value, function, prelude::*};
use member::Member;
use rperf_model::Profile;
use rperf_sampling::threads::native;
use rperf_session::event::{Change, Event};
use rperf_session::exec_target;
use rperf_vm::{Gvl, clock};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a thread waits for another one that delivers the profile, before it looks again.
const PAUSE: Duration = Duration::from_millis(2);

/// How often delivery is tried if something else than a signal's handler raises.
const ATTEMPTS: usize = 3;

/// A program that is profiled as a whole.
struct Whole {
    process: u32,
    destination: Destination,
    /// The native thread that delivers its last profile; 0 before that.
    finisher: AtomicU32,
    /// With which status `exit!` wants the process to end once that is done; none before: [`NO_STATUS`].
    status: AtomicI32,
}

/// No status of a process.
const NO_STATUS: i32 = i32::MIN;

/// Where its profile goes.
enum Destination {
    /// Into the directory of a session of several processes.
    Session(Member),
    /// To a file, and to stderr.
    File(Alone),
}

/// What is running, from the start of profiling to its end.
static WHOLE: Mutex<Option<Arc<Whole>>> = Mutex::new(None);

/// The process that was profiled as a whole, if there is one: its session is never the program's own.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// The one that was told of an exec, which has not failed yet.
static HANDED_OVER: Mutex<Option<Arc<Whole>>> = Mutex::new(None);

/// Defines the methods.
pub fn init(native: RModule) -> Result<(), Error> {
    native.define_singleton_method("start_as_member", function!(start_as_member, 3))?;
    native.define_singleton_method("start_alone", function!(start_alone, 3))?;
    native.define_singleton_method("whole?", function!(is_whole, 0))?;
    native.define_singleton_method("finish", function!(finish, 1))?;
    native.define_singleton_method("write_at_exit", function!(write_at_exit, 0))?;
    native.define_singleton_method("withdraw", function!(withdraw, 0))?;
    native.define_singleton_method("hand_over", function!(hand_over, 1))?;
    native.define_singleton_method("take_back", function!(take_back, 0))?;
    native.define_singleton_method("begin_daemon", function!(begin_daemon, 0))?;
    native.define_singleton_method("end_daemon", function!(end_daemon, 1))?;
    native.define_singleton_method("tell_fork", function!(tell_fork, 2))?;
    native.define_singleton_method("tell_refusal", function!(tell_refusal, 1))
}

/// `start_as_member(settings, directory, forked)`: begins the session of a process that takes part in
/// the one in `directory`.
fn start_as_member(
    ruby: &Ruby,
    settings: &SettingsObject,
    directory: PathBuf,
    is_forked: bool,
) -> Result<(), Error> {
    let mut interrupts = Interrupts::default();
    let member = Member::new(
        ruby,
        directory,
        is_forked,
        settings.0.stat(),
        &mut interrupts,
    );
    clients::start_programs(ruby, &mut gvl(ruby), settings)?;
    member.tell_start();
    put(Destination::Session(member));
    interrupts.raise()
}

/// `start_alone(settings, made, variables)`: begins the session of a program that profiles itself; `made`
/// is what its children join, or nil, and a program that it becomes by exec begins by the variables.
fn start_alone(
    ruby: &Ruby,
    settings: &SettingsObject,
    made: Option<&MadeSessionObject>,
    variables: RHash,
) -> Result<(), Error> {
    let alone = Alone {
        settings: Arc::clone(&settings.0),
        made: made.map(|it| Arc::clone(&it.0)),
        variables: settings::texts(variables)?.into_iter().collect(),
    };
    clients::start_programs(ruby, &mut gvl(ruby), settings)?;
    put(Destination::File(alone));
    Ok(())
}

fn put(destination: Destination) {
    PROCESS.store(process::id(), SeqCst);
    *slot(&WHOLE) = Some(Arc::new(Whole::new(destination)));
}

fn slot(
    slot: &'static Mutex<Option<Arc<Whole>>>,
) -> std::sync::MutexGuard<'static, Option<Arc<Whole>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The `Whole` of this process: a forked child has inherited its parent's.
fn current() -> Option<Arc<Whole>> {
    let whole = slot(&WHOLE).clone();
    whole.filter(|it| it.process == process::id())
}

/// `whole?`: whether this process is profiled as a whole, and has not begun to deliver its last profile.
fn is_whole() -> bool {
    current().is_some_and(|it| it.finisher.load(SeqCst) == 0)
}

/// `finish(arguments)`: the program ends, by `exit!` if there are its arguments, and its profile is
/// delivered, once. A handler of a signal may come to `exit!` while that is done: the process ends so when
/// it is.
fn finish(ruby: &Ruby, arguments: Option<RArray>) -> Result<(), Error> {
    let Some(whole) = current() else {
        return Ok(());
    };
    let thread = native::id().0;
    match whole.finisher.compare_exchange(0, thread, SeqCst, SeqCst) {
        Ok(_) => whole.finish(ruby),
        Err(finisher) if finisher == thread => {
            let status = arguments.map_or(0, status_of);
            whole.status.store(status, SeqCst);
            Err(Error::new(ruby.exception_system_exit(), "exit"))
        }
        Err(_) => {
            while current().is_some() {
                let_others_run(&mut gvl(ruby))?;
                without_gvl(|| clock::sleep(PAUSE));
            }
            Ok(())
        }
    }
}

/// The status with which `exit!` ends a process: true and nothing are 0, false is 1.
fn status_of(arguments: RArray) -> i32 {
    let Ok(status) = arguments.entry::<Value>(0) else {
        return 0;
    };
    if Qfalse::from_value(status).is_some() {
        return 1;
    }
    let number = Integer::from_value(status).and_then(|it| it.to_i32().ok());
    number.unwrap_or(0)
}

impl Whole {
    fn new(destination: Destination) -> Self {
        Self {
            process: process::id(),
            destination,
            finisher: AtomicU32::new(0),
            status: AtomicI32::new(NO_STATUS),
        }
    }

    fn finish(&self, ruby: &Ruby) -> Result<(), Error> {
        if facts::is_running() {
            self.tell(Change::Ending);
        }
        let delivered = self.deliver(ruby, true, |gvl| {
            let (profile, interrupts) = clients::stop_programs(ruby, gvl)?;
            Ok((profile.map(profile::shared).transpose()?, interrupts))
        });
        self.leave();
        match self.status.load(SeqCst) {
            status if status != NO_STATUS && self.is_here() => {
                // SAFETY: ends the process, as exit! does.
                unsafe { libc::_exit(status) }
            }
            _ => delivered,
        }
    }
}

/// `write_at_exit`: a program that has called Rperf.start with a file ends, and may have stopped nothing:
/// servers end by signals. The session goes on, because blocks that come later may stop it.
fn write_at_exit(ruby: &Ruby) -> Result<(), Error> {
    let settings = match running(&gvl(ruby)) {
        Some(session) if !facts::is_of_clients() && PROCESS.load(SeqCst) != process::id() => {
            Arc::clone(&session.settings)
        }
        _ => return Ok(()),
    };
    let Some(output) = settings.output() else {
        return Ok(());
    };
    if !settings.aggregate() {
        let mut interrupts = Interrupts::default();
        let line = format!(
            "{} can't be written: with aggregate: false, a profile comes from Rperf.stop alone, and the \
             program has not called it",
            output.display()
        );
        message::say(&mut interrupts, &line);
        return interrupts.raise();
    }
    let whole = Whole::new(Destination::File(Alone {
        made: made_session::of(&settings),
        settings: Arc::clone(&settings),
        variables: Vec::new(),
    }));
    whole.deliver_until_now(ruby, true)
}

/// `withdraw`: this program is an rperf command, which users don't want to see in the profile.
fn withdraw(ruby: &Ruby) -> Result<(), Error> {
    let Some(whole) = current() else {
        return Ok(());
    };
    let (_, interrupts) = clients::stop_programs(ruby, &mut gvl(ruby))?;
    whole.tell(Change::Withdrawn);
    whole.leave();
    interrupts.raise()
}

/// `hand_over(arguments)`: this process is about to become another program by exec, with these arguments.
/// That one may go on with the profiling, but must not see a session that this process has made.
fn hand_over(ruby: &Ruby, arguments: RArray) -> Result<(), Error> {
    let whole = current();
    let delivered = match &whole {
        Some(whole) => whole.deliver_until_now(ruby, !is_missing(arguments)),
        None => Ok(()),
    };
    made_session::hide_all();
    if let Some(whole) = whole {
        whole.destination.hand_over();
        whole.tell(Change::Exec);
        *slot(&HANDED_OVER) = Some(whole);
    }
    delivered
}

/// `take_back`: the exec has failed.
fn take_back() {
    let whole = slot(&HANDED_OVER).take();
    if let Some(whole) = whole {
        whole.tell(Change::ExecFailed);
        whole.destination.take_back();
    }
    made_session::show_all();
}

/// `begin_daemon`: this process is about to go on in a child, which is a daemon.
fn begin_daemon(ruby: &Ruby) -> Result<(), Error> {
    made_session::note_daemon();
    let Some(whole) = current() else {
        return Ok(());
    };
    let delivered = whole.deliver_until_now(ruby, true);
    whole.tell(Change::Daemon);
    *slot(&HANDED_OVER) = Some(whole);
    delivered
}

/// `end_daemon(is_there)`: the daemon runs, or there is none.
fn end_daemon(is_there: bool) {
    let whole = slot(&HANDED_OVER).take();
    match whole {
        _ if is_there => made_session::close_of_parent(),
        Some(whole) => whole.tell(Change::DaemonFailed),
        None => {}
    }
}

/// `tell_fork(directory, process)`: this one has forked a child, which may end before it can tell of its
/// start. If the session has ended nobody wants to know.
fn tell_fork(directory: PathBuf, process: i32) {
    let _ = Event::Forked(process).tell(&directory);
}

/// `tell_refusal(directory)`: this process, a forked child, can't be profiled.
fn tell_refusal(directory: PathBuf) {
    let _ = Event::Declined(process::id() as i32).tell(&directory);
}

/// Whether the program that exec is to start certainly doesn't exist.
fn is_missing(arguments: RArray) -> bool {
    let entry = |array: RArray, place| array.entry::<Value>(place).ok();
    let count = arguments.len();
    let is_hash =
        |place| entry(arguments, place as isize).is_some_and(|it| RHash::from_value(it).is_some());
    // It may get another PATH, or another directory.
    if (0..count).any(is_hash) {
        return false;
    }
    let Some(first) = entry(arguments, 0) else {
        return false;
    };
    let pair = RArray::from_value(first);
    let name = pair.map_or(Some(first), |pair| entry(pair, 0));
    let Some(name) = name.and_then(RString::from_value) else {
        return false;
    };
    let name = crate::text::bytes(name);
    let path = std::env::var_os("PATH");
    let is_line = count == 1 && pair.is_none();
    exec_target::is_missing(OsStr::from_bytes(&name), is_line, path.as_deref())
}

impl Whole {
    /// Whether this is its process, and not a child that a handler of a signal has forked.
    fn is_here(&self) -> bool {
        self.process == process::id()
    }

    /// Tells those who merge the profiles of a change, if there are some.
    fn tell(&self, change: Change) {
        if let Destination::Session(member) = &self.destination
            && self.is_here()
        {
            member.tell(change);
        }
    }

    /// The program may run on: its profile so far is delivered.
    fn deliver_until_now(&self, ruby: &Ruby, tables: bool) -> Result<(), Error> {
        self.deliver(ruby, tables, |gvl| {
            let profile = session::snapshot(ruby, gvl, false)?;
            Ok((
                profile.map(profile::shared).transpose()?,
                Interrupts::default(),
            ))
        })
    }

    /// Delivers the profile that `take` gives; with `tables`, the page is printed, too. Nothing here
    /// changes how the program runs or ends: what can't be done is said in a line. The error is what a
    /// handler of a signal, or another thread, has raised meanwhile.
    fn deliver(
        &self,
        ruby: &Ruby,
        tables: bool,
        mut take: impl FnMut(&mut Gvl<'_>) -> Result<(Option<Arc<Profile>>, Interrupts), Error>,
    ) -> Result<(), Error> {
        let mut kept = Interrupts::default();
        // If it comes to nothing, they are its own and nobody else's.
        let mut failures = Interrupts::default();
        let mut attempts = 0;
        loop {
            let error = match take(&mut gvl(ruby)) {
                Ok((profile, interrupts)) => {
                    kept.add(failures);
                    kept.add(interrupts);
                    if let Some(profile) = profile.filter(|_| self.is_here()) {
                        self.destination.deliver(ruby, profile, tables, &mut kept);
                    }
                    break;
                }
                Err(error) => error,
            };
            if is_of_signal(&error) {
                kept.keep(error);
                continue;
            }
            attempts += 1;
            if errors::is_rperf(ruby, &error) || attempts == ATTEMPTS {
                let line = format!("can't deliver the profile: {}", errors::line(&error));
                message::say(&mut kept, &line);
                break;
            }
            failures.keep(error);
        }
        kept.raise()
    }

    /// The profile is delivered: children that are forked now aren't profiled.
    fn leave(&self) {
        slot(&WHOLE).take_if(|whole| std::ptr::eq(&raw const **whole, self));
        self.destination.close();
    }
}

impl Destination {
    fn deliver(
        &self,
        ruby: &Ruby,
        profile: Arc<Profile>,
        tables: bool,
        interrupts: &mut Interrupts,
    ) {
        match self {
            Self::Session(member) => member.deliver(ruby, &profile, interrupts),
            Self::File(alone) => alone.deliver(ruby, &profile, tables, interrupts),
        }
    }

    /// A program that takes part in a session finds it after exec by itself.
    fn hand_over(&self) {
        if let Self::File(alone) = self {
            alone.show_variables();
        }
    }

    fn take_back(&self) {
        if let Self::File(alone) = self {
            alone.hide_variables();
        }
    }

    fn close(&self) {
        if let Self::File(alone) = self {
            alone.close();
        }
    }
}
