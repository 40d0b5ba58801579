//! The profile of several programs over the same time, as one. On threads of the command's.

use super::programs::Present;
use crate::attach::recording::{Recording, Told};
use crate::{FAILURE, Refusal};
use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::{Note, Profile};
use rperf_protocol::ask::Wanted;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take beyond the time to say what it has: those that take longer are left
/// out, so nobody waits for them for ever.
const GRACE: Duration = Duration::from_secs(2);

/// How often it is looked whether all are there.
const STEP: Duration = Duration::from_millis(20);

/// Programs at a time.
const MOST: usize = 64;

/// Bytes of their files together: each program may have its part, and once more for the profile so
/// far, which is kept in case it is killed. Read, they are some ten times as large: one at a time
/// is, and what is merged of them has no bound of its own.
const ROOM: usize = 128 << 20;

/// What came of it.
#[derive(Default)]
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
    // Nobody is at the keys, so programs that are waited for are told in the end.
    let tell = |told: Told<'_>| {
        if let Told::Fact(line) = told {
            let mut facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
            facts.push(line.to_string());
        }
    };
    let is_over = AtomicBool::new(false);
    let most = ROOM / programs.len().max(1);
    let record =
        |pid| Recording::begin(pid, wanted, &tell).and_then(|it| it.content(&is_over, most));
    let mut taken = Taken::default();
    let ends = Instant::now() + wanted.time + GRACE;
    thread::scope(|scope| {
        let record = &record;
        let mut threads = Vec::new();
        for (pid, program) in programs {
            let builder = thread::Builder::new();
            match builder.spawn_scoped(scope, move || record(pid)) {
                Ok(thread) => threads.push((pid, program, thread)),
                Err(error) => notes.push(format!("{pid} ({program}): {error}")),
            }
        }
        while threads.iter().any(|(.., thread)| !thread.is_finished()) {
            if Instant::now() >= ends || stops() {
                is_over.store(true, SeqCst);
            }
            thread::sleep(STEP);
        }
        for (pid, program, thread) in threads {
            let content = match thread.join() {
                Ok(content) => content.and_then(|it| it.read(&tell)),
                Err(_) => Err(Refusal {
                    message: format!("{pid}: an internal error"),
                    status: FAILURE,
                }),
            };
            match content {
                Ok(profile) => taken.add(pid, profile),
                Err(refusal) => notes.push(format!("{} ({program})", refusal.message)),
            }
        }
    });
    notes.extend(facts.into_inner().unwrap_or_else(PoisonError::into_inner));
    notes.append(&mut taken.notes);
    taken.notes = notes;
    taken.explain();
    taken
}

impl Taken {
    fn add(&mut self, pid: i32, mut profile: Profile) {
        let program = profile.meta.program.clone();
        profile.label_all(&[(PID, &pid.to_string()), (PROCESS, &program)]);
        match &mut self.profile {
            None => self.profile = Some(profile),
            Some(whole) => {
                if let Err(error) = whole.merge(&profile) {
                    self.notes
                        .push(format!("{pid} ({program}): left out, {error}"));
                }
            }
        }
    }

    /// The profile says itself what isn't in it.
    fn explain(&mut self) {
        if let Some(profile) = &mut self.profile {
            let lines = self.notes.iter();
            let lines = lines.map(|note| format!("not all of it: {note}"));
            profile.meta.notes.extend(lines.map(Note::from));
        }
    }
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
