//! What the memory of a process is of: what its program tells, if it has a port, and then what the
//! kernel says. On the command's threads.

use crate::failure::{AskError, Failure};
use crate::process::command_line;
use crate::program::Program;
use rperf_format::{Lack, MemoryFacts, MemoryFile, MemoryMalloc, MemoryObjects};
use rperf_protocol::memory::Memory as Answer;
use rperf_protocol::refusal::Code;
use rperf_report::memory::Memory;
use rperf_session::process_id::ProcessId;
use rperf_session::process_memory::{Taken, Unreadable};
use std::time::{Instant, SystemTime};

/// Why nothing is known of a process's memory.
#[derive(Debug)]
pub enum LookError {
    /// There is no such process, or it can't be asked.
    Failure(Failure),
    /// The kernel doesn't tell.
    Unreadable(Unreadable),
}

/// How it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// All objects are walked.
    pub with_objects: bool,
    /// The main thread may be woken for the answer.
    pub may_wake: bool,
}

/// Looks at a process, which needn't have a port. `why` has words for what its program refuses.
pub fn look(
    process: ProcessId,
    how: Look,
    why: impl FnOnce(&Failure) -> String,
) -> Result<MemoryFile, LookError> {
    if !cfg!(target_os = "linux") {
        return Err(LookError::Unreadable(Unreadable::System));
    }
    let began = Instant::now();
    let connected = Program::connect(process).map_err(|failure| refused(failure, why));
    let (mut program, lack) = match connected {
        Ok(program) => (Some(program), None),
        Err(Ok(lack)) => (None, Some(lack)),
        Err(Err(failure)) => return Err(LookError::Failure(failure)),
    };
    look_at(process, program.as_mut(), how, lack, began)
}

/// Looks at a program that is connected to.
pub fn look_at(
    process: ProcessId,
    mut program: Option<&mut Program>,
    how: Look,
    lack: Option<Lack>,
    began: Instant,
) -> Result<MemoryFile, LookError> {
    let mut lacks: Vec<Lack> = lack.into_iter().collect();
    let answer = match program
        .as_mut()
        .map(|it| it.memory(how.with_objects, how.may_wake))
    {
        None => Answer::default(),
        Some(Ok(answer)) => answer,
        Some(Err(AskError::Closed)) => return Err(LookError::Failure(AskError::Closed.into())),
        Some(Err(AskError::Refused(refusal))) if refusal.code == Code::NotFound => {
            lacks.push(Lack::Answer(
                "the rperf of this program is too old to tell".into(),
            ));
            Answer::default()
        }
        Some(Err(error)) => return Err(LookError::Failure(error.into())),
    };
    if let Some(note) = &answer.note {
        lacks.push(Lack::Answer(note.clone()));
    }
    let told = answer.told();
    let pid = process.pid;
    let taken = Taken::of(pid).map_err(LookError::Unreadable)?;
    let memory = taken.rows(pid, &told);
    if !process.is_alive() {
        // Another one may have its number by now.
        return Err(LookError::Failure(AskError::Closed.into()));
    }
    lacks.extend(lacks_of(&answer, &memory, how));
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let held = answer.heap.as_ref().map_or(0, |it| it.held_ns);
    let held_for_objects = answer.objects.as_ref().map_or(0, |it| it.held_ns);
    let hello = program.map(|it| &it.hello);
    let facts = MemoryFacts {
        pid,
        program: hello.map_or_else(|| command_line(pid), |it| it.program.clone()),
        ruby: hello.map(|it| it.ruby.clone()),
        collector: answer.heap.as_ref().map(|it| it.collector.clone()),
        time_ns: now.map_or(0, |it| it.as_nanos() as u64),
        elapsed_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
        held_ns: held.max(held_for_objects),
        woken: answer.woken,
    };
    let malloc = answer.malloc.as_ref().map(|it| MemoryMalloc {
        allocator: it.allocator.clone(),
        heaps: memory.heaps,
        handed_out_bytes: memory.handed_out,
        untouched_bytes: memory.untouched,
        elapsed_ns: it.elapsed_ns,
    });
    Ok(MemoryFile {
        malloc,
        objects: answer.objects.as_ref().map(|it| MemoryObjects {
            count: it.count,
            malloc_bytes: it.malloc_bytes,
            held_ns: it.held_ns,
        }),
        lacks,
        ..MemoryFile::of(facts, &memory)
    })
}

/// What is missing because the program refuses; an error if nothing should be told without it.
fn refused(failure: Failure, why: impl FnOnce(&Failure) -> String) -> Result<Lack, Failure> {
    match failure {
        Failure::NoPort => Ok(Lack::Port),
        Failure::Stopped | Failure::Asking(AskError::Silent | AskError::OtherProtocol(_)) => {
            Ok(Lack::Answer(why(&failure)))
        }
        _ => Err(failure),
    }
}

/// What else isn't known.
fn lacks_of(answer: &Answer, memory: &Memory, how: Look) -> impl Iterator<Item = Lack> {
    let has_counts = answer.malloc.as_ref().is_none_or(|it| it.counts.is_some());
    let has_pages = answer.heap.as_ref().is_none_or(|it| it.page_bytes > 0);
    let has_objects = answer.objects.is_some() || !how.with_objects || answer.heap.is_none();
    let lacks = [
        (!has_counts, Lack::Malloc),
        (!has_pages, Lack::HeapPages),
        (!has_objects, Lack::Objects),
        (memory.lacks_pages, Lack::Pages),
    ];
    lacks.into_iter().filter(|it| it.0).map(|it| it.1)
}
