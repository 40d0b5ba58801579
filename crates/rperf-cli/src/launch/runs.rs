//! `rperf record`, once or several times. Called by `run`, on the main thread.

use crate::args::RecordArgs;
use crate::options::Options;
use crate::output::shown;
use crate::shared_args::checked::writable;
use crate::{Installation, Refusal, launch, say};
use rperf_report::numbers::grouped;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// More runs than anybody needs; a slip of the finger has more.
const MOST_RUNS: u32 = 1000;

/// Runs the command as often as the options say, and returns the exit status: that of
/// the first run that fails, which is the last.
pub fn record(mut args: RecordArgs, installation: &Installation) -> Result<i32, Refusal> {
    let runs = args.runs.take().as_deref().map(parse_runs).transpose()?;
    let is_printed = args.print;
    let mut options = Options::for_record(args)?;
    let library = installation.library()?;
    let Some(runs) = runs else {
        return Ok(launch::launch(&options, library)?.status());
    };
    let output = match options.settings.output() {
        Some(output) if !is_printed && !is_stream(output) => output.to_path_buf(),
        _ => {
            let message = "--runs writes several files: it needs the path of a file, not a stream";
            return Err(Refusal::usage(message));
        }
    };
    let outputs = (1..=runs).map(|run| numbered(&output, run));
    // Nothing is started before all are known to be writable.
    let outputs = outputs.map(writable).collect::<Result<Vec<_>, _>>()?;
    for (run, output) in (1..).zip(outputs) {
        options.settings = options.settings.with_output(output);
        let launched = launch::launch(&options, library)?;
        if let Some(fault) = launched.fault() {
            say(&format!("stopped after run {run} of {runs}: {fault}"));
            return Ok(launched.status());
        }
    }
    let (first, last) = (numbered(&output, 1), numbered(&output, runs));
    let name = last.file_name().unwrap_or_default();
    say(&format!(
        "wrote {} profiles: {} to {}",
        grouped(runs),
        shown(&first).display(),
        name.display()
    ));
    Ok(0)
}

#[expect(clippy::disallowed_methods, reason = "nothing is opened")]
fn is_stream(path: &Path) -> bool {
    path.exists() && !path.is_file()
}

/// The path for one of several runs: its number comes before the extensions.
fn numbered(path: &Path, run: u32) -> PathBuf {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    // A dot in front hides a file; it begins no extension.
    let dot = name
        .char_indices()
        .skip(1)
        .find(|(_, letter)| *letter == '.');
    match dot {
        Some((dot, _)) => path.with_file_name(format!("{}.{run}{}", &name[..dot], &name[dot..])),
        None => {
            let mut name: OsString = path.file_name().unwrap_or_default().to_os_string();
            name.push(format!(".{run}"));
            path.with_file_name(name)
        }
    }
}

fn parse_runs(text: &str) -> Result<u32, Refusal> {
    match text.parse() {
        Ok(runs @ 1..=MOST_RUNS) => Ok(runs),
        _ => Err(Refusal::usage(format!(
            "--runs must be a whole number from 1 to {MOST_RUNS}, not '{text}'"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_comes_before_the_extensions() {
        for (path, expected) in [
            ("/a.b/rperf.data", "/a.b/rperf.3.data"),
            ("/a/app.pb.gz", "/a/app.3.pb.gz"),
            ("/a/profile", "/a/profile.3"),
            ("/a/.hidden", "/a/.hidden.3"),
        ] {
            assert_eq!(numbered(Path::new(path), 3), Path::new(expected));
        }
    }

    #[test]
    fn runs_are_some_but_not_too_many() {
        assert_eq!(parse_runs("5").expect("a number"), 5);
        for text in ["0", "-1", "x", "1001"] {
            assert!(parse_runs(text).is_err(), "{text}");
        }
    }
}
