//! Runs Graphviz's `dot`, which makes a picture of a call graph, and takes it for a program that may
//! be missing, fail or hang. Called by `report`, on the main thread.

use crate::process::{End, ended_by};
use crate::signals;
use rperf_report::one_line::one_line;
use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// How long a picture may take. The graphs of the usual limits take a second at most.
const LIMIT: Duration = Duration::from_secs(60);
/// How often it is looked whether the program has ended.
const INTERVAL: Duration = Duration::from_millis(5);
/// Bytes that are read of what the program says.
const MOST_SAID: u64 = 4096;

/// Why there is no picture.
#[derive(Debug)]
pub enum NotDrawn {
    /// There is no such program.
    Missing,
    /// The program didn't end in time.
    Slow(Duration),
    /// The program failed, or a step around it did, such as starting it.
    Failed(String),
}

impl NotDrawn {
    /// What the user can do.
    pub fn remedy(&self) -> &'static str {
        match self {
            NotDrawn::Missing => "install it (apt-get install graphviz, or brew install graphviz)",
            NotDrawn::Slow(_) => "make the graph smaller (--nodecount, --focus)",
            NotDrawn::Failed(_) => "see whether 'dot -V' works",
        }
    }
}

impl fmt::Display for NotDrawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotDrawn::Missing => f.write_str("Graphviz is needed for --svg, and there is no 'dot'"),
            NotDrawn::Slow(limit) => {
                write!(
                    f,
                    "Graphviz has not drawn the graph in {} s",
                    limit.as_secs()
                )
            }
            NotDrawn::Failed(how) => write!(f, "Graphviz has not drawn the graph: {how}"),
        }
    }
}

impl From<io::Error> for NotDrawn {
    fn from(error: io::Error) -> Self {
        NotDrawn::Failed(error.to_string())
    }
}

/// The graph as an SVG that loads nothing from elsewhere.
pub fn svg(dot: &str) -> Result<Vec<u8>, NotDrawn> {
    // A signal that ends us ends Graphviz, too.
    signals::hold_during(|| drawn_by(OsStr::new("dot"), dot, LIMIT, signals::is_one_held))
}

/// Its input and output are files, so that neither side waits for the other.
fn drawn_by(
    program: &OsStr,
    dot: &str,
    limit: Duration,
    is_ending: impl Fn() -> bool,
) -> Result<Vec<u8>, NotDrawn> {
    let mut input = tempfile::tempfile()?;
    input.write_all(dot.as_bytes())?;
    input.rewind()?;
    let (mut output, mut said) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = Command::new(program);
    command.arg("-Tsvg").stdin(input);
    command
        .stdout(output.try_clone()?)
        .stderr(said.try_clone()?);
    let mut child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => NotDrawn::Missing,
        _ => NotDrawn::Failed(error.to_string()),
    })?;
    let ended = end(&mut child, limit, is_ending);
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let status = ended?;
    if !status.success() {
        let said = first_line(&mut said).unwrap_or_default();
        return Err(NotDrawn::Failed(format!("{}{said}", ended_how(status))));
    }
    let mut svg = Vec::new();
    output.rewind()?;
    output.read_to_end(&mut svg)?;
    match svg.trim_ascii_end().ends_with(b"</svg>") {
        true => Ok(without_doctype(svg)),
        false => Err(NotDrawn::Failed("its output is no SVG".to_string())),
    }
}

fn end(
    child: &mut Child,
    limit: Duration,
    is_ending: impl Fn() -> bool,
) -> Result<ExitStatus, NotDrawn> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if is_ending() {
            return Err(NotDrawn::Failed("a signal has ended it".to_string()));
        }
        if Instant::now() >= deadline {
            return Err(NotDrawn::Slow(limit));
        }
        std::thread::sleep(INTERVAL);
    }
}

fn ended_how(status: ExitStatus) -> String {
    match End::from(status) {
        End::Signal(signal) => format!("it {}", ended_by(signal)),
        End::Status(status) => format!("it ended with status {status}"),
    }
}

/// ` (...)` with the first line of what it said.
fn first_line(said: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    said.rewind()?;
    said.take(MOST_SAID).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let line = text.lines().find(|line| !line.trim().is_empty());
    Ok(line.map_or(String::new(), |line| {
        format!(" ({})", one_line(line.trim()))
    }))
}

/// Graphviz names a file of the W3C's there, which no reader needs.
fn without_doctype(mut svg: Vec<u8>) -> Vec<u8> {
    let find = |from: usize, wanted: &[u8]| {
        let mut windows = svg[from..].windows(wanted.len());
        windows
            .position(|window| window == wanted)
            .map(|place| from + place)
    };
    let begin =
        find(0, b"<!DOCTYPE").filter(|begin| find(0, b"<svg").is_some_and(|svg| *begin < svg));
    if let Some(begin) = begin
        && let Some(end) = find(begin, b">")
    {
        svg.drain(begin..=end);
    }
    svg
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// What comes of a `dot` that is this script of the shell.
    fn by_script(script: &str, limit: Duration) -> Result<String, String> {
        by_script_until(script, limit, false)
    }

    fn by_script_until(script: &str, limit: Duration, is_ending: bool) -> Result<String, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("dot");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("its owner's");
        // Another test's child may hold the script open for writing for a moment.
        let drawn = loop {
            match drawn_by(path.as_os_str(), "digraph {}", limit, || is_ending) {
                Err(NotDrawn::Failed(how)) if how.contains("Text file busy") => continue,
                drawn => break drawn,
            }
        };
        drawn
            .map(|svg| String::from_utf8(svg).expect("text"))
            .map_err(|failed| failed.to_string())
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_graph_goes_in_and_the_picture_comes_out() {
        let script = r#"[ "$1" = -Tsvg ] && printf '<?xml?><!DOCTYPE svg "http://x">
<svg>' && cat && echo '</svg>'"#;
        let svg = by_script(script, LONG).expect("drawn");
        assert_eq!(svg, "<?xml?>\n<svg>digraph {}</svg>\n");
    }

    #[test]
    fn large_outputs_are_no_reason_to_wait() {
        let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; echo '</svg>'";
        assert!(by_script(script, LONG).expect("drawn").len() > 300_000);
    }

    #[test]
    fn failures_are_told_in_one_line() {
        let failed = |script| by_script(script, LONG).expect_err("it fails");
        let begin = "Graphviz has not drawn the graph: ";
        assert_eq!(
            failed("echo; echo 'Error: <stdin>: no' >&2; exit 3"),
            format!("{begin}it ended with status 3 (Error: <stdin>: no)")
        );
        assert_eq!(
            failed("kill -SEGV $$"),
            format!("{begin}it was ended by SIGSEGV")
        );
        assert_eq!(
            failed("echo '<svg>'"),
            format!("{begin}its output is no SVG")
        );
        let missing =
            drawn_by(OsStr::new("/no/such/dot"), "", LONG, || false).expect_err("there is none");
        assert!(
            missing.to_string().contains("there is no 'dot'"),
            "{missing}"
        );
    }

    #[test]
    fn one_that_hangs_is_ended() {
        let began = Instant::now();
        let failed = by_script("exec sleep 60", Duration::from_millis(50));
        assert_eq!(
            failed,
            Err("Graphviz has not drawn the graph in 0 s".to_string())
        );
        let ended = by_script_until("exec sleep 60", LONG, true).expect_err("it is ended");
        assert!(ended.ends_with("a signal has ended it"), "{ended}");
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
