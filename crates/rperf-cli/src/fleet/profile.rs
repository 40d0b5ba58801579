//! The profile of several programs over the same time, as one. On threads of the command's.

use super::programs::{Present, Running};
use crate::programs::words::{of_event, of_failure};
use rperf_model::{Note, Profile};
use rperf_protocol::ask::Wanted;
use rperf_watch::condition::Event;
use rperf_watch::programs::in_turn;
use rperf_watch::several::{Asked, Whole, several};
use rperf_watch::take::Content;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a program may take beyond the time to say what it has: those that take longer are left
/// out, so nobody waits for them for ever.
const GRACE: Duration = Duration::from_secs(2);

/// Programs at a time.
const MOST: usize = 64;

/// Bytes of their files together: each user has a part, and each program its part of that, and once
/// more for the profile so far, which is kept in case it is killed. Read, they are some ten times as
/// large.
const ROOM: usize = 128 << 20;

/// Bytes in memory of the profiles that are merged, of which each user has a part, too.
const MEMORY: usize = 512 << 20;

/// What came of it.
pub struct Taken {
    /// The profile of those that answered.
    pub profile: Option<Profile>,
    /// What is to be known of the others, a line each.
    pub notes: Vec<String>,
}

/// Profiles all of them, until their time is over or `stops`.
pub fn of_all(present: Present, wanted: Wanted, stops: &dyn Fn() -> bool) -> Taken {
    let mut programs = in_turn(present.programs, |it| it.uid);
    let mut notes = present.silent;
    for Running { process, name, .. } in programs.split_off(programs.len().min(MOST)) {
        let pid = process.pid;
        notes.push(format!(
            "{pid} ({name}): more than {MOST} programs at a time"
        ));
    }
    let facts = Mutex::new(Vec::new());
    let tell = |pid, event: &Event| {
        // Nobody is at the keys, so programs that are waited for are told in the end.
        if !event.is_of_silence() {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.push(of_event(pid, event));
        }
    };
    let ends = Instant::now() + wanted.time + GRACE;
    let found = several(&asked(&programs), wanted, &tell, || {
        Instant::now() < ends && !stops()
    });
    let mut whole = Whole::new(true);
    let mut left_out = Vec::new();
    let mut rest = shares(&programs, MEMORY);
    for ((pid, content), Running { uid, name, .. }) in found.into_iter().zip(programs) {
        match content.and_then(Content::read) {
            Ok((profile, event)) => {
                event.iter().for_each(|event| tell(pid, event));
                let rest = rest.entry(uid).or_default();
                let why = match rest.checked_sub(profile.memory()) {
                    None => Some(format!("{} MB are its user's part", MEMORY >> 20)),
                    Some(less) => {
                        *rest = less;
                        whole.add(pid, profile).err().map(|error| error.to_string())
                    }
                };
                let line = why.map(|why| format!("{pid} ({name}): left out, {why}"));
                left_out.extend(line);
            }
            Err(failure) => {
                let message = of_failure(pid, &failure).message;
                notes.push(format!("{message} ({name})"));
            }
        }
    }
    notes.extend(facts.into_inner().unwrap_or_else(PoisonError::into_inner));
    notes.append(&mut left_out);
    let mut profile = whole.profile;
    if let Some(profile) = &mut profile {
        // The profile says itself what isn't in it.
        let lines = notes.iter().map(|note| format!("not all of it: {note}"));
        profile.meta.notes.extend(lines.map(Note::from));
    }
    Taken { profile, notes }
}

/// What each user has of `all`.
fn shares(programs: &[Running], all: usize) -> BTreeMap<u32, usize> {
    let users: BTreeMap<u32, usize> = programs.iter().map(|it| (it.uid, 0)).collect();
    let count = users.len();
    users.into_keys().map(|user| (user, all / count)).collect()
}

fn asked(programs: &[Running]) -> Vec<Asked> {
    let room = shares(programs, ROOM);
    let asked = programs.iter().map(|program| {
        let of_user = programs.iter().filter(|it| it.uid == program.uid).count();
        Asked {
            process: program.process,
            most: room.get(&program.uid).map_or(0, |room| room / of_user),
        }
    });
    asked.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Mode;
    use rperf_protocol::ask::Sampling;
    use rperf_protocol::measure::Measure;
    use rperf_session::process_id::ProcessId;

    const WANTED: Wanted = Wanted {
        time: Duration::from_millis(1),
        sampling: Sampling {
            mode: Mode::Wall,
            frequency: 1000,
            measure: Measure::NOTHING,
        },
    };

    fn running(pid: i32, uid: u32, name: &str) -> Running {
        Running {
            process: ProcessId { pid, start: 0 },
            uid,
            name: name.into(),
        }
    }

    #[test]
    fn no_user_keeps_out_another() {
        let many = (1..=MOST as i32).map(|pid| running(pid, 1000, "sleeper"));
        let programs = many.chain([running(9999, 0, "ours")]).collect();
        let programs = in_turn(programs, |it| it.uid);
        let order: Vec<_> = programs.iter().map(|it| it.process.pid).collect();
        assert_eq!(order[..3], [1, 9999, 2]);
        let asked = asked(&programs);
        assert_eq!(asked[1].most, ROOM / 2);
        assert_eq!(asked[0].most, ROOM / 2 / MOST);
        assert_eq!(
            shares(&programs, 100),
            BTreeMap::from([(0, 50), (1000, 50)])
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_said_and_waited_for_no_longer() {
        let present = Present {
            programs: vec![running(i32::MAX, 0, "puma")],
            silent: vec!["7 (rake): its port doesn't answer".into()],
            hint: None,
        };
        let taken = of_all(present, WANTED, &|| false);
        assert!(taken.profile.is_none());
        let gone = format!("there is no process {} (puma)", i32::MAX);
        assert_eq!(taken.notes, ["7 (rake): its port doesn't answer", &*gone]);
    }

    #[test]
    fn more_than_so_many_are_left_out_and_said() {
        let programs = (0..MOST + 1).map(|number| running(i32::MAX - number as i32, 0, "x"));
        let present = Present {
            programs: programs.collect(),
            ..Present::default()
        };
        let taken = of_all(present, WANTED, &|| false);
        let more = format!("more than {MOST} programs at a time");
        let left_out = taken.notes.iter().filter(|note| note.contains(&more));
        assert_eq!(left_out.count(), 1);
    }
}
