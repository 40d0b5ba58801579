//! What a server says to a profile, and what follows from it. For the command, and for programs that
//! push their own. Any thread.

use super::destination::Kind;
use rperf_format::otlp;
use rperf_protocol::shown;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// How long is waited after a failure: twice as long after each more.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The longest time that a server may ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// What came back.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP's status, or 0 if nothing came back.
    pub status: u16,
    /// A line of what was said.
    pub said: String,
    /// All that was said.
    pub body: Vec<u8>,
    /// When to come again.
    pub retry_after: Option<Duration>,
}

/// What follows.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is there.
    Taken,
    /// It is there, but not all of it if the number is above 0.
    TakenInPart(u64, String),
    /// It will not be taken later either.
    Refused(String),
    /// It may be taken later.
    Later(String),
}

impl Answer {
    /// There was none, for this reason.
    pub fn nothing(why: String) -> Self {
        Answer {
            status: 0,
            said: why,
            body: Vec::new(),
            retry_after: None,
        }
    }

    /// By the rules of this kind of server.
    pub fn verdict(&self, kind: Kind) -> Verdict {
        let refusal = match kind {
            Kind::Otlp if self.status >= 400 => otlp::refusal(&self.body),
            _ => None,
        };
        let said = refusal.unwrap_or_else(|| self.said.clone());
        let said = shown(&said).into_owned();
        let why = match self.status {
            0 => said,
            status => format!("HTTP {status} {said}"),
        };
        match (self.status, kind) {
            (200..=299, Kind::Otlp) => match otlp::partial_success(&self.body) {
                Some((count, why)) => Verdict::TakenInPart(count, shown(&why).into_owned()),
                None => Verdict::Taken,
            },
            (200..=299, Kind::Pyroscope) => Verdict::Taken,
            (0 | 429 | 502..=504, _) | (408 | 500.., Kind::Pyroscope) => Verdict::Later(why),
            _ => Verdict::Refused(why),
        }
    }

    /// How long to wait after so many failures.
    pub fn pause(&self, failures: u32) -> Duration {
        match self.retry_after {
            Some(time) => time.clamp(FIRST_PAUSE / 2, LONGEST_ASKED),
            None => pause(failures, RandomState::new().hash_one(failures)),
        }
    }
}

/// The pause after so many failures in a row. It is partly random, because clients are not to come
/// all at once when a server comes back.
fn pause(failures: u32, random: u64) -> Duration {
    let doubled = FIRST_PAUSE * 2_u32.saturating_pow(failures.saturating_sub(1).min(10));
    let part = (random % 1000) as f64 / 1000.0;
    doubled.min(LONGEST_PAUSE).mul_f64(0.5 + part / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, body: &[u8]) -> Answer {
        Answer {
            status,
            said: "said\u{1b}".into(),
            body: body.into(),
            retry_after: None,
        }
    }

    #[test]
    fn the_pause_grows_up_to_a_minute_and_differs() {
        for (failures, seconds) in [(1, 1), (2, 2), (3, 4), (7, 60), (1000, 60)] {
            let longest = Duration::from_secs(seconds);
            assert_eq!(pause(failures, 0), longest / 2);
            assert!((longest * 9 / 10..=longest).contains(&pause(failures, 999)));
        }
    }

    #[test]
    fn a_server_may_say_when_to_come_again() {
        let after = |seconds: f64| {
            let retry_after = Some(Duration::from_secs_f64(seconds));
            let answer = Answer {
                retry_after,
                ..answer(503, b"")
            };
            answer.pause(1).as_secs_f64()
        };
        assert_eq!([after(0.0), after(7.0), after(1e9)], [0.5, 7.0, 3600.0]);
    }

    #[test]
    fn each_kind_of_server_has_its_own_statuses_that_pass() {
        let later = |kind| {
            let all = [0, 400, 404, 408, 413, 429, 500, 501, 502, 503, 504, 599];
            let is_later = |status: &u16| {
                let verdict = answer(*status, b"").verdict(kind);
                assert!(!matches!(verdict, Verdict::Taken));
                matches!(verdict, Verdict::Later(_))
            };
            all.into_iter().filter(is_later).collect::<Vec<_>>()
        };
        assert_eq!(later(Kind::Otlp), [0, 429, 502, 503, 504]);
        let all = [0, 408, 429, 500, 501, 502, 503, 504, 599];
        assert_eq!(later(Kind::Pyroscope), all);
    }

    #[test]
    fn what_a_collector_says_is_in_its_body() {
        let otlp = |status, body| answer(status, body).verdict(Kind::Otlp);
        assert_eq!(otlp(200, b""), Verdict::Taken);
        let partial = b"\x0a\x07\x08\x02\x12\x03odd";
        assert_eq!(otlp(200, partial), Verdict::TakenInPart(2, "odd".into()));
        let refused = otlp(400, b"\x08\x03\x12\x03odd");
        assert_eq!(refused, Verdict::Refused("HTTP 400 odd".into()));
        let Verdict::Refused(why) = otlp(404, b"<html>") else {
            panic!("refused")
        };
        assert!(why.starts_with("HTTP 404 said") && !why.contains('\u{1b}'));
    }
}
