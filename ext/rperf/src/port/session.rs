//! What the helper does with sessions for the port's clients. On the helper, with the GVL.

use crate::native::{self, clients};
use crate::running::facts;
use magnus::error::ErrorType;
use magnus::{Error, RModule, Ruby, Value, prelude::*};
use rperf_port::request;
use rperf_port::task::{Question, Reply, Task};
use rperf_vm::Gvl;

/// Does what is asked for, and answers. The error is an interrupt of the helper's: the question is
/// open still, or has its answer.
pub fn perform(ruby: &Ruby, helper: RModule, question: Question) -> Result<(), Error> {
    let gvl = &mut native::gvl(ruby);
    clients::wait_for_program(gvl)?;
    let done = match question.task {
        Task::Begin => begin(ruby, gvl, helper, question),
        Task::End => end(ruby, gvl, question),
        Task::Look => {
            // It may be a new one.
            clients::note_helper(gvl);
            request::answer(question, Reply::Here);
            Ok(())
        }
        _ => snapshot(gvl, helper, question),
    };
    match done {
        Err(error) if is_failure(ruby, &error) => {
            request::answer(question, Reply::Failed(error.to_string()));
            Ok(())
        }
        done => done,
    }
}

/// Whether an error is a failure that the client is told of: a StandardError, and not what ends
/// the helper.
fn is_failure(ruby: &Ruby, error: &Error) -> bool {
    let class = ruby.exception_standard_error();
    match error.error_type() {
        ErrorType::Jump(_) => false,
        ErrorType::Error(found, _) => found.is_inherited(class),
        ErrorType::Exception(exception) => exception.is_kind_of(class),
    }
}

/// `Native.begin_for_clients`: begins a session for clients. Returns whether it runs.
pub fn begin_for_clients(ruby: &Ruby) -> Result<bool, Error> {
    clients::begin(ruby, &mut native::gvl(ruby), request::sampling())
}

/// `Native.clients_want_ops?`: whether the session that clients want is to measure ops.
pub fn wants_ops() -> bool {
    request::sampling().measure.ops
}

fn begin(ruby: &Ruby, gvl: &mut Gvl<'_>, helper: RModule, question: Question) -> Result<(), Error> {
    // One runs of which the port doesn't know: the helper that began it was ended before it said so.
    if facts::is_of_clients() {
        let (_, interrupts) = clients::end(ruby, gvl)?;
        interrupts.raise()?;
    }
    // By way of Ruby: a session learns from its caller's frames what frames look like.
    let begun: bool = helper.funcall("begin_session", ())?;
    if !begun {
        request::answer(question, Reply::NotNow);
    } else if !request::answer(question, Reply::Begun) {
        // Whoever has wanted it has gone.
        let (_, interrupts) = clients::end(ruby, gvl)?;
        interrupts.raise()?;
    }
    Ok(())
}

/// The program may have closed the port's descriptors: then nobody is left for whom a session runs
/// that clients have begun.
pub fn end_without_port(ruby: &Ruby) -> Result<(), Error> {
    if rperf_port::path().is_some() || !facts::is_of_clients() {
        return Ok(());
    }
    let gvl = &mut native::gvl(ruby);
    clients::wait_for_program(gvl)?;
    let (_, interrupts) = clients::end(ruby, gvl)?;
    interrupts.raise()
}

fn end(ruby: &Ruby, gvl: &mut Gvl<'_>, question: Question) -> Result<(), Error> {
    if !facts::is_of_clients() {
        request::answer(question, Reply::NotNow);
        return Ok(());
    }
    let (taken, interrupts) = clients::end(ruby, gvl)?;
    request::answer(question, taken.map_or(Reply::NotNow, Reply::Profile));
    interrupts.raise()
}

fn snapshot(gvl: &Gvl<'_>, helper: RModule, question: Question) -> Result<(), Error> {
    clients::note_helper(gvl);
    let is_theirs = facts::is_of_clients();
    let profile: Option<Value> = helper.funcall("snapshot", ())?;
    let taken = profile
        .map(|it| clients::up_to(it, is_theirs))
        .transpose()?;
    request::answer(question, taken.map_or(Reply::NotNow, Reply::Profile));
    Ok(())
}
