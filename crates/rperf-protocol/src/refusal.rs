//! What a port says where it doesn't do what it was asked for. `rperf serve` says it in the same
//! way.

use crate::PROTOCOL;
use crate::json::{self, NotAReply};
use crate::text::fit;
use serde::{Deserialize, Serialize};

/// Characters of each text that are kept.
const MAX_TEXT: usize = 500;

/// Why there is no answer, as clients decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request can't be understood, or is too long.
    BadRequest,
    /// A value in the query is none that there is.
    BadValue,
    /// The head of the request has too many bytes.
    TooLong,
    /// The request has a body.
    HasBody,
    /// The request took too long to come.
    TooSlow,
    /// The token is missing, or isn't the right one.
    NeedsToken,
    /// The client may not ask.
    Forbidden,
    /// There is no such path.
    NotFound,
    /// The path is asked for by another method.
    WrongMethod,
    /// There is no such profile of a running program.
    NoSuchProfile,
    /// No session runs of which there could be an answer.
    NoSession,
    /// Another session runs than the one that was asked for.
    OtherSession,
    /// The session that runs traces calls.
    Tracing,
    /// There are as many clients, or profiles under way, as there may be.
    Busy,
    /// A look at the objects is under way, or was over too short a time ago.
    TooSoon,
    /// The VM doesn't answer.
    Silent,
    /// The program couldn't do it this time.
    Failed,
    /// The answer can't be written.
    Internal,
    /// The session is why, as an older program says.
    #[serde(skip_deserializing)]
    OlderConflict,
    /// There is no answer yet, as an older program says.
    #[serde(skip_deserializing)]
    OlderNotYet,
    /// Another reason, of a program of another version.
    #[default]
    #[serde(other)]
    Unknown,
}

impl Code {
    /// HTTP's number for it.
    pub fn status(self) -> u16 {
        match self {
            Code::BadRequest | Code::BadValue => 400,
            Code::NeedsToken => 401,
            Code::Forbidden => 403,
            Code::NotFound => 404,
            Code::WrongMethod => 405,
            Code::TooSlow => 408,
            Code::NoSession | Code::OtherSession | Code::Tracing | Code::OlderConflict => 409,
            Code::HasBody => 413,
            Code::TooLong => 431,
            Code::Internal | Code::Unknown => 500,
            Code::NoSuchProfile => 501,
            Code::Busy | Code::TooSoon | Code::Silent | Code::Failed | Code::OlderNotYet => 503,
        }
    }

    /// The code of a program that says none, or one that isn't known here.
    fn of_status(status: u16) -> Self {
        match status {
            409 => Code::OlderConflict,
            503 => Code::OlderNotYet,
            _ => Code::Unknown,
        }
    }

    /// Whether it is that no session runs, or none of which there could be this answer.
    pub fn lacks_session(self) -> bool {
        matches!(self, Code::NoSession | Code::Tracing | Code::OlderConflict)
    }

    /// Whether it is that another session runs already.
    pub fn has_other_session(self) -> bool {
        matches!(self, Code::OtherSession | Code::OlderConflict)
    }

    /// Whether it is the VM that had no answer, and may have one later.
    pub fn is_of_vm(self) -> bool {
        matches!(self, Code::Silent | Code::Failed | Code::OlderNotYet)
    }
}

/// The body of such an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{error} ({hint})")]
pub struct Refusal {
    /// Why.
    #[serde(default)]
    pub code: Code,
    /// What is wrong.
    #[serde(default, deserialize_with = "fit::<_, MAX_TEXT>")]
    pub error: String,
    /// What to do about it.
    #[serde(default, deserialize_with = "fit::<_, MAX_TEXT>")]
    pub hint: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(code: Code, error: impl Into<String>, hint: impl Into<String>) -> Self {
        Refusal {
            code,
            error: error.into(),
            hint: hint.into(),
        }
    }

    /// The refusal in `body`, which came with this HTTP status.
    pub fn read(status: u16, body: &[u8]) -> Result<Self, NotAReply> {
        let mut refusal: Refusal = json::read(body)?;
        if refusal.code == Code::Unknown {
            refusal.code = Code::of_status(status);
        }
        Ok(refusal)
    }

    /// The body of the answer.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Body<'a> {
            #[serde(flatten)]
            refusal: &'a Refusal,
            protocol: u32,
        }
        json::written(&Body {
            refusal: self,
            protocol: PROTOCOL,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_go_by_the_code_or_by_the_status_of_older_programs() {
        let read = |status, body: &str| Refusal::read(status, body.as_bytes());
        let code = |status, body| read(status, body).map(|refusal| refusal.code);
        let refusal = Refusal::new(Code::Tracing, "no", "yes");
        assert_eq!(read(200, &refusal.to_json()), Ok(refusal));
        let older = r#"{"error":"no","hint":"yes","protocol":1}"#;
        assert_eq!(code(409, older), Ok(Code::OlderConflict));
        assert_eq!(code(503, older), Ok(Code::OlderNotYet));
        assert_eq!(code(404, older), Ok(Code::Unknown));
        let newer = r#"{"code":"of_a_later_version","error":"no","more":[]}"#;
        assert_eq!(code(503, newer), Ok(Code::OlderNotYet));
        assert_eq!(read(503, newer).map(|it| it.hint), Ok(String::new()));
        for odd in ["", "7", "{", r#"{"error":1}"#] {
            assert_eq!(read(503, odd), Err(NotAReply), "{odd}");
        }
        let long = format!(r#"{{"error":"{}"}}"#, "é".repeat(9000));
        let found = read(400, &long).expect("a refusal");
        assert_eq!(found.error.chars().count(), MAX_TEXT);
    }
}
