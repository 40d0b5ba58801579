//! Pipes and devices that users name by a path. A pipe may have no reader, or one that has stopped
//! reading: whoever writes there doesn't wait for ever. Used by `file`; any thread.

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// For so long a reader may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// For so long a reader may be about to come.
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(2);
/// How often it is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// A pipe or device that is written to.
#[derive(Debug)]
pub struct Stream {
    file: File,
    patience: Duration,
}

impl Stream {
    /// Opens `path`, which must be there. Fails with ENXIO if it is a pipe that nobody reads.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        options.write(true).custom_flags(flags);
        let began = Instant::now();
        loop {
            match options.open(path) {
                Err(error)
                    if error.raw_os_error() == Some(libc::ENXIO)
                        && began.elapsed() < PATIENCE_AT_FIRST =>
                {
                    thread::sleep(LOOK);
                }
                opened => {
                    return Ok(Self {
                        file: opened?,
                        patience: PATIENCE,
                    });
                }
            }
        }
    }

    /// Fails with ETIMEDOUT if the reader has stopped reading.
    fn wait_until_writable(&self) -> io::Result<()> {
        let end = Instant::now() + self.patience;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut fds, left) {
                Ok(0) => return Err(Errno::ETIMEDOUT.into()),
                Ok(_) => return Ok(()),
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
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

    #[test]
    fn a_pipe_without_a_reader_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        let error = Stream::open(&path).expect_err("nobody reads");
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
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
        let mut stream = Stream::open(&path).expect("its reader comes");
        stream.write_all(&content).expect("written");
        drop(stream);
        assert_eq!(reader.join().expect("no panic"), content);

        let idle = OpenOptions::new().read(true).write(true).open(&path);
        let mut stream = Stream::open(&path).expect("it has a reader");
        stream.patience = Duration::from_millis(10);
        let error = stream.write_all(&content).expect_err("nothing is read");
        assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
        drop(idle);
    }
}
