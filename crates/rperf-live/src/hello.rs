//! What a port says of its program without asking the VM: the answer to `/v1/hello`. Made by the
//! port, read by the client; any thread.

use crate::message::PROTOCOL;
use serde_json::{Value, json};

/// A profiling session that runs in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// `cpu`, `wall` or `trace`.
    pub mode: String,
    /// Samples per second; 0 if calls are traced.
    pub frequency: u32,
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
    /// For how long it has run.
    pub uptime_ns: u64,
    /// The CPU time of all its threads.
    pub cpu_ns: u64,
    /// When `cpu_ns` was read, on a clock that never goes back.
    pub clock_ns: u64,
    /// The session that runs.
    pub session: Option<Session>,
    /// Connections to the port, with the one that asks.
    pub clients: u32,
}

impl Hello {
    /// As the body of a response.
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
            "uptime_ns": self.uptime_ns,
            "cpu_ns": self.cpu_ns,
            "clock_ns": self.clock_ns,
            "session": session,
            "clients": self.clients,
        })
    }

    /// Of such a body; `None` if it is another one. What isn't known is skipped.
    pub fn from_json(body: &Value) -> Option<Self> {
        let text = |key: &str| body.get(key)?.as_str().map(String::from);
        let number = |key: &str| body.get(key)?.as_u64();
        let session = match body.get("session")? {
            Value::Null => None,
            session => Some(Session {
                mode: session.get("mode")?.as_str()?.into(),
                frequency: u32::try_from(session.get("frequency")?.as_u64()?).ok()?,
            }),
        };
        Some(Hello {
            protocol: u32::try_from(number("protocol")?).ok()?,
            rperf: text("rperf")?,
            ruby: text("ruby")?,
            pid: i32::try_from(number("pid")?).ok()?,
            start: number("start")?,
            program: text("program")?,
            uptime_ns: number("uptime_ns")?,
            cpu_ns: number("cpu_ns")?,
            clock_ns: number("clock_ns")?,
            session,
            clients: u32::try_from(number("clients")?).ok()?,
        })
    }
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
            uptime_ns: 9,
            cpu_ns: 8,
            clock_ns: 10,
            session: None,
            clients: 1,
        }
    }

    #[test]
    fn what_is_said_is_understood() {
        let session = Session {
            mode: "wall".into(),
            frequency: 99,
        };
        for session in [None, Some(session)] {
            let hello = Hello { session, ..hello() };
            let mut body = hello.to_json();
            body["new"] = json!("of a later version");
            assert_eq!(Hello::from_json(&body), Some(hello));
        }
    }

    #[test]
    fn what_lacks_something_or_has_other_types_is_none() {
        let whole = hello().to_json();
        for key in whole.as_object().expect("an object").keys() {
            let mut body = whole.clone();
            body.as_object_mut().expect("an object").remove(key);
            assert_eq!(Hello::from_json(&body), None, "without {key}");
            body[key] = json!([1]);
            assert_eq!(Hello::from_json(&body), None, "odd {key}");
        }
        assert_eq!(Hello::from_json(&json!([])), None);
    }
}
