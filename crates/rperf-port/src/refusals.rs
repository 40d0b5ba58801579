//! Why clients don't get what they ask of sessions. On the port's thread.

use crate::task::Reply;
use rperf_protocol::hello::Session;
use rperf_protocol::refusal::{Code, Refusal};

/// Another session runs than the one that was asked for.
pub fn other_runs(session: &Session) -> Refusal {
    let how = match session.is_trace() {
        true => session.mode.to_string(),
        false => format!("{}, {} Hz", session.mode, session.frequency),
    };
    let error = format!("the program is being profiled already ({how})");
    let hint = "ask for /v1/snapshot or /v1/profile, which watch that session";
    Refusal::new(Code::OtherSession, error, hint)
}

/// Why there is no profile.
pub fn not_taken(reply: &Reply) -> Refusal {
    match reply {
        Reply::Failed(why) => Refusal::new(Code::Failed, why.clone(), "try again"),
        _ => {
            let error = "no profiling session runs in the program";
            Refusal::new(Code::NoSession, error, "rperf attach begins one")
        }
    }
}
