//! Which paths the port has, and what each of them asks. Called by the port's thread, as a request
//! has come.

use super::connection::{MayWake, Wait};
use super::facts;
use super::profiling::Profiling;
use super::sampling::Sampling;
use super::step::Pull;
use super::task::Task;
use rperf_protocol::message::{PROTOCOL, Refusal, Request};

/// The paths.
const HELLO: &str = "/v1/hello";
const STACKS: &str = "/v1/stacks";
const DELTA: &str = "/v1/delta";
const SESSION: &str = "/v1/session";
const PROFILE: &str = "/v1/profile";
const SNAPSHOT: &str = "/v1/snapshot";
/// The path below which Go's tools and collectors of profiles ask.
pub const PPROF: &str = "/debug/pprof/";

/// What there is below [`PPROF`].
const INDEX: &str = "\
profile?seconds=30  the time of all threads, as a pprof file; also mode=cpu and frequency=100
cmdline             the command line
";

/// What is asked.
pub enum Route {
    /// What the program is.
    Hello,
    /// This is the answer.
    Text(Vec<u8>),
    /// The VM has to be asked.
    Wait(Wait),
}

/// What a request asks, or why there is no answer.
pub fn route(request: &Request) -> Result<Route, Refusal> {
    let (method, route) = match &*request.path {
        HELLO => ("GET", Ok(Route::Hello)),
        STACKS => {
            let task = match request.parameter("fibers") {
                Some("1") => Task::Fibers,
                _ => Task::Stacks,
            };
            let wait = Wait::Stacks(task, MayWake::of(request));
            ("GET", Ok(Route::Wait(wait)))
        }
        SNAPSHOT => ("GET", Ok(Route::Wait(Wait::Snapshot(MayWake::of(request))))),
        DELTA => (
            "GET",
            Pull::of(request).map(|it| Route::Wait(Wait::News(it))),
        ),
        PROFILE => (
            "GET",
            Profiling::of(request).map(|it| Route::Wait(Wait::Profile(it))),
        ),
        SESSION => (
            "POST",
            Sampling::of(request).map(|it| Route::Wait(Wait::Session(it))),
        ),
        other if other.starts_with(PPROF) => ("GET", pprof(request, &other[PPROF.len()..])),
        other => {
            let is_ours = other.starts_with(&format!("/v{PROTOCOL}/"));
            let error = match is_ours {
                true => "this version of rperf has no such answer".into(),
                false => format!("this port speaks version {PROTOCOL} of the protocol"),
            };
            let hint = format!("ask for {HELLO}, {STACKS}, {PROFILE} or {SNAPSHOT}");
            return Err(Refusal::new(404, error, hint));
        }
    };
    match request.method == method {
        true => route,
        false => {
            let hint = format!("ask with {method}");
            Err(Refusal::new(405, "this isn't asked for so", hint))
        }
    }
}

/// What Go's programs have under such a name.
fn pprof(request: &Request, name: &str) -> Result<Route, Refusal> {
    match name {
        "" => Ok(Route::Text(INDEX.into())),
        "cmdline" => Ok(Route::Text(facts::words())),
        "profile" => Profiling::of(request).map(|it| Route::Wait(Wait::Profile(it))),
        _ => {
            let hint = format!("ask for {PPROF}profile?seconds=30");
            Err(Refusal::new(
                501,
                "rperf has no such profile of a running program",
                hint,
            ))
        }
    }
}
