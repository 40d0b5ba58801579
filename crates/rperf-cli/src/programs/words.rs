//! What is said of programs that are asked, in words for people: nothing else makes sentences of
//! conditions, events and failures. Any thread.

use crate::{FAILURE, Refusal};
use nix::unistd::{Uid, User};
use rperf_protocol::PROTOCOL;
use rperf_protocol::hello::Session;
use rperf_watch::condition::{Condition, Event, Lost, Stuck};
use rperf_watch::failure::{AskError, Failure};
use rperf_watch::process::name;

/// Said of programs in which only this is known.
pub const KEPT: &str = "a thread keeps the GVL in native code";

/// Said of a program that was stopped.
pub const STOPPED: &str = "was stopped (SIGSTOP)";

/// Said of a program that says nothing.
pub const NO_ANSWER: &str = "its port doesn't answer";

/// Said of a program that isn't asked, as its user has more than `most`.
pub fn of_too_many(most: usize) -> String {
    format!("more than {most} programs with ports, which aren't all asked")
}

/// The share of a CPU from which on a program isn't one whose threads all wait.
const WORKS: f64 = 0.5;

/// What is said of a program in this condition, after its number.
pub fn of_condition(condition: &Condition) -> String {
    match condition {
        Condition::Answers => "answers again".into(),
        Condition::RunsNoRuby {
            share_of_cpu: Some(share),
        } if *share >= WORKS => format!(
            "runs no Ruby code just now, but native code ({:.0} % CPU)",
            share * 100.0
        ),
        Condition::RunsNoRuby { .. } => {
            "runs no Ruby code just now: all its threads wait, or one keeps the GVL in native code"
                .into()
        }
        Condition::NoAnswer => {
            "doesn't answer: no Ruby code runs just now, or a thread keeps the GVL in native code"
                .into()
        }
        Condition::Stuck(stuck) => format!("doesn't answer: {}", kept(stuck)),
        Condition::Stopped => format!("{STOPPED}: nothing can be asked until SIGCONT"),
        Condition::Became => "has become another one, or closed its port".into(),
        Condition::Ended => "has ended".into(),
    }
}

/// The line that says an event of the process `pid`.
pub fn of_event(pid: i32, event: &Event) -> String {
    match event {
        Event::Is(condition) => format!("{pid} {}", of_condition(condition)),
        Event::Watches {
            session,
            is_as_wanted,
        } => {
            let how = how(session);
            let as_it_is = match is_as_wanted {
                true => "",
                false => ", whatever -m and -f say",
            };
            format!("{pid} is being profiled already ({how}); watching that session{as_it_is}")
        }
        Event::TookOver(session) => format!(
            "{pid}: the program has begun a session of its own ({}); watching that one",
            how(session)
        ),
        Event::BeginsAnew(session) => format!("{pid}: the profile begins anew ({})", how(session)),
        Event::Profiled(session) => format!(
            "{pid}: the program's session has ended; profiling it ({})",
            how(session)
        ),
        Event::Lost(lost) => format!("{pid}: {}", of_lost(lost)),
        Event::EndedEarly { why, after } => {
            let seconds = after.as_secs_f64();
            format!("{pid}: {why} after {seconds:.1} s; the profile is of the time before")
        }
    }
}

/// Why nothing comes of the process `pid`.
pub fn of_failure(pid: i32, failure: &Failure) -> Refusal {
    Refusal {
        message: message(pid, failure),
        status: FAILURE,
    }
}

/// Why nothing comes of the process `pid`, as a line.
pub fn message(pid: i32, failure: &Failure) -> String {
    match failure {
        Failure::NoProcess => format!("there is no process {pid}"),
        Failure::OtherUser(0) => format!("process {pid} belongs to root: run this as root"),
        Failure::OtherUser(owner) => {
            let user = User::from_uid(Uid::from_raw(*owner)).ok().flatten();
            let user = user.map_or_else(|| format!("user {owner}"), |user| user.name);
            format!("process {pid} belongs to {user}: run this as {user} or root")
        }
        Failure::Stopped => format!("{pid} {}", of_condition(&Condition::Stopped)),
        Failure::NoRuby => format!(
            "process {pid}{} doesn't run Ruby; 'rperf ps' lists the Ruby programs that can be asked",
            in_parentheses(&name(pid))
        ),
        Failure::TooMany(most) => format!("{pid}: its user has {}", of_too_many(*most)),
        Failure::NoPort => format!(
            "process {pid}{} has no port. Start it with RPERF_LISTEN=1 (and rperf in its Gemfile), or \
             call Rperf.listen",
            in_parentheses(&name(pid))
        ),
        Failure::Asking(AskError::Closed) => format!("the program {pid} has ended"),
        Failure::Asking(error) => format!("{pid}: {}", of_error(error)),
        Failure::Traced => format!(
            "{pid}: its calls are being traced, and a trace isn't cut to a stretch of time; \
             'rperf snapshot {pid}' writes all of it so far"
        ),
        Failure::RunsNoRuby => {
            format!("{pid} runs no Ruby code just now; profiling begins as soon as it does")
        }
        Failure::NothingRan => format!("{pid}: nothing was profiled, as no Ruby code ran"),
        Failure::Lost(lost) => format!("{pid}: {}", of_lost(lost)),
        Failure::Unreadable(error) => format!("{pid}: its profile can't be read ({error})"),
        Failure::NoThread(error) => format!("{pid}: {error}"),
        Failure::Internal => format!("{pid}: an internal error"),
    }
}

fn of_error(error: &AskError) -> String {
    match error {
        AskError::Closed => "its port is closed".into(),
        AskError::Forbidden => "its port belongs to another user".into(),
        AskError::Impostor { pid, uid } => {
            format!("its port is another process's (pid {pid}, uid {uid}): not asked")
        }
        AskError::Silent => NO_ANSWER.into(),
        AskError::NotAReply(error) => error.to_string(),
        AskError::TooLarge(most) => format!("its answer has more than {} MB", most >> 20),
        AskError::BadDelta(error) => error.to_string(),
        AskError::Refused(refusal) => refusal.to_string(),
        AskError::OtherProtocol(version) => format!(
            "its rperf speaks version {version} of the protocol, this one version {PROTOCOL}"
        ),
        AskError::Io(error) => error.to_string(),
    }
}

fn of_lost(lost: &Lost) -> String {
    let why = match &lost.why {
        Condition::NoAnswer => "doesn't answer".into(),
        why => of_condition(why),
    };
    let elapsed = lost.elapsed.as_secs_f64();
    match lost.lacks.map(|lacks| lacks.as_secs_f64()) {
        Some(lacks) => format!(
            "the program {why} after {elapsed:.1} s; the profile goes up to {lacks:.1} s before that"
        ),
        None => format!("the program {why} after {elapsed:.1} s, and nothing was profiled"),
    }
}

/// Which thread keeps the GVL of a program that doesn't answer.
fn kept(stuck: &Stuck) -> String {
    let holder = stuck.holder.as_ref();
    holder.map_or_else(|| KEPT.into(), |holder| holder.text(stuck.silence))
}

fn how(session: &Session) -> String {
    format!("{}, {} Hz", session.mode, session.frequency)
}

fn in_parentheses(name: &str) -> String {
    match name {
        "" => String::new(),
        name => format!(" ({name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_protocol::hello::GvlHolder;
    use std::time::Duration;

    #[test]
    fn programs_that_use_a_cpu_do_not_just_wait() {
        let text = |share_of_cpu| of_condition(&Condition::RunsNoRuby { share_of_cpu });
        assert_eq!(
            text(Some(0.98)),
            "runs no Ruby code just now, but native code (98 % CPU)"
        );
        for share in [Some(0.02), None] {
            assert!(text(share).contains("all its threads wait, or one keeps"));
        }
    }

    #[test]
    fn a_thread_that_keeps_the_gvl_is_named_with_what_it_does() {
        let text = |state: &str| {
            kept(&Stuck {
                holder: Some(GvlHolder {
                    tid: 9,
                    state: state.into(),
                }),
                silence: Duration::from_millis(2345),
            })
        };
        let start = "thread 9 has kept the GVL in native code for 2.3 s";
        assert_eq!(text("sleep"), format!("{start} (sleep)"));
        assert_eq!(text(""), start);
        assert_eq!(kept(&Stuck::default()), KEPT);
    }

    #[test]
    fn a_port_that_cannot_be_asked_is_said_with_the_reason() {
        let text = |error: AskError| of_failure(7, &error.into()).message;
        for (error, expected) in [
            (AskError::Closed, "the program 7 has ended"),
            (AskError::Silent, "7: its port doesn't answer"),
            (
                AskError::TooLarge(1 << 20),
                "7: its answer has more than 1 MB",
            ),
            (
                AskError::Impostor { pid: 8, uid: 9 },
                "7: its port is another process's (pid 8, uid 9): not asked",
            ),
        ] {
            assert_eq!(text(error), expected);
        }
    }

    #[test]
    fn what_is_lost_is_said_with_the_reason() {
        let lost = |why, lacks: Option<u64>| {
            of_lost(&Lost {
                why,
                elapsed: Duration::from_millis(2500),
                lacks: lacks.map(Duration::from_secs),
            })
        };
        for (why, lacks, expected) in [
            (
                Condition::Ended,
                Some(1),
                "the program has ended after 2.5 s; the profile goes up to 1.0 s before that",
            ),
            (
                Condition::Became,
                None,
                "the program has become another one, or closed its port after 2.5 s, and nothing was \
                 profiled",
            ),
            (
                Condition::NoAnswer,
                None,
                "the program doesn't answer after 2.5 s, and nothing was profiled",
            ),
        ] {
            assert_eq!(lost(why, lacks), expected);
        }
    }
}
