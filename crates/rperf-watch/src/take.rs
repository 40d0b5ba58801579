//! The profile of a stretch of time of a running program, which makes it itself: it is asked for and
//! waited for in steps, and what has been so far is taken in case the program is killed.

mod snapshots;

use crate::condition::{Condition, Event, Lost, Stuck};
use crate::connection::Reply;
use crate::failure::{AskError, Failure};
use crate::patience::{LAST, LATE, STEP};
use crate::program::Program;
use rperf_format::pprof;
use rperf_model::Profile;
use rperf_protocol::ask::{Ask, Wanted};
use snapshots::{Snapshot, Snapshots};
use std::time::{Duration, Instant};

/// Characters of a program's reason that are kept.
const LONGEST_WHY: usize = 100;

/// A profile that is waited for.
pub struct Take {
    /// The program.
    pub program: Program,
    wanted: Wanted,
    /// Bytes of its file at most.
    most: usize,
    /// Another session than one of ours runs.
    is_watching: bool,
    /// The session is one of clients: a helper is in the program, which would answer.
    has_helper: bool,
    asked: Instant,
    begun: Option<Instant>,
    ended_asking: Option<Instant>,
    snapshots: Snapshots,
}

/// What a program has sent. It isn't read yet, because that takes several times the memory.
#[derive(Debug)]
pub struct Content {
    file: Vec<u8>,
    /// The program has ended it early, for this reason.
    ended: Option<String>,
}

impl Take {
    /// Asks for the profile, of at most `most` bytes.
    pub fn begin(mut program: Program, wanted: Wanted, most: usize) -> Result<Self, Failure> {
        let (session, beginner) = (program.hello.session.clone(), program.hello.beginner);
        let is_watching = session.is_some();
        if let Some(session) = session {
            if session.is_trace() {
                return Err(Failure::Traced);
            }
            let is_as_wanted = session == wanted.sampling.into();
            if !beginner.is_clients() || !is_as_wanted {
                program.tell(Event::Watches {
                    session,
                    is_as_wanted,
                });
            }
        }
        program.client().ask(Ask::Profile(wanted), LATE)?;
        let asked = program.now();
        Ok(Take {
            program,
            wanted,
            most,
            is_watching,
            has_helper: !is_watching || beginner.is_clients(),
            asked,
            begun: None,
            ended_asking: None,
            snapshots: Snapshots::none(asked),
        })
    }

    /// Waits a bit for the profile, and says as events why it doesn't come. `None` if it isn't there
    /// yet. It ends as soon as it can if this `ends` it.
    pub fn step(&mut self, ends: bool) -> Result<Option<Content>, Failure> {
        match self.program.client().reply(self.most, STEP) {
            Ok(reply) => return Ok(Some(Content::whole(reply))),
            Err(AskError::Closed) => {
                let why = self.program.end();
                return self.take_so_far(why).map(Some);
            }
            Err(AskError::Silent) if ends => {}
            Err(AskError::Silent) => {
                self.wait();
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        }
        if self.begun().is_none() {
            return Err(Failure::NothingRan);
        }
        let now = self.program.now();
        let since = *self.ended_asking.get_or_insert(now);
        // Several times does no harm.
        self.program.client().end_asking();
        match now.duration_since(since) > LAST {
            true => self.take_so_far(Condition::NoAnswer).map(Some),
            false => Ok(None),
        }
    }

    /// Whether its session hasn't begun, as the program runs no Ruby code, which has been told.
    pub fn is_idle(&mut self) -> bool {
        let may_be = matches!(self.program.condition(), Condition::RunsNoRuby { .. });
        let hello = if may_be && self.begun.is_none() {
            self.program.hello_aside()
        } else {
            None
        };
        hello.is_some_and(|it| it.session.is_none())
    }

    /// When the session was first seen, if it has begun.
    fn begun(&mut self) -> Option<Instant> {
        if self.begun.is_none() {
            let hello = self.program.hello_aside()?;
            self.begun = hello.session.map(|_| self.program.now());
        }
        self.begun
    }

    /// While the profile isn't there yet.
    fn wait(&mut self) {
        if self.program.is_stopped() {
            return;
        }
        let begun = self.begun();
        let now = self.program.now();
        let Some(begun) = begun else {
            let is_known = matches!(self.program.condition(), Condition::RunsNoRuby { .. });
            if now.duration_since(self.asked) > LATE && !is_known {
                let quiet = self.program.quiet();
                self.program.note(quiet);
            }
            return;
        };
        let elapsed = now.duration_since(begun);
        let stuck = self.program.look(self.has_helper);
        if stuck.is_some() || elapsed > self.wanted.time + LATE {
            self.note_silence(stuck);
        }
        let rest = self.wanted.time.saturating_sub(elapsed);
        let asks = !self.is_watching && rest > snapshots::INTERVAL;
        self.snapshots.step(&self.program, self.most, asks);
    }

    /// Notes why there is no answer.
    fn note_silence(&mut self, stuck: Option<Stuck>) {
        if !self.has_helper {
            // Nothing of ours is in the program that would run in between.
            self.program.note(Condition::NoAnswer);
        } else if !matches!(self.program.condition(), Condition::Stuck(_)) {
            let stuck = stuck.or_else(|| self.program.silence());
            self.program
                .note(Condition::Stuck(stuck.unwrap_or_default()));
        }
    }

    fn take_so_far(&mut self, why: Condition) -> Result<Content, Failure> {
        let now = self.program.now();
        let so_far = self.snapshots.take();
        let lost = Lost {
            why,
            elapsed: now.duration_since(self.begun.unwrap_or(self.asked)),
            lacks: so_far.as_ref().map(|it| now.duration_since(it.taken)),
        };
        let Some(Snapshot { file, .. }) = so_far else {
            return Err(Failure::Lost(lost));
        };
        self.program.tell(Event::Lost(lost));
        Ok(Content { file, ended: None })
    }
}

impl Content {
    fn whole(reply: Reply) -> Self {
        let ended = reply
            .ended
            .map(|why| why.chars().take(LONGEST_WHY).collect());
        Content {
            file: reply.body,
            ended,
        }
    }

    /// The profile in it; and an event if the program has ended it early.
    pub fn read(self) -> Result<(Profile, Option<Event>), Failure> {
        let profile = read(&self.file)?;
        let after = Duration::from_nanos(profile.meta.duration_ns);
        let ended = self.ended.map(|why| Event::EndedEarly { why, after });
        Ok((profile, ended))
    }
}

/// The profile in a pprof file that a program has sent.
pub fn read(file: &[u8]) -> Result<Profile, Failure> {
    pprof::read(&mut &*file).map_err(Failure::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patience::STUCK;
    use crate::process::State;
    use crate::scripted::{Answer, Asked, found, hello, program, program_in};
    use rperf_model::{Column, Mode, Schema, SessionMode, ValueType};
    use rperf_protocol::ask::Sampling;
    use rperf_protocol::hello::{AnyMode, GvlHolder, Session};
    use rperf_protocol::measure::Measure;

    const WANTED: Wanted = Wanted {
        time: seconds(10),
        sampling: Sampling {
            mode: Mode::Wall,
            frequency: 100,
            measure: Measure::NOTHING,
        },
    };

    const fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn session(mode: impl Into<SessionMode>, frequency: u32) -> Session {
        Session {
            mode: AnyMode::Known(mode.into()),
            frequency,
        }
    }

    fn begin(program: Program) -> Result<Take, Failure> {
        Take::begin(program, WANTED, 1 << 20)
    }

    /// What comes of it, and what is told, if the user has had enough after `ends`.
    fn result(program: Program, ends: Duration) -> (Result<Content, Failure>, Vec<Event>) {
        let mut take = begin(program).expect("begun");
        let began = take.program.now();
        let mut events = Vec::new();
        loop {
            let step = take.step(take.program.now().duration_since(began) >= ends);
            events.extend(take.program.take_events());
            if let Some(result) = step.transpose() {
                return (result, events);
            }
        }
    }

    /// The session of ours, from half a second on.
    fn ours(asked: Asked, change: impl FnOnce(&mut rperf_protocol::hello::Hello)) -> Answer {
        let session = session(Mode::Wall, 100);
        let has_begun = asked.now >= Duration::from_millis(500);
        hello(has_begun.then_some(&session), |hello| {
            hello.beginner = has_begun.into();
            change(hello);
        })
    }

    #[test]
    fn a_profile_comes_when_its_time_is_over_or_nothing_more_is_asked() {
        for (ends, after, has_snapshots) in [
            (seconds(60), seconds(10), true),
            (seconds(3), seconds(3), true),
            (seconds(3), seconds(3), false),
        ] {
            let program = program(move |asked| match asked.ask {
                Ask::Hello { .. } => ours(asked, |_| {}),
                Ask::Snapshot { .. } => has_snapshots.then(|| Ok(b"so far".to_vec())),
                _ if asked.is_last || asked.now >= seconds(10) => {
                    assert!((asked.now - after).as_millis() < 100, "{asked:?}");
                    found("all")
                }
                _ => None,
            });
            let (content, events) = result(program, ends);
            assert_eq!(content.expect("a profile").file, b"all");
            assert_eq!(events, []);
        }
    }

    #[test]
    fn a_program_that_runs_no_ruby_is_said_once_and_profiles_nothing() {
        let program = program(|asked| match asked.ask {
            Ask::Hello { .. } => hello(None, |hello| {
                hello.clock_ns = asked.now.as_nanos() as u64;
                hello.cpu_ns = hello.clock_ns / 2;
            }),
            _ => None,
        });
        let (content, events) = result(program, seconds(5));
        assert!(matches!(content, Err(Failure::NothingRan)));
        let share_of_cpu = Some(0.5);
        let expected = Event::Is(Condition::RunsNoRuby { share_of_cpu });
        assert_eq!(events, [expected]);
    }

    #[test]
    fn the_thread_that_keeps_the_gvl_is_told_once() {
        let holder = GvlHolder {
            tid: 9,
            state: "sleep".into(),
        };
        let of_hello = holder.clone();
        let program = program(move |asked| match asked.ask {
            Ask::Hello { .. } => ours(asked, |hello| {
                let silence = asked.now.saturating_sub(seconds(2));
                hello.silent_ns = silence.as_nanos() as u64;
                hello.holder = Some(of_hello.clone());
            }),
            Ask::Profile(_) if asked.now >= seconds(10) => found("all"),
            Ask::Snapshot { .. } if asked.now < seconds(2) => found("so far"),
            _ => None,
        });
        let (content, events) = result(program, seconds(60));
        assert!(content.is_ok());
        let [Event::Is(Condition::Stuck(stuck))] = &*events else {
            panic!("{events:?}");
        };
        assert_eq!(stuck.holder, Some(holder));
        assert!(stuck.silence >= STUCK && stuck.silence < seconds(3));
    }

    #[test]
    fn a_silent_program_without_a_helper_of_ours_is_not_called_stuck() {
        let own = session(Mode::Wall, 100);
        let program = program(move |asked| match asked.ask {
            Ask::Hello { looks } => {
                assert!(!looks);
                hello(Some(&own), |_| {})
            }
            Ask::Profile(_) if asked.now >= seconds(20) => found("all"),
            _ => None,
        });
        let (content, events) = result(program, seconds(60));
        assert!(content.is_ok());
        let watches = Event::Watches {
            session: session(Mode::Wall, 100),
            is_as_wanted: true,
        };
        assert_eq!(events, [watches, Event::Is(Condition::NoAnswer)]);
    }

    #[test]
    fn each_stop_is_told() {
        let state = |now: Duration| match now.as_secs() {
            2 | 4 => State::Stopped,
            _ => State::There,
        };
        let program = program_in(state, |asked| match asked.ask {
            Ask::Hello { .. } => ours(asked, |_| {}),
            Ask::Snapshot { .. } => found("so far"),
            _ => (asked.now >= seconds(10)).then(|| Ok(b"all".to_vec())),
        });
        let (content, events) = result(program, seconds(60));
        assert_eq!(content.expect("a profile").file, b"all");
        let stopped = Event::Is(Condition::Stopped);
        assert_eq!(events, [stopped.clone(), stopped]);
    }

    /// A program that loses its connections after `lost`, as it ends or becomes another one.
    fn lost_after(lost: Duration, state: State) -> Program {
        let state = move |now| if now < lost { State::There } else { state };
        program_in(state, move |asked| match asked.ask {
            _ if asked.now >= lost => Some(Err(AskError::Closed)),
            Ask::Hello { .. } => ours(asked, |_| {}),
            Ask::Snapshot { .. } => found("so far"),
            _ => None,
        })
    }

    #[test]
    fn what_has_been_so_far_is_left_of_a_program_that_ends_or_becomes_another() {
        for (state, expected) in [
            (State::Gone, Condition::Ended),
            (State::There, Condition::Became),
        ] {
            let (content, events) = result(lost_after(seconds(4), state), seconds(60));
            assert_eq!(content.expect("a part").file, b"so far");
            let [
                Event::Lost(Lost {
                    why,
                    elapsed,
                    lacks,
                }),
            ] = &*events
            else {
                panic!("{events:?}");
            };
            assert_eq!(*why, expected);
            assert!(elapsed.as_secs() >= 3 && elapsed.as_secs() <= 5);
            assert!(lacks.expect("a profile") <= seconds(3));
            let (content, events) = result(lost_after(seconds(1), state), seconds(60));
            let Err(Failure::Lost(lost)) = content else {
                panic!("{content:?}");
            };
            assert_eq!((lost.why, lost.lacks), (expected, None));
            assert_eq!(events, []);
        }
    }

    #[test]
    fn a_program_that_does_not_end_its_profile_is_waited_for_no_longer() {
        let program = program(|asked| match asked.ask {
            Ask::Hello { .. } => ours(asked, |_| {}),
            _ => None,
        });
        let (content, _) = result(program, Duration::from_millis(800));
        let Err(Failure::Lost(lost)) = content else {
            panic!("{content:?}");
        };
        assert_eq!((lost.why, lost.lacks), (Condition::NoAnswer, None));
        assert!(lost.elapsed > LAST && lost.elapsed < LAST + seconds(2));
    }

    #[test]
    fn another_session_is_watched_and_a_trace_is_not() {
        let with = |session: Session| {
            program(move |asked| match asked.ask {
                Ask::Hello { .. } => hello(Some(&session), |_| {}),
                _ => None,
            })
        };
        let mut take = begin(with(session(Mode::Cpu, 99))).expect("begun");
        let watches = Event::Watches {
            session: session(Mode::Cpu, 99),
            is_as_wanted: false,
        };
        assert_eq!(take.program.take_events(), [watches]);
        let traced = begin(with(session(SessionMode::Trace, 0)));
        assert!(matches!(traced, Err(Failure::Traced)));
    }

    #[test]
    fn content_says_why_it_ends_early() {
        let schema = Schema::new(vec![ValueType::new("wall", "nanoseconds")], Column(0));
        let mut profile = Profile::new(schema.expect("a schema"));
        profile.meta.duration_ns = 2_500_000_000;
        let mut file = Vec::new();
        pprof::write(&profile, &mut file).expect("written");
        let content = Content::whole(Reply {
            body: file,
            ended: Some("x".repeat(LONGEST_WHY + 1)),
            is_woken: false,
        });
        let (_, event) = content.read().expect("a profile");
        let expected = Event::EndedEarly {
            why: "x".repeat(LONGEST_WHY),
            after: Duration::from_millis(2500),
        };
        assert_eq!(event, Some(expected));
        assert!(matches!(read(b"none"), Err(Failure::Unreadable(_))));
    }
}
