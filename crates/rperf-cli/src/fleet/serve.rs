//! `rperf serve`: the profile of all programs with a port, at one address. Called by `run`, on
//! the main thread.

use super::bound::Bound;
use super::programs::Programs;
use super::reply::{Site, turn_away};
use crate::args::ServeArgs;
use crate::clients::{Clients, Stream};
use crate::signals::Actions;
use crate::{FAILURE, Refusal, say};
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigHandler, Signal};
use nix::unistd::Uid;
use rperf_protocol::access::{FILE_VARIABLE, Token, VARIABLE};
use rperf_session::output::system_words;
use rperf_session::peer::Peer;
use rperf_session::place::{Place, TokenFile};
use rperf_session::settings::quoted;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// How long is waited for a client. A signal ends the wait if it comes to this thread, as is usual;
/// else it is heeded then.
const WAIT: u16 = 1000;

/// How long nobody is answered if files have run short.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Clients that are answered at a time; more are not.
const MAX_CLIENTS: usize = 16;

/// Signals that end it.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Whether one of these signals has come.
static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDED.store(true, SeqCst);
}

/// Where it answers.
#[derive(Debug, PartialEq, Eq)]
enum Address {
    Tcp(u16),
    Socket(PathBuf),
}

impl Address {
    fn of(text: &str) -> Result<Self, Refusal> {
        if text.starts_with('/') {
            return Ok(Address::Socket(text.into()));
        }
        let number = text.strip_prefix("127.0.0.1:");
        let number = number.and_then(|number| number.parse().ok());
        number.map(Address::Tcp).ok_or_else(|| {
            let text = quoted(text.as_ref());
            Refusal::usage(format!(
                "--http must be 127.0.0.1:PORT or the absolute path of a socket, not {text}; for \
                 other machines there is ssh -L"
            ))
        })
    }
}

/// Serves until a signal comes. Returns the exit status.
pub fn run(args: &ServeArgs) -> Result<i32, Refusal> {
    let programs = Programs::of(args.matching.as_deref(), &args.users)?;
    let address = Address::of(&args.http)?;
    ENDED.store(false, SeqCst);
    let _signals = Actions::set(&ENDS, SigHandler::Handler(end));
    match address {
        Address::Tcp(number) => over_tcp(programs, number),
        Address::Socket(path) => over_socket(programs, &path),
    }
}

fn over_tcp(programs: Programs, number: u16) -> Result<i32, Refusal> {
    let token = Token::of_environment().map_err(|error| failure(error.to_string()))?;
    let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, number));
    let bound = bound.and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok((listener.local_addr()?.port(), listener))
    });
    let hint = "; --http 127.0.0.1:0 takes a port that is free";
    let refused = |error| failure(unbound(&format!("127.0.0.1:{number}"), hint, &error));
    let (number, listener) = bound.map_err(refused)?;
    let told = token.to_tell().map(Told::tell).transpose()?;
    let place = match &told {
        Some(told) => format!("in {}", told.place.token_path().display()),
        None => format!("that of {}", variable()),
    };
    say(&format!(
        "serving profiles at http://127.0.0.1:{number}/debug/pprof/profile; the token is {place}"
    ));
    let site = Site::new(programs, Some(token));
    answer_all(&site, listener.as_fd(), || Ok(Some(listener.accept()?.0)));
    Ok(0)
}

/// The variable that has named the token.
fn variable() -> &'static str {
    match std::env::var_os(FILE_VARIABLE).is_some_and(|path| !path.is_empty()) {
        true => FILE_VARIABLE,
        false => VARIABLE,
    }
}

/// The file with the token, for as long as this lives.
struct Told {
    place: Place,
    _file: TokenFile,
}

impl Told {
    fn tell(token: String) -> Result<Self, Refusal> {
        let place = Place::own(None).map_err(|error| failure(error.to_string()))?;
        let file = place
            .tell(&token)
            .map_err(|error| failure(error.to_string()))?;
        Ok(Told { place, _file: file })
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.place.clear();
    }
}

fn over_socket(programs: Programs, path: &Path) -> Result<i32, Refusal> {
    let shown = path.display();
    let hint = "; name a path where nothing is";
    let refused = |error| failure(unbound(&shown.to_string(), hint, &error));
    let bound = Bound::at(path).map_err(refused)?;
    let listener = bound.listener();
    say(&format!(
        "serving profiles at the socket {shown}, below /debug/pprof/"
    ));
    let site = Site::new(programs, None);
    let own = Uid::effective().as_raw();
    answer_all(&site, listener.as_fd(), || {
        let stream = listener.accept()?.0;
        let is_trusted = Peer::of(&stream)?.is_trusted_by(own);
        Ok(is_trusted.then_some(stream))
    });
    Ok(0)
}

/// `accept` gives a client of the listener; `None` for one that may not ask.
fn answer_all<S: Stream + Send + Sync>(
    site: &Site,
    listener: BorrowedFd<'_>,
    accept: impl Fn() -> io::Result<Option<S>>,
) {
    let clients = Clients::new(MAX_CLIENTS);
    let has_ended = || ENDED.load(SeqCst);
    thread::scope(|scope| {
        while !has_ended() {
            let mut listeners = [PollFd::new(listener, PollFlags::POLLIN)];
            if !matches!(poll(&mut listeners, WAIT), Ok(1..)) {
                continue;
            }
            let stream = match accept() {
                Ok(Some(stream)) => stream,
                Ok(None) => continue,
                // The client has gone, or files have run short for the moment.
                Err(error) => {
                    if error.kind() != io::ErrorKind::WouldBlock {
                        thread::sleep(SHORTAGE);
                    }
                    continue;
                }
            };
            match clients.take_in(stream) {
                Err(stream) => turn_away(&stream, MAX_CLIENTS),
                Ok(client) => {
                    let answer = move || {
                        // Who asks may be gone.
                        let _ = site.serve(&client, &has_ended);
                    };
                    // Without a thread the connection ends.
                    let _ = thread::Builder::new().spawn_scoped(scope, answer);
                }
            }
        }
    });
}

/// `hint` says what to do where the address is in use.
fn unbound(address: &str, hint: &str, error: &io::Error) -> String {
    let words = system_words(error);
    let hint = match error.kind() {
        io::ErrorKind::AddrInUse => hint,
        _ => "",
    };
    format!("can't listen at {address} ({words}){hint}")
}

fn failure(message: String) -> Refusal {
    Refusal {
        message,
        status: FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_addresses_and_sockets_are_taken() {
        let of = |text: &str| Address::of(text).ok();
        assert_eq!(of("127.0.0.1:6060"), Some(Address::Tcp(6060)));
        assert_eq!(of("127.0.0.1:0"), Some(Address::Tcp(0)));
        assert_eq!(
            of("/run/x.sock"),
            Some(Address::Socket("/run/x.sock".into()))
        );
        for odd in [
            "",
            "6060",
            ":6060",
            "0.0.0.0:6060",
            "localhost:x",
            "127.0.0.1",
            "127.0.0.1:65536",
            "x.sock",
        ] {
            let refusal = Address::of(odd).expect_err("refused");
            assert_eq!(refusal.status, 2);
            assert!(refusal.message.contains("ssh -L"), "{}", refusal.message);
        }
    }
}
