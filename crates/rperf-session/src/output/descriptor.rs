//! Paths such as `/dev/stderr` that name an open descriptor of this process.
//! Used by the other files of `output`, and by the extension; any thread.
//!
//! Opening such a path anew would start again at the beginning of the file that
//! it may lead to, and replacing that file would take what others have written
//! there away. So the descriptor itself is written to.

use super::hurry::{HURRY, STEP, is_hurried};
use super::write_signals::without_write_signals;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Write};
use std::os::fd::{BorrowedFd, RawFd};
use std::path::Path;
use std::time::Instant;

/// Bytes that a pipe takes at once if it can take some: PIPE_BUF.
const PIECE: usize = 4096;
/// For how long a reader may take nothing, in ms.
const PATIENCE: u16 = 10_000;

/// A descriptor that was named by a path. It may be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Descriptor(RawFd);

impl Descriptor {
    /// The one that `path` is the name of. [`super::descriptor_of`] follows links, too.
    pub fn of_path(path: &Path) -> Option<Self> {
        number(path).map(Descriptor)
    }

    /// Whether the programs that this process starts will have it and can write to it.
    pub fn is_inherited_for_writing(self) -> bool {
        let closes = fcntl(self.borrow(), FcntlArg::F_GETFD)
            .is_ok_and(|flags| FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
        !closes && self.is_open_for_writing()
    }

    /// Whether this process can write to it.
    pub fn is_open_for_writing(self) -> bool {
        fcntl(self.borrow(), FcntlArg::F_GETFL)
            .is_ok_and(|flags| OFlag::from_bits_retain(flags) & OFlag::O_ACCMODE != OFlag::O_RDONLY)
    }

    /// The one with this number.
    pub fn of(number: RawFd) -> Option<Self> {
        (number >= 0).then_some(Self(number))
    }

    /// Its number.
    pub fn number(self) -> RawFd {
        self.0
    }

    /// Writes all of `content` where the descriptor stands. A pipe whose reader has
    /// had enough is no error; one whose reader was gone before is.
    pub fn write_all(self, content: &[u8]) -> io::Result<()> {
        let mut rest = content;
        while !rest.is_empty() {
            match nix::unistd::write(self.borrow(), rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest = &rest[written..],
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => self.wait_until_writable()?,
                Err(Errno::EPIPE) if rest.len() < content.len() => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes all of `content`, unless it is a pipe or socket from which nothing is read for 10 seconds:
    /// that is an error. A terminal may be stopped for as long as its user likes. A file that may not
    /// get larger is an error, too.
    pub fn write_while_read(self, content: &[u8]) -> io::Result<()> {
        if nix::unistd::isatty(self.borrow()).unwrap_or(false) {
            return self.write_all(content);
        }
        without_write_signals(|| self.write_within(content, PATIENCE))
    }

    /// Writes all of `content`, however slowly it is read. When somebody waits for the end it goes on for
    /// a moment only; then that is an error.
    fn write_unless_hurried(self, content: &[u8]) -> io::Result<()> {
        let mut hurried = None;
        for (number, piece) in content.chunks(PIECE).enumerate() {
            loop {
                if is_hurried() && hurried.get_or_insert_with(Instant::now).elapsed() >= HURRY {
                    return Err(Errno::ETIMEDOUT.into());
                }
                let step = PollTimeout::try_from(STEP).unwrap_or(PollTimeout::MAX);
                match poll(&mut [PollFd::new(self.borrow(), PollFlags::POLLOUT)], step) {
                    Ok(0) | Err(Errno::EINTR) => {}
                    Ok(_) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            match self.write_all(piece) {
                // As in a piece: it has had enough.
                Err(error) if number > 0 && error.kind() == io::ErrorKind::BrokenPipe => break,
                written => written?,
            }
        }
        Ok(())
    }

    /// Writes all of `content`, if something of it is read every so many ms.
    fn write_within(self, content: &[u8], patience: u16) -> io::Result<()> {
        for piece in content.chunks(PIECE) {
            let mut fds = [PollFd::new(self.borrow(), PollFlags::POLLOUT)];
            match poll(&mut fds, PollTimeout::from(patience)) {
                Ok(0) => return Err(Errno::ETIMEDOUT.into()),
                Ok(_) | Err(Errno::EINTR) => self.write_all(piece)?,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// For a pipe that somebody has made non-blocking.
    fn wait_until_writable(self) -> io::Result<()> {
        let mut fds = [PollFd::new(self.borrow(), PollFlags::POLLOUT)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: `number` gives no -1. That the descriptor stays open can't be
        // known; it is only passed to calls that fail with EBADF if it doesn't.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

impl Write for Descriptor {
    fn write(&mut self, content: &[u8]) -> io::Result<usize> {
        self.write_unless_hurried(content)?;
        Ok(content.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn number(path: &Path) -> Option<RawFd> {
    match path.to_str()? {
        "/dev/stdin" => Some(0),
        "/dev/stdout" => Some(1),
        "/dev/stderr" => Some(2),
        text => {
            let digits = text
                .strip_prefix("/dev/fd/")
                .or_else(|| text.strip_prefix("/proc/self/fd/"))?;
            digits.parse().ok().filter(|number| *number >= 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::fs::OpenOptions;
    use std::io::Read;
    use std::os::fd::AsRawFd;

    fn pipe() -> (fs::File, fs::File) {
        let (reader, writer) = nix::unistd::pipe().expect("a pipe");
        for end in [&reader, &writer] {
            // Programs that other tests start must not keep it open.
            fcntl(end, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).expect("flags");
        }
        (reader.into(), writer.into())
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_given_up() {
        let (reader, writer) = pipe();
        let descriptor = Descriptor(writer.as_raw_fd());
        descriptor.write_while_read(b"some").expect("there is room");
        let error = descriptor
            .write_within(&vec![b'x'; 1 << 20], 10)
            .expect_err("nobody reads");
        assert_eq!(error.raw_os_error(), Some(libc::ETIMEDOUT));
        drop(reader);
    }

    #[test]
    fn writing_goes_on_where_the_descriptor_stands() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        let mut log = fs::File::create(&path).expect("a file");
        log.write_all(b"before ").expect("written");
        let named = std::path::PathBuf::from(format!("/dev/fd/{}", log.as_raw_fd()));
        super::super::file::write(&named, b"profile ").expect("written");
        let streamed: io::Result<()> =
            super::super::file::write_streaming(&named, |output| output.write_all(b"in parts "));
        streamed.expect("written");
        log.write_all(b"after").expect("written");
        let written = fs::read(&path).expect("a file");
        assert_eq!(written, b"before profile in parts after");
    }

    #[test]
    fn only_what_is_open_for_writing_and_inherited_will_do() {
        let file = fs::File::open("/dev/null").expect("a file");
        assert!(!Descriptor(file.as_raw_fd()).is_inherited_for_writing());
        let file = OpenOptions::new()
            .write(true)
            .open("/dev/null")
            .expect("a file");
        let descriptor = Descriptor(file.as_raw_fd());
        assert!(!descriptor.is_inherited_for_writing(), "it closes on exec");
        assert!(descriptor.is_open_for_writing());
        fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).expect("flags");
        assert!(descriptor.is_inherited_for_writing());
        assert!(!Descriptor(RawFd::MAX).is_inherited_for_writing());
    }

    #[test]
    fn a_closed_descriptor_and_a_pipe_without_a_reader_are_errors() {
        let closed = Descriptor(RawFd::MAX).write_all(b"x").expect_err("closed");
        assert_eq!(closed.raw_os_error(), Some(libc::EBADF));
        let (reader, writer) = pipe();
        drop(reader);
        // Rust's test harness ignores SIGPIPE, as Ruby does.
        let broken = Descriptor(writer.as_raw_fd())
            .write_all(b"x")
            .expect_err("broken");
        assert_eq!(broken.raw_os_error(), Some(libc::EPIPE));
    }

    #[test]
    fn a_pipe_that_does_not_block_gets_everything() {
        let (mut reader, writer) = pipe();
        fcntl(&writer, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).expect("flags");
        let content = vec![7; 1 << 20];
        let reading = std::thread::spawn(move || {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).map(|_| read)
        });
        Descriptor(writer.as_raw_fd())
            .write_all(&content)
            .expect("written");
        drop(writer);
        assert!(reading.join().expect("no panic").expect("read") == content);
    }

    #[test]
    fn a_reader_that_has_had_enough_is_no_error() {
        let (mut reader, writer) = pipe();
        let reading = std::thread::spawn(move || reader.read_exact(&mut [0; 10]));
        Descriptor(writer.as_raw_fd())
            .write_all(&vec![7; 1 << 20])
            .expect("enough was read");
        reading.join().expect("no panic").expect("read");
    }
}
