//! What the VM has been asked for and hasn't done yet, for all clients that wait for it. On the
//! port's thread.

use crate::request;
use crate::state::Port;
use crate::task::{Question, Task};
use rperf_protocol::ask::Sampling;
use std::time::{Duration, Instant};

/// How often the VM is asked again: the thread that was asked may have just lost the GVL.
const AGAIN: Duration = Duration::from_millis(2);
/// How often the VM is asked again after [`EAGER`], and after [`PATIENCE`].
const AGAIN_LATER: Duration = Duration::from_millis(10);
const AGAIN_AT_LAST: Duration = Duration::from_millis(50);
const EAGER: Duration = Duration::from_millis(100);
/// How long nothing may come before the VM is woken.
const WAKES_AFTER: Duration = Duration::from_millis(200);
/// How long nothing may come before the VM is woken, if a thread has found the question: a helper
/// is to come, after others that run. The program may have ended it.
const WAKES_AFTER_SEEN: Duration = Duration::from_secs(1);
/// How often it is at once: if another thread ran last, that one was asked, and the main thread only
/// after it has run.
const WAKES: u32 = 2;
/// How often in all, and how long after the last time: the main thread may have waited for something
/// else then, in a call that looks for no interrupts.
const ALL_WAKES: u32 = 6;
const WAKES_AGAIN: Duration = Duration::from_millis(300);
/// How long the VM may take for what can be done without; and if the helper is at work on it.
const PATIENCE: Duration = Duration::from_secs(2);
const PATIENCE_AT_WORK: Duration = Duration::from_secs(4);

/// The open questions, by task.
#[derive(Default)]
pub struct Questions([Option<Open>; Task::ALL.len()]);

struct Open {
    question: Question,
    since: Instant,
    /// When the VM is asked again.
    again: Instant,
    /// How often it was woken, and when last.
    wakes: u32,
    woken: Instant,
}

impl Open {
    /// Whether the VM is to be woken for this, if it has been quiet.
    fn is_due(&self, now: Instant) -> bool {
        let patience = match request::is_seen(self.question) {
            true => WAKES_AFTER_SEEN,
            false => WAKES_AFTER,
        };
        !request::is_at_work(self.question)
            && now.saturating_duration_since(self.since) >= patience
            && match self.wakes {
                ..WAKES => true,
                WAKES..ALL_WAKES => now.saturating_duration_since(self.woken) >= WAKES_AGAIN,
                _ => false,
            }
    }

    fn note_wake(&mut self, now: Instant) {
        self.wakes += 1;
        self.woken = now;
    }
}

impl Questions {
    /// Asks for this, unless it has been asked for.
    pub fn ask(&mut self, port: &Port, task: Task) {
        if !self.is_open(task) {
            self.open(port, request::ask(task));
        }
    }

    /// Asks for a session, unless one has been asked for.
    pub fn ask_for_session(&mut self, port: &Port, sampling: Sampling) {
        if !self.is_open(Task::Begin) {
            self.open(port, request::ask_for_session(sampling));
        }
    }

    fn open(&mut self, port: &Port, question: Question) {
        let now = Instant::now();
        port.ask_vm();
        self.0[question.task as usize] = Some(Open {
            question,
            since: now,
            again: now + AGAIN,
            wakes: 0,
            woken: now,
        });
    }

    /// Whether this has been asked for.
    pub fn is_open(&self, task: Task) -> bool {
        self.0[task as usize].is_some()
    }

    /// For how long.
    pub fn elapsed(&self, task: Task) -> Duration {
        let open = self.0[task as usize].as_ref();
        open.map_or(Duration::ZERO, |it| it.since.elapsed())
    }

    /// Whether the VM has had long enough for this.
    pub fn is_late(&self, task: Task) -> bool {
        let patience = match self.is_at_work(task) {
            true => PATIENCE_AT_WORK,
            false => PATIENCE,
        };
        self.is_open(task) && self.elapsed(task) >= patience
    }

    /// Whether the helper has begun with this.
    pub fn is_at_work(&self, task: Task) -> bool {
        let open = self.0[task as usize].as_ref();
        open.is_some_and(|it| request::is_at_work(it.question))
    }

    /// Whether the VM was woken for this.
    pub fn is_woken(&self, task: Task) -> bool {
        let open = self.0[task as usize].as_ref();
        open.is_some_and(|it| it.wakes > 0)
    }

    /// Nobody waits for this any more. False if its answer comes all the same: until then it is open.
    pub fn withdraw(&mut self, task: Task) -> bool {
        let open = &mut self.0[task as usize];
        let is_withdrawn = open.is_none() || request::withdraw(task);
        if is_withdrawn {
            *open = None;
        }
        is_withdrawn
    }

    /// An answer has come. Returns whether it is to the question that is open.
    pub fn close(&mut self, question: Question) -> bool {
        let open = &mut self.0[question.task as usize];
        let is_its = open.as_ref().is_some_and(|it| it.question == question);
        if is_its {
            *open = None;
        }
        is_its
    }

    /// When the VM is asked again.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().flatten().map(|it| it.again).min()
    }

    /// Asks the VM again where it is time, and wakes it if all has been quiet and it `may_wake` for
    /// the task.
    pub fn ask_again(&mut self, port: &Port, may_wake: impl Fn(Task) -> bool) {
        let now = Instant::now();
        let mut is_time = false;
        for open in self.0.iter_mut().flatten().filter(|it| it.again <= now) {
            is_time = true;
            open.again = now
                + match now.saturating_duration_since(open.since) {
                    elapsed if elapsed < EAGER => AGAIN,
                    elapsed if elapsed < PATIENCE => AGAIN_LATER,
                    _ => AGAIN_AT_LAST,
                };
        }
        if !is_time {
            return;
        }
        port.ask_vm();
        let mut quiet = self
            .0
            .iter_mut()
            .flatten()
            .filter(|open| open.is_due(now) && may_wake(open.question.task));
        if let Some(open) = quiet.next()
            && port.wake_vm()
        {
            open.note_wake(now);
            quiet.for_each(|open| open.note_wake(now));
        }
    }
}
