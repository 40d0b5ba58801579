//! The profile of several programs over the same time, as one. On threads of the command's.

use super::programs::Present;
use crate::live::words::{of_event, of_failure};
use rperf_model::{Note, Profile};
use rperf_protocol::ask::Wanted;
use rperf_watch::condition::Event;
use rperf_watch::several::{Whole, several};
use rperf_watch::take::Content;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a program may take beyond the time to say what it has: those that take longer are left
/// out, so nobody waits for them for ever.
const GRACE: Duration = Duration::from_secs(2);

/// Programs at a time.
const MOST: usize = 64;

/// Bytes of their files together: each program may have its part, and once more for the profile so
/// far, which is kept in case it is killed. Read, they are some ten times as large: one at a time
/// is, and what is merged of them has no bound of its own.
const ROOM: usize = 128 << 20;

/// What came of it.
pub struct Taken {
    /// The profile of those that answered.
    pub profile: Option<Profile>,
    /// What is to be known of the others, a line each.
    pub notes: Vec<String>,
}

/// Profiles all of them, until their time is over or `stops`.
pub fn of_all(present: Present, wanted: Wanted, stops: &dyn Fn() -> bool) -> Taken {
    let Present {
        mut programs,
        silent,
    } = present;
    let mut notes = silent;
    for (pid, program) in programs.split_off(programs.len().min(MOST)) {
        notes.push(format!(
            "{pid} ({program}): more than {MOST} programs at a time"
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
    let (pids, names): (Vec<_>, Vec<_>) = programs.into_iter().unzip();
    let ends = Instant::now() + wanted.time + GRACE;
    let most = ROOM / pids.len().max(1);
    let found = several(&pids, wanted, most, &tell, || {
        Instant::now() < ends && !stops()
    });
    let mut whole = Whole::new(true);
    let mut left_out = Vec::new();
    for ((pid, content), name) in found.into_iter().zip(names) {
        match content.and_then(Content::read) {
            Ok((profile, event)) => {
                event.iter().for_each(|event| tell(pid, event));
                if let Err(error) = whole.add(pid, profile) {
                    left_out.push(format!("{pid} ({name}): left out, {error}"));
                }
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

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Mode;
    use rperf_protocol::ask::Sampling;

    const WANTED: Wanted = Wanted {
        time: Duration::from_millis(1),
        sampling: Sampling {
            mode: Mode::Wall,
            frequency: 1000,
        },
    };

    #[test]
    fn a_program_that_is_not_there_is_said_and_waited_for_no_longer() {
        let present = Present {
            programs: vec![(i32::MAX, "puma".into())],
            silent: vec!["7 (rake): its port doesn't answer".into()],
        };
        let taken = of_all(present, WANTED, &|| false);
        assert!(taken.profile.is_none());
        let gone = format!("there is no process {} (puma)", i32::MAX);
        assert_eq!(taken.notes, ["7 (rake): its port doesn't answer", &*gone]);
    }

    #[test]
    fn more_than_so_many_are_left_out_and_said() {
        let programs = (0..MOST + 1).map(|number| (i32::MAX - number as i32, "x".into()));
        let present = Present {
            programs: programs.collect(),
            silent: Vec::new(),
        };
        let taken = of_all(present, WANTED, &|| false);
        let more = format!("more than {MOST} programs at a time");
        let left_out = taken.notes.iter().filter(|note| note.contains(&more));
        assert_eq!(left_out.count(), 1);
    }
}
