//! Serves one page on a loopback port, under an address that only this user was told.
//! Called by `viewer`.
//!
//! Whoever is on this machine can connect: a request is read up to a small limit and a short
//! time, a body never, and each has a thread of its own, so that none can hold up another. Half of
//! the places are for connections of this user's.

use super::entrance::{Entrance, is_of_other};
use crate::clients::{Client, Clients, read};
use crate::signals::Actions;
use nix::sys::signal::{SigHandler, Signal};
use rperf_protocol::access::is_loopback;
use rperf_protocol::message::Request;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How soon a signal, or a request, is heeded.
const POLL: Duration = Duration::from_millis(50);

/// How long a client may take to take in each part of the answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Requests that are answered at a time; more are not. Others than this user's own have the first half.
const MAX_CLIENTS: usize = 32;
const MAX_OTHERS: usize = MAX_CLIENTS / 2;

/// Bytes of the token: nobody else on this machine can guess it.
const TOKEN_BYTES: usize = 16;

/// What an entrance says that is closed, or closed for who asks.
const CLOSED: &str = "this address leads to the viewer once, within a minute, \
    and only for the user who has begun rperf: open the one that rperf has printed in its terminal\n";

/// Signals that end the server.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Whether one of these signals has come.
static ENDED: AtomicBool = AtomicBool::new(false);

/// What there is below the page's address, for the page's own requests.
pub trait Site: Send + Sync {
    /// The answer to a request for this place.
    fn answer(&self, method: &str, place: &str) -> Answer;
}

/// An answer to the page.
pub struct Answer {
    /// HTTP's number and its words.
    pub status: &'static str,
    /// The type of what follows.
    pub kind: &'static str,
    /// What it is.
    pub body: Vec<u8>,
}

impl Answer {
    /// An answer of one line for people.
    pub fn text(status: &'static str, line: &str) -> Self {
        Answer {
            status,
            kind: "text/plain; charset=utf-8",
            body: format!("{line}\n").into(),
        }
    }
}

/// The page and its port.
pub struct Server {
    listener: TcpListener,
    port: u16,
    page: Arc<Page>,
}

/// What is served.
struct Page {
    path: String,
    /// Leads to the path: what is in a command line others can see.
    entrance: Mutex<Option<Entrance>>,
    content: Vec<u8>,
    policy: &'static str,
    site: Option<Arc<dyn Site>>,
}

impl Server {
    /// Opens a port for `content`, whose policy is a header, too, and for the `site` below it.
    pub fn start(
        content: Vec<u8>,
        policy: &'static str,
        site: Option<Arc<dyn Site>>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let page = Page {
            path: format!("/{}/", token()?),
            entrance: Mutex::default(),
            content,
            policy,
            site,
        };
        Ok(Self {
            listener,
            port,
            page: Arc::new(page),
        })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the page is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, self.page.path)
    }

    /// An address that leads there once, and soon.
    pub fn entrance(&self) -> io::Result<String> {
        let path = format!("/{}/", token()?);
        let url = format!("http://127.0.0.1:{}{path}", self.port);
        *self.page.entrance() = Some(Entrance::open(path));
        Ok(url)
    }

    /// Answers requests until a signal ends it: one that came since `_signals` were taken.
    pub fn run(&self, _signals: &Signals) {
        self.answer_until(|| ENDED.load(SeqCst));
    }

    fn answer_until(&self, has_ended: impl Fn() -> bool) {
        let clients = Clients::new(MAX_CLIENTS);
        while !has_ended() {
            // None may wait, or files have run short for the moment.
            let Ok((stream, _)) = self.listener.accept() else {
                thread::sleep(POLL);
                continue;
            };
            if clients.taken() >= MAX_OTHERS && is_of_other(&stream) {
                continue;
            }
            let Ok(client) = clients.take_in(stream) else {
                continue;
            };
            let page = Arc::clone(&self.page);
            let answer = move || {
                // Who asks may be gone.
                let _ = page.answer(&client);
            };
            // Without a thread the connection ends.
            let _ = thread::Builder::new().spawn(answer);
        }
    }
}

impl Page {
    fn answer(&self, client: &Client<TcpStream>) -> io::Result<()> {
        let stream = client.stream();
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = read(stream, &|| ENDED.load(SeqCst));
        client.has_asked();
        let Ok(request) = request? else {
            return respond(stream, "400 Bad Request", "", b"this is no request\n", true);
        };
        let is_get = request.method == "GET";
        if let Some(answer) = self.of_site(&request) {
            let headers = format!(
                "Content-Type: {}\r\n\
                 X-Content-Type-Options: nosniff\r\n\
                 Cross-Origin-Resource-Policy: same-origin\r\n\
                 Cache-Control: no-store, no-transform\r\n",
                answer.kind
            );
            let has_body = request.method != "HEAD";
            return respond(stream, answer.status, &headers, &answer.body, has_body);
        }
        let (status, text) = if !is_local(&request) {
            (
                "403 Forbidden",
                "this server answers its own machine only\n",
            )
        } else if !is_get && request.method != "HEAD" {
            (
                "405 Method Not Allowed",
                "there is nothing to change here\n",
            )
        } else if let Some(admits) = self.enters(&request.path, is_get, stream) {
            if admits {
                let headers = format!("Location: {}\r\nCache-Control: no-store\r\n", self.path);
                return respond(stream, "303 See Other", &headers, b"", true);
            }
            ("403 Forbidden", CLOSED)
        } else if request.path != self.path {
            (
                "404 Not Found",
                "the address is not the one that rperf has told\n",
            )
        } else {
            let headers = format!(
                "Content-Type: text/html; charset=utf-8\r\n\
                 Content-Security-Policy: {}\r\n\
                 X-Content-Type-Options: nosniff\r\n\
                 Referrer-Policy: no-referrer\r\n\
                 Cache-Control: no-store\r\n",
                self.policy
            );
            return respond(stream, "200 OK", &headers, &self.content, is_get);
        };
        let headers = "Content-Type: text/plain; charset=utf-8\r\n";
        respond(
            stream,
            status,
            headers,
            text.as_bytes(),
            request.method != "HEAD",
        )
    }
}

impl Page {
    fn entrance(&self) -> MutexGuard<'_, Option<Entrance>> {
        self.entrance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the entrance lets in who asks; `None` if `path` is another.
    fn enters(&self, path: &str, is_get: bool, stream: &TcpStream) -> Option<bool> {
        let mut entrance = self.entrance();
        let entrance = entrance.as_mut().filter(|it| it.is_at(path))?;
        Some(is_get && entrance.admit(stream))
    }

    /// What the site has to say, if it is asked. Pages of other sites get nothing: they don't know
    /// the address, can't send the header, and browsers tell where they come from.
    fn of_site(&self, request: &Request) -> Option<Answer> {
        let site = self.site.as_ref()?;
        let place = request.path.strip_prefix(&self.path)?;
        if place.is_empty() || !is_local(request) {
            return None;
        }
        let is_ours = matches!(
            request.fetch_site.as_deref(),
            None | Some("none" | "same-origin")
        );
        let changes = !["GET", "HEAD"].contains(&&*request.method);
        if !is_ours || changes && !request.is_from_viewer {
            let line = "this is for the viewer's own page";
            return Some(Answer::text("403 Forbidden", line));
        }
        Some(site.answer(&request.method, place))
    }
}

fn respond(
    mut stream: &TcpStream,
    status: &str,
    headers: &str,
    body: &[u8],
    has_body: bool,
) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    if has_body {
        stream.write_all(body)?;
    }
    stream.flush()
}

/// Whether the page is asked for by a name of this machine: another site's name may have been made
/// to lead here.
fn is_local(request: &Request) -> bool {
    request.host.as_deref().is_some_and(is_loopback)
}

#[expect(clippy::disallowed_methods, reason = "a device of the system's")]
fn token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

extern "C" fn on_end(_: libc::c_int) {
    ENDED.store(true, SeqCst);
}

/// The signals that end a server, for as long as this lives.
pub struct Signals {
    _actions: Actions,
}

impl Signals {
    /// To be taken before anybody is told that there is a server.
    pub fn take() -> Self {
        ENDED.store(false, SeqCst);
        Self {
            _actions: Actions::set(&ENDS, SigHandler::Handler(on_end)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(port: u16, request: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a server");
        write!(stream, "{request}").expect("sent");
        let mut answer = String::new();
        // The rest of a request that is too long may be refused.
        let _ = stream.read_to_string(&mut answer);
        answer
    }

    struct Echo;

    impl Site for Echo {
        fn answer(&self, method: &str, place: &str) -> Answer {
            match place {
                "x" => Answer::text("404 Not Found", "no such address"),
                place => Answer::text("200 OK", &format!("{method} {place}")),
            }
        }
    }

    #[test]
    fn what_is_below_the_page_is_for_the_page_alone() {
        serving(|port, path| {
            let asked = |method: &str, host: &str, header: &str| {
                let line = format!("{method} {path}list HTTP/1.1");
                let answer = ask(port, &format!("{line}\r\nHost: {host}\r\n{header}\r\n"));
                answer.starts_with("HTTP/1.1 200 ")
            };
            let here = "127.0.0.1:1";
            assert!(asked("GET", here, "") && asked("POST", here, "X-Rperf: 1\r\n"));
            assert!(asked("GET", here, "sec-fetch-site: same-origin\r\n"));
            assert!(!asked("POST", here, "") && !asked("GET", "evil.example", ""));
            assert!(!asked("GET", here, "Sec-Fetch-Site: cross-site\r\n"));
        });
    }

    fn serving(test: impl FnOnce(u16, &str)) {
        let server = Server::start(
            b"<p>page".to_vec(),
            "default-src 'none'",
            Some(Arc::new(Echo)),
        )
        .expect("a port");
        let (port, path) = (server.port(), server.page.path.clone());
        assert_eq!(server.url(), format!("http://127.0.0.1:{port}{path}"));
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| server.answer_until(|| over.load(SeqCst)));
            test(port, &path);
            over.store(true, SeqCst);
        });
    }

    #[test]
    fn it_serves_the_page_at_its_address_to_this_machine_only() {
        serving(|port, path| {
            assert_eq!(path.len(), 2 + 2 * TOKEN_BYTES);
            for (line, host, status, text) in [
                (format!("GET {path}"), "127.0.0.1:1", "200", "<p>page"),
                (format!("GET {path}"), "localhost:9", "200", "<p>page"),
                (format!("GET {path}"), "[::1]", "200", "<p>page"),
                (format!("HEAD {path}"), "localhost", "200", ""),
                ("GET /".to_string(), "localhost", "404", "address"),
                (format!("GET {path}x"), "localhost", "404", "address"),
                (format!("GET {path}"), "evil.example", "403", "own machine"),
                (format!("POST {path}"), "localhost", "405", "nothing"),
            ] {
                let request = format!("{line} HTTP/1.1\r\nHost: {host}\r\n\r\n");
                let answer = ask(port, &request);
                assert!(
                    answer.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{request}: {answer}"
                );
                assert!(answer.contains(text), "{request}: {answer}");
                let has_page = answer.contains("<p>page");
                assert_eq!(has_page, text == "<p>page", "{request}: {answer}");
                let policy = "Content-Security-Policy: default-src 'none'\r\n";
                assert_eq!(
                    answer.contains(policy),
                    status == "200",
                    "{request}: {answer}"
                );
            }
        });
    }

    #[test]
    fn nobody_can_make_it_fail_or_wait() {
        serving(|port, path| {
            let silent = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a server");
            let length = format!("Content-Length: {}", u64::MAX);
            for request in [
                format!("GET / HTTP/1.1\r\nHost: localhost\r\n{length}\r\n\r\n"),
                "x".repeat(100_000),
                "\r\n\r\n".to_string(),
                "GET\r\n\r\n".to_string(),
            ] {
                ask(port, &request);
            }
            let answer = ask(
                port,
                &format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            );
            assert!(answer.ends_with("<p>page"), "{answer}");
            drop(silent);
        });
    }
}
