//! The queue and its retries: which profile is sent when, which are given up, and what is said of
//! it. No thread, socket or clock; driven by `rperf push`, and by the thread of `Rperf.push`.

use crate::answer::{Answer, Verdict};
use crate::destination::{Destination, Kind};
use std::collections::VecDeque;
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;
use std::time::Duration;

/// Profiles that wait; the oldest is dropped for one more.
const MOST: usize = 4;

/// Failures in a row after which all that wait are given up, once there are no new ones.
const TRIES_AT_END: u32 = 3;

/// The bytes that are sent for a profile.
pub type Body = Arc<Vec<u8>>;

/// The side whose profiles are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// `rperf push`, which says at its end how many were lost.
    Command,
    /// The program itself, which has no last line: it says so with the next profile that is taken.
    Program,
}

/// How many profiles were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Profiles that the server has.
    pub sent: u64,
    /// Profiles, among those that were sent, of which the server refused a part.
    pub in_part: u64,
    /// Profiles that were refused or dropped.
    pub lost: u64,
}

/// What is to be done.
#[derive(Debug)]
pub struct Step {
    /// Lines for the user, before that.
    pub lines: Vec<String>,
    /// The next action.
    pub next: Next,
}

/// The next action of whoever sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this profile, and come with the answer.
    Send(Body),
    /// Come again after this time, or when there is one more profile; `None`: only then.
    Wait(Option<Duration>),
    /// Nothing waits, and there will be no more.
    End,
}

/// The failures since the last profile that was taken, and what follows from them. Failures without
/// new profiles are among all failures in a row.
#[derive(Debug, Default)]
struct Retries {
    next_try: Duration,
    /// Failures in a row.
    failures: u32,
    /// Failures in a row since there are no new profiles.
    failures_at_end: u32,
}

impl Retries {
    /// How long nothing is sent from `now` on.
    fn pause(&self, now: Duration) -> Duration {
        self.next_try.saturating_sub(now)
    }

    /// There was one failure more. `is_at_end`: there are no new profiles.
    fn note_failure(&mut self, is_at_end: bool) {
        self.failures += 1;
        self.failures_at_end += u32::from(is_at_end);
    }

    /// The next try comes after the pause that follows from `answer`.
    fn put_off(&mut self, answer: &Answer, now: Duration) {
        self.next_try = now + answer.pause(self.failures);
    }

    /// Whether it has been tried often enough without new profiles.
    fn are_over(&self) -> bool {
        self.failures_at_end >= TRIES_AT_END
    }

    /// A profile was taken. Returns whether there were failures before.
    fn note_success(&mut self) -> bool {
        self.failures_at_end = 0;
        std::mem::take(&mut self.failures) > 0
    }
}

/// Profiles on their way to one server.
#[derive(Debug)]
pub struct Sender {
    owner: Owner,
    kind: Kind,
    /// The server, for messages.
    shown: String,
    waiting: VecDeque<Body>,
    /// The profile that was to be sent last, until there is an answer. It isn't among those that wait.
    under_way: Option<Body>,
    retries: Retries,
    is_closed: bool,
    is_hurried: bool,
    counts: Counts,
    /// The profiles that were lost when one was taken last.
    lost_before: u64,
    last_said: String,
}

impl Sender {
    /// A sender without profiles.
    pub fn new(destination: &Destination, owner: Owner) -> Self {
        Sender {
            owner,
            kind: destination.kind,
            shown: destination.shown.clone(),
            waiting: VecDeque::new(),
            under_way: None,
            retries: Retries::default(),
            is_closed: false,
            is_hurried: false,
            counts: Counts::default(),
            lost_before: 0,
            last_said: String::new(),
        }
    }

    /// Adds a profile to those that wait. If there are too many, the oldest one is lost.
    pub fn add(&mut self, body: Vec<u8>) {
        if self.waiting.len() == MOST {
            self.waiting.pop_front();
            self.counts.lost += 1;
        }
        self.waiting.push_back(Arc::new(body));
    }

    /// There will be no more.
    pub fn close(&mut self) {
        self.is_closed = true;
    }

    /// Nothing is waited for any more: what fails now is given up, with all that wait.
    pub fn hurry(&mut self) {
        self.is_hurried = true;
    }

    /// What was sent and lost so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What is to be done now, with the answer to the profile that was to be sent, if that has come to
    /// an end. `now` is the time since any moment, always of one clock.
    pub fn step(&mut self, now: Duration, answer: Option<&Answer>) -> Step {
        let texts = match (self.under_way.take(), answer) {
            (Some(body), Some(answer)) => self.judge(body, answer, now),
            (Some(body), None) => {
                self.put_back(body);
                Vec::new()
            }
            (None, _) => Vec::new(),
        };
        let lines = texts.into_iter().filter_map(|text| {
            let line = format!("{}: {text}", self.shown);
            self.once(line)
        });
        Step {
            lines: lines.collect(),
            next: self.next(now),
        }
    }

    /// The line, unless it is the one that was said last.
    pub fn once(&mut self, line: String) -> Option<String> {
        if self.last_said == line {
            return None;
        }
        self.last_said.clone_from(&line);
        Some(line)
    }

    fn next(&mut self, now: Duration) -> Next {
        let pause = self.retries.pause(now);
        match self.waiting.pop_front() {
            Some(body) if pause.is_zero() || self.is_hurried => {
                self.under_way = Some(Arc::clone(&body));
                Next::Send(body)
            }
            Some(body) => {
                self.waiting.push_front(body);
                Next::Wait(Some(pause))
            }
            None if self.is_closed => Next::End,
            None => Next::Wait(None),
        }
    }

    /// What is said of the answer.
    fn judge(&mut self, body: Body, answer: &Answer, now: Duration) -> Vec<String> {
        match answer.verdict(self.kind) {
            Verdict::Taken => self.taken(None),
            Verdict::TakenInPart(0, why) => {
                self.taken(Some(format!("it takes a profile, and says: {why}")))
            }
            Verdict::TakenInPart(count, why) => {
                self.counts.in_part += 1;
                self.taken(Some(format!(
                    "it refuses a part of a profile ({count} of its profiles): {why}"
                )))
            }
            Verdict::Refused(why) => {
                self.counts.lost += 1;
                vec![format!("it refuses a profile: {why}")]
            }
            Verdict::Later(why) => {
                self.failed(body, answer, now);
                let more = match self.owner {
                    Owner::Command => "; trying again",
                    Owner::Program => "",
                };
                vec![format!("it takes no profile: {why}{more}")]
            }
        }
    }

    fn taken(&mut self, remark: Option<String>) -> Vec<String> {
        self.counts.sent += 1;
        let lost = self.counts.lost - self.lost_before;
        self.lost_before = self.counts.lost;
        let has_failed = self.retries.note_success();
        let again = match self.owner {
            Owner::Program if lost > 0 => {
                let were = if lost == 1 { "was" } else { "were" };
                Some(format!("it takes profiles again ({lost} {were} lost)"))
            }
            _ => has_failed.then(|| "it takes profiles again".into()),
        };
        let texts: Vec<_> = again.into_iter().chain(remark).collect();
        match self.owner {
            Owner::Command => texts,
            Owner::Program if texts.is_empty() => {
                self.last_said.clear();
                texts
            }
            Owner::Program => vec![texts.join("; ")],
        }
    }

    fn failed(&mut self, body: Body, answer: &Answer, now: Duration) {
        self.retries.note_failure(self.is_closed);
        self.put_back(body);
        if self.is_hurried || self.retries.are_over() {
            self.counts.lost += self.waiting.len() as u64;
            self.waiting.clear();
        } else {
            self.retries.put_off(answer, now);
        }
    }

    /// The profile is older than all that wait.
    fn put_back(&mut self, body: Body) {
        if self.waiting.len() == MOST {
            self.counts.lost += 1;
        } else {
            self.waiting.push_front(body);
        }
    }
}

impl Counts {
    /// Whether something was sent, and nothing is missing at the server.
    pub fn is_all(&self) -> bool {
        self.sent > 0 && self.lost == 0 && self.in_part == 0
    }
}

impl Display for Counts {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let plural = if self.sent == 1 { "" } else { "s" };
        write!(f, "{} profile{plural} sent", self.sent)?;
        if self.in_part > 0 {
            write!(f, ", {} of them in part", self.in_part)?;
        }
        if self.lost > 0 {
            write!(f, ", {} lost", self.lost)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::destination::{Names, Wish};

    const SECOND: Duration = Duration::from_secs(1);

    fn sender(owner: Owner) -> Sender {
        let wish = Wish {
            kind: Kind::Otlp,
            names: Names {
                url: "to",
                label: "label",
                header: "header",
            },
            url: "http://a",
            service: None,
            labels: &[],
            headers: &[],
        };
        Sender::new(&Destination::of(&wish).expect("a server"), owner)
    }

    fn answer(status: u16) -> Answer {
        Answer {
            status,
            said: "said".into(),
            body: Vec::new(),
            retry_after: Some(SECOND),
        }
    }

    fn in_part() -> Answer {
        Answer {
            body: b"\x0a\x07\x08\x02\x12\x03odd".into(),
            ..answer(200)
        }
    }

    /// The number that is sent as a profile, and what is said before.
    fn sent(sender: &mut Sender, now: Duration, answer: Option<Answer>) -> (Option<u8>, String) {
        let step = sender.step(now, answer.as_ref());
        let number = match step.next {
            Next::Send(body) => Some(body[0]),
            Next::Wait(_) | Next::End => None,
        };
        (number, step.lines.join("\n"))
    }

    fn next(sender: &mut Sender) -> Next {
        sender.step(Duration::ZERO, None).next
    }

    #[test]
    fn the_oldest_are_dropped_and_counted() {
        let mut sender = sender(Owner::Command);
        assert_eq!(next(&mut sender), Next::Wait(None));
        (0..6).for_each(|number| sender.add(vec![number]));
        assert_eq!(sender.counts().lost, 2);
        assert_eq!(next(&mut sender), Next::Send(vec![2].into()));
        // Without an answer it is sent again.
        assert_eq!(next(&mut sender), Next::Send(vec![2].into()));
        sender.add(vec![6]);
        // What is under way isn't among the four.
        assert_eq!(sender.counts().lost, 2);
        assert_eq!(next(&mut sender), Next::Send(vec![3].into()));
        assert_eq!(sender.counts().lost, 3);
        for number in 4..7 {
            let taken = Some(answer(200));
            let (found, said) = sent(&mut sender, Duration::ZERO, taken);
            assert_eq!((found, &*said), (Some(number), ""));
        }
        sender.close();
        let end = sender.step(Duration::ZERO, Some(&answer(200)));
        assert_eq!((end.next, sender.counts().sent), (Next::End, 4));
    }

    #[test]
    fn after_a_failure_the_profile_waits_for_its_time() {
        let mut sender = sender(Owner::Command);
        sender.add(vec![1]);
        sender.step(SECOND * 5, None);
        let failed = sender.step(SECOND * 5, Some(&answer(503)));
        let line = "http://a: it takes no profile: HTTP 503 said; trying again";
        assert_eq!(failed.lines, [line]);
        assert_eq!(failed.next, Next::Wait(Some(SECOND)));
        sender.add(vec![2]);
        let early = sender.step(SECOND * 11 / 2, None);
        assert_eq!(early.next, Next::Wait(Some(SECOND / 2)));
        assert_eq!(sent(&mut sender, SECOND * 6, None).0, Some(1));
        // What was said last isn't said again.
        let again = sender.step(SECOND * 6, Some(&answer(503)));
        assert!(again.lines.is_empty());
        sender.hurry();
        assert_eq!(sent(&mut sender, SECOND * 6, None).0, Some(1));
        sender.close();
        let end = sender.step(SECOND * 6, Some(&answer(503)));
        assert_eq!(end.next, Next::End);
        assert_eq!(sender.counts().to_string(), "0 profiles sent, 2 lost");
    }

    #[test]
    fn once_there_are_no_new_ones_it_is_tried_three_times() {
        let mut sender = sender(Owner::Command);
        sender.add(vec![1]);
        sent(&mut sender, SECOND, None);
        sent(&mut sender, SECOND, Some(answer(503)));
        sender.close();
        for round in 2..5 {
            let now = SECOND * round * 10;
            assert_eq!(sent(&mut sender, now, None).0, Some(1), "{round}");
            let next = sender.step(now, Some(&answer(503))).next;
            assert_eq!(next == Next::End, round == 4, "{round}");
        }
        assert_eq!((sender.counts().lost, sender.counts().sent), (1, 0));
    }

    #[test]
    fn the_command_counts_at_its_end_and_a_program_with_the_next_that_is_taken() {
        for (owner, expected) in [
            (
                Owner::Command,
                [
                    "http://a: it refuses a profile: HTTP 400 said",
                    "http://a: it takes no profile: HTTP 503 said; trying again",
                    "http://a: it takes profiles again\nhttp://a: it refuses a part of a profile (2 of its profiles): odd",
                    "",
                    "",
                ],
            ),
            (
                Owner::Program,
                [
                    "http://a: it refuses a profile: HTTP 400 said",
                    "http://a: it takes no profile: HTTP 503 said",
                    "http://a: it takes profiles again (1 was lost); it refuses a part of a profile (2 of its profiles): odd",
                    "",
                    "http://a: it refuses a part of a profile (2 of its profiles): odd",
                ],
            ),
        ] {
            let mut sender = sender(owner);
            (0..4).for_each(|number| sender.add(vec![number]));
            sender.step(Duration::ZERO, None);
            let answers = [answer(400), answer(503), in_part(), answer(200), in_part()];
            let said = answers.map(|answer| {
                let said = sent(&mut sender, SECOND, Some(answer)).1;
                // After a pause the profile is sent again.
                if sender.under_way.is_none() {
                    sent(&mut sender, SECOND * 2, None);
                }
                said
            });
            assert_eq!(said, expected);
            let counts = sender.counts();
            assert_eq!(
                counts.to_string(),
                "3 profiles sent, 2 of them in part, 1 lost"
            );
            assert!(!counts.is_all());
        }
    }
}
