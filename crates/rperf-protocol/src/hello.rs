//! What a port says of its program without asking the VM: the answer to `/v1/hello`. Made by the
//! port, read by the client; any thread.

use crate::message::PROTOCOL;
use crate::text::shown;
use serde_json::{Value, json};
use std::time::Duration;

/// Characters of a text that are kept; a command line is the longest.
const MAX_TEXT: usize = 4096;

/// Directories of each kind that are kept.
const MAX_DIRECTORIES: usize = 16;

/// A profiling session that runs in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// `cpu`, `wall` or `trace`.
    pub mode: String,
    /// Samples per second; 0 if calls are traced.
    pub frequency: u32,
    /// Clients of the port have begun it; it ends with them.
    pub is_live: bool,
}

impl Session {
    /// Whether calls are traced.
    pub fn is_trace(&self) -> bool {
        self.frequency == 0
    }
}

/// A thread that keeps the GVL while the VM is asked in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keeper {
    /// The number of its native thread.
    pub tid: i32,
    /// `running`, or the system call in which it waits; empty if that isn't known.
    pub state: String,
}

impl Keeper {
    /// For people, if it has had the GVL for so long.
    pub fn text(&self, silence: Duration) -> String {
        let state = match &*shown(&self.state) {
            "" => String::new(),
            state => format!(" ({state})"),
        };
        let (tid, seconds) = (self.tid, silence.as_secs_f64());
        format!("thread {tid} has kept the GVL in native code for {seconds:.1} s{state}")
    }
}

/// The program as it describes itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// The version of the protocol.
    pub protocol: u32,
    /// The version of rperf.
    pub rperf: String,
    /// The version of Ruby.
    pub ruby: String,
    /// The process's number, as it sees it.
    pub pid: i32,
    /// When it started, in the kernel's ticks.
    pub start: u64,
    /// Its command line, or the title that it has given itself.
    pub program: String,
    /// The directories that its own files belong to; empty if they aren't known.
    pub roots: Vec<String>,
    /// The directories that have rperf's files.
    pub rperf_directories: Vec<String>,
    /// For how long it has run, where the system tells.
    pub uptime_ns: Option<u64>,
    /// The CPU time of all its threads.
    pub cpu_ns: u64,
    /// When `cpu_ns` was read, on a clock that never goes back.
    pub clock_ns: u64,
    /// The session that runs.
    pub session: Option<Session>,
    /// The number of its TCP port at the loopback address, if it has one.
    pub tcp: Option<u16>,
    /// Connections to the port, with the one that asks.
    pub clients: u32,
    /// For how long the VM has been asked for something without an answer; 0: it hasn't.
    pub silent_ns: u64,
    /// Who has had the GVL for all of that time, if that is known.
    pub keeper: Option<Keeper>,
}

impl Hello {
    /// The JSON that is the body of a response.
    pub fn to_json(&self) -> Value {
        let session = self.session.as_ref().map(|session| {
            json!({
                "mode": session.mode,
                "frequency": session.frequency,
            })
        });
        json!({
            "protocol": PROTOCOL,
            "rperf": self.rperf,
            "ruby": self.ruby,
            "pid": self.pid,
            "start": self.start,
            "program": self.program,
            "roots": self.roots,
            "rperf_directories": self.rperf_directories,
            "uptime_ns": self.uptime_ns,
            "cpu_ns": self.cpu_ns,
            "clock_ns": self.clock_ns,
            "session": session,
            "live": self.session.as_ref().is_some_and(|session| session.is_live),
            "tcp": self.tcp,
            "clients": self.clients,
            "silent_ns": self.silent_ns,
            "keeps_gvl": self.keeper.as_ref().map(|it| json!({ "tid": it.tid, "state": it.state })),
        })
    }

    /// The content of such a body; `None` if it is another one. What isn't known is skipped. Long
    /// texts are cut off.
    pub fn from_json(body: &Value) -> Option<Self> {
        let text = |key: &str| body.get(key)?.as_str().map(fit);
        let number = |key: &str| body.get(key)?.as_u64();
        let directories = |key: &str| {
            let list = body.get(key).and_then(Value::as_array);
            let texts = list.into_iter().flatten().filter_map(Value::as_str);
            texts.take(MAX_DIRECTORIES).map(fit).collect::<Vec<_>>()
        };
        let session = match body.get("session")? {
            Value::Null => None,
            session => Some(Session {
                mode: fit(session.get("mode")?.as_str()?),
                frequency: u32::try_from(session.get("frequency")?.as_u64()?).ok()?,
                is_live: body.get("live")?.as_bool()?,
            }),
        };
        Some(Hello {
            protocol: u32::try_from(number("protocol")?).ok()?,
            rperf: text("rperf")?,
            ruby: text("ruby")?,
            pid: i32::try_from(number("pid")?).ok()?,
            start: number("start")?,
            program: text("program")?,
            // Older programs don't say them.
            roots: directories("roots"),
            rperf_directories: directories("rperf_directories"),
            uptime_ns: match body.get("uptime_ns")? {
                Value::Null => None,
                number => Some(number.as_u64()?),
            },
            cpu_ns: number("cpu_ns")?,
            clock_ns: number("clock_ns")?,
            session,
            tcp: match body.get("tcp")? {
                Value::Null => None,
                number => Some(u16::try_from(number.as_u64()?).ok()?),
            },
            clients: u32::try_from(number("clients")?).ok()?,
            silent_ns: number("silent_ns").unwrap_or(0),
            keeper: body.get("keeps_gvl").and_then(keeper),
        })
    }
}

fn keeper(body: &Value) -> Option<Keeper> {
    Some(Keeper {
        tid: i32::try_from(body.get("tid")?.as_u64()?).ok()?,
        state: fit(body.get("state")?.as_str()?),
    })
}

fn fit(text: &str) -> String {
    text.chars().take(MAX_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            protocol: PROTOCOL,
            rperf: "0.1.0".into(),
            ruby: "3.4.5".into(),
            pid: 7,
            start: 5,
            program: "puma".into(),
            roots: vec!["/srv/shop".into()],
            rperf_directories: vec!["/opt/rperf/lib".into()],
            uptime_ns: Some(9),
            cpu_ns: 8,
            clock_ns: 10,
            session: None,
            tcp: Some(6060),
            clients: 1,
            silent_ns: 3,
            keeper: Some(Keeper {
                tid: 9,
                state: "sleep".into(),
            }),
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        let session = Session {
            mode: "wall".into(),
            frequency: 99,
            is_live: true,
        };
        for session in [None, Some(session)] {
            let hello = Hello { session, ..hello() };
            let mut body = hello.to_json();
            body["new"] = json!("of a later version");
            assert_eq!(Hello::from_json(&body), Some(hello));
        }
    }

    #[test]
    fn it_is_what_other_versions_know() {
        let session = Session {
            mode: "wall".into(),
            frequency: 99,
            is_live: true,
        };
        let all = Hello {
            session: Some(session),
            ..hello()
        };
        let least = Hello {
            roots: Vec::new(),
            uptime_ns: None,
            tcp: None,
            keeper: None,
            ..hello()
        };
        for (hello, golden) in [
            (all, include_str!("../golden/hello.json")),
            (least, include_str!("../golden/least_hello.json")),
        ] {
            assert_eq!(format!("{}\n", hello.to_json()), golden);
        }
    }

    #[test]
    fn long_texts_are_cut_off() {
        let hello = Hello {
            program: "\u{301}".repeat(100_000),
            uptime_ns: None,
            ..hello()
        };
        let found = Hello::from_json(&hello.to_json()).expect("one");
        assert_eq!(found.program.chars().count(), MAX_TEXT);
        assert_eq!(found.uptime_ns, None);
    }

    #[test]
    fn what_lacks_something_or_has_other_types_is_none() {
        let session = Session {
            mode: "cpu".into(),
            frequency: 1,
            is_live: false,
        };
        let hello = Hello {
            session: Some(session),
            ..hello()
        };
        let whole = hello.to_json();
        let keys = whole.as_object().expect("an object").keys();
        // Ports of versions before don't say how long they are silent, nor why, nor where files lie.
        let newer = ["silent_ns", "keeps_gvl", "roots", "rperf_directories"];
        for key in keys.filter(|key| !newer.contains(&key.as_str())) {
            let mut body = whole.clone();
            body.as_object_mut().expect("an object").remove(key);
            assert_eq!(Hello::from_json(&body), None, "without {key}");
            body[key] = json!([1]);
            assert_eq!(Hello::from_json(&body), None, "odd {key}");
        }
        assert_eq!(Hello::from_json(&json!([])), None);
    }
}
