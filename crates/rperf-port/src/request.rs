//! What only the VM can do for the port. The port's thread asks; a Ruby thread finds that out at
//! its next safepoint, and a helper thread does it. Only atomics and a channel are shared, so nobody
//! waits for anybody.

use crate::state::Port;
use crate::task::{Message, Question, Reply, Task};
use rperf_model::Mode;
use rperf_protocol::ask::Sampling;
use rperf_protocol::measure::Measure;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The questions that are open, by task.
static OPEN: [Place; Task::ALL.len()] = [const { Place(AtomicU64::new(0)) }; Task::ALL.len()];

/// Where the number of a question is while it is open; 0 where there is none.
struct Place(AtomicU64);

/// In front of the number of a question that is being answered, and can't be withdrawn any more.
const COMMITTED: u64 = 1 << 63;

impl Place {
    fn put(&self, number: u64) {
        self.0.store(number, SeqCst);
    }

    /// The number of the question that is open; 0 if there is none.
    fn number(&self) -> u64 {
        self.0.load(SeqCst) & !COMMITTED
    }

    /// Whether it could be committed: it is open, and wasn't yet.
    fn commit(&self, number: u64) -> bool {
        let committed = number | COMMITTED;
        let was_open = (self.0).compare_exchange(number, committed, SeqCst, SeqCst);
        number > 0 && was_open.is_ok()
    }

    /// Whether there is none now: one that is committed stays.
    fn withdraw(&self) -> bool {
        let rest = |open| (open & COMMITTED == 0).then_some(0);
        self.0.fetch_update(SeqCst, SeqCst, rest).is_ok()
    }

    /// Whether it was open.
    fn close(&self, number: u64) -> bool {
        let rest = |open| (number > 0 && open & !COMMITTED == number).then_some(0);
        self.0.fetch_update(SeqCst, SeqCst, rest).is_ok()
    }
}

/// A helper is at work, or about to be.
static HELPED: AtomicBool = AtomicBool::new(false);

/// The number of the question that came to the VM last, and of the one that the helper is at work on.
static SEEN: AtomicU64 = AtomicU64::new(0);
static AT_WORK: AtomicU64 = AtomicU64::new(0);

/// How the session is to sample that is to begin.
static WALL: AtomicBool = AtomicBool::new(true);
static FREQUENCY: AtomicU32 = AtomicU32::new(0);
static MEASURE: AtomicU8 = AtomicU8::new(0);

/// Whether the caller is to make a helper: there is none.
pub fn claim_helper() -> bool {
    !HELPED.swap(true, SeqCst)
}

/// The helper ends, or couldn't be made.
pub fn release_helper() {
    AT_WORK.store(0, SeqCst);
    HELPED.store(false, SeqCst);
}

/// Whether there is a helper.
pub fn has_helper() -> bool {
    HELPED.load(SeqCst)
}

/// Opens a question. On the port's thread.
pub fn ask(task: Task) -> Question {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let number = LAST.fetch_add(1, SeqCst) + 1;
    OPEN[task as usize].put(number);
    Question { task, number }
}

/// Opens the question for a session. On the port's thread.
pub fn ask_for_session(sampling: Sampling) -> Question {
    WALL.store(sampling.mode == Mode::Wall, SeqCst);
    FREQUENCY.store(sampling.frequency, SeqCst);
    MEASURE.store(sampling.measure.code(), SeqCst);
    ask(Task::Begin)
}

/// How the session is to sample.
pub fn sampling() -> Sampling {
    Sampling {
        mode: match WALL.load(SeqCst) {
            true => Mode::Wall,
            false => Mode::Cpu,
        },
        frequency: FREQUENCY.load(SeqCst),
        measure: Measure::of_code(MEASURE.load(SeqCst)),
    }
}

/// Nobody waits for this any more. False if it is committed: then its answer comes.
pub fn withdraw(task: Task) -> bool {
    OPEN[task as usize].withdraw()
}

/// Nobody takes answers any more.
pub fn withdraw_all() {
    OPEN.iter().for_each(|it| it.put(0));
}

/// In a forked child, which has neither the port's thread nor the helper.
pub fn forget_in_child() {
    withdraw_all();
    release_helper();
}

/// The question that is to be seen to, if there is one. Any thread.
pub fn open() -> Option<Question> {
    let question = |task: Task| Question {
        task,
        number: OPEN[task as usize].number(),
    };
    let mut questions = Task::ALL.into_iter().map(question);
    questions.find(|question| question.number > 0)
}

/// A Ruby thread has come to a safepoint and found the question.
pub fn note_seen(question: Question) {
    SEEN.store(question.number, SeqCst);
}

/// Whether one has. Any thread.
pub fn is_seen(question: Question) -> bool {
    SEEN.load(SeqCst) == question.number
}

/// The helper sees to the question from now on.
pub fn begin_work(question: Question) {
    AT_WORK.store(question.number, SeqCst);
}

/// Whether the helper has begun to see to the question. Any thread.
pub fn is_at_work(question: Question) -> bool {
    AT_WORK.load(SeqCst) == question.number
}

/// Whether somebody still waits for the answer. Any thread.
pub fn is_wanted(question: Question) -> bool {
    OPEN[question.task as usize].number() == question.number
}

/// Has a question committed: what is done from now on can't be undone, so it isn't withdrawn any more, and its
/// answer is taken. False if somebody has withdrawn it. On the helper, which answers whatever happens.
pub fn commit(question: Question) -> bool {
    OPEN[question.task as usize].commit(question.number)
}

/// Says that the stacks of these native threads were taken just now, so that the port's thread looks
/// what they wait for while others are taken. On a Ruby thread.
pub fn note_taken(question: Question, tids: Vec<i32>) {
    if let Some(port) = Port::current()
        && is_wanted(question)
    {
        port.hand_over(Message::Taken(question, tids));
    }
}

/// Answers a question. Returns whether somebody has still waited. Waits for nobody. On a Ruby thread.
pub fn answer(question: Question, reply: Reply) -> bool {
    let was_open = OPEN[question.task as usize].close(question.number);
    match (was_open, Port::current()) {
        (true, Some(port)) => {
            port.hand_over(Message::Reply(question, reply));
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_committed_is_answered() {
        let place = Place(AtomicU64::new(0));
        assert!(!place.commit(0) && !place.close(0));
        place.put(7);
        assert!(!place.commit(6), "another question");
        assert!(place.commit(7));
        assert!(!place.commit(7), "once");
        assert_eq!(place.number(), 7);
        assert!(!place.withdraw());
        assert!(!place.close(6) && place.close(7));
        assert_eq!(place.number(), 0);
    }

    #[test]
    fn what_is_withdrawn_cannot_be_committed() {
        let place = Place(AtomicU64::new(0));
        assert!(place.withdraw(), "there is none");
        place.put(8);
        assert!(place.withdraw());
        assert!(!place.commit(8) && !place.close(8));
    }

    #[test]
    fn one_of_two_threads_wins() {
        for number in 1..500 {
            let place = Place(AtomicU64::new(number));
            let (is_committed, is_withdrawn) = std::thread::scope(|scope| {
                let other = scope.spawn(|| place.withdraw());
                let is_committed = place.commit(number);
                (is_committed, other.join().expect("it ends"))
            });
            assert_ne!(is_committed, is_withdrawn);
            assert_eq!(place.close(number), is_committed);
        }
    }
}
