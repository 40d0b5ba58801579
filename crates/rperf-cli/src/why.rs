//! `rperf why`: what the slow requests of an endpoint have that the usual ones don't. Called by `run`, on
//! the main thread.

mod arguments;
mod find;
mod heading;
mod ops;
mod page;

use crate::Refusal;
use crate::report::load;
use crate::report::screen::Screen;
use crate::report::write_text;
use crate::shared_args::checked;
use crate::shared_args::path_args::PathArgs;
use arguments::Asked;
use rperf_format::Format;
use rperf_format::answers::{self, ENDPOINTS_TOLD};
use rperf_format::markdown::{markdown_of_endpoint, markdown_of_endpoints};
use rperf_report::{EndpointTimes, Why};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// How the command is called. A file and an endpoint are arguments alike.
pub const USAGE: &str = "rperf why [OPTIONS] <FILE>... [ENDPOINT]";

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  rperf record -m wall --measure requests,blame,ops bundle exec puma
  rperf why rperf.data                         all endpoints and jobs, the costly ones first
  rperf why rperf.data 'GET /orders/:id'       one of them
  rperf why rperf.data '^GET /orders$'         or a part of its name, or a regex
  rperf why rperf.data orders -o orders.md     to paste into an issue
  rperf why worker.*.pb.gz 'GET /orders/:id'   of several processes or machines together

The program needs rperf's middleware. An endpoint's first 100 requests tell how long they
usually take; each later one is judged as it ends, and its samples have the class as label
%latency: fast, typical (p25 to p75), slow, or tail (from p99).

Exit status: 0; 1 if the output can't be written; 2 for wrong options and files that
can't be read.

Run 'rperf help slow-requests' for more.";

/// Options of `rperf why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// The profiles; several are merged; '-' is stdin. The last one may be an endpoint or a job
    /// instead: its name, a part of it, or a regex; without it there is a table of all
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<OsString>,
    /// Write the answer as text, as markdown, to paste, or as json, with times in nanoseconds [default
    /// with -o: by the file's extension]
    #[arg(long, value_name = "FORMAT", allow_hyphen_values = true)]
    pub format: Option<String>,
    /// Print one JSON object, as --format json
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
    /// File to write instead of stdout, which '-' is
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Don't send long output through a pager
    #[arg(long)]
    pub no_pager: bool,
    /// How paths are shown.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// How the answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notation {
    /// A page for the terminal.
    Text,
    /// A report to paste.
    Markdown,
    /// Data for programs.
    Json,
}

/// Tells it, and returns the exit status.
pub fn run(args: &WhyArgs) -> Result<i32, Refusal> {
    let (notation, output) = (notation(args)?, file(args)?);
    let Asked { files, endpoint } = Asked::of(&args.files)?;
    let mut profile = load::merged(&files)?;
    profile.path_view = args.paths.view();
    if profile.requests.is_empty() {
        let where_none_are = match &files[..] {
            [file] => format!("{} has no requests", file.display()),
            _ => format!("none of these {} files has requests", files.len()),
        };
        return Err(Refusal::usage(format!(
            "{where_none_are}: they are in profiles of 'rperf record -m wall --measure requests,blame,ops' \
             or 'rperf attach --measure requests,ops' of a program with rperf's middleware \
             ('rperf help slow-requests')"
        )));
    }
    let screen = match &output {
        Some(_) => Screen::default(),
        None => Screen::stdout(!args.no_pager),
    };
    let text = match endpoint {
        None if notation == Notation::Json => format!("{}\n", answers::endpoints(&profile)),
        None => {
            let all = EndpointTimes::all(&profile);
            let first = Why::first_of(&profile, &all, ENDPOINTS_TOLD);
            match notation {
                Notation::Markdown => markdown_of_endpoints(&profile, &all, &first),
                _ => page::endpoints(&profile, &all, &first, screen),
            }
        }
        Some(wanted) => {
            let why = Why::of(&profile, find::requests(&profile, wanted)?);
            match notation {
                Notation::Json => format!("{}\n", answers::endpoint(&why)),
                Notation::Markdown => markdown_of_endpoint(&profile, &why),
                Notation::Text => page::endpoint(&profile, &why, screen),
            }
        }
    };
    write_text(&text, output.as_deref(), screen)
}

/// The notation that is asked for by name, or by the extension of the file.
fn notation(args: &WhyArgs) -> Result<Notation, Refusal> {
    match args.format.as_deref() {
        Some("markdown") => return Ok(Notation::Markdown),
        Some("json") => return Ok(Notation::Json),
        Some("text") => return Ok(Notation::Text),
        Some(name) => {
            return Err(Refusal::usage(format!(
                "--format must be text, markdown or json, not '{name}'"
            )));
        }
        None if args.json => return Ok(Notation::Json),
        None => {}
    }
    let Some(path) = args.output.as_ref().filter(|it| *it != "-") else {
        return Ok(Notation::Text);
    };
    match Format::of_report(Path::new(path)) {
        Format::Markdown => Ok(Notation::Markdown),
        Format::Json => Ok(Notation::Json),
        Format::Text => Ok(Notation::Text),
        _ => Err(Refusal::usage(format!(
            "-o {}: rperf why writes .md, .json and .txt, unless --format says which of them it is",
            Path::new(path).display()
        ))),
    }
}

/// The file to write; none: stdout.
fn file(args: &WhyArgs) -> Result<Option<PathBuf>, Refusal> {
    let output = args.output.as_ref().filter(|it| *it != "-");
    output.map(checked::writable).transpose()
}
