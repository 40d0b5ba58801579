//! What clients ask of a port: the paths with their queries, as clients write them and ports read
//! them.

use crate::PROTOCOL;
use crate::hello::Session;
use crate::limits::{MAX_FREQUENCY, MAX_WAIT_MS, SECONDS, WAIT_MS};
use crate::measure::Measure;
use crate::message::Request;
use crate::refusal::{Code, Refusal};
use rperf_model::Mode;
use rperf_model::shared_sums::Cursor;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// What the program says of itself.
const HELLO: &str = "/v1/hello";
/// What its threads do.
const STACKS: &str = "/v1/stacks";
/// What its memory is of.
const MEMORY: &str = "/v1/memory";
/// The graph of all its objects.
const HEAP: &str = "/v1/heap";
/// What has changed in the session that runs.
const DELTA: &str = "/v1/delta";
/// A session for clients.
const SESSION: &str = "/v1/session";
/// A profile of some time.
const PROFILE: &str = "/v1/profile";
/// The profile of the session that runs, up to now.
const SNAPSHOT: &str = "/v1/snapshot";

/// The path below which Go's tools and collectors of profiles ask.
pub const PPROF: &str = "/debug/pprof/";

/// The seconds of a profile if the request names none: Go's tools assume as many.
const USUAL_SECONDS: &str = "30";

/// How a session samples that clients have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// What it measures.
    pub mode: Mode,
    /// Samples per second.
    pub frequency: u32,
    /// What else it measures.
    pub measure: Measure,
}

impl Sampling {
    /// The mode, the frequency and more that the request wants.
    pub fn of(request: &Request) -> Result<Self, Refusal> {
        let Some(measure) = Measure::of_words(request.parameter("measure")) else {
            let allowed = "measure=alloc=sampled, heap, ops or requests, or several with commas \
                           (blame is always measured in wall mode)";
            return Err(refused("there is no such measure", allowed));
        };
        let mode = request.parameter("mode");
        let Some(mode) = mode.map_or(Some(Mode::Wall), Mode::from_name) else {
            return Err(refused("there is no such mode", "mode=wall or mode=cpu"));
        };
        // In cpu mode no wait is seen, and most slow requests wait.
        if measure.requests && mode != Mode::Wall {
            return Err(refused("requests go with mode=wall only", "mode=wall"));
        }
        let frequency = request.parameter("frequency");
        match frequency.map_or(Ok(MAX_FREQUENCY), str::parse) {
            Ok(frequency @ 1..=MAX_FREQUENCY) => Ok(Sampling {
                mode,
                frequency,
                measure,
            }),
            _ => Err(refused(
                "there is no such frequency",
                &format!("frequency=1 to {MAX_FREQUENCY}"),
            )),
        }
    }

    fn query(self) -> String {
        let words: Vec<_> = self.measure.words().collect();
        let measure = match words.is_empty() {
            true => String::new(),
            false => format!("&measure={}", words.join(",")),
        };
        let mode = self.mode.name();
        format!("mode={mode}&frequency={}{measure}", self.frequency)
    }
}

impl From<Sampling> for Session {
    fn from(sampling: Sampling) -> Self {
        Session {
            frequency: sampling.frequency,
            mode: sampling.mode.into(),
        }
    }
}

/// What a profile is to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// The time.
    pub time: Duration,
    /// How it samples if it has a session of its own.
    pub sampling: Sampling,
}

impl Wanted {
    /// The time, which may be so many seconds, and sampling that the request wants.
    pub fn of(request: &Request, allowed: RangeInclusive<f64>) -> Result<Self, Refusal> {
        let seconds = request.parameter("seconds").unwrap_or(USUAL_SECONDS);
        let seconds = seconds.parse().ok().filter(|it| allowed.contains(it));
        let allowed = || format!("seconds={} to {}", allowed.start(), allowed.end());
        let odd = || refused("there is no such time", &allowed());
        Ok(Wanted {
            time: Duration::from_secs_f64(seconds.ok_or_else(odd)?),
            sampling: Sampling::of(request)?,
        })
    }
}

/// A request that a port answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// What the program says of itself.
    Hello {
        /// The VM is asked for a sign of life, of which the next answer tells.
        looks: bool,
    },
    /// What its threads do.
    Stacks {
        /// And its fibers.
        with_fibers: bool,
        /// The VM may be woken for the answer.
        may_wake: bool,
    },
    /// What its memory is of.
    Memory {
        /// And its objects are walked.
        with_objects: bool,
        /// The VM may be woken for the answer.
        may_wake: bool,
    },
    /// The graph of all its objects, as a stream of [`crate::message::STREAM_HEAD`].
    Heap {
        /// However little memory is free, and however soon after the last one.
        force: bool,
        /// The VM may be woken for the answer.
        may_wake: bool,
    },
    /// What the session that runs has so far.
    Snapshot {
        /// The VM may be woken for the answer.
        may_wake: bool,
    },
    /// What has changed in the session that runs.
    Delta {
        /// Since then.
        cursor: Cursor,
        /// How long the port waits for the VM at most.
        wait: Duration,
    },
    /// A profile of so much time.
    Profile(Wanted),
    /// A session, which ends with the connection at the latest.
    Session(Sampling),
}

impl Ask {
    /// The path, with its query.
    pub fn path(&self) -> String {
        match self {
            Ask::Hello { looks: false } => HELLO.into(),
            Ask::Hello { looks: true } => format!("{HELLO}?ask=1"),
            Ask::Stacks {
                with_fibers: true,
                may_wake,
            } => format!("{STACKS}?fibers=1&wake={}", u8::from(*may_wake)),
            Ask::Stacks { may_wake, .. } => waking(STACKS, *may_wake),
            Ask::Memory {
                with_objects: true,
                may_wake,
            } => format!("{MEMORY}?objects=1&wake={}", u8::from(*may_wake)),
            Ask::Memory { may_wake, .. } => waking(MEMORY, *may_wake),
            Ask::Heap {
                force: true,
                may_wake,
            } => format!("{HEAP}?force=1&wake={}", u8::from(*may_wake)),
            Ask::Heap { may_wake, .. } => waking(HEAP, *may_wake),
            Ask::Snapshot { may_wake } => waking(SNAPSHOT, *may_wake),
            Ask::Delta { cursor, wait } => {
                format!("{DELTA}?at={cursor}&wait_ms={}", wait.as_millis())
            }
            Ask::Profile(wanted) => {
                let seconds = wanted.time.as_secs_f64();
                format!("{PROFILE}?seconds={seconds}&{}", wanted.sampling.query())
            }
            Ask::Session(sampling) => format!("{SESSION}?{}", sampling.query()),
        }
    }

    /// The method by which it is asked.
    pub fn method(&self) -> &'static str {
        match self {
            Ask::Session(_) | Ask::Heap { .. } => "POST",
            _ => "GET",
        }
    }

    /// What `request` asks, or why there is no answer.
    pub fn of(request: &Request) -> Result<Self, Refusal> {
        let may_wake = request.parameter("wake") != Some("0");
        let asked = match &*request.path {
            HELLO => Ok(Ask::Hello {
                looks: request.parameter("ask").is_some(),
            }),
            STACKS => Ok(Ask::Stacks {
                with_fibers: request.parameter("fibers") == Some("1"),
                may_wake,
            }),
            MEMORY => Ok(Ask::Memory {
                with_objects: request.parameter("objects") == Some("1"),
                may_wake,
            }),
            HEAP => Ok(Ask::Heap {
                force: request.parameter("force") == Some("1"),
                may_wake,
            }),
            SNAPSHOT => Ok(Ask::Snapshot { may_wake }),
            DELTA => delta(request),
            PROFILE => Wanted::of(request, SECONDS).map(Ask::Profile),
            SESSION => Sampling::of(request).map(Ask::Session),
            other => {
                let error = match other.starts_with(&format!("/v{PROTOCOL}/")) {
                    true => "this version of rperf has no such answer".into(),
                    false => format!("this port speaks version {PROTOCOL} of the protocol"),
                };
                let hint = format!("ask for {HELLO}, {STACKS}, {MEMORY}, {PROFILE} or {SNAPSHOT}");
                return Err(Refusal::new(Code::NotFound, error, hint));
            }
        };
        if let Ok(asked) = &asked {
            check_method(request, asked.method())?;
        }
        asked
    }
}

/// Refuses a request by another method.
pub fn check_method(request: &Request, method: &str) -> Result<(), Refusal> {
    if request.method == method {
        return Ok(());
    }
    let (error, hint) = ("this isn't asked for so", format!("ask with {method}"));
    Err(Refusal::new(Code::WrongMethod, error, hint))
}

fn delta(request: &Request) -> Result<Ask, Refusal> {
    let wait_ms = value(request, "wait_ms", WAIT_MS)?;
    Ok(Ask::Delta {
        cursor: value(request, "at", Cursor::default())?,
        wait: Duration::from_millis(wait_ms.min(MAX_WAIT_MS)),
    })
}

/// The value of `name` in the query, or the usual one.
fn value<T: FromStr>(request: &Request, name: &str, usual: T) -> Result<T, Refusal> {
    let Some(text) = request.parameter(name) else {
        return Ok(usual);
    };
    text.parse().map_err(|_| {
        let hint = "leave it out to begin, and give back the cursor of the last answer";
        Refusal::new(Code::BadValue, format!("{name}={text} is wrong"), hint)
    })
}

fn waking(path: &str, may_wake: bool) -> String {
    let query = if may_wake { "" } else { "?wake=0" };
    format!("{path}{query}")
}

fn refused(error: &str, allowed: &str) -> Refusal {
    Refusal::new(Code::BadValue, error, format!("ask with {allowed}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::parse_request;

    fn request(method: &str, path: &str) -> Request {
        let text = format!("{method} {path} HTTP/1.1\r\n\r\n");
        let found = parse_request(text.as_bytes()).expect("a request");
        found.expect("whole").0
    }

    #[test]
    fn what_clients_ask_is_what_ports_read() {
        let sampling = Sampling {
            mode: Mode::Cpu,
            frequency: 99,
            measure: Measure::NOTHING,
        };
        let measuring = |words| Sampling {
            measure: Measure::of_words(Some(words)).expect("words"),
            ..sampling
        };
        let with_objects = measuring("alloc=sampled");
        let with_more = Sampling {
            mode: Mode::Wall,
            ..measuring("heap,requests,ops")
        };
        let cursor = "1.2.3.4.5.6.7.8".parse().expect("a cursor");
        let (wait, time) = (Duration::from_millis(300), Duration::from_millis(2500));
        let stacks = |with_fibers, may_wake| Ask::Stacks {
            with_fibers,
            may_wake,
        };
        let memory = |with_objects, may_wake| Ask::Memory {
            with_objects,
            may_wake,
        };
        let heap = |force, may_wake| Ask::Heap { force, may_wake };
        for (ask, path) in [
            (heap(false, true), "/v1/heap"),
            (heap(false, false), "/v1/heap?wake=0"),
            (heap(true, false), "/v1/heap?force=1&wake=0"),
            (memory(false, true), "/v1/memory"),
            (memory(false, false), "/v1/memory?wake=0"),
            (memory(true, true), "/v1/memory?objects=1&wake=1"),
            (memory(true, false), "/v1/memory?objects=1&wake=0"),
            (Ask::Hello { looks: false }, "/v1/hello"),
            (Ask::Hello { looks: true }, "/v1/hello?ask=1"),
            (stacks(false, true), "/v1/stacks"),
            (stacks(false, false), "/v1/stacks?wake=0"),
            (stacks(true, true), "/v1/stacks?fibers=1&wake=1"),
            (stacks(true, false), "/v1/stacks?fibers=1&wake=0"),
            (Ask::Snapshot { may_wake: true }, "/v1/snapshot"),
            (Ask::Snapshot { may_wake: false }, "/v1/snapshot?wake=0"),
            (
                Ask::Delta { cursor, wait },
                "/v1/delta?at=1.2.3.4.5.6.7.8&wait_ms=300",
            ),
            (
                Ask::Profile(Wanted { time, sampling }),
                "/v1/profile?seconds=2.5&mode=cpu&frequency=99",
            ),
            (Ask::Session(sampling), "/v1/session?mode=cpu&frequency=99"),
            (
                Ask::Session(with_objects),
                "/v1/session?mode=cpu&frequency=99&measure=alloc=sampled",
            ),
            (
                Ask::Session(with_more),
                "/v1/session?mode=wall&frequency=99&measure=heap,requests,ops",
            ),
        ] {
            assert_eq!(ask.path(), path);
            assert_eq!(Ask::of(&request(ask.method(), path)), Ok(ask));
            let refusal = Ask::of(&request("PUT", path)).expect_err("refused");
            assert_eq!(refusal.code, Code::WrongMethod, "{path}");
        }
    }

    #[test]
    fn what_is_left_out_is_usual_and_what_is_wrong_is_refused() {
        let code = |path: &str| Ask::of(&request("GET", path)).map_err(|it| it.code);
        let usual = Ask::Profile(Wanted {
            time: Duration::from_secs(30),
            sampling: Sampling {
                mode: Mode::Wall,
                frequency: 1000,
                measure: Measure::NOTHING,
            },
        });
        assert_eq!(code("/v1/profile?new=1"), Ok(usual));
        assert_eq!(
            code("/v1/delta?wait_ms=99999"),
            Ok(Ask::Delta {
                cursor: Cursor::default(),
                wait: Duration::from_millis(MAX_WAIT_MS),
            })
        );
        for odd in [
            "mode=trace",
            "mode=",
            "frequency=0",
            "frequency=1001",
            "frequency=x",
            "measure=alloc",
            "measure=blame",
            "measure=ops,",
            "mode=cpu&measure=requests",
            "seconds=0",
            "seconds=86401",
            "seconds=NaN",
            "seconds=x",
        ] {
            let path = format!("/v1/profile?{odd}");
            assert_eq!(code(&path), Err(Code::BadValue), "{odd}");
        }
        assert_eq!(code("/v1/delta?at=x"), Err(Code::BadValue));
        assert_eq!(code("/v1/kittens"), Err(Code::NotFound));
        assert_eq!(code("/v2/hello"), Err(Code::NotFound));
    }
}
