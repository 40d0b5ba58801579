//! Clients of a server that are answered side by side, each on a thread of its own: so many at a
//! time. Who asks nothing has to make room. Used by `rperf serve` and by the viewer's server.

use nix::sys::socket::{MsgFlags, Shutdown, recv, shutdown};
use rperf_protocol::limits::MAX_REQUEST;
use rperf_protocol::message::{Request, parse_request};
use rperf_protocol::refusal::Refusal;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a client may take to send its request.
const HEAD: Duration = Duration::from_secs(2);

/// How long it may take in nothing of the answer.
const STALLED: Duration = Duration::from_secs(5);

/// How soon it is seen that nobody is to be answered any more.
pub const STEP: Duration = Duration::from_millis(50);

/// The places of a server.
pub struct Clients<S> {
    most: usize,
    places: Mutex<Places<S>>,
}

struct Places<S> {
    taken: usize,
    /// Who hasn't sent a request yet, the oldest first.
    silent: VecDeque<Arc<S>>,
}

/// A client that has a place, for as long as this lives.
pub struct Client<S> {
    stream: Arc<S>,
    clients: Arc<Clients<S>>,
}

impl<S: Stream> Clients<S> {
    /// So many places.
    pub fn new(most: usize) -> Arc<Self> {
        let places = Places {
            taken: 0,
            silent: VecDeque::new(),
        };
        Arc::new(Clients {
            most,
            places: Mutex::new(places),
        })
    }

    /// How many places are taken.
    pub fn taken(&self) -> usize {
        self.places().taken
    }

    /// Takes the client in. Where there is no place, the oldest one that has asked nothing is ended:
    /// so nobody is kept out by such. The stream comes back if all have asked.
    pub fn take_in(self: &Arc<Self>, stream: S) -> Result<Client<S>, S> {
        let mut places = self.places();
        if places.taken >= self.most {
            match places.silent.pop_front() {
                Some(oldest) => oldest.end(),
                None => return Err(stream),
            }
        }
        let stream = Arc::new(stream);
        places.taken += 1;
        places.silent.push_back(Arc::clone(&stream));
        let clients = Arc::clone(self);
        Ok(Client { stream, clients })
    }

    fn places(&self) -> MutexGuard<'_, Places<S>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Client<S> {
    /// The connection.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Notes that the client has sent its request, or won't: it keeps its place until it is
    /// answered.
    pub fn has_asked(&self) {
        let places = self.clients.places.lock();
        let mut places = places.unwrap_or_else(PoisonError::into_inner);
        places.silent.retain(|it| !Arc::ptr_eq(it, &self.stream));
    }
}

/// However its answer ends, such as by a panic, or if there is no thread for it.
impl<S> Drop for Client<S> {
    fn drop(&mut self) {
        self.has_asked();
        let places = self.clients.places.lock();
        places.unwrap_or_else(PoisonError::into_inner).taken -= 1;
    }
}

/// A connection of either kind.
pub trait Stream: AsRawFd {
    /// Reading and writing wait: the sockets of a listener that doesn't may not either, on some systems.
    fn block(&self) -> io::Result<()>;
    /// Reads some, or fails when `rest` is over.
    fn receive(&self, bytes: &mut [u8], rest: Duration) -> io::Result<usize>;
    /// Writes all; each part may take so long.
    fn send(&self, bytes: &[u8]) -> io::Result<()>;
    /// Ends the connection, which another thread may be reading from.
    fn end(&self) {
        let _ = shutdown(self.as_raw_fd(), Shutdown::Both);
    }
    /// Whether the client has ended the connection.
    fn is_gone(&self) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        matches!(recv(self.as_raw_fd(), &mut [0], flags), Ok(0))
    }
}

macro_rules! stream {
    ($kind:ty) => {
        impl Stream for $kind {
            fn block(&self) -> io::Result<()> {
                self.set_nonblocking(false)
            }

            fn receive(&self, bytes: &mut [u8], rest: Duration) -> io::Result<usize> {
                self.set_read_timeout(Some(rest.max(Duration::from_millis(1))))?;
                (&*self).read(bytes)
            }

            fn send(&self, bytes: &[u8]) -> io::Result<()> {
                self.set_write_timeout(Some(STALLED))?;
                (&*self).write_all(bytes)
            }
        }
    };
}

stream!(std::net::TcpStream);
stream!(std::os::unix::net::UnixStream);

/// The next request, or why it is none. A client has a short time for all of it, however it sends it.
pub fn read(
    stream: &(impl Stream + ?Sized),
    ends: &dyn Fn() -> bool,
) -> io::Result<Result<Request, Refusal>> {
    let until = Instant::now() + HEAD;
    let mut received = Vec::new();
    loop {
        match parse_request(&received) {
            Ok(Some((request, _))) => return Ok(Ok(request)),
            Ok(None) if ends() || Instant::now() >= until => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Ok(None) => {}
            Err(refusal) => return Ok(Err(refusal)),
        }
        let mut bytes = [0; 1024];
        let room = (MAX_REQUEST - received.len().min(MAX_REQUEST)).min(bytes.len());
        match stream.receive(&mut bytes[..room], STEP) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => received.extend_from_slice(&bytes[..count]),
            Err(error) if is_nothing_yet(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    #[test]
    fn who_asks_nothing_makes_room_and_who_has_asked_keeps_the_place() {
        let clients = Clients::new(2);
        let pair = || UnixStream::pair().expect("a pair");
        let ((one, first), (two, _second), (three, _third)) = (pair(), pair(), pair());
        let first_place = clients.take_in(one).expect("a place");
        let second_place = clients.take_in(two).expect("a place");
        second_place.has_asked();
        let third_place = clients.take_in(three).expect("a place");
        assert!(first.is_gone() && first_place.stream().is_gone());
        third_place.has_asked();
        assert!(clients.take_in(pair().0).is_err());
        let panics = thread::spawn(move || {
            let _place = third_place;
            panic!("an answer that fails");
        });
        assert!(panics.join().is_err());
        drop((first_place, second_place));
        assert_eq!(clients.taken(), 0);
    }

    #[test]
    fn a_request_has_to_come_in_time_however_it_is_sent() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let began = Instant::now();
        let sends = thread::spawn(move || {
            while (&theirs).write_all(b"G").is_ok() && began.elapsed() < 3 * HEAD {
                thread::sleep(STEP);
            }
        });
        assert!(read(&ours, &|| false).is_err());
        assert!(began.elapsed() < 2 * HEAD);
        drop(ours);
        sends.join().expect("it ends");
    }
}
