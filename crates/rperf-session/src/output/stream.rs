//! Pipes and devices that users name by a path. A pipe may have no reader, or one that has stopped
//! reading: whoever writes there doesn't wait for ever. Used by `file`; any thread.

use super::hurry::{HURRY, STEP, is_hurried};
use crate::os;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// For so long a reader may take nothing.
const PATIENCE: Duration = Duration::from_secs(10);
/// For so long all may take, and a second more for each [`SLOWEST`] bytes.
const PATIENCE_IN_ALL: Duration = Duration::from_secs(30);
/// Bytes in a second that the slowest reader takes.
const SLOWEST: u64 = 64 * 1024;
/// For so long a reader may be about to come.
const PATIENCE_AT_FIRST: Duration = Duration::from_secs(2);
/// How often a reader is looked for.
const LOOK: Duration = Duration::from_millis(10);

/// A pipe or device that is written to.
#[derive(Debug)]
pub struct Stream {
    file: File,
    patience: Duration,
    began: Instant,
    written: u64,
    hurried: Option<Instant>,
}

impl Stream {
    /// Opens `path`, where this was `found`, which is no link. Fails with ENXIO if it is a pipe that nobody
    /// reads, and with EACCES if something else has taken its place.
    pub fn open(path: &Path, found: &Metadata) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
        options.write(true).custom_flags(flags);
        let began = Instant::now();
        loop {
            match options.open(path) {
                Err(error)
                    if error.raw_os_error() == Some(libc::ENXIO)
                        && began.elapsed() < PATIENCE_AT_FIRST
                        && !is_hurried() =>
                {
                    os::sleep(LOOK);
                }
                opened => {
                    let file = opened?;
                    let place = |it: &Metadata| (it.dev(), it.ino());
                    if place(&file.metadata()?) != place(found) {
                        return Err(Errno::EACCES.into());
                    }
                    return Ok(Self {
                        file,
                        patience: PATIENCE,
                        began: Instant::now(),
                        written: 0,
                        hurried: None,
                    });
                }
            }
        }
    }

    /// Fails with ETIMEDOUT if the reader has stopped reading, or takes too long.
    fn wait_until_writable(&mut self) -> io::Result<()> {
        let stopped = Instant::now() + self.patience;
        loop {
            let end = self.end(stopped, is_hurried());
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Errno::ETIMEDOUT.into());
            }
            let step = PollTimeout::try_from(left.min(STEP)).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(self.file.as_fd(), PollFlags::POLLOUT)];
            match poll(&mut fds, step) {
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Until when it is waited, if the reader has `stopped` at that time unless it reads.
    fn end(&mut self, stopped: Instant, is_hurried: bool) -> Instant {
        let most = PATIENCE_IN_ALL + Duration::from_secs(self.written / SLOWEST);
        let end = stopped.min(self.began + most);
        if is_hurried {
            self.hurried.get_or_insert_with(Instant::now);
        }
        self.hurried.map_or(end, |it| end.min(it + HURRY))
    }
}

impl Write for Stream {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        loop {
            match self.file.write(content) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait_until_writable()?;
                }
                written => {
                    self.written += *written.as_ref().unwrap_or(&0) as u64;
                    return written;
                }
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

    fn open(path: &Path) -> io::Result<Stream> {
        Stream::open(path, &fs::metadata(path)?)
    }

    #[test]
    fn a_pipe_without_a_reader_is_an_error() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        let error = open(&path).expect_err("nobody reads");
        assert_eq!(error.raw_os_error(), Some(libc::ENXIO));
    }

    #[test]
    fn what_has_taken_the_place_is_not_written_to() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (
            directory.path().join("pipe"),
            directory.path().join("other"),
        );
        for path in [&path, &other] {
            mkfifo(path, Mode::S_IRWXU).expect("a pipe");
        }
        let found = fs::metadata(&path).expect("it is there");
        let _reader = File::options().read(true).write(true).open(&other);
        fs::rename(&other, &path).expect("exchanged");
        let error = Stream::open(&path, &found).expect_err("another pipe");
        assert_eq!(error.raw_os_error(), Some(libc::EACCES));
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
        let mut stream = open(&path).expect("its reader comes");
        stream.write_all(&content).expect("written");
        drop(stream);
        assert_eq!(reader.join().expect("no panic"), content);

        let idle = OpenOptions::new().read(true).write(true).open(&path);
        let mut stream = open(&path).expect("it has a reader");
        stream.patience = Duration::from_millis(10);
        let error = stream.write_all(&content).expect_err("nothing is read");
        assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
        drop(idle);
    }

    #[test]
    fn a_slow_reader_has_some_time_and_less_if_somebody_waits() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("pipe");
        mkfifo(&path, Mode::S_IRWXU).expect("a pipe");
        let idle = OpenOptions::new().read(true).write(true).open(&path);
        let mut stream = open(&path).expect("it has a reader");
        let (began, never) = (stream.began, stream.began + Duration::from_secs(3600));
        assert_eq!(stream.end(never, false) - began, PATIENCE_IN_ALL);
        stream.written = 10 * SLOWEST;
        let longer = PATIENCE_IN_ALL + Duration::from_secs(10);
        assert_eq!(stream.end(never, false) - began, longer);
        assert_eq!(stream.end(began, false), began, "it has stopped");
        let hurried = stream.end(never, true);
        assert!(hurried <= Instant::now() + HURRY);
        assert_eq!(stream.end(never, true), hurried, "from the first time on");
        stream.written = 0;
        stream.began = began
            .checked_sub(PATIENCE_IN_ALL)
            .expect("the machine has run for longer");
        let error = stream
            .write_all(&[7; 1 << 20])
            .expect_err("its time is over");
        assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
        drop(idle);
    }
}
