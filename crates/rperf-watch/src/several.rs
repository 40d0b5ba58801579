//! The profiles of several programs over the same time, each asked on a thread of its own.

use crate::condition::Event;
use crate::failure::Failure;
use crate::patience::{IDLE, STEP};
use crate::program::Program;
use crate::take::{Content, Take};
use rperf_model::label_keys::{PID, PROCESS};
use rperf_model::{MergeError, Profile};
use rperf_protocol::ask::Wanted;
use rperf_session::process_id::ProcessId;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Instant;

/// Takes what is told of a process.
pub type Tell<'a> = &'a (dyn Fn(i32, &Event) + Sync);

/// A program that is asked for its profile.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Its process.
    pub process: ProcessId,
    /// Bytes of the profile's file at most.
    pub most: usize,
}

/// The profiles of these programs, and why there is none. While they are waited for, `goes_on` says
/// again and again whether they may take longer. Once there is one, programs that run no Ruby code
/// aren't waited for.
pub fn several(
    asked: &[Asked],
    wanted: Wanted,
    tell: Tell<'_>,
    mut goes_on: impl FnMut() -> bool,
) -> Vec<(i32, Result<Content, Failure>)> {
    let is_over = AtomicBool::new(false);
    let (has_one, is_enough) = (AtomicBool::new(false), AtomicBool::new(false));
    let began = Instant::now();
    let take = |Asked { process, most }| {
        let mut take = Take::begin(Program::connect(process)?, wanted, most)?;
        loop {
            if is_enough.load(SeqCst) && take.is_idle() {
                return Err(Failure::NothingRan);
            }
            let step = take.step(is_over.load(SeqCst));
            for event in take.program.take_events() {
                tell(process.pid, &event);
            }
            if let Some(content) = step? {
                has_one.store(true, SeqCst);
                return Ok(content);
            }
        }
    };
    thread::scope(|scope| {
        let take = &take;
        let begin = |asked: &Asked| {
            let asked = *asked;
            let thread = thread::Builder::new().spawn_scoped(scope, move || take(asked));
            (asked.process.pid, thread)
        };
        let threads: Vec<_> = asked.iter().map(begin).collect();
        let running = threads.iter().filter_map(|it| it.1.as_ref().ok());
        while running.clone().any(|thread| !thread.is_finished()) {
            if !goes_on() {
                is_over.store(true, SeqCst);
            }
            if began.elapsed() > wanted.time + IDLE && has_one.load(SeqCst) {
                is_enough.store(true, SeqCst);
            }
            thread::sleep(STEP);
        }
        let ended = threads.into_iter().map(|(pid, thread)| {
            let joined = thread.map_err(Failure::NoThread);
            let content = joined.and_then(|it| it.join().unwrap_or(Err(Failure::Internal)));
            (pid, content)
        });
        ended.collect()
    })
}

/// Several profiles as one, each with its process as a label.
pub struct Whole {
    /// The profile, once there is one.
    pub profile: Option<Profile>,
    /// The processes in it.
    pub processes: usize,
    /// The process of the first, which has its label from the second on, or at once.
    first: i32,
    is_labelled: bool,
}

impl Whole {
    /// None yet. If this `labels_one`, there is a label also where there is no second one.
    pub fn new(labels_one: bool) -> Self {
        Whole {
            profile: None,
            processes: 0,
            first: 0,
            is_labelled: labels_one,
        }
    }

    /// Adds one. It is left out if it has other values than the first.
    pub fn add(&mut self, pid: i32, mut profile: Profile) -> Result<(), MergeError> {
        match &mut self.profile {
            None => {
                if self.is_labelled {
                    label(pid, &mut profile);
                }
                self.first = pid;
                self.profile = Some(profile);
            }
            Some(whole) => {
                if !std::mem::replace(&mut self.is_labelled, true) {
                    label(self.first, whole);
                }
                label(pid, &mut profile);
                whole.merge(&profile)?;
            }
        }
        self.processes += 1;
        Ok(())
    }
}

fn label(pid: i32, profile: &mut Profile) {
    let program = profile.meta.program.clone();
    profile.label_all(&[(PID, &pid.to_string()), (PROCESS, &program)]);
}
