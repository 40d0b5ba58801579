//! What only the VM can do for the port. The port's thread asks; a Ruby thread finds that out at
//! its next safepoint, and a helper thread does it. Only atomics and a channel are shared, so nobody
//! waits for anybody.

use crate::state::Port;
use crate::task::{Message, Question, Reply, Task};
use rperf_model::Mode;
use rperf_protocol::ask::{Objects, Sampling};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The numbers of the questions that are open, by task; 0 where there is none.
static OPEN: [AtomicU64; Task::ALL.len()] = [const { AtomicU64::new(0) }; Task::ALL.len()];

/// A helper is at work, or about to be.
static HELPED: AtomicBool = AtomicBool::new(false);

/// The number of the question that came to the VM last, and of the one that the helper is at work on.
static SEEN: AtomicU64 = AtomicU64::new(0);
static AT_WORK: AtomicU64 = AtomicU64::new(0);

/// How the session is to sample that is to begin.
static WALL: AtomicBool = AtomicBool::new(true);
static FREQUENCY: AtomicU32 = AtomicU32::new(0);
static OBJECTS: AtomicU8 = AtomicU8::new(0);

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
    OPEN[task as usize].store(number, SeqCst);
    Question { task, number }
}

/// Opens the question for a session. On the port's thread.
pub fn ask_for_session(sampling: Sampling) -> Question {
    WALL.store(sampling.mode == Mode::Wall, SeqCst);
    FREQUENCY.store(sampling.frequency, SeqCst);
    OBJECTS.store(sampling.objects.code(), SeqCst);
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
        objects: Objects::of_code(OBJECTS.load(SeqCst)),
    }
}

/// Nobody waits for this any more.
pub fn withdraw(task: Task) {
    OPEN[task as usize].store(0, SeqCst);
}

/// Nobody waits for anything any more.
pub fn withdraw_all() {
    Task::ALL.into_iter().for_each(withdraw);
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
        number: OPEN[task as usize].load(SeqCst),
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
    OPEN[question.task as usize].load(SeqCst) == question.number
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
    let open = &OPEN[question.task as usize];
    let was_open = open.compare_exchange(question.number, 0, SeqCst, SeqCst);
    match (was_open, Port::current()) {
        (Ok(_), Some(port)) => {
            port.hand_over(Message::Reply(question, reply));
            true
        }
        _ => false,
    }
}
