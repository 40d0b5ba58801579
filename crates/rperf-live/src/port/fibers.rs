//! The fibers that are in no thread's stack, as the VM says them.

use super::frames::{FrameName, Places};
use super::stack_list::Stack;
use rperf_protocol::stacks::{self, Fibers as Message};

/// A stack that some fibers have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiberStack {
    /// How many have it.
    pub count: u32,
    /// What Fiber#to_s says.
    pub state: String,
    /// Where their block is; empty if they have none in Ruby.
    pub block: String,
    /// Its frames.
    pub frames: Stack,
}

/// What the VM knows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fibers {
    /// Why there are none to be shown.
    pub note: Option<String>,
    /// How many were found but not shown.
    pub left_out: u32,
    /// The stacks of the others.
    pub stacks: Vec<FiberStack>,
    /// The names of their frames.
    pub names: Vec<FrameName>,
    /// How long the walk of the heap took, which keeps the GVL.
    pub walk_ns: u64,
    /// How long all took, with what ran in between.
    pub elapsed_ns: u64,
}

impl Fibers {
    /// The message for clients. The names of their frames are in `places` behind so many others.
    pub(super) fn message<'a>(&'a self, places: &mut Places<'a>, others: usize) -> Message<'a> {
        let stacks = self.stacks.iter().map(|stack| stacks::FiberStack {
            block: Some(&stack.block)
                .filter(|it| !it.is_empty())
                .map(|it| (&**it).into()),
            count: stack.count,
            state: (&*stack.state).into(),
            frames: places.list(&stack.frames, others).into(),
        });
        Message {
            elapsed_ns: self.elapsed_ns,
            left_out: self.left_out,
            note: self.note.as_deref().map(Into::into),
            walk_ns: self.walk_ns,
            stacks: stacks.collect(),
        }
    }
}
