//! The looks at a program, one after the other. Called by `leak`.

use crate::memory::heap::refusal_of;
use crate::progress::Progress;
use crate::refusal::Refusal;
use crate::shared_args::checked;
use crate::signals::Actions;
use nix::sys::signal::{SigHandler, Signal};
use rperf_format::{LeakFile, Look};
use rperf_heap::file::HeapFacts;
use rperf_session::process_id::ProcessId;
use rperf_watch::leak::Watched;
use rperf_watch::process::limit;
use std::ffi::OsStr;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// The least time between two looks: a program makes one copy of itself in so long.
pub(super) const LEAST_EVERY: Duration = Duration::from_secs(10);

/// How a program is looked at.
#[derive(Debug)]
pub(super) struct Plan {
    /// From one look to the next.
    pub(super) every: Duration,
    /// From the first look to the last one.
    pub(super) time: Duration,
    /// However soon, and however little memory is free.
    pub(super) force: bool,
    /// The main thread may be woken for it.
    pub(super) may_wake: bool,
}

/// Whether the user has had enough.
static STOP: AtomicBool = AtomicBool::new(false);

/// What ends it early.
const ENDS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, SeqCst);
}

/// How often it is looked whether the program is there, and the user has had enough.
const STEP: Duration = Duration::from_millis(50);

/// What is added to a time between looks, because a program counts from when it has got the question.
const SLACK: Duration = Duration::from_millis(300);

/// How long a program that has no port any more takes to end.
const MOMENT: Duration = Duration::from_secs(1);

/// For how long the first look is tried where others look at the program: as long as a copy of it may live, and the
/// least time after that.
const FIRST: Duration = Duration::from_secs(50);

/// Failures that are said.
const SAID: u64 = 3;

/// What grows, and why it was ended early, if it was by the program.
pub(super) fn watch(
    target: &OsStr,
    plan: &Plan,
) -> Result<(LeakFile, Option<&'static str>), Refusal> {
    let text = target.to_str().unwrap_or_default();
    let pid = checked::pid(text).map_err(|error| Refusal::usage(format!("'{text}': {error}")))?;
    let _signals = Actions::set_once(&ENDS, SigHandler::Handler(stop));
    let watched = Watched::new(ProcessId::named(pid));
    let mut group = limit(pid);
    let progress = Progress::new();
    let mut began = Instant::now();
    let count = plan.time.as_nanos() / plan.every.as_nanos();
    let (mut looks, mut failed): (Vec<Look>, u64) = (Vec::new(), 0);
    let mut first: Option<HeapFacts> = None;
    let mut placed_by: Option<(u64, Instant)> = None;
    let mut end = None;
    let mut asked = began;
    let mut took = Duration::ZERO;
    for number in 0..=count as u32 {
        if number > 0 {
            // At least as much time without a look as with one, and so much that the program takes it.
            let least = match plan.force {
                true => 2 * took,
                false => (2 * took).max(LEAST_EVERY + SLACK),
            };
            let next = (began + plan.every * number).max(asked + least);
            if next > began + plan.time + least {
                break;
            }
            end = wait(&watched, next, || {
                progress.show(line(pid, &looks, count, began.elapsed(), plan));
            });
        }
        if end.is_some() || STOP.load(SeqCst) {
            break;
        }
        let mut has_given_up = false;
        let look = loop {
            asked = Instant::now();
            let look = watched.look(plan.force, plan.may_wake);
            took = asked.elapsed();
            let is_too_soon = matches!(&look, Err(error) if error.is_too_soon());
            if number > 0 || !is_too_soon || began.elapsed() > FIRST {
                break look;
            }
            // Someone else looks at the program, or just has: nothing is wrong, and the time begins later.
            end = wait(&watched, asked + MOMENT, || {
                progress.show(line(pid, &looks, count, Duration::ZERO, plan));
            });
            has_given_up = end.is_some() || STOP.load(SeqCst);
            if has_given_up {
                break look;
            }
        };
        if number == 0 {
            began = asked;
        }
        match look {
            Ok((look, facts)) => {
                first.get_or_insert(facts);
                looks.push(placed(look, asked, &mut placed_by));
            }
            Err(_) if has_given_up => {}
            Err(error) if number == 0 => {
                progress.end();
                return Err(refusal_of(pid, error));
            }
            Err(error) => {
                // The program may be about to end, which shows a moment later.
                end = wait(&watched, Instant::now() + MOMENT, || {});
                if end.is_none() {
                    failed += 1;
                    say(&progress, failed, &refusal_of(pid, error));
                }
            }
        }
        if end.is_some() {
            break;
        }
        group = limit(pid).or(group);
    }
    progress.end();
    let facts = first.unwrap_or_default();
    let file = LeakFile {
        pid,
        program: facts.program,
        ruby: facts.ruby,
        limit_bytes: group.map(|it| it.bytes),
        limit_is_of_group: group.is_some(),
        group_used_bytes: group.and_then(|it| it.used_bytes),
        failed,
        ..LeakFile::of(&looks)
    };
    Ok((file, end))
}

/// Says that a look failed, the `number`th one, unless enough is said.
fn say(progress: &Progress, number: u64, failure: &Refusal) {
    if number <= SAID {
        progress.say(&format!("a look failed: {}", failure.message));
    }
}

/// The look, at its time after the first one by a clock that is never set. `first`: the time of the first look since
/// 1970, and when it was asked for.
fn placed(look: Look, asked: Instant, first: &mut Option<(u64, Instant)>) -> Look {
    let (time_ns, began) = first.get_or_insert((look.time_ns, asked));
    let after = asked.saturating_duration_since(*began).as_nanos() as u64;
    Look {
        time_ns: time_ns.saturating_add(after),
        ..look
    }
}

/// Waits until then. Returns what has become of the program, if it isn't there any more.
fn wait(watched: &Watched, until: Instant, mut show: impl FnMut()) -> Option<&'static str> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || STOP.load(SeqCst) {
            return None;
        }
        if !watched.is_there() {
            return Some(gone(watched));
        }
        show();
        std::thread::sleep(left.min(STEP));
    }
}

/// What has become of the program, after its number.
fn gone(watched: &Watched) -> &'static str {
    match watched.has_ended() {
        true => "has ended",
        false => "has become another program",
    }
}

fn line(pid: i32, looks: &[Look], count: u128, elapsed: Duration, plan: &Plan) -> String {
    let (elapsed, time) = (elapsed.min(plan.time).as_secs(), plan.time.as_secs());
    let looks = looks.len();
    format!(
        "rperf: watching {pid}: {looks} of {} looks, {elapsed} of {time} s (Ctrl-C ends it now)",
        count + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_moves_no_look() {
        let began = Instant::now();
        let mut first = None;
        // The system's clock is set back after the first look, and then forward.
        let times = [50_000_000_000, 7, u64::MAX];
        let placed = times.iter().zip(0..).map(|(time_ns, minute)| {
            let look = Look {
                time_ns: *time_ns,
                ..Look::default()
            };
            let asked = began + Duration::from_secs(60 * minute);
            placed(look, asked, &mut first).time_ns
        });
        let placed: Vec<u64> = placed.collect();
        assert_eq!(placed, [50_000_000_000, 110_000_000_000, 170_000_000_000]);
    }
}
