//! Questions to programs beside their sums: each program is asked from time to time, on a thread and a
//! connection of their own, while the user looks at the screen that the answers are for. A program that
//! waits isn't woken for that.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// The questions of a screen.
pub struct Askings {
    /// The user looks at the screen.
    is_wanted: Arc<AtomicBool>,
    /// By the place of the program's process.
    programs: HashMap<u32, Asking>,
}

/// When a program was asked last, and whether the answer is under way.
#[derive(Default)]
struct Asking {
    asked: Option<Instant>,
    is_asked: Arc<AtomicBool>,
}

/// However the thread ends that asks.
struct Done(Arc<AtomicBool>);

impl Drop for Done {
    fn drop(&mut self) {
        self.0.store(false, SeqCst);
    }
}

impl Askings {
    /// Nothing has been asked.
    pub fn new(is_wanted: &Arc<AtomicBool>) -> Self {
        Self {
            is_wanted: Arc::clone(is_wanted),
            programs: HashMap::new(),
        }
    }

    /// Asks the program of this process by `ask`, if the user looks, no answer is under way, and the last
    /// question was `pause` ago.
    pub fn ask(&mut self, process: u32, pause: Duration, ask: impl FnOnce() + Send + 'static) {
        if !self.is_wanted.load(SeqCst) {
            return;
        }
        let asking = self.programs.entry(process).or_default();
        let is_due = asking.asked.is_none_or(|asked| asked.elapsed() >= pause);
        if !is_due || asking.is_asked.swap(true, SeqCst) {
            return;
        }
        asking.asked = Some(Instant::now());
        let done = Done(Arc::clone(&asking.is_asked));
        let asks = move || {
            ask();
            drop(done);
        };
        // Without a thread nothing is known.
        let _ = thread::Builder::new().spawn(asks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn programs_are_asked_while_somebody_looks_and_one_question_at_a_time() {
        let is_wanted = Arc::new(AtomicBool::new(false));
        let mut askings = Askings::new(&is_wanted);
        let (asked, questions) = channel();
        let (answer, answers) = channel::<()>();
        let asks = |text: &'static str| {
            let asked = asked.clone();
            move || asked.send(text).expect("heard")
        };
        askings.ask(1, Duration::ZERO, asks("nobody looks"));
        is_wanted.store(true, SeqCst);
        let first = asks("first");
        askings.ask(1, Duration::ZERO, move || {
            first();
            let _ = answers.recv();
        });
        askings.ask(1, Duration::ZERO, asks("the answer is under way"));
        askings.ask(2, Duration::ZERO, asks("second"));
        answer.send(()).expect("waited for");
        while askings.programs[&1].is_asked.load(SeqCst) {
            thread::yield_now();
        }
        askings.ask(1, Duration::from_secs(3600), asks("it isn't due"));
        askings.ask(1, Duration::ZERO, asks("third"));
        // Until all threads have ended.
        drop(asked);
        let mut all: Vec<_> = questions.iter().collect();
        all.sort_unstable();
        assert_eq!(all, ["first", "second", "third"]);
    }
}
