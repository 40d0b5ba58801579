//! `rperf push`: sends the profile of running programs to Pyroscope or to a collector of
//! OpenTelemetry, again and again. Called by `run`, on Ruby's main thread, which also sends: by
//! Ruby's HTTP and TLS. Another thread profiles.

pub mod answer;
pub mod destination;

use super::profile::of_all;
use super::programs::Programs;
use super::queue::{Next, Queue};
use crate::args::PushArgs;
use crate::signals::Actions;
use crate::{FAILURE, Refusal, say};
use answer::{Answer, Verdict};
use destination::{Destination, Kind, Names, Wish};
use nix::sys::signal::{SigHandler, Signal};
use rperf_protocol::ask::{Sampling, Wanted};
use rperf_session::settings::quoted;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How soon a signal is heeded while nothing else is done.
const POLL: Duration = Duration::from_millis(50);

/// How long a profile is waited for. The thread that brings them heeds signals, and says when it ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two tries to profile anything, if there was nothing to profile.
const IDLE: Duration = Duration::from_secs(1);

/// With `-n`: how often it is tried to send something once all profiles are made.
const TRIES_AT_END: u32 = 3;

/// Signals that end it.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// One of them has come.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDED.store(true, SeqCst);
}

fn has_ended() -> bool {
    ENDED.load(SeqCst)
}

/// What is sent: where to, the headers, and the body.
pub struct Parcel<'a> {
    /// With http or https.
    pub url: &'a str,
    /// Names and values.
    pub headers: &'a [(String, String)],
    /// What it is.
    pub body: &'a [u8],
}

/// Sends it.
pub type Post<'a> = &'a dyn Fn(&Parcel<'_>) -> Answer;

/// What has been checked.
struct Plan {
    destination: Destination,
    every: Duration,
    sampling: Sampling,
    count: u64,
    programs: Programs,
}

/// Sends until a signal comes, or `-n` profiles are made. Returns the exit status.
pub fn run(args: &PushArgs, post: Post<'_>) -> Result<i32, Refusal> {
    let plan = Plan::of(args)?;
    ENDED.store(false, SeqCst);
    // A second one doesn't wait for the server.
    let _signals = Actions::set_once(&ENDS, SigHandler::Handler(end));
    say(&format!(
        "sending a profile to {} every {} s (Ctrl-C ends it)",
        plan.destination.shown,
        plan.every.as_secs_f64()
    ));
    let queue = Queue::default();
    let mut sender = Sender {
        destination: &plan.destination,
        queue: &queue,
        post,
        counts: Counts::default(),
        failures: 0,
        failures_at_end: 0,
        last_said: String::new(),
    };
    let collected = thread::scope(|scope| {
        let collector = scope.spawn(|| {
            let _closes = Closes(&queue);
            collect(&plan, &queue);
        });
        sender.run();
        collector.join()
    });
    if collected.is_err() {
        say("an internal error ended the profiles");
    }
    let Counts {
        sent,
        in_part,
        refused,
    } = sender.counts;
    let lost = refused + queue.dropped();
    let mut text = format!("{} sent", counted(sent));
    if in_part > 0 {
        text.push_str(&format!(", {in_part} of them in part"));
    }
    if lost > 0 {
        text.push_str(&format!(", {lost} lost"));
    }
    say(&text);
    let is_all = sent > 0 && lost == 0 && in_part == 0 && collected.is_ok();
    Ok(if is_all { 0 } else { FAILURE })
}

/// However the thread ends that brings profiles: the other one waits for them.
struct Closes<'a>(&'a Queue);

impl Drop for Closes<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn counted(count: u64) -> String {
    match count {
        1 => "1 profile".into(),
        count => format!("{count} profiles"),
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
            sampling: Sampling {
                is_wall: args.mode == "wall",
                frequency: args.frequency,
            },
            count: args.count.unwrap_or(u64::MAX),
            programs: Programs::matching(args.matching.as_deref())?,
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
        let mut taken = of_all(present, wanted, &has_ended);
        if taken.profile.is_none() && taken.notes.is_empty() {
            taken.notes.push("no such program with a port runs".into());
        }
        let notes: HashSet<_> = taken.notes.into_iter().collect();
        notes.difference(&said).for_each(|note| say(note));
        said = notes;
        let Some(profile) = taken.profile else {
            wait(IDLE);
            continue;
        };
        match plan.destination.body(&profile) {
            Ok(body) => queue.add(body),
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

struct Sender<'a> {
    destination: &'a Destination,
    queue: &'a Queue,
    post: Post<'a>,
    counts: Counts,
    /// In a row.
    failures: u32,
    /// Failures in a row since the last profile was made.
    failures_at_end: u32,
    last_said: String,
}

#[derive(Default)]
struct Counts {
    sent: u64,
    /// Profiles, among those that were sent, of which the server refused a part.
    in_part: u64,
    refused: u64,
}

impl Sender<'_> {
    fn run(&mut self) {
        loop {
            match self.queue.next(PATIENCE) {
                Next::Body(body) => self.send(body),
                Next::Nothing => {}
                Next::End => return,
            }
        }
    }

    fn send(&mut self, body: Vec<u8>) {
        let answer = (self.post)(&Parcel {
            url: &self.destination.url,
            headers: &self.destination.headers,
            body: &body,
        });
        match answer.verdict(self.destination.kind) {
            Verdict::Taken => self.taken(),
            Verdict::TakenInPart(count, why) => {
                self.taken();
                self.counts.in_part += u64::from(count > 0);
                self.say(&match count {
                    0 => format!("it takes a profile, and says: {why}"),
                    count => {
                        format!("it refuses a part of a profile ({count} of its profiles): {why}")
                    }
                });
            }
            Verdict::Refused(why) => {
                self.counts.refused += 1;
                self.say(&format!("it refuses a profile: {why}"));
            }
            Verdict::Later(why) => {
                self.failures += 1;
                self.say(&format!("it takes no profile: {why}; trying again"));
                self.queue.put_back(body);
                self.failures_at_end += u32::from(self.queue.is_closed());
                if has_ended() || self.failures_at_end >= TRIES_AT_END {
                    self.queue.drop_all();
                } else {
                    wait(answer.pause(self.failures));
                }
            }
        }
    }

    fn taken(&mut self) {
        self.counts.sent += 1;
        if self.failures > 0 {
            self.say("it takes profiles again");
            (self.failures, self.failures_at_end) = (0, 0);
        }
    }

    /// Once, until there is something else to say.
    fn say(&mut self, what: &str) {
        if self.last_said != what {
            say(&format!("{}: {what}", self.destination.shown));
            self.last_said = what.into();
        }
    }
}
