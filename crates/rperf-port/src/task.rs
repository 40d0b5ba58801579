//! What the VM is asked for, and what it says. Asked on the port's thread, answered on Ruby threads.

use crate::memory::VmMemory;
use crate::stacks::Stacks;
use crate::step::Holder;
use rperf_model::Profile;
use rperf_protocol::refusal::Refusal;
use std::sync::Arc;

/// What the VM is asked for. If several things are, they are done in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// The end of the session that clients have begun, and its profile.
    End,
    /// The begin of a session.
    Begin,
    /// The profile of the session that runs, up to now.
    Snapshot,
    /// The stacks of all threads.
    Stacks,
    /// The stacks of all threads, and those of fibers.
    Fibers,
    /// What the VM knows of its memory.
    Memory,
    /// What the VM knows of its memory, and a walk of all objects.
    Objects,
    /// A copy of the process that sends the graph of all objects.
    Heap,
    /// Nothing: whether the VM answers.
    Look,
}

impl Task {
    /// All of them.
    pub const ALL: [Task; 9] = [
        Task::End,
        Task::Begin,
        Task::Snapshot,
        Task::Stacks,
        Task::Fibers,
        Task::Memory,
        Task::Objects,
        Task::Heap,
        Task::Look,
    ];

    /// Whether its answer is of stacks.
    pub fn is_of_stacks(self) -> bool {
        matches!(self, Task::Stacks | Task::Fibers)
    }

    /// Whether its answer is of memory.
    pub fn is_of_memory(self) -> bool {
        matches!(self, Task::Memory | Task::Objects)
    }

    /// Tasks for which there is an answer without the VM, too.
    pub fn for_which_the_system_answers() -> impl Iterator<Item = Task> {
        let all = Task::ALL.into_iter();
        all.filter(|it| it.is_of_stacks() || it.is_of_memory())
    }
}

/// A task that somebody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// The task.
    pub task: Task,
    pub(super) number: u64,
}

/// What has come of a task.
pub enum Reply {
    /// The stacks of all threads, with those of fibers if they were asked for.
    Stacks(Stacks),
    /// What the VM knows of its memory.
    Memory(VmMemory),
    /// The copy of the process was made, with this number.
    Forked(i32),
    /// Nothing is done, and this is why.
    Refused(Refusal),
    /// The session has begun.
    Begun,
    /// The VM answers.
    Here,
    /// The profile.
    Profile(ProfileUpTo),
    /// There is no session of which a profile can be had; or no other one can begin, as there is.
    NotNow,
    /// Why nothing has come of it.
    Failed(String),
}

/// A profile as the VM gives it.
#[derive(Debug, Clone)]
pub struct ProfileUpTo {
    /// All of the session, up to now or to its end.
    pub profile: Arc<Profile>,
    /// The thread in it that is the port's helper.
    pub helper: Option<u32>,
}

/// What other threads tell the port's.
pub enum Message {
    /// The stacks of these native threads were taken just now, and more are to come.
    Taken(Question, Vec<i32>),
    /// What has come of a task.
    Reply(Question, Reply),
    /// A session has begun that knows which thread has the GVL.
    Holder(Holder),
    /// The program has ended the session.
    Ended(Why, ProfileUpTo),
    /// The answer to the client with this number is ready.
    Encoded(u64, Result<Vec<u8>, String>),
}

/// Why the program has ended a session before the clients' time was over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The session was that of clients, and the program begins its own.
    BeginsOwn,
    /// The session was the program's.
    EndsOwn,
    /// The program ends.
    Ends,
}

impl Why {
    /// For the clients.
    pub fn text(self) -> &'static str {
        match self {
            Why::BeginsOwn => "the program has begun a session of its own",
            Why::EndsOwn => "the program has ended its session",
            Why::Ends => "the program has ended",
        }
    }
}
