//! `rperf push`: sends the profile of running programs to Pyroscope or to a collector of
//! OpenTelemetry, again and again. Called by `run`, on the main thread, which also has the profiles
//! sent. Another thread profiles.

use super::poster::Poster;
use super::profile::of_all;
use super::programs::Programs;
use crate::args::PushArgs;
use crate::signals::Actions;
use crate::{FAILURE, Installation, Refusal, options, say};
use nix::sys::signal::{SigHandler, Signal};
use rperf_protocol::ask::{Sampling, Wanted};
use rperf_push::{AUTHORIZATION, Destination, Kind, Names, Next, Owner, Sender, Wish};
use rperf_session::settings::quoted;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How soon a signal is heeded while nothing else is done.
const POLL: Duration = Duration::from_millis(50);

/// How long a profile is waited for. The thread that brings them heeds signals, and says when it ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two tries to profile anything, if there was nothing to profile.
const IDLE: Duration = Duration::from_secs(1);

/// Signals that end it.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Whether one of these signals has come.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDED.store(true, SeqCst);
}

fn has_ended() -> bool {
    ENDED.load(SeqCst)
}

/// What has been checked.
struct Plan {
    destination: Destination,
    every: Duration,
    sampling: Sampling,
    count: u64,
    programs: Programs,
}

/// Sends until a signal comes, or `-n` profiles are made. Returns the exit status.
pub fn run(args: &PushArgs, installation: &Installation) -> Result<i32, Refusal> {
    let plan = Plan::of(args)?;
    if plan.destination.shows_password {
        say(&format!(
            "lists of processes show the password in this command line to all users; {AUTHORIZATION} hides it"
        ));
    }
    let mut poster = Poster::start(installation)?;
    ENDED.store(false, SeqCst);
    // A second one doesn't wait for the server.
    let _signals = Actions::set_once(&ENDS, SigHandler::Handler(end));
    say(&format!(
        "sending a profile to {} every {} s (Ctrl-C ends it)",
        plan.destination.shown,
        plan.every.as_secs_f64()
    ));
    let queue = Queue {
        sender: Mutex::new(Sender::new(&plan.destination, Owner::Command)),
        changed: Condvar::new(),
    };
    let collected = thread::scope(|scope| {
        let collects = || {
            let _closes = Closes(&queue);
            collect(&plan, &queue);
        };
        let collector = thread::Builder::new().spawn_scoped(scope, collects)?;
        queue.send(&plan.destination, &mut poster);
        Ok(collector.join())
    });
    let no_thread = |error: io::Error| Refusal {
        message: format!("can't start a thread: {error}"),
        status: FAILURE,
    };
    let collected = collected.map_err(no_thread)?;
    if collected.is_err() {
        say("an internal error ended the profiles");
    }
    let counts = queue.sender().counts();
    say(&counts.to_string());
    Ok(if counts.is_all() && collected.is_ok() {
        0
    } else {
        FAILURE
    })
}

/// What one thread brings and the other one sends.
struct Queue {
    sender: Mutex<Sender>,
    /// There is one more profile, or there will be none.
    changed: Condvar,
}

impl Queue {
    fn sender(&self) -> MutexGuard<'_, Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut Sender)) {
        change(&mut self.sender());
        self.changed.notify_all();
    }

    /// Does what the sender wants, until its end.
    fn send(&self, destination: &Destination, poster: &mut Poster) {
        let began = Instant::now();
        let mut answer = None;
        let mut sender = self.sender();
        loop {
            if has_ended() {
                sender.hurry();
            }
            let step = sender.step(began.elapsed(), answer.take().as_ref());
            step.lines.iter().for_each(|line| say(line));
            sender = match step.next {
                Next::Send(body) => {
                    drop(sender);
                    answer = Some(poster.post(destination, &body));
                    self.sender()
                }
                Next::Wait(pause) => {
                    let time = pause.map_or(PATIENCE, |pause| pause.min(POLL));
                    let waited = self.changed.wait_timeout(sender, time);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                Next::End => return,
            }
        }
    }
}

/// However the thread ends that brings profiles: the other one waits for them.
struct Closes<'a>(&'a Queue);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.0.change(Sender::close);
    }
}

impl Plan {
    fn of(args: &PushArgs) -> Result<Self, Refusal> {
        let every = args.every.strip_suffix('s').unwrap_or(&args.every);
        let every = every.parse::<f64>().ok();
        let every = every.filter(|it| (1.0..=3600.0).contains(it));
        let every = every.ok_or_else(|| {
            let text = quoted(args.every.as_ref());
            Refusal::usage(format!(
                "--every must be seconds from 1 to 3600, not {text}"
            ))
        })?;
        let (kind, name, url) = match (&args.to, &args.otlp) {
            (Some(url), _) => (Kind::Pyroscope, "--to", url.as_str()),
            (None, url) => (Kind::Otlp, "--otlp", url.as_deref().unwrap_or_default()),
        };
        let destination = Destination::of(&Wish {
            kind,
            names: Names {
                url: name,
                label: "--label",
                header: "--header",
            },
            url,
            service: args.service.as_deref(),
            labels: &args.labels,
            headers: &args.headers,
        })?;
        Ok(Plan {
            destination,
            every: Duration::from_secs_f64(every),
            sampling: options::sampling_of(&options::for_push(&args.settings)?),
            count: args.count.unwrap_or(u64::MAX),
            programs: Programs::of(args.matching.as_deref(), &args.users)?,
        })
    }
}

/// Profiles the programs, one stretch of time after the other.
fn collect(plan: &Plan, queue: &Queue) {
    let wanted = Wanted {
        time: plan.every,
        sampling: plan.sampling,
    };
    let mut said = HashSet::new();
    let mut count = 0;
    while count < plan.count && !has_ended() {
        let present = plan.programs.now();
        let nobody = present.says_nobody();
        let mut taken = of_all(present, wanted, &has_ended);
        taken.notes.extend(nobody);
        let notes: HashSet<_> = taken.notes.into_iter().collect();
        notes.difference(&said).for_each(|note| say(note));
        said = notes;
        let Some(profile) = taken.profile else {
            wait(IDLE);
            continue;
        };
        match plan.destination.body(&profile) {
            Ok(body) => queue.change(|sender| sender.add(body)),
            Err(error) => say(&format!("a profile is lost: {error}")),
        }
        count += 1;
    }
}

fn wait(time: Duration) {
    let until = Instant::now() + time;
    while !has_ended() && Instant::now() < until {
        thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
    }
}
