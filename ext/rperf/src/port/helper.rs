//! The helper: a Ruby thread that answers the port where the VM has to be asked. It comes into being
//! at a safepoint of whichever thread has the GVL, answers, and ends; during a session that clients
//! have begun it stays, and looks for questions every few milliseconds, so that a program in which
//! nothing else runs answers, too. One that the program has asked for waits for questions all the
//! time.
//!
//! What runs at the safepoint calls no method: an interrupt would be lost there. So it only makes
//! the thread, and then lets the GVL go, as do the threads that have it next: in a busy program the
//! helper would else wait for a whole time slice of each.

use super::failure::class_of;
use super::fibers;
use super::giving_way::let_go;
#[cfg(target_os = "linux")]
use super::heap;
use super::memory;
use super::session::{end_without_port, perform};
use super::stacks;
use super::steps;
use crate::profile::errors;
use crate::ruby::ractor::AnyGvl;
use crate::ruby::safepoint::Job;
use crate::ruby::threads::RubyThread;
use crate::running::facts;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, Module, RModule, Ruby, Thread, prelude::*};
use rb_sys::VALUE;
use rperf_port::task::{Reply, Task};
use rperf_port::{bell, request};
use rperf_vm::clock::sleep;
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// About as long as a native thread takes to begin. Until it has, the VM takes it for the one that
/// runs, and asks it for the next callback.
const BEGINNING: Duration = Duration::from_micros(100);

const NO_THREAD: &str =
    "the VM makes no thread for the answer (a frozen ThreadGroup, or too many threads)";

const ENDED: &str = "the thread that was to answer was ended";
const FAILED: &str = "an exception ended the thread that was to answer";

static JOB: Job = Job::new();

/// The thread that had the GVL when the question came to the VM, by the address of its object.
static HOLDER: AtomicUsize = AtomicUsize::new(0);

/// The helper, in the same way.
static HELPER: AtomicUsize = AtomicUsize::new(0);

/// Registers what runs at the safepoint. With the GVL.
pub fn init() {
    JOB.register(on_safepoint);
}

/// Has a Ruby thread see to the open question. On the port's thread.
pub fn ask() {
    JOB.trigger();
}

unsafe extern "C" fn on_safepoint(_: *mut c_void) {
    // SAFETY: on a thread that runs Ruby code.
    let AnyGvl::Main(mut gvl) = (unsafe { AnyGvl::assume_held() }) else {
        // The main Ractor's thread that was asked finds nothing to do now.
        JOB.trigger();
        return;
    };
    steps::see_to(&mut gvl);
    let Some(question) = request::open() else {
        return;
    };
    request::note_seen(question);
    let (current, helper) = (
        RubyThread::current(&gvl).object() as usize,
        HELPER.load(SeqCst),
    );
    // In a forked child `helper` was one of the parent's.
    if current == helper && request::has_helper() {
        return;
    }
    let is_missing = request::claim_helper();
    // A helper that has just begun isn't known yet.
    if is_missing || helper != 0 {
        HOLDER.store(current, SeqCst);
    }
    if is_missing {
        if !make() {
            request::release_helper();
            request::answer(question, Reply::Failed(NO_THREAD.into()));
            return;
        }
        sleep(BEGINNING);
    }
    let_go(gvl, current);
}

/// `hang_bell`: the descriptor that becomes readable with each question.
pub fn hang_bell(ruby: &Ruby) -> Result<i32, Error> {
    bell::hang().map_err(|error| no_helper(ruby, &error.to_string()))
}

/// `make_helper`: makes one, unless there is one already.
pub fn make_to_stay(ruby: &Ruby) -> Result<(), Error> {
    if request::claim_helper() && !make() {
        request::release_helper();
        return Err(no_helper(ruby, NO_THREAD));
    }
    Ok(())
}

fn no_helper(ruby: &Ruby, why: &str) -> Error {
    errors::rperf(ruby, format!("the port has no helper: {why}"))
}

/// Whether the VM has made the thread.
fn make() -> bool {
    // SAFETY: with the GVL, at a safepoint; `run` takes no data, and `protect` catches what the VM
    // raises if it makes no thread.
    let made = unsafe { protect(|| rb_sys::rb_thread_create(Some(run), ptr::null_mut())) };
    made.is_ok()
}

/// The helper.
unsafe extern "C" fn run(_: *mut c_void) -> VALUE {
    if let Ok(ruby) = Ruby::get() {
        // Whatever is raised here, as by Thread#kill, only ends the helper. What is done with
        // sessions is asked for again.
        if let (Err(error), Some(question)) = (serve(&ruby), request::open())
            && (question.task.is_of_stacks()
                || question.task.is_of_memory()
                || question.task == Task::Heap)
        {
            let helper = module(&ruby).ok();
            let why = match helper.and_then(|helper| class_of(helper, &error)) {
                Some(class) => format!("{FAILED}: {class}"),
                None => ENDED.into(),
            };
            request::answer(question, Reply::Failed(why));
        }
    }
    HELPER.store(0, SeqCst);
    request::release_helper();
    rb_sys::Qnil as VALUE
}

fn module(ruby: &Ruby) -> Result<RModule, Error> {
    let rperf: RModule = ruby.class_object().const_get("Rperf")?;
    rperf.const_get("Helper")
}

fn serve(ruby: &Ruby) -> Result<(), Error> {
    let helper = module(ruby)?;
    let thread: Thread = helper.funcall("prepare", ())?;
    HELPER.store(thread.as_raw() as usize, SeqCst);
    loop {
        while let Some(question) = request::open() {
            request::begin_work(question);
            if question.task.is_of_stacks() {
                let mut stacks = stacks::take(ruby, helper, question, HOLDER.load(SeqCst))?;
                if question.task == Task::Fibers && request::is_wanted(question) {
                    stacks.fibers = Some(fibers::take(helper, question, &mut stacks.names)?);
                }
                request::answer(question, Reply::Stacks(stacks));
            } else if question.task.is_of_memory() {
                let memory = memory::take(ruby, helper, question)?;
                request::answer(question, Reply::Memory(memory));
            } else if question.task == Task::Heap {
                #[cfg(target_os = "linux")]
                let reply = heap::send(ruby, helper, question)?;
                #[cfg(not(target_os = "linux"))]
                let reply = Reply::Failed("objects are walked on Linux only".into());
                request::answer(question, reply);
            } else {
                perform(ruby, helper, question)?;
            }
        }
        let stays: bool = helper.funcall("rest", (facts::is_of_clients(),))?;
        end_without_port(ruby)?;
        if !stays {
            return Ok(());
        }
    }
}
