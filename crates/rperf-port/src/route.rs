//! What the port does for each request. Called by the port's thread, as one has come.

use crate::connection::{MayWake, Wait};
use crate::facts;
use crate::profiling::Profiling;
use crate::step::Pull;
use crate::task::Task;
use rperf_protocol::ask::{Ask, PPROF, Wanted, check_method};
use rperf_protocol::limits::SECONDS;
use rperf_protocol::message::Request;
use rperf_protocol::refusal::{Code, Refusal};

/// What there is below [`PPROF`].
const INDEX: &str = "\
profile?seconds=30  the time of all threads, as a pprof file; also mode=cpu, frequency=100, measure=alloc=sampled,heap,requests,ops
cmdline             the command line
";

/// What is asked.
pub enum Route {
    /// What the program is; and the VM is asked for a sign of life, if it `looks`.
    Hello { looks: bool },
    /// The answer, as text.
    Text(Vec<u8>),
    /// The VM has to be asked.
    Wait(Wait),
}

impl From<Ask> for Route {
    fn from(ask: Ask) -> Self {
        Route::Wait(match ask {
            Ask::Hello { looks } => return Route::Hello { looks },
            Ask::Stacks {
                with_fibers,
                may_wake,
            } => {
                let task = if with_fibers {
                    Task::Fibers
                } else {
                    Task::Stacks
                };
                Wait::Answer(task, MayWake(may_wake))
            }
            Ask::Memory {
                with_objects,
                may_wake,
            } => {
                let task = if with_objects {
                    Task::Objects
                } else {
                    Task::Memory
                };
                Wait::Answer(task, MayWake(may_wake))
            }
            Ask::Heap { force, may_wake } => Wait::Heap {
                force,
                may_wake: MayWake(may_wake),
                is_asked: false,
            },
            Ask::Snapshot { may_wake } => Wait::Snapshot(MayWake(may_wake)),
            Ask::Delta { cursor, wait } => Wait::News(Pull::of(cursor, wait)),
            Ask::Profile(wanted) => Wait::Profile(Profiling::of(wanted)),
            Ask::Session(sampling) => Wait::Session(sampling),
        })
    }
}

/// What a request asks, or why there is no answer.
pub fn route(request: &Request) -> Result<Route, Refusal> {
    match request.path.strip_prefix(PPROF) {
        None => Ask::of(request).map(Route::from),
        Some(name) => {
            check_method(request, "GET")?;
            pprof(request, name)
        }
    }
}

/// What Go's programs have under such a name.
fn pprof(request: &Request, name: &str) -> Result<Route, Refusal> {
    match name {
        "" => Ok(Route::Text(INDEX.into())),
        "cmdline" => Ok(Route::Text(facts::words())),
        "profile" => Ok(Ask::Profile(Wanted::of(request, SECONDS)?).into()),
        _ => {
            let hint = format!("ask for {PPROF}profile?seconds=30");
            let error = "rperf has no such profile of a running program";
            Err(Refusal::new(Code::NoSuchProfile, error, hint))
        }
    }
}
