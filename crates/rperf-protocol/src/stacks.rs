//! The stacks of a program's threads, and of its fibers: the answer to `/v1/stacks`. There may be a
//! hundred thousand frames, so the writer's texts and places are borrowed; the reader's are its own.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::{Display, Formatter, Result as FmtResult};

/// Who has said what the threads do, or what memory is of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The VM: its threads have stacks.
    Vm,
    /// The system, as the VM doesn't answer: native threads have names and waits.
    #[default]
    System,
}

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ThreadState {
    /// The thread has the GVL; or, as a native thread, a CPU.
    Running,
    /// The thread waits for something else than the GVL.
    Blocked,
    /// The thread could run, but for the GVL.
    #[serde(rename = "waits for the GVL")]
    WaitsForGvl,
    /// The thread is about to end.
    Ending,
    /// A word of a later version.
    #[serde(untagged)]
    Other(String),
}

/// The word that it has in messages.
impl Display for ThreadState {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        self.serialize(formatter)
    }
}

/// A system call in which a thread waits. On the wire it is the call's name, and `name: target` where the target
/// is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SystemCall<'a> {
    /// Its name.
    pub name: &'a str,
    /// The file, socket or child that the thread waits for; empty if it isn't known.
    pub target: &'a str,
}

impl<'a> SystemCall<'a> {
    /// The call on the wire.
    pub fn read(text: &'a str) -> Self {
        let (name, target) = text.split_once(SEPARATOR).unwrap_or((text, ""));
        Self { name, target }
    }
}

/// What is between the name of a call and its target.
const SEPARATOR: &str = ": ";

impl Display for SystemCall<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FmtResult {
        match self.target {
            "" => formatter.write_str(self.name),
            target => write!(formatter, "{}{SEPARATOR}{target}", self.name),
        }
    }
}

/// The answer as the VM has it. Readers get both answers so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stacks<'a> {
    /// How long it took.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// Why it isn't the VM's.
    pub note: Option<Cow<'a, str>>,
    /// How many Ractors there are whose threads aren't among these.
    pub other_ractors: Option<u32>,
    /// Whose answer it is.
    pub source: Source,
    /// How many threads have no stack here, as there are too many frames.
    pub stacks_left_out: Option<u32>,
    /// Whether the main thread was woken for it.
    #[serde(default)]
    pub woken: bool,
    /// The different frames.
    #[serde(default)]
    pub frames: Vec<Frame<'a>>,
    /// The threads.
    pub threads: Vec<Thread<'a>>,
    /// The fibers, if they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fibers: Option<Fibers<'a>>,
}

/// A frame. A method of C is where it was called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame<'a> {
    /// The method, with its class.
    pub name: Cow<'a, str>,
    /// The file; empty if there is none.
    pub path: Cow<'a, str>,
    /// The line; 0 if there is none.
    pub line: u32,
}

/// Places in the list of all frames, the innermost first.
pub type Places<'a> = Cow<'a, [u32]>;

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread<'a> {
    /// Which one it is of the VM's threads.
    pub number: Option<u32>,
    /// Its name; empty without one.
    #[serde(default)]
    pub name: Cow<'a, str>,
    /// The number of its native thread, if it has one.
    pub tid: Option<i32>,
    /// What it does.
    pub state: ThreadState,
    /// How long it has waited, if that is known.
    pub state_ns: Option<u64>,
    /// Whether it had waited before the session began that knows it.
    #[serde(default)]
    pub state_or_longer: bool,
    /// The [`SystemCall`] in which it waits.
    pub waits_in: Option<Cow<'a, str>>,
    /// Its number in the profile of the session that runs.
    pub profile_thread: Option<u32>,
    /// Its labels there.
    #[serde(default)]
    pub labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Its stack.
    pub frames: Places<'a>,
}

/// The fibers that are in no thread's stack.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fibers<'a, Frames = Places<'a>> {
    /// How long all took.
    pub elapsed_ns: u64,
    /// How many were found but not shown.
    pub left_out: u32,
    /// Why there are none to be shown.
    pub note: Option<Cow<'a, str>>,
    /// How long the walk of the heap took, which keeps the GVL.
    pub walk_ns: u64,
    /// The stacks of the others.
    pub stacks: Vec<FiberStack<'a, Frames>>,
}

impl<Frames> Fibers<'_, Frames> {
    /// With other frames for those of each stack.
    pub fn map<'b, Others>(
        &'b self,
        mut others: impl FnMut(&'b Frames) -> Others,
    ) -> Fibers<'b, Others> {
        let stacks = self.stacks.iter().map(|stack| FiberStack {
            block: stack.block.as_deref().map(Into::into),
            count: stack.count,
            state: (&*stack.state).into(),
            frames: others(&stack.frames),
        });
        Fibers {
            elapsed_ns: self.elapsed_ns,
            left_out: self.left_out,
            note: self.note.as_deref().map(Into::into),
            walk_ns: self.walk_ns,
            stacks: stacks.collect(),
        }
    }
}

/// A stack that some fibers have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiberStack<'a, Frames = Places<'a>> {
    /// Where their block is, if they have one in Ruby.
    pub block: Option<Cow<'a, str>>,
    /// How many have it.
    pub count: u32,
    /// What Fiber#to_s says.
    pub state: Cow<'a, str>,
    /// Its frames.
    pub frames: Frames,
}

/// The answer as the system has it, without frames.
#[derive(Debug, Clone, Serialize)]
pub struct NativeStacks<'a> {
    /// How long it took.
    pub elapsed_ns: u64,
    /// Why it isn't the VM's.
    pub note: &'a str,
    /// [`Source::System`].
    pub source: Source,
    /// The native threads.
    pub threads: Vec<NativeThread<'a>>,
    /// Whether the main thread was woken for it.
    pub woken: bool,
}

/// A native thread, of which nothing is known that only the VM knows.
#[derive(Debug, Clone, Serialize)]
pub struct NativeThread<'a> {
    /// None.
    pub frames: [u32; 0],
    /// Its name.
    pub name: &'a str,
    /// Null or false, as only the VM knows it.
    pub number: (),
    /// Whether it runs.
    pub state: ThreadState,
    /// Null or false, as only the VM knows it.
    pub state_ns: (),
    /// Null or false, as only the VM knows it.
    pub state_or_longer: bool,
    /// Its number.
    pub tid: i32,
    /// The [`SystemCall`] in which it waits.
    pub waits_in: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{NotAReply, read, written};

    fn of(body: &str) -> Result<Stacks<'static>, NotAReply> {
        read(body.as_bytes())
    }

    #[test]
    fn recorded_answers_are_read() {
        let golden = include_str!("../golden/stacks.json");
        let stacks = of(golden).expect("stacks");
        assert_eq!(written(&stacks) + "\n", golden.replace("\\u001b", " "));
        let states = stacks.threads.iter().map(|it| it.state.to_string());
        let words = ["blocked", "blocked", "waits for the GVL", "ending"];
        assert_eq!(states.collect::<Vec<_>>(), words);
        let native = of(include_str!("../golden/native_stacks.json")).expect("stacks");
        assert_eq!(
            (native.source, native.other_ractors, &native.frames[..]),
            (Source::System, None, &[][..])
        );
        assert_eq!(native.threads[0].state, ThreadState::Running);
        assert_eq!(native.threads[1].waits_in.as_deref(), Some("poll:  "));
    }

    #[test]
    fn system_calls_are_read_as_they_are_written() {
        for (text, name, target) in [
            ("sleep", "sleep", ""),
            ("poll: db:1", "poll", "db:1"),
            ("read: a: b", "read", "a: b"),
        ] {
            let call = SystemCall::read(text);
            assert_eq!((call.name, call.target), (name, target));
            assert_eq!(call.to_string(), text);
        }
    }

    #[test]
    fn what_other_versions_lack_or_add_is_no_obstacle() {
        let least = r#"{"source":"vm","threads":[{"state":"\u001bnew","frames":[7]}],"more":{}}"#;
        let stacks = of(least).expect("stacks");
        let thread = &stacks.threads[0];
        assert_eq!(thread.state, ThreadState::Other(" new".into()));
        assert_eq!((&*thread.frames, thread.number), (&[7][..], None));
        for odd in [
            r#"{"source":"vm"}"#,
            r#"{"source":"vm","threads":[{}]}"#,
            r#"{"source":"vm","threads":[{"state":1,"frames":[]}]}"#,
            r#"{"source":"vm","threads":[{"state":"blocked","frames":[-1]}]}"#,
            r#"{"source":"vm","threads":[],"frames":[{}]}"#,
            "[]",
        ] {
            assert_eq!(of(odd), Err(NotAReply), "{odd}");
        }
    }
}
