//! Reads the profiles that a user names, and says how far it is. Used by `rperf report`, `rperf why` and
//! `rperf diff`, on the main thread.

use crate::Refusal;
use rperf_model::Profile;
use rperf_report::choose_values;
use rperf_session::input::{self, InputError};
use std::io::{self, BufReader, IsTerminal, Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// How long a file is read before anything is said about it.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long each of these words stands.
const INTERVAL: Duration = Duration::from_millis(100);

/// The file's name that stands for stdin.
pub const STDIN: &str = "-";

/// Whether stdin has been read to its end.
static IS_STDIN_READ: AtomicBool = AtomicBool::new(false);

/// The profile in this file, or on stdin.
pub fn profile(path: &Path) -> Result<Profile, Refusal> {
    if path == Path::new(STDIN) {
        return from_stdin();
    }
    let (file, size) = input::open(path)?;
    let mut input = Progress::new(BufReader::new(file), size, path);
    let read = input::decode(&mut input, path);
    input.clear();
    Ok(read?)
}

fn from_stdin() -> Result<Profile, Refusal> {
    if io::stdin().is_terminal() {
        let message = "'-' is stdin, which is a terminal here: give a file, or a pipe";
        return Err(Refusal::usage(message));
    }
    if IS_STDIN_READ.swap(true, SeqCst) {
        return Err(Refusal::usage("'-' is stdin, which can be read only once"));
    }
    Ok(input::decode(&mut io::stdin().lock(), Path::new("stdin"))?)
}

/// All these files in one profile.
pub fn merged<P: AsRef<Path>>(paths: &[P]) -> Result<Profile, Refusal> {
    let mut profiles = paths
        .iter()
        .map(|path| (path.as_ref(), profile(path.as_ref())));
    let Some((first_path, first)) = profiles.next() else {
        return Err(Refusal::usage("there is no file to read"));
    };
    let mut whole = first?;
    for (path, next) in profiles {
        whole.merge(&next?).map_err(|error| {
            let (first, path) = (first_path.display(), path.display());
            Refusal::usage(format!("{first} and {path}: {error}"))
        })?;
    }
    Ok(whole)
}

/// Makes the values that `wanted` names, or numbers, the ones that the profile is about.
pub fn choose_column(profile: &mut Profile, wanted: Option<&str>) -> Result<(), Refusal> {
    let chosen = wanted.map_or(Ok(()), |wanted| choose_values(profile, wanted));
    chosen.map_err(|error| Refusal::usage(error.to_string()))
}

/// A file that says on a terminal how much of it has been read, if that takes long.
struct Progress<'a, R> {
    input: R,
    read: u64,
    size: u64,
    path: &'a Path,
    next: Instant,
    is_shown: bool,
    is_terminal: bool,
}

impl From<InputError> for Refusal {
    fn from(error: InputError) -> Self {
        Refusal::usage(error.to_string())
    }
}

impl<'a, R: Read> Progress<'a, R> {
    fn new(input: R, size: u64, path: &'a Path) -> Self {
        Self {
            input,
            read: 0,
            size,
            path,
            next: Instant::now() + PATIENCE,
            is_shown: false,
            is_terminal: io::stderr().is_terminal(),
        }
    }

    fn show(&mut self) {
        let percent = self.read.saturating_mul(100) / self.size.max(1);
        let path = self.path.display();
        let line = format!("\rReading {path}: {:>3} %", percent.min(100));
        let _ = io::stderr().write_all(line.as_bytes());
        self.is_shown = true;
        self.next = Instant::now() + INTERVAL;
    }

    /// Takes the words away.
    fn clear(&mut self) {
        if self.is_shown {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}

impl<R: Read> Read for Progress<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.read += read as u64;
        if self.is_terminal && Instant::now() >= self.next {
            self.show();
        }
        Ok(read)
    }
}
