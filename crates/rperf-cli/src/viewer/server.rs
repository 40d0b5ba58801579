//! Serves one page on a loopback port, under an address that only this user was told.
//! Called by `viewer`.

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tiny_http::{Header, Method, Request, Response, StatusCode};

/// How soon a signal is heeded.
const POLL: Duration = Duration::from_millis(200);

/// Bytes of the token: nobody else on this machine can guess it.
const TOKEN_BYTES: usize = 16;

/// Signals that end the server.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// One of them has come.
static ENDED: AtomicBool = AtomicBool::new(false);

/// The page and its port.
pub struct Server {
    server: tiny_http::Server,
    port: u16,
    token: String,
    page: Vec<u8>,
    headers: Vec<Header>,
}

impl Server {
    /// Opens a port for `page`, whose policy is a header, too.
    pub fn start(page: Vec<u8>, policy: &str) -> io::Result<Self> {
        let server = tiny_http::Server::http(("127.0.0.1", 0)).map_err(io::Error::other)?;
        let address = server.server_addr().to_ip();
        let port = address.map_or(0, |address| address.port());
        let headers = [
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Security-Policy", policy),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ];
        let headers = headers.into_iter().filter_map(header).collect();
        Ok(Self {
            server,
            port,
            token: token()?,
            page,
            headers,
        })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.path())
    }

    fn path(&self) -> String {
        format!("/{}/", self.token)
    }

    /// Answers requests until a signal ends it: one that came since `_signals` were taken.
    pub fn run(&self, _signals: &Signals) -> io::Result<()> {
        self.answer_until(|| ENDED.load(SeqCst))
    }

    fn answer_until(&self, has_ended: impl Fn() -> bool) -> io::Result<()> {
        while !has_ended() {
            if let Some(request) = self.server.recv_timeout(POLL)? {
                // Who asks may be gone.
                let _ = self.answer(request);
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> io::Result<()> {
        let plain = |status: u16, text: &str| {
            Response::from_string(format!("{text}\n")).with_status_code(StatusCode(status))
        };
        if !is_local(&request) {
            return request.respond(plain(403, "this server answers its own machine only"));
        }
        if *request.method() != Method::Get && *request.method() != Method::Head {
            return request.respond(plain(405, "there is nothing to change here"));
        }
        if request.url() != self.path() {
            return request.respond(plain(404, "the address is not the one that rperf has told"));
        }
        let mut response = Response::from_data(self.page.as_slice());
        for header in &self.headers {
            response.add_header(header.clone());
        }
        request.respond(response)
    }
}

fn header((name, value): (&str, &str)) -> Option<Header> {
    Header::from_bytes(name, value).ok()
}

/// Whether the page is asked for by a name of this machine: another site's name may have
/// been made to lead here. The port may be another one, if it is forwarded.
fn is_local(request: &Request) -> bool {
    let mut headers = request.headers().iter();
    let host = headers.find(|header| header.field.equiv("Host"));
    let host = host.map_or("", |header| header.value.as_str());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["127.0.0.1", "localhost", "[::1]"].contains(&name)
}

fn token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

extern "C" fn on_end(_: libc::c_int) {
    ENDED.store(true, SeqCst);
}

/// The signals that end a server, for as long as this lives. Ruby's own handlers would act
/// only after we have returned.
pub struct Signals {
    previous: Vec<(Signal, SigAction)>,
}

impl Signals {
    /// To be taken before anybody is told that there is a server.
    pub fn take() -> Self {
        ENDED.store(false, SeqCst);
        Self {
            previous: take_signals(),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        give_signals_back(&self.previous);
    }
}

fn take_signals() -> Vec<(Signal, SigAction)> {
    let action = SigAction::new(
        SigHandler::Handler(on_end),
        SaFlags::empty(),
        SigSet::empty(),
    );
    let take = |signal| {
        // SAFETY: the handler only stores to an atomic.
        let previous = unsafe { sigaction(signal, &action) }.ok()?;
        if matches!(previous.handler(), SigHandler::SigIgn) {
            // As by nohup.
            give_signals_back(&[(signal, previous)]);
            return None;
        }
        Some((signal, previous))
    };
    ENDS.into_iter().filter_map(take).collect()
}

fn give_signals_back(previous: &[(Signal, SigAction)]) {
    for (signal, action) in previous {
        // SAFETY: puts back what was there before.
        let _ = unsafe { sigaction(*signal, action) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpStream;
    use std::sync::atomic::AtomicBool;

    fn ask(port: u16, head: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
        write!(stream, "{head}\r\nConnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn it_serves_the_page_at_its_address_to_this_machine_only() {
        let server = Server::start(b"<p>page".to_vec(), "default-src 'none'").expect("a port");
        let (port, path) = (server.port(), server.path());
        assert_eq!(server.url(), format!("http://127.0.0.1:{port}{path}"));
        assert_eq!(path.len(), 2 + 2 * TOKEN_BYTES);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| server.answer_until(|| over.load(SeqCst)));
            for (head, status, text) in [
                (
                    format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}"),
                    "200",
                    "<p>page",
                ),
                (
                    format!("GET {path} HTTP/1.1\r\nHost: localhost:9"),
                    "200",
                    "<p>page",
                ),
                (
                    format!("HEAD {path} HTTP/1.1\r\nHost: localhost"),
                    "200",
                    "",
                ),
                (
                    format!("GET / HTTP/1.1\r\nHost: localhost:{port}"),
                    "404",
                    "address",
                ),
                (
                    format!("GET {path}x HTTP/1.1\r\nHost: localhost"),
                    "404",
                    "address",
                ),
                (
                    format!("GET {path} HTTP/1.1\r\nHost: evil.example"),
                    "403",
                    "own machine",
                ),
                (
                    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0"),
                    "405",
                    "nothing",
                ),
            ] {
                let answer = ask(port, &head);
                assert!(
                    answer.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{head}: {answer}"
                );
                assert!(answer.contains(text), "{head}: {answer}");
                assert_eq!(
                    answer.contains("<p>page"),
                    text == "<p>page",
                    "{head}: {answer}"
                );
                if status == "200" {
                    for header in [
                        "Content-Security-Policy: default-src 'none'",
                        "Cache-Control: no-store",
                    ] {
                        assert!(answer.contains(header), "{head}: {answer}");
                    }
                }
            }
            over.store(true, SeqCst);
        });
    }
}
