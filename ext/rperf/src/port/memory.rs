//! What the VM knows of its memory, for the port's clients. On the helper, with the GVL, which is held
//! without a break only while pages are listed, and while objects are walked.

use crate::interrupts::{let_others_run, without_gvl_if_possible};
use crate::native;
use crate::ruby::heap::{Quiet, Walk};
use crate::ruby::memory;
use magnus::{Error, RModule, Ruby, prelude::*};
use rperf_port::memory::{VmMemory, nanoseconds};
use rperf_port::request;
use rperf_port::task::{Question, Task};
use rperf_protocol::memory::ObjectsAnswer;
use rperf_vm::Gvl;
use rperf_vm::clock::sleep;
use std::time::{Duration, Instant};

/// For how long the end of a collection is waited for: to list the pages ends it, which takes long if
/// much is left of it. Where nothing runs, nothing ends it.
const PATIENCE: Duration = Duration::from_millis(100);

/// How often it is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(2);

/// Why the heap isn't looked at.
const OTHER_RACTORS: &str =
    "the program has other Ractors, which change the list of its pages at any time";

/// Takes it.
pub fn take(ruby: &Ruby, helper: RModule, question: Question) -> Result<VmMemory, Error> {
    let gvl = &mut native::gvl(ruby);
    await_collection(helper, gvl, question)?;
    let (heap, stacks) = memory::known(ruby, gvl, helper)?;
    let_others_run(gvl)?;
    let objects = match question.task == Task::Objects && request::is_wanted(question) {
        true => walk(ruby, gvl)?,
        false => None,
    };
    Ok(VmMemory {
        note: heap.is_none().then(|| OTHER_RACTORS.into()),
        heap,
        stacks,
        objects,
    })
}

/// Waits while a collection is under way.
pub fn await_collection(
    helper: RModule,
    gvl: &mut Gvl<'_>,
    question: Question,
) -> Result<(), Error> {
    let began = Instant::now();
    while helper.funcall::<_, _, bool>("collecting?", ())?
        && began.elapsed() < PATIENCE
        && request::is_wanted(question)
    {
        without_gvl_if_possible(|| sleep(LOOK))?;
        let_others_run(gvl)?;
    }
    Ok(())
}

/// Walks the objects; `None` if that can't be done, or there are other Ractors by now.
fn walk(ruby: &Ruby, gvl: &mut Gvl<'_>) -> Result<Option<ObjectsAnswer>, Error> {
    let Some(walk) = Walk::find(gvl) else {
        return Ok(None);
    };
    let Some(quiet) = Quiet::of(ruby, gvl)? else {
        return Ok(None);
    };
    let began = Instant::now();
    Ok(walk.run(&quiet).map(|walked| ObjectsAnswer {
        count: walked.count,
        held_ns: nanoseconds(began.elapsed()),
        malloc_bytes: walked.malloc_bytes,
    }))
}
