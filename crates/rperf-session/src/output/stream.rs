//! Pipes and devices that users name by a path. A pipe may have no reader, or one that has stopped
//! reading: whoever writes there doesn't wait for ever. Used by `file`; any thread.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// For so long a reader may take nothing, in ms.
const PATIENCE_MS: u16 = 10_000;

/// A pipe or device that is written to.
#[derive(Debug)]
pub struct Stream {
    file: File,
    patience: PollTimeout,
}

impl Stream {
    /// Opens `path`, which must be there. Fails if it is a pipe that nobody reads.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(path)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::ENXIO) => io::Error::new(io::ErrorKind::NotConnected, "nobody reads it"),
                _ => error,
            })?;
        Ok(Self {
            file,
            patience: PATIENCE_MS.into(),
        })
    }

    fn wait_until_writable(&self) -> io::Result<()> {
        let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut fds, self.patience) {
            Ok(0) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "its reader has stopped reading",
            )),
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(content) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_until_writable()?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;
    use std::fs;
    use std::thread;

    #[test]
    fn a_pipe_without_a_reader_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        let error = Stream::open(&path).expect_err("nobody reads");
        assert_eq!(error.to_string(), "nobody reads it");
    }

    #[test]
    fn a_reader_gets_all_of_it_and_one_that_stops_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        let content = vec![7; 1 << 20];
        let reader = {
            let path = path.clone();
            thread::spawn(move || fs::read(path).expect("a reader"))
        };
        let mut stream = loop {
            match Stream::open(&path) {
                Ok(stream) => break stream,
                Err(_) => thread::yield_now(),
            }
        };
        stream.write_all(&content).expect("written");
        drop(stream);
        assert_eq!(reader.join().expect("no panic"), content);

        let idle = OpenOptions::new().read(true).write(true).open(&path);
        let mut stream = Stream::open(&path).expect("it has a reader");
        stream.patience = 10u8.into();
        let error = stream.write_all(&content).expect_err("nothing is read");
        assert_eq!(error.to_string(), "its reader has stopped reading");
        drop(idle);
    }
}
