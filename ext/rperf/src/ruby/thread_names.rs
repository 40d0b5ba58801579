//! Names of threads, read where no method may be called: in hooks, with the GVL of the thread's
//! Ractor. No header says where the VM keeps them: a thread that never begins has shown it when the
//! extension was loaded.

use super::ractor::data_of;
use super::threads::RubyThread;
use crate::text;
use magnus::rb_sys::{AsRawValue, FromRawValue, protect};
use magnus::{Error, RClass, RString, Ruby, Value, method, prelude::*};
use rb_sys::VALUE;
use rperf_engine::threads::VmName;
use rperf_engine::{Checked, Memory, Unknown};
use std::ptr::with_exposed_provenance;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The name that the main thread has, unless the program gives it another one.
const MAIN: &str = "main";

/// Bytes of a name that are kept.
const LENGTH: usize = 256;

/// Words of the VM's data of a thread that are looked at.
const WORDS: usize = 128;

/// Offset of the name in the VM's data of a thread; 0 if it isn't known.
static OFFSET: AtomicUsize = AtomicUsize::new(0);

/// Why names can't be read, if they can't.
pub fn unknown() -> Option<Unknown> {
    (OFFSET.load(Relaxed) == 0).then_some(Unknown::Form)
}

/// Finds out where the VM keeps names. On the main thread, once.
pub fn learn(ruby: &Ruby) -> Result<(), Error> {
    let thread = ruby.class_thread().as_raw();
    // SAFETY: Thread is a class that others may inherit from.
    let class = protect(|| unsafe { rb_sys::rb_class_new(thread) })?;
    // SAFETY: the class that was made just now, and is on the stack.
    let class = unsafe { Value::from_raw(class) };
    let Some(class) = RClass::from_value(class) else {
        return Ok(());
    };
    // Where `new` is found.
    class.singleton_class()?;
    class.define_method("initialize", method!(look, 0))?;
    // It fails, as no thread begins.
    let began: Result<Value, Error> = class.funcall("new", ());
    drop(began);
    Ok(())
}

/// Gives `thread`, which never begins, a name, and looks where that is.
fn look(thread: Value) -> Result<(), Error> {
    thread.funcall::<_, _, Value>("name=", ("rperf",))?;
    let name: RString = thread.funcall("name", ())?;
    let Some(memory) = Checked::new() else {
        return Ok(());
    };
    // SAFETY: a Thread, which is on the stack.
    let data = data_of(unsafe { RubyThread::from_raw(thread.as_raw()) });
    let mut offsets = (1..WORDS).map(|word| word * size_of::<usize>());
    let found = offsets.find(|offset| memory.word(data + offset) == Some(name.as_raw() as usize));
    OFFSET.store(found.unwrap_or(0), Relaxed);
    Ok(())
}

/// The main Ractor's main thread, by the address of its object. A forked child may have another one.
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);

/// Notes which thread is the main one. On a thread of the main Ractor, as a session begins.
pub fn note_main() {
    // SAFETY: on a Ruby thread with the GVL. The VM keeps the main thread's object, and pins it.
    MAIN_THREAD.store(unsafe { rb_sys::rb_thread_main() } as usize, Relaxed);
}

/// The name of a thread of the Ractor whose GVL the caller holds.
pub struct ThreadName<'g>(RubyThread<'g>);

impl<'g> ThreadName<'g> {
    /// That of `thread`.
    ///
    /// # Safety
    /// The calling thread holds the GVL of the thread's Ractor for `'g`.
    #[inline]
    pub unsafe fn of(thread: RubyThread<'g>) -> Self {
        Self(thread)
    }

    fn object(&self) -> Option<VALUE> {
        let offset = OFFSET.load(Relaxed);
        if offset == 0 {
            return None;
        }
        let field = with_exposed_provenance::<VALUE>(data_of(self.0) + offset);
        // SAFETY: `look` has found the name there, in data that lives as long as the thread's object.
        let name = unsafe { field.read() };
        (name != rb_sys::Qnil as VALUE).then_some(name)
    }
}

impl VmName for ThreadName<'_> {
    #[inline]
    fn word(&self) -> usize {
        self.object().map_or(0, |name| name as usize)
    }

    #[cold]
    fn text(&self) -> Option<Arc<str>> {
        let Some(name) = self.object() else {
            return self.is_main().then(|| MAIN.into());
        };
        // SAFETY: the thread's name is nil or a frozen String.
        let name = RString::from_value(unsafe { Value::from_raw(name) })?;
        let bytes = text::with_bytes(name, |bytes| bytes[..bytes.len().min(LENGTH)].to_vec());
        let text = String::from_utf8_lossy(&bytes);
        // Of a character that was cut there is a mark.
        let cut = (bytes.len() == LENGTH).then(|| text.trim_end_matches('\u{fffd}'));
        Some(cut.unwrap_or(&text).into())
    }
}

impl ThreadName<'_> {
    /// Whether it is the main Ractor's main thread. The VM isn't asked: a thread of another Ractor that
    /// ends can't be told from none there.
    fn is_main(&self) -> bool {
        MAIN_THREAD.load(Relaxed) == self.0.object() as usize
    }
}
