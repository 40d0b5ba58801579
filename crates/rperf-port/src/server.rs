//! The loop of the port's thread: waits for clients and answers them, one step of one client at a
//! time. Nothing here waits for Ruby, or for a client.

use crate::connection::{Connection, Fate, Wait};
use crate::facts;
use crate::pulls::Pulls;
use crate::route::{Route, route};
use crate::session::{self, Vm};
use crate::socket::Socket;
use crate::socket::descriptors::Guarded;
use crate::socket::listener::{Accepted, Listener};
use crate::state::Port;
use crate::step::Step;
use crate::task::Message;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rperf_protocol::ask::PPROF;
use rperf_protocol::json::written;
use rperf_protocol::limits::MAX_REQUEST;
use rperf_protocol::message::{Request, bytes_response};
use rperf_protocol::refusal::{Code, Refusal};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Connections at a time.
const MAX_CLIENTS: usize = 8;

/// Connections at a time that haven't shown yet that they may ask.
const MAX_UNKNOWN: usize = 4;

/// How many are let in or refused before the clients have their turn again.
const MAX_ARRIVALS: usize = 16;

/// How long nobody is let in after the system had no descriptor for a client.
const SHORTAGE: Duration = Duration::from_millis(200);

/// The other end of a connection is gone, or the descriptor is.
const GONE: PollFlags = PollFlags::POLLHUP
    .union(PollFlags::POLLERR)
    .union(PollFlags::POLLNVAL);

/// What runs on the port's thread.
pub struct Server {
    port: &'static Port,
    listeners: Vec<Listener>,
    wakened: Guarded<UnixStream>,
    clients: Vec<Connection>,
    /// Nobody is let in before.
    closed_until: Option<Instant>,
    vm: Vm,
    pulls: Pulls,
    /// How many clients there were so far.
    count: u64,
}

/// What has happened.
struct Events {
    somebody_waits: bool,
    clients: Vec<PollFlags>,
}

impl Server {
    /// A server that isn't running yet.
    pub fn new(
        port: &'static Port,
        listeners: Vec<Listener>,
        wakened: Guarded<UnixStream>,
        messages: Receiver<Message>,
        steps: Receiver<Step>,
    ) -> Self {
        Server {
            port,
            listeners,
            wakened,
            clients: Vec::new(),
            closed_until: None,
            vm: Vm::new(port, messages),
            pulls: Pulls::new(port, steps),
            count: 0,
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
            self.vm.advance(&mut self.clients);
            self.pulls.advance(&mut self.clients);
            if events.somebody_waits {
                self.let_in();
            }
        }
    }

    /// Nobody is answered any more: the session needn't be watched.
    pub fn end_watch(&mut self) {
        self.pulls.end();
    }

    /// A program may close all descriptors that it doesn't know.
    fn is_whole(&self) -> bool {
        let mut listeners = self.listeners.iter();
        self.wakened.is_ours() && listeners.all(|it| it.socket().is_ours())
    }

    /// Waits until something happens, or somebody's time is up. `None` if that can't be waited for:
    /// the program has closed a descriptor of ours, or the other end of one.
    fn wait(&mut self) -> Option<Events> {
        let now = Instant::now();
        self.closed_until = self.closed_until.filter(|&until| until > now);
        let mut descriptors = vec![PollFd::new(self.wakened.as_fd(), PollFlags::POLLIN)];
        let lets_in = flags(self.closed_until.is_none(), false);
        let listeners = self.listeners.iter();
        descriptors.extend(listeners.map(|it| PollFd::new(it.socket().as_fd(), lets_in)));
        descriptors.extend(self.clients.iter().map(|client| {
            let (reads, writes) = client.wants();
            let flags = flags(reads || client.watches_end_of_asking(), writes);
            PollFd::new(client.socket().as_fd(), flags)
        }));
        match poll(&mut descriptors, self.timeout(now)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => return None,
        }
        let mut found = descriptors
            .iter()
            .map(|it| it.revents().unwrap_or(PollFlags::empty()));
        let wakened = found.next()?;
        let mut listeners = PollFlags::empty();
        for _ in &self.listeners {
            listeners |= found.next()?;
        }
        if (wakened | listeners).intersects(GONE) {
            return None;
        }
        Some(Events {
            somebody_waits: listeners.contains(PollFlags::POLLIN),
            clients: found.collect(),
        })
    }

    /// None while nobody is connected.
    fn timeout(&self, now: Instant) -> PollTimeout {
        let clients = self.clients.iter().filter_map(Connection::deadline);
        let vm = self.vm.deadline(&self.clients);
        let watch = self.pulls.deadline(&self.clients);
        let all = clients.chain(self.closed_until).chain(vm).chain(watch);
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
        if flags.contains(PollFlags::POLLIN) && client.watches_end_of_asking() {
            client.note_end_of_asking();
        }
        // Several requests may have come at once.
        while let Some(request) = self.clients[place].next_request() {
            self.answer(place, &request);
            let client = &mut self.clients[place];
            if client.write() == Fate::Ends {
                return Fate::Ends;
            }
            if client.wait.is_some() {
                return Fate::Stays;
            }
        }
        let client = &mut self.clients[place];
        if client.write() == Fate::Ends {
            return Fate::Ends;
        }
        match client.deadline() {
            Some(deadline) if deadline <= now => client.time_is_up(),
            _ => Fate::Stays,
        }
    }

    /// Answers, or notes what the client waits for.
    fn answer(&mut self, place: usize, request: &Request) {
        let route = route(request).and_then(|route| {
            if matches!(route, Route::Wait(Wait::Profile(_) | Wait::Snapshot(_))) {
                session::check_room(&self.clients)?;
            }
            Ok(route)
        });
        let count = self.clients.len();
        let client = &mut self.clients[place];
        if client.access.needs_token {
            // Without one nobody is let in so.
            let tcp = self.port.tcp.as_ref();
            let refusal = tcp.and_then(|tcp| tcp.token.refusal(request));
            client.access.is_known = refusal.is_none();
            if let Some(refusal) = refusal {
                return client.turn_away(&refusal);
            }
        }
        client.profile.names_process = request.path.starts_with(PPROF);
        match route {
            Ok(Route::Hello { looks }) => {
                if looks {
                    self.vm.look();
                }
                let silence = self.vm.silence().max(self.pulls.silence());
                let hello = facts::hello(self.port, count, silence, self.pulls.holder());
                client.answer_json(&written(&hello));
            }
            Ok(Route::Text(text)) => {
                let closes = client.closes();
                client.answer(bytes_response(200, "text/plain", "", &text, closes));
            }
            Ok(Route::Wait(wait)) => {
                client.is_watching |= matches!(wait, Wait::News(_));
                client.wait = Some(wait);
            }
            Err(refusal) => client.refuse(&refusal),
        }
    }

    fn let_in(&mut self) {
        for place in 0..self.listeners.len() {
            self.let_in_at(place);
        }
    }

    fn let_in_at(&mut self, place: usize) {
        for _ in 0..MAX_ARRIVALS {
            match self.listeners[place].accept() {
                Accepted::Client(stream) if self.clients.len() < MAX_CLIENTS => {
                    self.take_in(stream, false);
                }
                // One at a time: those who came before are heard first.
                Accepted::Unknown(stream) if self.makes_room_for_unknown() => {
                    self.take_in(stream, true);
                    return;
                }
                Accepted::Client(stream) | Accepted::Unknown(stream) => {
                    let error = format!("{MAX_CLIENTS} clients are connected already");
                    let hint = "end one of them, or wait";
                    refuse(&stream, &Refusal::new(Code::Busy, error, hint));
                }
                Accepted::Stranger(stream) => {
                    let hint = "run this as the user of the program, or as root";
                    let error = "this program belongs to another user";
                    refuse(&stream, &Refusal::new(Code::Forbidden, error, hint));
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

impl Server {
    fn take_in(&mut self, stream: Guarded<Socket>, needs_token: bool) {
        self.count += 1;
        self.clients
            .push(Connection::new(self.count, stream, needs_token));
    }

    /// Whether there is room for a client without a token. Such clients take no place of those who
    /// have one, or need none: for a new one the oldest of them goes, so nobody is kept out by
    /// connections that ask nothing.
    fn makes_room_for_unknown(&mut self) -> bool {
        let unknown = self.clients.iter().filter(|it| !it.access.is_known);
        if unknown.count() < MAX_UNKNOWN && self.clients.len() < MAX_CLIENTS {
            return true;
        }
        let oldest = self.clients.iter().position(|it| !it.access.is_known);
        if let Some(oldest) = oldest {
            self.clients.remove(oldest).time_is_up();
        }
        oldest.is_some()
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
fn refuse(mut stream: &Socket, refusal: &Refusal) {
    let _ = stream.read(&mut [0; MAX_REQUEST]);
    let _ = stream.write(&refusal.response(true));
}
