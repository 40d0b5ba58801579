//! `rperf top` on a terminal: the programs are asked on one thread, and the screens shown on Ruby's
//! main thread.

use super::group::{Group, Member, empty_sums};
use super::launched::Launched;
use super::memory_facts::MemoryAsker;
use super::options::{REST, SILENCE, TopArgs};
use super::short_paths::shorten;
use super::thread_facts::Asker;
use crate::process::forward;
use crate::process::has_ended;
use crate::programs::choose::Choice;
use crate::programs::words::of_failure;
use crate::report::load;
use crate::signals::Actions;
use crate::viewer;
use crate::{FAILURE, Refusal, say};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, raise, sigaction};
use nix::unistd::Pid;
use rperf_format::{Format, TextOptions};
use rperf_model::{PathView, Profile};
use rperf_report::Idle;
use rperf_session::output;
use rperf_top::app::Screen;
use rperf_top::look::Look;
use rperf_top::run::{self, Surroundings};
use rperf_top::saved;
use rperf_watch::patience::AGAIN;
use rperf_watch::pull::News;
use rperf_watch::sums::{LockedSums, lock};
use std::env;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant, SystemTime};

/// How long the port may wait for the VM.
const WAIT: Duration = Duration::from_millis(500);

/// The first picture comes soon.
const FIRST: Duration = Duration::from_millis(200);

/// The signal that is to end us; 0 for none.
static ENDS: AtomicI32 = AtomicI32::new(0);
static SUSPENDS: AtomicBool = AtomicBool::new(false);
static CONTINUED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(signal: libc::c_int) {
    match signal {
        libc::SIGTSTP => SUSPENDS.store(true, SeqCst),
        libc::SIGCONT => CONTINUED.store(true, SeqCst),
        other => ENDS.store(other, SeqCst),
    }
}

/// Whether there is a terminal for them.
#[expect(clippy::disallowed_methods, reason = "a device of the system's")]
pub fn are_possible() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let has_keys = || io::stdin().is_terminal() || File::open("/dev/tty").is_ok();
    io::stdout().is_terminal() && !is_dumb && has_keys()
}

/// Shows the screens of programs that run. Returns the exit status.
pub fn run(args: &TopArgs, choice: &Choice) -> Result<i32, Refusal> {
    let sums = empty_sums(args.idle);
    let group = Group::connect(choice, &sums)?;
    let seen = pull(args, &sums, group, None).map_err(|error| refusal(&error))?;
    show_until_a_signal(&sums, seen)
}

/// Shows the screens of saved profiles. Returns the exit status.
pub fn look_at(args: &TopArgs, files: &[PathBuf]) -> Result<i32, Refusal> {
    let profile = load::merged(files)?;
    let title = viewer::title(files);
    let shown = |text: &str| rperf_report::terminal_text::shown(text).into_owned();
    let idle = Idle::of(&profile);
    let shows = saved::Shows {
        idle_rows: idle.rows(),
        shows_idle: args.idle,
    };
    let sums = saved::sums(&profile, &title, shows, shown);
    let mut sums = sums.map_err(|why| Refusal::usage(format!("{}: {why}", shown(&title))))?;
    shorten(&mut sums, &args.paths.view());
    drop(profile);
    let nothing_comes = Pulled {
        lines: channel().1,
        looks_at_threads: Arc::default(),
        looks_at_memory: Arc::default(),
    };
    show_until_a_signal(&Arc::new(Mutex::new(sums)), nothing_comes)
}

/// Shows the screens of a program that we have started, which gets our signals. Returns whether it
/// was seen.
pub fn run_launched(args: &TopArgs, launched: &Launched) -> bool {
    let sums = empty_sums(args.idle);
    let pid = launched.pid;
    let group = Group::of_family(pid, &sums);
    let shown = pull(args, &sums, group, Some(pid)).and_then(|pulled| {
        let mut around = Terminal {
            keys: keys()?,
            pulled,
            last: String::new(),
            is_over: false,
            launched: Some(pid),
        };
        run::run(&sums, Look::of_environment(), &mut around)
    });
    if let Err(error) = shown {
        say(&refusal(&error).message);
    }
    !lock(&sums).processes.is_empty()
}

/// The thread that asks the programs, as the screens know it.
struct Pulled {
    /// What the user should know.
    lines: Receiver<String>,
    /// Whether it is to ask for what the sums don't say of threads.
    looks_at_threads: Arc<AtomicBool>,
    /// Whether it is to look at memory.
    looks_at_memory: Arc<AtomicBool>,
}

/// Has the programs asked on a thread of its own.
fn pull(
    args: &TopArgs,
    sums: &LockedSums,
    group: Group,
    launched: Option<i32>,
) -> io::Result<Pulled> {
    let (sender, lines) = channel();
    let (looks_at_threads, looks_at_memory) = Default::default();
    let puller = Puller {
        asker: Asker::new(sums, &looks_at_threads),
        memory_asker: MemoryAsker::new(sums, &looks_at_memory),
        sums: LockedSums::clone(sums),
        group,
        interval: args.interval.min(REST),
        paths: args.paths.view(),
        lines: sender,
        launched,
    };
    // Nobody waits for it: an answer may be under way when the user has seen enough.
    thread::Builder::new().spawn(move || puller.pull())?;
    Ok(Pulled {
        lines,
        looks_at_threads,
        looks_at_memory,
    })
}

fn show_until_a_signal(sums: &LockedSums, pulled: Pulled) -> Result<i32, Refusal> {
    let keys = keys().map_err(|error| refusal(&error))?;
    let mut around = Terminal {
        keys,
        pulled,
        last: String::new(),
        is_over: false,
        launched: None,
    };
    // A second one ends us in any case.
    let ends = Actions::set_once(&ENDING, SigHandler::Handler(note));
    let stops = Actions::set(&STOPPING, SigHandler::Handler(note));
    let shown = run::run(sums, Look::of_environment(), &mut around);
    drop((ends, stops));
    if let Ok(signal) = Signal::try_from(ENDS.load(SeqCst)) {
        let _ = raise(signal);
    }
    shown.map_err(|error| refusal(&error))?;
    Ok(0)
}

const ENDING: [Signal; 4] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
];
const STOPPING: [Signal; 2] = [Signal::SIGTSTP, Signal::SIGCONT];

/// Where the keys come from.
#[expect(clippy::disallowed_methods, reason = "a device of the system's")]
fn keys() -> io::Result<OwnedFd> {
    let stdin = io::stdin();
    match stdin.is_terminal() {
        true => stdin.as_fd().try_clone_to_owned(),
        false => File::open("/dev/tty").map(OwnedFd::from),
    }
}

fn refusal(error: &io::Error) -> Refusal {
    Refusal {
        message: format!("can't show the screens: {error}"),
        status: FAILURE,
    }
}

/// Asks the programs.
struct Puller {
    sums: LockedSums,
    group: Group,
    asker: Asker,
    memory_asker: MemoryAsker,
    interval: Duration,
    paths: PathView,
    lines: Sender<String>,
    /// The process that we have started.
    launched: Option<i32>,
}

impl Puller {
    /// Until nobody looks any more, or no program is left.
    fn pull(mut self) {
        let mut is_first = true;
        let mut next = Instant::now();
        let mut is_ready = false;
        loop {
            let round = match is_ready {
                true => self.group.round(WAIT, of_news),
                false => self.group.round_of_new(WAIT, of_news),
            };
            for member in &self.group.members {
                self.asker.ask(member);
                self.memory_asker.ask(member);
            }
            self.group.complain(SILENCE);
            let mut lines = self.group.take_lines();
            let is_over = round.is_err();
            if let Err((pid, error)) = round {
                let why = of_failure(pid, &error.into()).message;
                lines.push(format!("{why}; q quits"));
            }
            self.end_round(is_ready, !lines.is_empty());
            for line in lines {
                if self.lines.send(line).is_err() {
                    return;
                }
            }
            if is_over {
                return;
            }
            if self.launched.is_some_and(has_ended) {
                self.group.members.clear();
                self.end_round(true, true);
                let _ = self.lines.send("the program has ended; q quits".into());
                return;
            }
            is_ready = self.group.is_ready(SILENCE);
            if is_ready {
                let interval = if is_first { FIRST } else { self.interval };
                is_first = false;
                next = (next + interval).max(Instant::now());
                self.rest_until(next);
            } else {
                sleep(AGAIN);
            }
        }
    }

    /// For as long as the program runs that we have started.
    fn rest_until(&self, next: Instant) {
        loop {
            let rest = next.saturating_duration_since(Instant::now());
            if rest.is_zero() || self.launched.is_some_and(has_ended) {
                return;
            }
            sleep(self.launched.map_or(rest, |_| rest.min(AGAIN)));
        }
    }

    /// `is_whole`: all programs were asked. `is_news`: there is something that the user should know.
    fn end_round(&self, is_whole: bool, is_news: bool) {
        let mut sums = lock(&self.sums);
        shorten(&mut sums, &self.paths);
        if is_whole {
            sums.end_round();
        } else if is_news {
            sums.renew();
        }
    }
}

/// Notes in the sums what has come with the last pull.
fn of_news(member: &mut Member, news: News) {
    let (process, facts) = (member.feed.process, &member.program.facts);
    let mut sums = member.feed.lock();
    match news {
        News::Waits => sums.begin_interval(process),
        News::Begins => sums.begin(process),
        News::BeginsAnew => {
            let elapsed = facts.as_of_ns.saturating_sub(facts.start_ns);
            sums.end_interval(process, elapsed, facts.sampling_ns);
        }
        News::Interval { before, .. } => {
            let elapsed = facts.as_of_ns.saturating_sub(before.as_of_ns);
            let sampling = facts.sampling_ns.saturating_sub(before.sampling_ns);
            sums.end_interval(process, elapsed, sampling);
        }
    }
    sums.set_stuck(process, member.program.stuck().is_some());
}

struct Terminal {
    keys: OwnedFd,
    pulled: Pulled,
    /// The last line that came.
    last: String,
    /// No more come.
    is_over: bool,
    /// The process that we have started.
    launched: Option<i32>,
}

impl Surroundings for Terminal {
    fn wait(&mut self, patience: Duration) -> io::Result<()> {
        let patience = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
        let mut keys = [PollFd::new(self.keys.as_fd(), PollFlags::POLLIN)];
        match poll(&mut keys, patience) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ends = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        match keys[0].revents() {
            Some(found) if !found.intersects(ends) => Ok(()),
            _ => Err(io::Error::other("the terminal is gone")),
        }
    }

    fn signal(&mut self) -> Option<run::Signal> {
        // It has got the signal, too, and what it does comes first.
        let has_ended = || self.launched.is_some_and(has_ended);
        if ENDS.load(SeqCst) != 0 || forward::came_to_end_us() && has_ended() {
            return Some(run::Signal::End);
        }
        if SUSPENDS.swap(false, SeqCst) || self.launched.is_some() && forward::was_stopped() {
            return Some(run::Signal::Suspend);
        }
        let was_continued = CONTINUED.swap(false, SeqCst) || forward::was_continued();
        was_continued.then_some(run::Signal::Continued)
    }

    fn suspend(&mut self) {
        let by_default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action; what was there before is put back below.
        let previous = unsafe { sigaction(Signal::SIGTSTP, &by_default) };
        // As the key does it where no screens have the terminal: to all that it would.
        let _ = match self.launched {
            Some(_) => kill(Pid::from_raw(0), Signal::SIGTSTP),
            None => raise(Signal::SIGTSTP),
        };
        if let Ok(previous) = previous {
            // SAFETY: `note` only touches atomics.
            let _ = unsafe { sigaction(Signal::SIGTSTP, &previous) };
        }
        CONTINUED.store(false, SeqCst);
        forward::was_continued();
        forward::was_stopped();
    }

    fn looks_at(&mut self, screen: Screen) {
        let is_there = screen == Screen::Threads;
        self.pulled.looks_at_threads.store(is_there, SeqCst);
        let is_there = screen == Screen::Memory;
        self.pulled.looks_at_memory.store(is_there, SeqCst);
    }

    fn line(&mut self) -> Option<String> {
        match self.pulled.lines.try_recv() {
            Ok(line) => {
                self.last.clone_from(&line);
                Some(line)
            }
            Err(error) => {
                self.is_over = error == TryRecvError::Disconnected;
                None
            }
        }
    }

    fn last_line(&mut self) -> Option<String> {
        (self.is_over && !self.last.is_empty()).then(|| self.last.clone())
    }

    fn write(&mut self, path: &str, mut profile: Profile) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(0));
        profile.meta.start_time_ns = now.saturating_sub(profile.meta.duration_ns);
        let path = PathBuf::from(path);
        match written(&profile, &path) {
            Ok(format) => format!("wrote {} ({})", path.display(), format.name()),
            Err(error) => error,
        }
    }
}

/// Returns in which format it was written.
fn written(profile: &Profile, path: &Path) -> Result<Format, String> {
    if path.extension().is_some_and(|it| it == "svg") {
        return Err(
            "only rperf report makes .svg files: write x.pb.gz, and make one of that".into(),
        );
    }
    let text = TextOptions {
        lines: false,
        whole: None,
    };
    let unwritable = |error| format!("the file must be {error}, not '{}'", path.display());
    let path = output::writable(path, false).map_err(unwritable)?;
    let format = Format::of_report(&path);
    let mut content = Vec::new();
    rperf_format::write(profile, format, text, &mut content).map_err(|error| error.to_string())?;
    let written = output::write(&path, &content);
    written.map_err(|error| format!("can't write to {}: {error}", path.display()))?;
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::{Column, Schema, ValueType};

    #[test]
    fn files_that_cannot_be_written_are_refused_with_what_they_must_be() {
        let schema = Schema::new(vec![ValueType::new("wall", "nanoseconds")], Column(0));
        let profile = Profile::new(schema.expect("a schema"));
        let directory = tempfile::tempdir().expect("a directory");
        let written = |name: &str| written(&profile, &directory.path().join(name));
        assert_eq!(written("x.json"), Ok(Format::Json));
        assert_eq!(written("x.data"), Ok(Format::Pprof));
        let error = written("no/x.json").expect_err("refused");
        let start = "the file must be in a directory that exists, not '/";
        assert!(error.starts_with(start), "{error}");
        let error = written("x.svg").expect_err("refused");
        assert!(
            error.starts_with("only rperf report makes .svg files"),
            "{error}"
        );
        assert!(!directory.path().join("x.svg").exists());
    }
}
