//! The graph of all objects, for a client of the port: a copy of the process sends it, and the program runs
//! on. On the helper, with the GVL, which is held without a break from the list of pages to the fork.

use crate::native;
use crate::ruby::aside;
use crate::ruby::heap::{Missing, Quiet};
use crate::ruby::object_graph::{Before, Functions, Samples, ThreadFacts};
use crate::sampling::objects_made;
use crate::text;
use magnus::rb_sys::{AsRawValue, protect};
use magnus::{Error, RArray, RModule, RString, Ruby, Symbol, Thread, TryConvert, prelude::*};
use rb_sys::Qnil;
use rperf_port::handed_over;
use rperf_port::request;
use rperf_port::task::{Question, Reply};
use rperf_protocol::heap::sampled::Session;
use rperf_protocol::heap::write::Sink;
use rperf_protocol::message::STREAM_HEAD;
use rperf_protocol::refusal::{Code, Refusal};
use rperf_vm::system_calls::{Calls, may};
use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What Ruby says: the collector, threads with their names and those of their local variables, and global
/// variables.
type Facts = (RString, RArray, RArray);

/// The collector whose pages are known.
const DEFAULT: &str = "default";

/// For how long the client may take in nothing, in ms.
const PATIENCE_MS: c_int = 10_000;

/// Has a copy of the process send the graph to the client that was handed over.
pub fn send(ruby: &Ruby, helper: RModule, question: Question) -> Result<Reply, Error> {
    let gvl = &mut native::gvl(ruby);
    let made = objects_made::take(gvl)?;
    super::memory::await_collection(helper, gvl, question)?;
    let facts: RArray = helper.funcall("heap", ())?;
    let (collector, threads, globals) = Facts::try_convert(facts.as_value())?;
    if text::content(collector) != DEFAULT {
        let error = "the program's garbage collector isn't Ruby's own";
        return Ok(refused(Code::Failed, error, "run it with the default one"));
    }
    let threads = threads
        .into_iter()
        .map(thread)
        .collect::<Result<Vec<_>, _>>()?;
    let globals = globals.into_iter().map(|it| {
        let name = Symbol::try_convert(it)?;
        Ok::<_, Error>(name.name()?.as_bytes().to_vec())
    });
    let globals = globals.collect::<Result<Vec<_>, _>>()?;
    let globals: Vec<_> = globals.into_iter().filter(|it| is_readable(it)).collect();
    let functions = match Functions::find(gvl) {
        Ok(functions) => functions,
        Err(Missing(name)) => {
            let error = format!("this Ruby has no {}", name.to_string_lossy());
            return Ok(refused(Code::Failed, &error, "use another version of Ruby"));
        }
    };
    if let Some(refusal) = unfit() {
        return Ok(Reply::Refused(refusal));
    }
    let own = ruby.thread_current().as_raw();
    let Some(mut quiet) = Quiet::of(ruby, gvl)? else {
        let error = "the program has other Ractors, which change their objects at any time";
        return Ok(refused(Code::Failed, error, "ask when they have ended"));
    };
    let gone = || refused(Code::Failed, "the client has gone", "ask again");
    if !request::is_wanted(question) {
        return Ok(gone());
    }
    let Some(before) = Before::take(&quiet, functions, own, &threads, &globals) else {
        return Ok(refused(
            Code::Failed,
            "the VM gave no list of its pages",
            "ask again",
        ));
    };
    let samples = made.as_ref().and_then(|made| {
        Some(Samples {
            session: Session {
                elapsed_ns: made.elapsed_ns(),
                bytes_per_sample: made.samples().bytes_per_sample,
                lost_bytes: made.samples().lost_bytes,
            },
            placed: made.placed(),
            objects: made.located(quiet.gvl())?,
        })
    });
    // From here on nobody else answers the client, and the port's thread hears of the copy.
    if !request::commit(question) {
        return Ok(gone());
    }
    let Some(client) = handed_over::take() else {
        return Ok(gone());
    };
    let kept = client.descriptor();
    let made = aside::make(kept, &mut || {
        begin_copy();
        // What an extension's function raises ends the walk here: further up there is nobody for it.
        let _ = protect(|| {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                // The program may have exchanged the file meanwhile.
                if client.is_ours() && Socket(kept).take(STREAM_HEAD.as_bytes()) {
                    before.send(Socket(kept), samples.as_ref());
                }
            }));
            Qnil.into()
        });
    });
    Ok(match made {
        Ok(pid) => Reply::Forked(pid),
        Err(error) => {
            let error = format!("the system makes no process for the answer: {error}");
            refused(
                Code::Failed,
                &error,
                "see 'ulimit -u', and the limit of the container",
            )
        }
    })
}

/// Why the copy can't be made in this process.
fn unfit() -> Option<Refusal> {
    if let Some(library) = aside::unfit_library() {
        let error = format!("the program's C library is too old for a copy of it: {library}");
        return Some(Refusal::new(Code::Failed, &error, "glibc 2.25 can do it"));
    }
    if !may(Calls::Copy) {
        let error =
            "a filter of system calls (seccomp) would end the program's copy, or the program";
        let hint = "have it allow clone(CLONE_VM | CLONE_VFORK) and what fork calls";
        return Some(Refusal::new(Code::Failed, error, hint));
    }
    None
}

/// In the copy, before anything else of Ruby's: no collection runs there, whatever is allocated, nor does a
/// warning run the program's code.
fn begin_copy() {
    objects_made::end_in_copy();
    // SAFETY: on the thread that has the GVL, in a process that has no other one. No collection is under way,
    // so none is ended here.
    unsafe {
        rb_sys::rb_gc_disable();
        *rb_sys::rb_ruby_verbose_ptr() = Qnil.into();
    }
}

fn refused(code: Code, error: &str, hint: &str) -> Reply {
    Reply::Refused(Refusal::new(code, error, hint))
}

/// Whether a global variable can be read by its name: those of the VM with one sign are no variables,
/// `$FILENAME` opens the next file of the command line, and the VM takes a name for one in ASCII.
fn is_readable(name: &[u8]) -> bool {
    let is_long = name.get(1).is_some_and(u8::is_ascii_alphabetic)
        || name.len() > 2 && name.get(1) == Some(&b'_');
    is_long && name.is_ascii() && name != b"$FILENAME"
}

fn thread(facts: magnus::Value) -> Result<ThreadFacts, Error> {
    let (thread, name, locals) = <(Thread, RString, RArray)>::try_convert(facts)?;
    let locals = locals.into_iter().map(Symbol::try_convert);
    let locals = locals.collect::<Result<Vec<_>, _>>()?;
    Ok(ThreadFacts {
        object: thread.as_raw(),
        name: text::bytes(name),
        // SAFETY: a Symbol that the Array has.
        locals: locals
            .into_iter()
            .map(|it| unsafe { rb_sys::rb_sym2id(it.as_raw()) })
            .collect(),
    })
}

/// The client's connection, in the copy.
struct Socket(c_int);

impl Sink for Socket {
    fn take(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            // SAFETY: bytes of ours; a connection that is gone is an error.
            let count = unsafe {
                libc::send(
                    self.0,
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    libc::MSG_NOSIGNAL,
                )
            };
            match usize::try_from(count) {
                Ok(count) => bytes = &bytes[count..],
                Err(_) if !self.can_take_more() => return false,
                Err(_) => {}
            }
        }
        true
    }
}

impl Socket {
    /// After an error of `send`: waits, if there only was no room.
    fn can_take_more(&self) -> bool {
        match std::io::Error::last_os_error().kind() {
            std::io::ErrorKind::Interrupted => true,
            std::io::ErrorKind::WouldBlock => {
                let mut wanted = libc::pollfd {
                    fd: self.0,
                    events: libc::POLLOUT,
                    revents: 0,
                };
                // SAFETY: one entry, of this function.
                unsafe { libc::poll(&raw mut wanted, 1, PATIENCE_MS) > 0 }
            }
            _ => false,
        }
    }
}
