//! What the threads of a program share of its port. It is made on a Ruby thread, and used there and
//! on the port's thread.

use crate::bell;
use crate::socket::descriptors::Guarded;
use crate::socket::tcp::Tcp;
use crate::step::Step;
use crate::task::Message;
use crate::wake;
use rperf_protocol::hello::{Beginner, Session};
use rperf_session::place::Place;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};
use std::sync::mpsc::Sender;
use std::thread;

/// The profiling session that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// How it profiles.
    pub session: Session,
    /// Who has begun it.
    pub beginner: Beginner,
}

/// What the extension knows of the program. The functions are called on the port's thread.
#[derive(Debug, Clone)]
pub struct Program {
    /// The version of Ruby.
    pub ruby: String,
    /// The directories that its own files belong to.
    pub roots: Vec<String>,
    /// The directories that have rperf's files.
    pub rperf_directories: Vec<String>,
    /// The profiling session that runs.
    pub session: fn() -> Option<Running>,
    /// Has a Ruby thread look at [`crate::request::open`] at its next safepoint.
    pub ask: fn(),
}

/// A port of this process. It stays in memory as long as the process lives, since the thread and
/// the end of the program share it.
pub struct Port {
    /// Where it is.
    pub place: Place,
    /// The loopback address at which it also is, if the program wants one.
    pub tcp: Option<Tcp>,
    /// The number of that port.
    pub number: Option<u16>,
    /// Its program.
    pub program: Program,
    /// The program ends.
    pub has_ended: AtomicBool,
    /// The port's thread is asking the VM.
    asks: AtomicBool,
    /// Where a byte wakes the thread.
    waker: Guarded<UnixStream>,
    /// Where the worker of a session that is watched says that it has taken one.
    steps: Sender<Step>,
    /// Where its messages go.
    messages: Sender<Message>,
    /// A profile that the program has handed over as it ended hasn't gone out yet.
    owes: AtomicBool,
}

/// The port, once it is open; null before, and in forked children.
static PORT: AtomicPtr<Port> = AtomicPtr::new(ptr::null_mut());

/// The port of the process that forked this one.
static PARENTS: AtomicPtr<Port> = AtomicPtr::new(ptr::null_mut());

impl Port {
    /// Makes one, which isn't this process's yet.
    pub fn leak(
        place: Place,
        tcp: Option<Tcp>,
        number: Option<u16>,
        program: Program,
        waker: UnixStream,
        messages: Sender<Message>,
        steps: Sender<Step>,
    ) -> &'static Port {
        Box::leak(Box::new(Port {
            place,
            tcp,
            number,
            program,
            has_ended: AtomicBool::new(false),
            asks: AtomicBool::new(false),
            waker: Guarded::new(waker),
            steps,
            messages,
            owes: AtomicBool::new(false),
        }))
    }

    /// The port of this process, if it has one.
    pub fn current() -> Option<&'static Port> {
        // SAFETY: null, or a Port that is never freed.
        unsafe { PORT.load(SeqCst).as_ref() }
    }

    /// From now on it is this process's.
    pub fn enter(&'static self) {
        PORT.store(ptr::from_ref(self).cast_mut(), SeqCst);
    }

    /// Takes the port away from this process. Returns whether it was the process's port until now.
    pub fn leave(&'static self) -> bool {
        let own = ptr::from_ref(self).cast_mut();
        let left = PORT.compare_exchange(own, ptr::null_mut(), SeqCst, SeqCst);
        left.is_ok()
    }

    /// In a forked child: this process has none, and its parent may have had one.
    pub fn become_parents() {
        PARENTS.store(PORT.swap(ptr::null_mut(), SeqCst), SeqCst);
    }

    /// In a forked child: the parent's, given once. No thread changes anything of it here.
    pub fn take_parents() -> Option<&'static Port> {
        // SAFETY: null, or the parent's Port, of which the child has a copy that is never freed.
        unsafe { PARENTS.swap(ptr::null_mut(), SeqCst).as_ref() }
    }

    /// Has a Ruby thread look at the open question, unless the program ends: then there may be no
    /// VM any more.
    pub fn ask_vm(&self) {
        self.asks.store(true, SeqCst);
        if !self.has_ended.load(SeqCst) {
            (self.program.ask)();
            bell::ring();
        }
        self.asks.store(false, SeqCst);
    }

    /// Has the VM's main thread look for interrupts if it waits, unless the program ends. Returns
    /// whether it was woken.
    pub fn wake_vm(&self) -> bool {
        self.asks.store(true, SeqCst);
        let is_woken = !self.has_ended.load(SeqCst) && wake::wake();
        self.asks.store(false, SeqCst);
        is_woken
    }

    /// The program ends. Afterwards the port's thread asks the VM no more.
    pub fn end(&self) {
        self.has_ended.store(true, SeqCst);
        while self.asks.load(SeqCst) {
            thread::yield_now();
        }
    }

    /// Gives the thread a message.
    pub fn hand_over(&self, message: Message) {
        if matches!(message, Message::Ended(..)) {
            self.owes.store(true, SeqCst);
        }
        let _ = self.messages.send(message);
        self.wake();
    }

    /// Tells the thread of a step.
    pub fn hand_over_step(&self, step: Step) {
        let _ = self.steps.send(step);
        self.wake();
    }

    /// For threads that make answers.
    pub fn messages(&self) -> Sender<Message> {
        self.messages.clone()
    }

    /// Whether a profile that was handed over hasn't gone out yet.
    pub fn owes(&self) -> bool {
        self.owes.load(SeqCst)
    }

    /// Notes that the profile that was handed over has gone out, or that nobody wants it.
    pub fn owes_nothing(&self) {
        self.owes.store(false, SeqCst);
    }

    /// The waker is shut, as by a program that closes it.
    #[cfg(test)]
    pub fn shut_waker(&self) {
        let both = std::net::Shutdown::Both;
        self.waker.shutdown(both).expect("shut down");
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if self.waker.is_ours() {
            // If there is no room, bytes are there to wake it.
            let _ = (&*self.waker).write(&[0]);
        }
    }
}
