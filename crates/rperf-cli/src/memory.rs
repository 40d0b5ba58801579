//! `rperf memory`: what the resident memory of a program is made of, now or in a file. Called by `run`, on
//! the main thread.

pub(crate) mod heap;
pub(crate) mod kept_rows;
pub(crate) mod leak;
mod page;

pub use page::{elapsed, since};

use crate::programs::words::{message, of_failure};
use crate::refusal::{FAILURE, Refusal};
use crate::report::screen::Screen;
use crate::shared_args::checked;
use kept_rows::{is_number, refused};
use rperf_format::{MemoryFile, NoMemoryFile, bytes_text};
use rperf_protocol::json::read;
use rperf_session::process_id::ProcessId;
use rperf_watch::memory::{Look, LookError, look};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  rperf memory 4711                        rows that add up to the RSS
  rperf memory 4711 --objects              and which part of malloc's is of objects
  rperf memory 4711 --pss                  a forked worker: what it shares with the others
  rperf memory 4711 -o monday.json         keeps them
  rperf memory monday.json                 shows them
  rperf memory --base monday.json 4711     what has changed since

Only a program with a port ('rperf ps --help' says what that is) knows which of its memory is
Ruby's heap and which is malloc's. Of others there are files, stacks and the rest.

Exit status: 0; 1 if the program can't be looked at, or the output not be written; 2 for wrong
options and files that can't be read.

Run 'rperf help memory' for more.";

/// Bytes of a file at most.
const MOST: u64 = 64 << 20;

/// Options of `rperf memory`.
#[derive(Debug, clap::Args)]
pub struct MemoryArgs {
    /// The program's process, or a file of 'rperf memory -o'
    #[arg(value_name = "PID|FILE")]
    pub target: OsString,
    /// Show what has changed since this file of 'rperf memory -o' (or a process, by its PID)
    #[arg(long, value_name = "FILE")]
    pub base: Option<OsString>,
    /// Walk all objects for what they have from malloc, which keeps the GVL meanwhile
    #[arg(long)]
    pub objects: bool,
    /// Show which part is shared with other processes, such as a server's other workers
    #[arg(long)]
    pub pss: bool,
    /// File to write the rows to, as JSON, instead of printing them ('-': stdout)
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Leave the main thread alone where all threads wait: then Ruby's heap isn't known
    #[arg(long)]
    pub no_wake: bool,
}

/// Prints or writes the rows. Returns the exit status.
pub fn run(args: &MemoryArgs) -> Result<i32, Refusal> {
    refuse_what_has_no_effect(args)?;
    let is_to_stdout = args.output.as_deref().is_some_and(|it| it == "-");
    let output = kept_rows::output("memory", args.output.as_deref(), args.json)?;
    if args.base.is_some() && args.output.is_some() {
        let message = "-o writes the rows of one moment, not what has changed: leave --base out";
        return Err(Refusal::usage(message));
    }
    let base = args.base.as_ref().map(|it| taken(it, args)).transpose()?;
    let file = taken(&args.target, args)?;
    if let Some(path) = &output {
        let what = format!("RSS {}", bytes_text(file.total.rss_bytes));
        return kept_rows::write(path, &file.to_json(), &what);
    }
    let screen = Screen::stdout(true);
    let text = match (&base, args.json || is_to_stdout) {
        (None, true) => file.to_json(),
        (None, false) => page::of(&file, args.pss, screen),
        (Some(base), true) => page::changes_as_json(base, &file),
        (Some(base), false) => page::changes(base, &file, screen),
    };
    screen.print(&text).map(|()| 0).map_err(|error| Refusal {
        message: format!("can't write the rows: {error}"),
        status: FAILURE,
    })
}

/// Refuses options that nothing would come of.
fn refuse_what_has_no_effect(args: &MemoryArgs) -> Result<(), Refusal> {
    let refused = |message: &str| Err(Refusal::usage(message));
    if args.pss && args.base.is_some() {
        return refused("--base shows what has changed of the RSS: leave --pss out");
    }
    if args.pss && (args.json || args.output.is_some()) {
        return refused("JSON always has the PSS: leave --pss out");
    }
    let options = [(args.objects, "--objects"), (args.no_wake, "--no-wake")];
    kept_rows::refuse_for_files(&args.target, args.base.as_deref(), options)
}

/// The rows of a process, or those in a file.
fn taken(target: &OsStr, args: &MemoryArgs) -> Result<MemoryFile, Refusal> {
    let text = target.to_str().unwrap_or_default();
    if !is_number(target) {
        return of_file(Path::new(target));
    }
    let pid = checked::pid(text).map_err(|error| Refusal::usage(format!("'{text}': {error}")))?;
    let how = Look {
        with_objects: args.objects,
        may_wake: !args.no_wake,
    };
    let process = ProcessId::named(pid);
    look(process, how, |failure| message(pid, failure)).map_err(|error| match error {
        LookError::Failure(failure) => of_failure(pid, &failure),
        LookError::Unreadable(error) => Refusal {
            message: format!("{pid}: its memory can't be looked at: {error}"),
            status: FAILURE,
        },
    })
}

fn of_file(path: &Path) -> Result<MemoryFile, Refusal> {
    let other = NoMemoryFile::Other;
    let bytes = kept_rows::read(path, MOST)?.ok_or_else(|| refused(path, &other))?;
    let file: MemoryFile = read(&bytes).map_err(|_| refused(path, &other))?;
    file.check().map_err(|error| refused(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(target: &str) -> MemoryArgs {
        MemoryArgs {
            target: target.into(),
            base: None,
            objects: false,
            pss: false,
            output: None,
            json: false,
            no_wake: false,
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        let with = |change: fn(&mut MemoryArgs)| {
            let mut args = args("a.json");
            change(&mut args);
            refuse_what_has_no_effect(&args).err().map(|it| it.message)
        };
        assert_eq!(with(|_| ()), None);
        assert_eq!(with(|it| it.pss = true), None);
        assert_eq!(
            with(|it| (it.target, it.objects) = ("7".into(), true)),
            None
        );
        let base = |it: &mut MemoryArgs| (it.base, it.no_wake) = (Some("7".into()), true);
        assert_eq!(with(base), None);
        let refused = [
            with(|it| (it.pss, it.json) = (true, true)),
            with(|it| (it.pss, it.output) = (true, Some("-".into()))),
            with(|it| (it.pss, it.base) = (true, Some("7".into()))),
            with(|it| it.objects = true),
            with(|it| it.no_wake = true),
        ];
        for message in refused {
            let message = message.expect("a message");
            assert!(
                message.contains("leave") && message.ends_with("out"),
                "{message}"
            );
        }
    }
}
