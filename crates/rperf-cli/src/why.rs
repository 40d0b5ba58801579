//! `rperf why`: what the slow requests of an endpoint have that the usual ones don't. Called by `run`, on
//! the main thread.

mod find;
mod heading;
mod ops;
mod page;

use crate::Refusal;
use crate::report::load;
use crate::report::screen::Screen;
use crate::report::write_text;
use crate::shared_args::path_args::PathArgs;
use rperf_format::answers::{self, ENDPOINTS_TOLD};
use rperf_report::{EndpointTimes, Why};
use std::ffi::OsString;
use std::path::Path;

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  rperf record -m wall --measure requests,blame,ops bundle exec puma
  rperf why rperf.data                         all endpoints and jobs, the costly ones first
  rperf why rperf.data 'GET /orders/:id'       one of them
  rperf why rperf.data '^GET /orders$'         or a part of its name, or a regex

The program needs rperf's middleware. An endpoint's first 100 requests tell how long they
usually take; each later one is judged as it ends, and its samples have the class as label
%latency: fast, typical (p25 to p75), slow, or tail (from p99).

Exit status: 0; 1 if the output can't be written; 2 for wrong options and files that
can't be read.

Run 'rperf help slow-requests' for more.";

/// Options of `rperf why`.
#[derive(Debug, clap::Args)]
pub struct WhyArgs {
    /// The profile; '-' is stdin
    #[arg(value_name = "FILE")]
    pub file: OsString,
    /// An endpoint or a job: its name, a part of it, or a regex; without it there is a table of
    /// all
    #[arg(value_name = "ENDPOINT", allow_hyphen_values = true)]
    pub endpoint: Option<String>,
    /// Print one JSON object, with times in nanoseconds
    #[arg(long)]
    pub json: bool,
    /// Don't send long output through a pager
    #[arg(long)]
    pub no_pager: bool,
    /// How paths are shown.
    #[command(flatten)]
    pub paths: PathArgs,
}

/// Tells it, and returns the exit status.
pub fn run(args: &WhyArgs) -> Result<i32, Refusal> {
    let path = Path::new(&args.file);
    let mut profile = load::profile(path)?;
    profile.path_view = args.paths.view();
    if profile.requests.is_empty() {
        return Err(Refusal::usage(format!(
            "{} has no requests: they are in profiles of 'rperf record -m wall --measure requests,blame,ops' \
             or 'rperf attach --measure requests,ops' of a program with rperf's middleware \
             ('rperf help slow-requests')",
            path.display()
        )));
    }
    let screen = Screen::stdout(!args.no_pager);
    let text = match &args.endpoint {
        None if args.json => format!("{}\n", answers::endpoints(&profile)),
        None => {
            let all = EndpointTimes::all(&profile);
            let first = Why::first_of(&profile, &all, ENDPOINTS_TOLD);
            page::endpoints(&profile, &all, &first, screen)
        }
        Some(wanted) => {
            let why = Why::of(&profile, find::requests(&profile, wanted)?);
            match args.json {
                true => format!("{}\n", answers::endpoint(&why)),
                false => page::endpoint(&profile, &why, screen),
            }
        }
    };
    write_text(&text, None, screen)
}
