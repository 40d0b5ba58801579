//! Interrupts (Thread#raise, Thread#kill, Timeout, signals) that come while something has to be
//! finished, and the moments in between in which other threads run. On Ruby threads, with the GVL.

use crate::without_gvl::{try_telling, try_without_gvl, without_gvl};
use magnus::error::ErrorType;
use magnus::rb_sys::protect;
use magnus::{Error, RArray, Ruby, Value, prelude::*};
use rperf_session::output::hurrying_by;
use rperf_vm::Gvl;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// For how long the GVL is held at a stretch.
pub const LIMIT: Duration = Duration::from_millis(2);

/// How often interrupts are met before work is done with the GVL: they could come without end.
const ATTEMPTS: usize = 3;

/// Lets other threads run that wait for the GVL, and interrupts take effect: what they raise is
/// the error.
pub fn let_others_run(_: &mut Gvl<'_>) -> Result<(), Error> {
    give_way()
}

/// Does what [`let_others_run`] does, on any Ractor: for work that has nothing to do with a
/// session.
fn give_way() -> Result<(), Error> {
    // SAFETY: a Ruby thread with the GVL; `protect` catches what interrupts raise.
    unsafe {
        protect(|| {
            rb_sys::rb_thread_schedule();
            rb_sys::Qnil as rb_sys::VALUE
        })
    }
    .map(drop)
}

/// What `work` returns, which is done without the GVL. Interrupts take effect before it, rather than
/// keep the GVL: what they raise is the error.
pub fn without_gvl_if_possible<T: Send, F: FnOnce() -> T + Send>(mut work: F) -> Result<T, Error> {
    for _ in 0..ATTEMPTS {
        match try_without_gvl(work) {
            Ok(value) => return Ok(value),
            Err(undone) => work = undone,
        }
        give_way()?;
    }
    Ok(without_gvl(work))
}

/// A stretch of long work on Ruby objects, with the GVL.
pub struct Stretch {
    began: Instant,
}

impl Stretch {
    /// Begins a stretch.
    pub fn begin() -> Self {
        Self {
            began: Instant::now(),
        }
    }

    /// If it has been long enough, lets other threads run, and interrupts take effect: what they
    /// raise is the error.
    pub fn end_if_long(&mut self) -> Result<(), Error> {
        if self.began.elapsed() < LIMIT {
            return Ok(());
        }
        give_way()?;
        self.began = Instant::now();
        Ok(())
    }
}

/// Whether a signal, `exit` or the end of the thread has raised it.
pub fn is_of_signal(error: &Error) -> bool {
    match error.value() {
        // What is no exception is the end of the thread.
        None => matches!(error.error_type(), ErrorType::Jump(_)),
        Some(exception) => {
            let ruby = Ruby::get_with(exception);
            error.is_kind_of(ruby.exception_signal())
                || error.is_kind_of(ruby.exception_system_exit())
        }
    }
}

/// Interrupts that have to wait. Handlers of signals run when the signals come, but what they
/// raise, or another thread, is kept until [`Interrupts::raise`].
#[derive(Default)]
pub struct Interrupts {
    raised: Option<Error>,
    /// Exceptions that came after it: a Ruby Array, as the collector looks for them on the stack.
    later: Option<RArray>,
}

impl Interrupts {
    /// Lets other threads run that wait for the GVL.
    pub fn let_others_run(&mut self, gvl: &mut Gvl<'_>) {
        if let Err(error) = let_others_run(gvl) {
            self.keep(error);
        }
    }

    /// What `work` returns, which is done without the GVL.
    pub fn without_gvl<T: Send, F: FnOnce() -> T + Send>(&mut self, _: &mut Gvl<'_>, work: F) -> T {
        self.without_its_gvl(work)
    }

    /// What `work` returns, which has nothing to do with a session, and is done without the GVL.
    /// On any Ractor.
    pub fn without_its_gvl<T: Send, F: FnOnce() -> T + Send>(&mut self, work: F) -> T {
        self.try_at_times(work, try_without_gvl, || ())
            .unwrap_or_else(without_gvl)
    }

    /// What `work` returns, which writes something, and is done without the GVL if possible. Slow readers have
    /// a moment left once an interrupt has come. On any Ractor.
    pub fn writing<T: Send, F: FnOnce() -> T + Send>(&mut self, work: F) -> T {
        let flag = Arc::new(AtomicBool::new(self.raised.is_some()));
        let of_work = Arc::clone(&flag);
        let work = || hurrying_by(of_work, work);
        let hurry = || flag.store(true, Relaxed);
        self.try_at_times(work, |work| try_telling(&flag, work), hurry)
            .or_else(|work| try_telling(&flag, work))
            .unwrap_or_else(|work| {
                hurry();
                work()
            })
    }

    /// What `attempt` returns of `work`. If an interrupt prevents it, that is kept, `kept` is called, and it is
    /// tried again: for a few times, as they could come without end. Then the error is `work`, undone.
    fn try_at_times<T, F>(
        &mut self,
        mut work: F,
        attempt: impl Fn(F) -> Result<T, F>,
        kept: impl Fn(),
    ) -> Result<T, F> {
        for _ in 0..ATTEMPTS {
            match attempt(work) {
                Ok(value) => return Ok(value),
                Err(undone) => work = undone,
            }
            if let Err(error) = give_way() {
                self.keep(error);
                kept();
            }
        }
        Err(work)
    }

    /// What `work` returns, which runs Ruby code and is done again if an interrupt comes: for a few
    /// times, as they could come without end.
    pub fn until_done<T>(
        &mut self,
        mut work: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        for _ in 0..ATTEMPTS {
            match work() {
                Ok(value) => return Ok(value),
                Err(error) => self.keep(error),
            }
        }
        work()
    }

    /// What `work` returns, which runs Ruby code that is nobody's to change, and is done again if an
    /// interrupt comes. `None` if it fails each time: then what was raised is its own, but for signals.
    pub fn if_possible<T>(&mut self, mut work: impl FnMut() -> Result<T, Error>) -> Option<T> {
        let mut raised = [const { None }; ATTEMPTS];
        for attempt in 0..ATTEMPTS {
            match work() {
                Ok(value) => {
                    raised.into_iter().flatten().for_each(|it| self.keep(it));
                    return Some(value);
                }
                Err(error) => raised[attempt] = Some(error),
            }
        }
        let signals = raised.into_iter().flatten().filter(is_of_signal);
        signals.for_each(|it| self.keep(it));
        None
    }

    /// Takes those of something else that is finished; they come after its own.
    pub fn add(&mut self, other: Self) {
        if let Some(error) = other.raised {
            self.keep(error);
        }
        for exception in other.later.into_iter().flatten() {
            self.keep_later(exception);
        }
    }

    fn keep_later(&mut self, exception: Value) {
        let ruby = Ruby::get_with(exception);
        let later = self.later.get_or_insert_with(|| ruby.ary_new());
        // It isn't frozen.
        let _ = later.push(exception);
    }

    /// Keeps what was raised, or that the thread ends.
    pub fn keep(&mut self, error: Error) {
        match error.value() {
            Some(exception) if self.raised.is_some() => self.keep_later(exception),
            // The first one; or the thread ends, whatever was raised.
            _ => self.raised = Some(error),
        }
    }

    /// Everything is finished: what was raised first is the error. What came after it is raised when
    /// the caller lets interrupts take effect again.
    pub fn raise(self) -> Result<(), Error> {
        for exception in self.later.into_iter().flatten() {
            let thread = Ruby::get_with(exception).thread_current();
            // If the caller has let them take effect all along, this one is raised here, and the
            // first one matters more.
            let _: Result<Value, Error> = thread.funcall("raise", (exception,));
        }
        self.raised.map_or(Ok(()), Err)
    }
}
