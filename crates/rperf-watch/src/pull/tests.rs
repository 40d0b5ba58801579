//! The machine that pulls sums, on scripted programs.

use super::*;
use crate::scripted::{Answer, Asked, found, hello, program, refused};
use crate::sums::LockedSums;
use rperf_model::shared_sums::SharedSums;
use rperf_protocol::delta::Freshness;
use rperf_protocol::refusal::Code;

const WAIT: Duration = Duration::from_millis(500);

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The silence of the VM when the test begins.
const STUCK_SOON: Duration = Duration::from_millis(600);

/// A way into sums of its own.
fn feed(pull: &Pull) -> Feed {
    Feed::new(&LockedSums::default(), pull.pid, &pull.hello)
}

fn session(frequency: u32) -> Session {
    Session {
        mode: Mode::Wall.into(),
        frequency,
    }
}

/// A page of a session that began at `start`.
fn page(asked: Asked, start: Duration, is_fresh: bool) -> Answer {
    let Ask::Delta { cursor, .. } = asked.ask else {
        return None;
    };
    let mut table = SharedSums::default();
    table.facts.mode = Mode::Wall;
    table.facts.frequency = 99;
    table.facts.start_ns = start.as_nanos() as u64;
    let freshness = Freshness {
        is_fresh,
        clock_ns: 0,
    };
    let changes = table.changes(cursor);
    found(Delta { changes, freshness }.to_bytes())
}

/// The kinds of news of so many steps, with what was told.
fn steps(pull: &mut Pull, count: usize) -> (Vec<News>, Vec<Event>) {
    let feed = feed(pull);
    let news = (0..count).map(|_| pull.step(WAIT, &feed).expect("news"));
    let news = news.collect();
    (news, pull.take_events())
}

#[test]
fn a_session_is_begun_where_there_is_none_and_waited_for() {
    let began = seconds(2);
    let mut pull = Pull::of(program(move |asked| match asked.ask {
        Ask::Hello { .. } => hello(None, |_| {}),
        Ask::Session(sampling) => {
            assert_eq!(sampling, SESSION);
            (asked.now >= began).then(|| Ok(b"{}".to_vec()))
        }
        _ => page(asked, began, true),
    }));
    let feed = feed(&pull);
    let mut news = Vec::new();
    while !pull.is_watched() {
        news.push(pull.step(WAIT, &feed).expect("news"));
    }
    assert!(news.len() > 3, "{news:?}");
    assert!(matches!(news.pop(), Some(News::Begins)));
    assert!(news.iter().all(|it| matches!(it, News::Waits)));
    assert_eq!(
        feed.lock().processes[0].facts.start_ns,
        began.as_nanos() as u64
    );
    let (news, events) = steps(&mut pull, 2);
    assert!(
        news.iter()
            .all(|it| matches!(it, News::Interval { is_fresh: true, .. }))
    );
    assert_eq!((events, pull.mode()), (Vec::new(), Mode::Wall));
}

#[test]
fn a_session_of_the_programs_own_takes_over_and_may_end() {
    let mut pulls: u64 = 0;
    let mut is_over = false;
    let mut pull = Pull::of(program(move |asked| match asked.ask {
        Ask::Hello { .. } => hello(None, |_| {}),
        Ask::Session(_) => {
            is_over |= pulls > 0;
            found("{}")
        }
        _ if pulls == 5 && !is_over => refused(Code::NoSession),
        _ => {
            pulls += 1;
            page(asked, seconds(pulls.div_ceil(2)), true)
        }
    }));
    let (news, events) = steps(&mut pull, 4);
    assert!(matches!(
        &*news,
        [
            News::Begins,
            News::Interval { .. },
            News::BeginsAnew,
            News::Interval { .. }
        ]
    ));
    assert_eq!(events, [Event::TookOver(session(99))]);
    let (news, events) = steps(&mut pull, 3);
    assert!(matches!(
        &*news,
        [News::BeginsAnew, News::Waits, News::Begins]
    ));
    let ended = Event::Profiled(session(1000));
    assert_eq!(events, [Event::BeginsAnew(session(99)), ended]);
}

#[test]
fn a_stuck_vm_is_told_and_that_it_answers_again() {
    let mut pulls = 0;
    let mut pull = Pull::of(program(move |asked| match asked.ask {
        Ask::Hello { .. } => hello(None, |hello| {
            hello.silent_ns = (asked.now + STUCK_SOON).as_nanos() as u64;
        }),
        Ask::Session(_) => found("{}"),
        // The port waits for the VM.
        _ if pulls > 0 && pulls < 5 && asked.now < asked.since + WAIT => None,
        _ => {
            pulls += 1;
            page(asked, seconds(1), pulls == 1 || pulls > 5)
        }
    }));
    let (_, events) = steps(&mut pull, 1);
    assert_eq!(events, []);
    let (_, events) = steps(&mut pull, 3);
    let [Event::Is(Condition::Stuck(first))] = &*events else {
        panic!("{events:?}");
    };
    let now = pull.stuck().expect("stuck");
    assert!(now.silence > first.silence, "it was asked again");
    let (_, events) = steps(&mut pull, 1);
    assert_eq!(events, [], "no answer yet");
    let (_, events) = steps(&mut pull, 1);
    assert_eq!(events, [Event::Is(Condition::Answers)]);
    assert!(pull.stuck().is_none());
}

#[test]
fn a_session_that_cannot_begin_is_asked_for_only_so_often() {
    let mut pull = Pull::of(program(|asked| match asked.ask {
        Ask::Hello { .. } => hello(None, |_| {}),
        _ => refused(Code::Failed),
    }));
    let tries = TRIES as usize - 1;
    let (news, _) = steps(&mut pull, tries);
    assert!(news.iter().all(|it| matches!(it, News::Waits)));
    let last = pull.step(WAIT, &feed(&pull));
    assert!(matches!(last, Err(AskError::Refused(_))));
}

#[test]
fn a_closed_connection_is_made_anew() {
    let mut is_closed = false;
    let mut pull = Pull::of(program(move |asked| match asked.ask {
        Ask::Hello { .. } => hello(Some(&session(99)), |_| {}),
        _ if asked.now >= seconds(1) && !std::mem::replace(&mut is_closed, true) => {
            Some(Err(AskError::Closed))
        }
        _ => page(asked, seconds(1), true),
    }));
    steps(&mut pull, 1);
    pull.program.sleep(seconds(1));
    let (news, events) = steps(&mut pull, 1);
    assert!(matches!(&*news, [News::Interval { .. }]), "{news:?}");
    assert_eq!(events, []);
}

#[test]
fn an_answer_that_does_not_come_is_waited_for_again_later() {
    let mut pull = Pull::of(program(move |asked| match asked.ask {
        Ask::Hello { .. } => hello(Some(&session(99)), |_| {}),
        _ if asked.now < seconds(8) => None,
        _ => page(asked, seconds(1), true),
    }));
    let first = pull.step(WAIT, &feed(&pull));
    assert!(matches!(first, Err(AskError::Silent)));
    // The script fails if something is asked meanwhile.
    let (news, _) = steps(&mut pull, 1);
    assert!(matches!(&*news, [News::Begins]));
}
