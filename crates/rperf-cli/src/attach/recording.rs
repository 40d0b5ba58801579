//! The profile of one running program, asked for at its port. On a thread of the command's for each
//! program.

use crate::Refusal;
use crate::live::process;
use rperf_model::Profile;
use rperf_protocol::ask::{Ask, Wanted};
use rperf_protocol::hello::{Hello, Session};
use rperf_protocol::limits::MAX_PROFILE;
use rperf_session::process_id::ProcessId;
use rperf_watch::client::{AskError, Client, Reply};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How often other things are looked at while the answer is waited for.
const STEP: Duration = Duration::from_millis(50);

/// How long the answer may take when it should come, before something is said.
const PATIENCE: Duration = Duration::from_millis(1500);

/// How often the program is asked whether its VM answers.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How long it may take once the user has had enough.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// How long a process may take to end that has lost its connections.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// A helper of ours that hasn't come to run for so long is kept from it.
const STUCK_AFTER: Duration = Duration::from_secs(1);

/// How long the program may take for what has been so far, and the share of its time.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(5);
const SNAPSHOT_SHARE: u32 = 100;
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(1);

/// What is told of a program while it is asked, in a line.
#[derive(Debug, Clone, Copy)]
pub enum Told<'a> {
    /// It is waited for: the user can give up.
    Waiting(&'a str),
    /// What is to be known of its profile.
    Fact(&'a str),
}

/// Takes what is told.
pub type Tell<'a> = &'a (dyn Fn(Told<'_>) + Sync);

/// Why nothing comes of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Complaint {
    /// It was stopped by a signal.
    Stopped,
    /// It may just wait.
    Quiet,
    /// It doesn't answer, and nothing of ours is in it that would.
    NoAnswer,
    /// A helper of ours is in it, and doesn't come to run.
    Stuck,
}

/// Why the rest of a profile is lost.
#[derive(Debug, Clone, Copy)]
enum Lost {
    /// Its connections were closed.
    Closed,
    /// It is silent.
    Silent,
}

/// A program that is being asked.
pub struct Recording<'a> {
    pid: i32,
    process: Option<ProcessId>,
    client: Client,
    /// Asks for what has been so far, should the program be killed.
    second: Option<Client>,
    /// Another session than one of ours runs.
    is_watching: bool,
    /// The session is one of clients: a helper is in the program, which would answer.
    has_helper: bool,
    wanted: Wanted,
    /// Bytes of its file at most.
    most: usize,
    /// What it said of itself at first.
    hello: Hello,
    asked: Instant,
    begun: Option<Instant>,
    ended_asking: Option<Instant>,
    next_snapshot: Instant,
    next_look: Instant,
    /// What has been so far, and when that was.
    so_far: Option<(Vec<u8>, Instant)>,
    /// What was told last of it.
    complaint: Option<Complaint>,
    tell: Tell<'a>,
}

impl<'a> Recording<'a> {
    /// Asks the process `pid`.
    pub fn begin(pid: i32, wanted: Wanted, tell: Tell<'a>) -> Result<Self, Refusal> {
        let mut client = process::connect(pid)?;
        let second = Some(process::connect(pid)?);
        let failed = |error| process::failed(pid, &error);
        let hello = client.hello().map_err(failed)?;
        if let Some(session) = &hello.session {
            if session.is_trace() {
                return Err(traced(pid));
            }
            let is_as_wanted = *session == wanted.sampling.into();
            if !hello.is_live || !is_as_wanted {
                let how = how(session);
                let as_it_is = match is_as_wanted {
                    true => "",
                    false => ", whatever -m and -f say",
                };
                let fact = format!(
                    "{pid} is being profiled already ({how}); watching that session{as_it_is}"
                );
                tell(Told::Fact(&fact));
            }
        }
        let asked = Instant::now();
        let until = asked + PATIENCE;
        let sent = client.ask(Ask::Profile(wanted), until);
        sent.map_err(failed)?;
        Ok(Recording {
            pid,
            process: ProcessId::present(pid),
            client,
            second,
            is_watching: hello.session.is_some(),
            has_helper: hello.session.is_none() || hello.is_live,
            wanted,
            most: MAX_PROFILE,
            hello,
            asked,
            begun: None,
            ended_asking: None,
            next_snapshot: asked + SNAPSHOT_INTERVAL,
            next_look: asked + LOOK_INTERVAL,
            so_far: None,
            complaint: None,
            tell,
        })
    }

    /// Waits for the profile; if `stop` becomes true, it ends then.
    pub fn finish(self, stop: &AtomicBool) -> Result<Profile, Refusal> {
        let tell = self.tell;
        self.content(stop, MAX_PROFILE)?.read(tell)
    }

    /// The content of the profile, at most `most` bytes, waited for as by [`Self::finish`]. It
    /// isn't read yet, because that takes several times the memory.
    pub fn content(mut self, stop: &AtomicBool, most: usize) -> Result<Content, Refusal> {
        self.most = most;
        loop {
            match self.client.reply(self.most, Instant::now() + STEP) {
                Ok(reply) => return Ok(self.whole(reply)),
                Err(AskError::Silent) => {}
                Err(AskError::Closed) => return self.take_so_far(Lost::Closed),
                Err(error) => return Err(process::failed(self.pid, &error)),
            }
            if stop.load(SeqCst) {
                if self.begun.is_none() && self.look().is_none() {
                    return Err(self.failure("nothing was profiled, as no Ruby code ran"));
                }
                let since = *self.ended_asking.get_or_insert_with(Instant::now);
                // Several times does no harm.
                let _ = self.client.end_asking();
                if since.elapsed() > LAST_PATIENCE {
                    return self.take_so_far(Lost::Silent);
                }
            } else {
                self.wait();
            }
        }
    }

    /// While the profile isn't there yet.
    fn wait(&mut self) {
        if process::is_stopped(self.pid) {
            if self.is_new(Complaint::Stopped) {
                (self.tell)(Told::Fact(&process::stopped(self.pid)));
            }
            return;
        }
        let begun = self.begun.or_else(|| self.look());
        let is_late = match begun {
            None => self.asked.elapsed() > PATIENCE,
            Some(begun) => begun.elapsed() > self.wanted.time + PATIENCE,
        };
        let is_silent = begun.is_some() && self.is_silent();
        if is_late && begun.is_none() {
            if self.is_new(Complaint::Quiet) {
                let now = self.ask_second(|client| client.hello_within(process::PATIENCE));
                let quiet = process::quiet(&self.hello, now.as_ref());
                self.tell_waiting(&format!(
                    "{quiet}; profiling begins as soon as Ruby code runs"
                ));
            }
        } else if (is_late || is_silent) && !self.has_helper {
            // Nothing of ours is in the program that would run in between.
            if self.is_new(Complaint::NoAnswer) {
                self.tell_waiting(
                    "doesn't answer: no Ruby code runs just now, or a thread keeps the GVL in \
                     native code",
                );
            }
        } else if is_late || is_silent {
            self.complain_of_keeper();
        }
        let rest = begun.map(|begun| self.wanted.time.saturating_sub(begun.elapsed()));
        if begun.is_some()
            && !self.is_watching
            && Instant::now() >= self.next_snapshot
            && rest > Some(SNAPSHOT_INTERVAL)
        {
            self.take_snapshot();
        }
    }

    /// Whether the VM is asked for something in vain: the profile hasn't begun, if the program's session
    /// is watched; in one of clients it is asked for a sign of life.
    fn is_silent(&mut self) -> bool {
        if Instant::now() < self.next_look {
            return false;
        }
        self.next_look = Instant::now() + LOOK_INTERVAL;
        let has_helper = self.has_helper;
        let hello = self.ask_second(|client| match has_helper {
            true => client.hello_asking(process::PATIENCE),
            false => client.hello_within(process::PATIENCE),
        });
        hello.is_some_and(|hello| Duration::from_nanos(hello.silent_ns) > STUCK_AFTER)
    }

    /// Whether the VM is silent, asked on a new connection.
    fn is_stuck(&self) -> bool {
        let hello = process::greeted(self.pid);
        hello.is_some_and(|hello| Duration::from_nanos(hello.silent_ns) >= PATIENCE / 2)
    }

    /// Whether the session has begun, and when that was seen.
    fn look(&mut self) -> Option<Instant> {
        let hello = self.ask_second(|client| client.hello_within(process::PATIENCE))?;
        self.begun = hello.session.map(|_| Instant::now());
        self.begun
    }

    /// What comes later than it is waited for would be taken for another answer: then the next
    /// question has another connection.
    fn ask_second<T>(&mut self, ask: impl FnOnce(&mut Client) -> Result<T, AskError>) -> Option<T> {
        let mut client = match self.second.take() {
            Some(client) => client,
            None => process::connect(self.pid).ok()?,
        };
        let answer = ask(&mut client).ok()?;
        self.second = Some(client);
        Some(answer)
    }

    fn take_snapshot(&mut self) {
        let began = Instant::now();
        let (until, most) = (began + SNAPSHOT_PATIENCE, self.most);
        let mut asked = self.ask_second(|client| {
            client.ask(Ask::Snapshot { may_wake: false }, until)?;
            Ok(client.reply(most, began + STUCK_AFTER))
        });
        if let Some(Err(AskError::Silent)) = asked {
            if self.is_stuck() {
                self.complain_of_keeper();
            }
            asked = self.ask_second(|client| Ok(client.reply(most, until)));
        }
        let reply = match asked {
            Some(Ok(reply)) => Some(reply),
            _ => {
                // What comes later than it is waited for would be taken for another answer.
                self.second = None;
                None
            }
        };
        if let Some(reply) = reply {
            self.so_far = Some((reply.body, began));
        }
        let rest = began.elapsed() * SNAPSHOT_SHARE;
        self.next_snapshot = Instant::now() + rest.max(SNAPSHOT_INTERVAL);
    }

    fn whole(&self, reply: Reply) -> Content {
        let why = reply.ended.map(|why| why.chars().take(100).collect());
        Content {
            pid: self.pid,
            file: reply.body,
            end: why.map(End::Early),
        }
    }

    /// Whether the process is still there without its port. A process that ends loses its
    /// connections first.
    fn lives_on(&self) -> bool {
        let until = Instant::now() + END_PATIENCE;
        while self.process.is_some_and(ProcessId::is_alive) {
            if Instant::now() > until {
                return true;
            }
            thread::sleep(Duration::from_millis(5));
        }
        false
    }

    fn take_so_far(&mut self, why: Lost) -> Result<Content, Refusal> {
        let why = match why {
            Lost::Closed if self.lives_on() => {
                "the program has become another one, or closed its port"
            }
            Lost::Closed => "the program has ended",
            Lost::Silent => "the program doesn't answer",
        };
        let elapsed = self.begun.unwrap_or(self.asked).elapsed();
        let elapsed = elapsed.as_secs_f64();
        let Some((file, taken)) = self.so_far.take() else {
            let message = format!("{why} after {elapsed:.1} s, and nothing was profiled");
            return Err(self.failure(&message));
        };
        let lacks = taken.elapsed().as_secs_f64();
        let why =
            format!("{why} after {elapsed:.1} s; the profile goes up to {lacks:.1} s before that");
        Ok(Content {
            pid: self.pid,
            file,
            end: Some(End::Lost(why)),
        })
    }

    /// Whether something else was told last than this complaint, which is told now.
    fn is_new(&mut self, complaint: Complaint) -> bool {
        self.complaint.replace(complaint) != Some(complaint)
    }

    fn tell_waiting(&self, what: &str) {
        (self.tell)(Told::Waiting(&format!("{} {what}", self.pid)));
    }

    /// Once: which thread it is that keeps our helper from running.
    fn complain_of_keeper(&mut self) {
        if !self.is_new(Complaint::Stuck) {
            return;
        }
        let hello = process::greeted(self.pid);
        let silence = hello.as_ref().map_or(0, |hello| hello.silent_ns);
        let keeper = hello.as_ref().and_then(|hello| hello.keeper.as_ref());
        let kept = process::kept(keeper, Duration::from_nanos(silence));
        self.tell_waiting(&format!("doesn't answer: {kept}"));
    }

    fn failure(&self, what: &str) -> Refusal {
        failure(self.pid, what)
    }
}

fn failure(pid: i32, what: &str) -> Refusal {
    Refusal {
        message: format!("{pid}: {what}"),
        status: crate::FAILURE,
    }
}

/// What a program has sent.
pub struct Content {
    pid: i32,
    file: Vec<u8>,
    /// If it isn't of the whole time.
    end: Option<End>,
}

enum End {
    /// The program has ended it, for this reason.
    Early(String),
    /// The rest of it is lost: a line about that.
    Lost(String),
}

impl Content {
    /// The profile in it; what isn't there is said.
    pub fn read(self, tell: Tell<'_>) -> Result<Profile, Refusal> {
        let profile = read(&self.file).map_err(|why| failure(self.pid, &why))?;
        let seconds = profile.meta.duration_ns as f64 / 1e9;
        let text = match self.end {
            Some(End::Early(why)) => {
                format!("{why} after {seconds:.1} s; the profile is of the time before")
            }
            Some(End::Lost(text)) => text,
            None => return Ok(profile),
        };
        tell(Told::Fact(&format!("{}: {text}", self.pid)));
        Ok(profile)
    }
}

/// The profile in a pprof file that a program has sent.
pub fn read(content: &[u8]) -> Result<Profile, String> {
    let profile = rperf_format::pprof::read(&mut &*content);
    profile.map_err(|error| format!("its profile can't be read ({error})"))
}

fn how(session: &Session) -> String {
    format!("{}, {} Hz", session.mode, session.frequency)
}

fn traced(pid: i32) -> Refusal {
    Refusal {
        message: format!(
            "{pid}: its calls are being traced, and a trace isn't cut to a stretch of time; \
             'rperf snapshot {pid}' writes all of it so far"
        ),
        status: crate::FAILURE,
    }
}
