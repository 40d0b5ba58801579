//! A connection, whichever way the client has come. On the port's thread.

pub(crate) mod descriptors;
pub(crate) mod holder;
pub(crate) mod listener;
pub(crate) mod tcp;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// A connected socket.
pub enum Socket {
    /// A connection of this user, or of root.
    Unix(UnixStream),
    /// A connection of anybody on this machine.
    Tcp(TcpStream),
}

impl Socket {
    /// Nothing waits at it.
    pub fn prepare(&self) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.set_nonblocking(true),
            Socket::Tcp(stream) => {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).read(bytes),
            Socket::Tcp(stream) => (&*stream).read(bytes),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&*stream).write(bytes),
            Socket::Tcp(stream) => (&*stream).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
