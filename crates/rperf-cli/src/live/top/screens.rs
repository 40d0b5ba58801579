//! `rperf top` on a terminal: the programs are asked on one thread, and the screens shown on Ruby's
//! main thread.

use super::TopArgs;
use super::feed::{Feed, SharedStore, lock};
use super::group::Group;
use super::{REST, SILENCE};
use crate::live::process;
use crate::signals::Actions;
use crate::{FAILURE, Refusal};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use rperf_format::{Format, TextOptions};
use rperf_model::Profile;
use rperf_session::output;
use rperf_top::look::Look;
use rperf_top::run::{self, Surroundings};
use std::env;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
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
pub fn are_possible() -> bool {
    let is_dumb = env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let has_keys = || io::stdin().is_terminal() || File::open("/dev/tty").is_ok();
    io::stdout().is_terminal() && !is_dumb && has_keys()
}

/// Shows the screens. Returns the exit status.
pub fn run(args: &TopArgs) -> Result<i32, Refusal> {
    let store = SharedStore::default();
    let of_group = SharedStore::clone(&store);
    let group = Group::connect(&args.choice, move |program| Feed::new(&of_group, program))?;
    let (sender, lines) = channel();
    let puller = Puller {
        store: SharedStore::clone(&store),
        group,
        interval: args.interval.min(REST),
        lines: sender,
    };
    // Nobody waits for it: an answer may be under way when the user has seen enough.
    let begun = thread::Builder::new().spawn(move || puller.pull());
    begun.map_err(|error| refusal(&error))?;
    let mut around = Terminal { lines };
    let actions = Actions::set(&SIGNALS, SigHandler::Handler(note));
    let shown = run::run(&store, Look::of_environment(), &mut around);
    drop(actions);
    if let Ok(signal) = Signal::try_from(ENDS.load(SeqCst)) {
        let _ = raise(signal);
    }
    shown.map_err(|error| refusal(&error))?;
    Ok(0)
}

const SIGNALS: [Signal; 6] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

fn refusal(error: &io::Error) -> Refusal {
    Refusal {
        message: format!("can't show the screens: {error}"),
        status: FAILURE,
    }
}

/// Asks the programs.
struct Puller {
    store: SharedStore,
    group: Group<Feed>,
    interval: Duration,
    lines: Sender<String>,
}

impl Puller {
    /// Until nobody looks any more, or no program is left.
    fn pull(mut self) {
        let mut is_first = true;
        let mut next = Instant::now();
        loop {
            let round = self.group.round(WAIT, |member, news| {
                member.sums.note(&member.program.mirror, &news);
            });
            self.group.complain(SILENCE);
            let mut lines = self.group.take_lines();
            if let Err((pid, error)) = &round {
                lines.push(format!("{}; q quits", process::failed(*pid, error).message));
            }
            self.end_round();
            for line in lines {
                if self.lines.send(line).is_err() {
                    return;
                }
            }
            if round.is_err() {
                return;
            }
            if self.group.is_ready(SILENCE) {
                let interval = if is_first { FIRST } else { self.interval };
                is_first = false;
                next = (next + interval).max(Instant::now());
                sleep(next.saturating_duration_since(Instant::now()));
            }
        }
    }

    fn end_round(&self) {
        let members = &self.group.members;
        let there: Vec<_> = members.iter().map(|it| it.sums.process).collect();
        let mut store = lock(&self.store);
        for process in 0..store.processes.len() as u32 {
            let has_ended = store.processes[process as usize].has_ended;
            if !has_ended && !there.contains(&process) {
                store.end_process(process);
            }
        }
        store.end_round();
    }
}

struct Terminal {
    lines: Receiver<String>,
}

impl Surroundings for Terminal {
    fn signal(&mut self) -> Option<run::Signal> {
        if ENDS.load(SeqCst) != 0 {
            return Some(run::Signal::End);
        }
        if SUSPENDS.swap(false, SeqCst) {
            return Some(run::Signal::Suspend);
        }
        CONTINUED
            .swap(false, SeqCst)
            .then_some(run::Signal::Continued)
    }

    fn suspend(&mut self) {
        let by_default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: the default action; what was there before is put back below.
        let previous = unsafe { sigaction(Signal::SIGTSTP, &by_default) };
        let _ = raise(Signal::SIGTSTP);
        if let Ok(previous) = previous {
            // SAFETY: `note` only touches atomics.
            let _ = unsafe { sigaction(Signal::SIGTSTP, &previous) };
        }
        CONTINUED.store(false, SeqCst);
    }

    fn line(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    fn write(&mut self, path: &str, mut profile: Profile) -> String {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(0));
        profile.meta.start_time_ns = now.saturating_sub(profile.meta.duration_ns);
        let path = PathBuf::from(path);
        match written(&profile, &path) {
            Ok(()) => format!("wrote {}", path.display()),
            Err(error) => error,
        }
    }
}

fn written(profile: &Profile, path: &Path) -> Result<(), String> {
    let text = TextOptions {
        lines: false,
        whole: None,
    };
    let path = output::writable(path, false).map_err(|error| error.to_string())?;
    let format = Format::of_report(&path);
    let mut content = Vec::new();
    rperf_format::write(profile, format, text, &mut content).map_err(|error| error.to_string())?;
    let written = output::write(&path, &content);
    written.map_err(|error| format!("can't write to {}: {error}", path.display()))
}
