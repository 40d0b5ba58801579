//! The loopback address at which a port also answers, if the program wants that: to those who have
//! the token. Bound on the Ruby thread that opens the port; then on the port's thread.

use rperf_protocol::access::{Token, TokenError};
use rperf_session::os;
use rperf_session::output::system_words;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::time::{Duration, Instant};

/// How long the number may still be that of a process that ends as its daemon begins.
const PATIENCE: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(2);

/// Why nobody listens there.
#[derive(Debug, thiserror::Error)]
pub enum TcpError {
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The system refuses, as if somebody else listens there.
    #[error("can't listen at 127.0.0.1:{number} ({})", system_words(error))]
    Io {
        /// The port's number.
        number: u16,
        /// Why not.
        error: io::Error,
    },
}

impl TcpError {
    /// Whether another process has the number.
    pub fn is_taken(&self) -> bool {
        matches!(self, TcpError::Io { error, .. } if error.kind() == io::ErrorKind::AddrInUse)
    }
}

/// What the program wants.
#[derive(Debug, Clone)]
pub struct Tcp {
    /// The number of the port; 0: any that is free.
    pub number: u16,
    /// Who asks must have it.
    pub token: Token,
}

impl Tcp {
    /// With the token of the environment, or a new one.
    pub fn at(number: u16) -> Result<Self, TokenError> {
        let token = Token::of_environment()?;
        Ok(Tcp { number, token })
    }

    /// What a forked child has of it: the number is its parent's, unless the parent ends or any
    /// number will do.
    pub fn of_child(&self, parent_has_ended: bool) -> Option<Self> {
        (self.number == 0 || parent_has_ended).then(|| self.clone())
    }

    /// Listens. If the process that had the number `ends`, it is waited for, for a moment.
    pub fn bind(&self, ends: bool) -> Result<TcpListener, TcpError> {
        let began = Instant::now();
        let bound = loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, self.number)) {
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && ends
                        && began.elapsed() < PATIENCE =>
                {
                    os::sleep(STEP);
                }
                result => break result,
            }
        };
        let listener = bound.and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let number = self.number;
        listener.map_err(|error| TcpError::Io { number, error })
    }
}
