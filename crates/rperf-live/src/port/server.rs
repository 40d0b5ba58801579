//! The loop of the port's thread: waits for clients and answers them, one step of one client at a
//! time. Nothing here waits for Ruby, or for a client.

use super::connection::{Connection, Fate};
use super::descriptors::Guarded;
use super::facts;
use super::listener::{Accepted, Listener};
use super::request;
use super::stacks::{self, Answer as OfVm};
use super::state::Port;
use super::step::{Pull, Step};
use super::watch::Watch;
use crate::message::{MAX_REQUEST, PROTOCOL, Refusal, Request, response};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Connections at a time.
const MAX_CLIENTS: usize = 8;

/// How long nobody is let in after the system had no descriptor for a client.
const SHORTAGE: Duration = Duration::from_millis(200);

/// The other end of a connection is gone, or the descriptor is.
const GONE: PollFlags = PollFlags::POLLHUP
    .union(PollFlags::POLLERR)
    .union(PollFlags::POLLNVAL);

/// The paths.
const HELLO: &str = "/v1/hello";
const STACKS: &str = "/v1/stacks";
const DELTA: &str = "/v1/delta";

/// How often the VM is asked again: the thread that was asked may have just lost the GVL.
const AGAIN: Duration = Duration::from_millis(2);
/// The same after [`EAGER`].
const AGAIN_LATER: Duration = Duration::from_millis(10);
const EAGER: Duration = Duration::from_millis(100);
/// How long the VM may take.
const VM_PATIENCE: Duration = Duration::from_secs(2);

/// What the answer says if it has taken longer.
const SILENT: &str = "the VM doesn't answer: no Ruby code runs just now, or a thread keeps the GVL in \
                      native code";

/// What runs on the port's thread.
pub struct Server {
    port: &'static Port,
    listener: Listener,
    wakened: Guarded<UnixStream>,
    clients: Vec<Connection>,
    /// Nobody is let in before.
    closed_until: Option<Instant>,
    answers: Receiver<OfVm>,
    question: Option<Question>,
    watch: Watch,
}

/// What the VM has been asked, for all clients that wait.
struct Question {
    number: u64,
    since: Instant,
    /// When it is asked again.
    again: Instant,
}

/// What has happened.
struct Events {
    somebody_waits: bool,
    clients: Vec<PollFlags>,
}

impl Server {
    /// Not running yet.
    pub fn new(
        port: &'static Port,
        listener: Listener,
        wakened: Guarded<UnixStream>,
        answers: Receiver<OfVm>,
        steps: Receiver<Step>,
    ) -> Self {
        Server {
            port,
            listener,
            wakened,
            clients: Vec::new(),
            closed_until: None,
            answers,
            question: None,
            watch: Watch::new(port, steps),
        }
    }

    /// Answers until the program ends, or has closed our descriptors.
    pub fn run(&mut self) {
        loop {
            let Some(events) = self.wait() else { return };
            if self.port.has_ended.load(SeqCst) || !self.is_whole() {
                return;
            }
            self.drain();
            self.serve(&events.clients);
            self.follow_question();
            self.watch.advance(&mut self.clients);
            if events.somebody_waits {
                self.let_in();
            }
        }
    }

    /// A program may close all descriptors that it doesn't know.
    fn is_whole(&self) -> bool {
        self.wakened.is_ours() && self.listener.socket().is_ours()
    }

    /// Waits until something happens, or somebody's time is up. `None` if that can't be waited for:
    /// the program has closed a descriptor of ours, or the other end of one.
    fn wait(&mut self) -> Option<Events> {
        let now = Instant::now();
        self.closed_until = self.closed_until.filter(|&until| until > now);
        let mut descriptors = vec![
            PollFd::new(self.wakened.as_fd(), PollFlags::POLLIN),
            PollFd::new(
                self.listener.socket().as_fd(),
                flags(self.closed_until.is_none(), false),
            ),
        ];
        descriptors.extend(self.clients.iter().map(|client| {
            let (reads, writes) = client.wants();
            PollFd::new(client.socket().as_fd(), flags(reads, writes))
        }));
        match poll(&mut descriptors, self.timeout(now)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return None,
        }
        let mut found = descriptors
            .iter()
            .map(|it| it.revents().unwrap_or(PollFlags::empty()));
        let (wakened, listener) = (found.next()?, found.next()?);
        if (wakened | listener).intersects(GONE) {
            return None;
        }
        Some(Events {
            somebody_waits: listener.contains(PollFlags::POLLIN),
            clients: found.collect(),
        })
    }

    /// None while nobody is connected.
    fn timeout(&self, now: Instant) -> PollTimeout {
        let clients = self.clients.iter().filter_map(Connection::deadline);
        let again = self.question.as_ref().map(|question| question.again);
        let watch = self.watch.deadline(&self.clients);
        let all = clients.chain(self.closed_until).chain(again).chain(watch);
        let Some(next) = all.min() else {
            return PollTimeout::NONE;
        };
        // Rounded up: it isn't to wake too early.
        let rest = next.saturating_duration_since(now) + Duration::from_millis(1);
        PollTimeout::try_from(rest).unwrap_or(PollTimeout::MAX)
    }

    /// Takes in the bytes that woke us.
    fn drain(&self) {
        let mut bytes = [0; 64];
        while (&*self.wakened)
            .read(&mut bytes)
            .is_ok_and(|count| count == bytes.len())
        {}
    }

    /// A step of each client.
    fn serve(&mut self, events: &[PollFlags]) {
        let now = Instant::now();
        let count = self.clients.len();
        let mut fates = Vec::with_capacity(count);
        for (place, &flags) in events.iter().enumerate().take(count) {
            fates.push(self.serve_one(place, flags, now));
        }
        let mut fates = fates.into_iter();
        self.clients
            .retain(|_| fates.next().unwrap_or(Fate::Stays) == Fate::Stays);
    }

    fn serve_one(&mut self, place: usize, flags: PollFlags, now: Instant) -> Fate {
        let count = self.clients.len();
        let client = &mut self.clients[place];
        let (reads, writes) = client.wants();
        let is_gone = flags.intersects(GONE);
        // What a client has sent before it went may still be read.
        if (reads && (flags.contains(PollFlags::POLLIN) || is_gone) && client.read() == Fate::Ends)
            || (!reads && is_gone)
            || (writes && flags.contains(PollFlags::POLLOUT) && client.write() == Fate::Ends)
        {
            return Fate::Ends;
        }
        // Several requests may have come at once.
        while let Some(request) = client.next_request() {
            match answer(self.port, &request, count) {
                Answer::Now(bytes) => client.answer(bytes),
                Answer::News(pull) => {
                    client.is_watching = true;
                    client.pull = Some(pull);
                    return Fate::Stays;
                }
                Answer::Stacks => {
                    let port = self.port;
                    self.question.get_or_insert_with(|| Question::open(port));
                    return Fate::Stays;
                }
            }
            if client.write() == Fate::Ends {
                return Fate::Ends;
            }
        }
        if client.write() == Fate::Ends {
            return Fate::Ends;
        }
        match client.deadline() {
            Some(deadline) if deadline <= now => client.time_is_up(),
            _ => Fate::Stays,
        }
    }

    /// Takes in the VM's answer, or asks again, or gives up.
    fn follow_question(&mut self) {
        let mut found = None;
        while let Ok(answer) = self.answers.try_recv() {
            found = Some(answer);
        }
        let Some(question) = &mut self.question else {
            return;
        };
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(question.since);
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        let body = match found.filter(|answer| answer.number == question.number) {
            Some(OfVm {
                threads: Ok(threads),
                ..
            }) => stacks::of_vm(&threads, elapsed_ns),
            Some(OfVm {
                threads: Err(why), ..
            }) => stacks::of_system(why, elapsed_ns),
            None if elapsed >= VM_PATIENCE => {
                request::withdraw();
                stacks::of_system(SILENT, elapsed_ns)
            }
            None => {
                question.ask_again(self.port, now, elapsed);
                return;
            }
        };
        self.question = None;
        for client in &mut self.clients {
            if client.is_waiting() && client.pull.is_none() {
                let closes = client.closes();
                client.answer(response(200, &body, closes));
            }
        }
    }

    fn let_in(&mut self) {
        loop {
            match self.listener.accept() {
                Accepted::Client(stream) if self.clients.len() < MAX_CLIENTS => {
                    self.clients.push(Connection::new(stream));
                }
                Accepted::Client(stream) => {
                    let error = format!("{MAX_CLIENTS} clients are connected already");
                    refuse(
                        &stream,
                        &Refusal::new(503, error, "end one of them, or wait"),
                    );
                }
                Accepted::Stranger(stream) => {
                    let hint = "run this as the user of the program, or as root";
                    let error = "this program belongs to another user";
                    refuse(&stream, &Refusal::new(403, error, hint));
                }
                Accepted::Nobody => return,
                Accepted::Failed => {
                    self.closed_until = Some(Instant::now() + SHORTAGE);
                    return;
                }
            }
        }
    }
}

impl Question {
    fn open(port: &Port) -> Self {
        let number = request::ask();
        port.ask_vm();
        let now = Instant::now();
        Question {
            number,
            since: now,
            again: now + AGAIN,
        }
    }

    fn ask_again(&mut self, port: &Port, now: Instant, elapsed: Duration) {
        if now < self.again {
            return;
        }
        port.ask_vm();
        self.again = now + if elapsed < EAGER { AGAIN } else { AGAIN_LATER };
    }
}

fn flags(reads: bool, writes: bool) -> PollFlags {
    let mut flags = PollFlags::empty();
    flags.set(PollFlags::POLLIN, reads);
    flags.set(PollFlags::POLLOUT, writes);
    flags
}

/// A few bytes: there is room for them. What has come is read, as the end of a connection with
/// unread bytes is an error to the other end.
fn refuse(mut stream: &UnixStream, refusal: &Refusal) {
    let _ = stream.read(&mut [0; MAX_REQUEST]);
    let _ = stream.write(&refusal.response(true));
}

/// What is to be done for an answer.
enum Answer {
    /// Here it is.
    Now(Vec<u8>),
    /// The VM has to be asked for stacks.
    Stacks,
    /// The client pulls.
    News(Pull),
}

fn answer(port: &Port, request: &Request, clients: usize) -> Answer {
    let found = match route(request) {
        Ok(Route::Hello) => {
            let hello = facts::hello(&port.program, clients);
            Ok(Answer::Now(response(200, &hello.to_json(), request.closes)))
        }
        Ok(Route::Stacks) => Ok(Answer::Stacks),
        Ok(Route::Delta) => Pull::of(request).map(Answer::News),
        Err(refusal) => Err(refusal),
    };
    found.unwrap_or_else(|refusal| Answer::Now(refusal.response(request.closes)))
}

/// What is asked.
enum Route {
    Hello,
    Stacks,
    Delta,
}

fn route(request: &Request) -> Result<Route, Refusal> {
    let route = match &*request.path {
        HELLO => Route::Hello,
        STACKS => Route::Stacks,
        DELTA => Route::Delta,
        other => {
            let is_ours = other.starts_with(&format!("/v{PROTOCOL}/"));
            let error = match is_ours {
                true => "this version of rperf has no such answer".into(),
                false => format!("this port speaks version {PROTOCOL} of the protocol"),
            };
            return Err(Refusal::new(
                404,
                error,
                format!("ask for {HELLO}, {STACKS} or {DELTA}"),
            ));
        }
    };
    match &*request.method {
        "GET" => Ok(route),
        _ => Err(Refusal::new(405, "this can only be read", "ask with GET")),
    }
}
