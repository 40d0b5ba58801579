//! What a port says of its program without asking the VM: the answer to `/v1/hello`. Any thread.

use crate::text::{cut, fit};
use rperf_model::{Mode, SessionMode};
use rperf_report::terminal_text::shown;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Display, Formatter, Result as FmtResult};
use std::time::Duration;

/// Characters of a text that are kept; a command line is the longest.
const MAX_TEXT: usize = 4096;

/// Directories of each kind that are kept.
const MAX_DIRECTORIES: usize = 16;

/// The mode of a session in a program of whichever version. On the wire it is the mode's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyMode {
    /// A mode that is known here.
    Known(SessionMode),
    /// A word of a later version.
    Other(String),
}

impl From<Mode> for AnyMode {
    fn from(mode: Mode) -> Self {
        Self::Known(mode.into())
    }
}

impl Display for AnyMode {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        formatter.write_str(match self {
            Self::Known(mode) => mode.name(),
            Self::Other(word) => word,
        })
    }
}

impl Serialize for AnyMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AnyMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = fit::<_, MAX_TEXT>(deserializer)?;
        Ok(match SessionMode::from_name(&word) {
            Some(mode) => Self::Known(mode),
            None => Self::Other(word),
        })
    }
}

/// Who has begun a session. On the wire it is whether clients have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "bool", into = "bool")]
pub enum Beginner {
    /// The program, or whoever has it profiled as a whole.
    #[default]
    Program,
    /// Clients of the port: the session ends with them.
    Clients,
}

impl Beginner {
    /// Whether it is clients of the port.
    pub fn is_clients(self) -> bool {
        self == Self::Clients
    }
}

impl From<bool> for Beginner {
    fn from(are_clients: bool) -> Self {
        match are_clients {
            true => Self::Clients,
            false => Self::Program,
        }
    }
}

impl From<Beginner> for bool {
    fn from(beginner: Beginner) -> Self {
        beginner.is_clients()
    }
}

/// A profiling session that runs in the program; also the answer to `/v1/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Samples per second; 0 if calls are traced.
    pub frequency: u32,
    /// What the session does.
    pub mode: AnyMode,
}

impl Session {
    /// Whether calls are traced.
    pub fn is_trace(&self) -> bool {
        self.mode == AnyMode::Known(SessionMode::Trace)
    }
}

/// A thread that keeps the GVL while the VM is asked in vain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GvlHolder {
    /// `running`, or the system call in which it waits; empty if that isn't known.
    #[serde(deserialize_with = "fit::<_, MAX_TEXT>")]
    pub state: String,
    /// The number of its native thread.
    pub tid: i32,
}

impl GvlHolder {
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Connections to the port, with the one that asks.
    pub clients: u32,
    /// When `cpu_ns` was read, on a clock that never goes back.
    pub clock_ns: u64,
    /// The CPU time of all its threads.
    pub cpu_ns: u64,
    /// Who has had the GVL for all of `silent_ns`, if that is known.
    #[serde(default, rename = "keeps_gvl")]
    pub holder: Option<GvlHolder>,
    /// Who has begun the session; the program if there is none.
    #[serde(default, rename = "live")]
    pub beginner: Beginner,
    /// The process's number, as it sees it.
    pub pid: i32,
    /// Its command line, or the title that it has given itself.
    #[serde(deserialize_with = "fit::<_, MAX_TEXT>")]
    pub program: String,
    /// The version of the protocol.
    pub protocol: u32,
    /// The directories that its own files belong to; empty if they aren't known.
    #[serde(default, deserialize_with = "directories")]
    pub roots: Vec<String>,
    /// The version of rperf.
    #[serde(deserialize_with = "fit::<_, MAX_TEXT>")]
    pub rperf: String,
    /// The directories that have rperf's files.
    #[serde(default, deserialize_with = "directories")]
    pub rperf_directories: Vec<String>,
    /// The version of Ruby.
    #[serde(deserialize_with = "fit::<_, MAX_TEXT>")]
    pub ruby: String,
    /// The session that runs.
    pub session: Option<Session>,
    /// For how long the VM has been asked for something without an answer; 0: it hasn't.
    #[serde(default)]
    pub silent_ns: u64,
    /// When it started, in the kernel's ticks.
    pub start: u64,
    /// The number of its TCP port at the loopback address, if it has one.
    pub tcp: Option<u16>,
    /// For how long it has run, where the system tells.
    pub uptime_ns: Option<u64>,
}

fn directories<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let all = Vec::<String>::deserialize(deserializer)?;
    let kept = all.iter().take(MAX_DIRECTORIES);
    Ok(kept.map(|it| cut(it, MAX_TEXT)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PROTOCOL;
    use crate::json::{NotAReply, read, written};
    use serde_json::{Value, json};

    fn hello() -> Hello {
        Hello {
            clients: 1,
            clock_ns: 10,
            cpu_ns: 8,
            holder: Some(GvlHolder {
                state: "sleep".into(),
                tid: 9,
            }),
            beginner: Beginner::Clients,
            pid: 7,
            program: "puma".into(),
            protocol: PROTOCOL,
            roots: vec!["/srv/shop".into()],
            rperf: "0.1.0".into(),
            rperf_directories: vec!["/opt/rperf/lib".into()],
            ruby: "3.4.5".into(),
            session: Some(Session {
                frequency: 99,
                mode: Mode::Wall.into(),
            }),
            silent_ns: 3,
            start: 5,
            tcp: Some(6060),
            uptime_ns: Some(9),
        }
    }

    fn least() -> Hello {
        Hello {
            holder: None,
            beginner: Beginner::Program,
            roots: Vec::new(),
            session: None,
            tcp: None,
            uptime_ns: None,
            ..hello()
        }
    }

    #[test]
    fn it_is_what_other_versions_know() {
        for (hello, golden) in [
            (hello(), include_str!("../golden/hello.json")),
            (least(), include_str!("../golden/least_hello.json")),
        ] {
            assert_eq!(written(&hello) + "\n", golden);
            assert_eq!(read(golden.as_bytes()), Ok(hello));
        }
        let session = written(&hello().session) + "\n";
        assert_eq!(session, include_str!("../golden/session.json"));
    }

    #[test]
    fn modes_of_other_versions_keep_their_words() {
        let found = |mode: &str| {
            let body = json!({ "frequency": 7, "mode": mode }).to_string();
            let session: Session = read(body.as_bytes()).expect("a session");
            assert_eq!(written(&session), body, "{mode}");
            (session.mode.to_string(), session.is_trace(), session.mode)
        };
        for (mode, known) in [
            ("cpu", SessionMode::Sampling(Mode::Cpu)),
            ("wall", SessionMode::Sampling(Mode::Wall)),
            ("trace", SessionMode::Trace),
        ] {
            let is_trace = mode == "trace";
            assert_eq!(found(mode), (mode.into(), is_trace, AnyMode::Known(known)));
        }
        for mode in ["real", "Trace", ""] {
            let other = AnyMode::Other(mode.into());
            assert_eq!(found(mode), (mode.into(), false, other));
        }
        let long = json!({ "frequency": 7, "mode": "x".repeat(9000) }).to_string();
        let session: Session = read(long.as_bytes()).expect("a session");
        assert_eq!(session.mode, AnyMode::Other("x".repeat(MAX_TEXT)));
    }

    #[test]
    fn long_texts_are_cut_off() {
        let hello = Hello {
            program: "\u{301}".repeat(100_000),
            roots: vec!["x".repeat(9000); 99],
            ..hello()
        };
        let found: Hello = read(written(&hello).as_bytes()).expect("one");
        assert_eq!(found.program.chars().count(), MAX_TEXT);
        assert_eq!(found.roots, vec!["x".repeat(MAX_TEXT); MAX_DIRECTORIES]);
    }

    #[test]
    fn what_lacks_something_or_has_other_types_is_none() {
        let found = |body: &Value| read::<Hello>(body.to_string().as_bytes());
        let whole = serde_json::to_value(hello()).expect("JSON");
        let mut least = whole.clone();
        for key in whole.as_object().expect("an object").keys() {
            let mut body = whole.clone();
            body[key] = json!([1]);
            assert_eq!(found(&body), Err(NotAReply), "odd {key}");
            body.as_object_mut().expect("an object").remove(key);
            // Programs may have none of it, or be of versions that don't say it.
            match &**key {
                "keeps_gvl" | "live" | "roots" | "rperf_directories" | "session" | "silent_ns"
                | "tcp" | "uptime_ns" => {
                    least.as_object_mut().expect("an object").remove(key);
                }
                _ => assert_eq!(found(&body), Err(NotAReply), "without {key}"),
            }
        }
        least["new"] = json!("of a later version");
        let expected = Hello {
            rperf_directories: Vec::new(),
            silent_ns: 0,
            ..self::least()
        };
        assert_eq!(found(&least), Ok(expected));
        assert_eq!(found(&json!([])), Err(NotAReply));
    }
}
