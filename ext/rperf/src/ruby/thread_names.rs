//! Names of threads, read where no method may be called: in hooks, with the GVL of the thread's
//! Ractor. No header says where the VM keeps them: it is found by the words that the VM keeps for
//! extensions, which come next. No method is called for that, as the program may have redefined it.

use super::ractor::data_of;
use super::threads::RubyThread;
use super::version;
use crate::text;
use magnus::rb_sys::FromRawValue;
use magnus::{RString, Value};
use rb_sys::VALUE;
use rperf_vm::{Checked, Gvl, Memory, Unknown, VmName};
use std::ptr::with_exposed_provenance;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

/// The name that the main thread has, unless the program gives it another one.
const MAIN: &str = "main";

/// Bytes of a name that are kept.
const LENGTH: usize = 256;

/// Words of the VM's data of a thread that are looked at.
const WORDS: usize = 128;

const WORD: usize = size_of::<usize>();

const NIL: VALUE = rb_sys::Qnil as VALUE;

/// The offset of the name in the VM's data of a thread, or why it isn't known. Empty until somebody
/// could look.
static OFFSET: OnceLock<Result<usize, Unknown>> = OnceLock::new();

/// Why names can't be read, if they can't. After a session's start.
pub fn unknown() -> Option<Unknown> {
    OFFSET.get().map_or(Some(Unknown::Access), |it| it.err())
}

/// Finds out where the VM keeps names, unless that is known. On the main Ractor, before a session
/// begins. Runs no Ruby code.
pub fn learn(gvl: &Gvl<'_>) {
    if OFFSET.get().is_some() {
        return;
    }
    let found = find(gvl, RubyThread::current(gvl));
    // The next session may get a pipe.
    if found != Err(Unknown::Access) {
        OFFSET.get_or_init(|| found);
    }
}

/// The offset of the name in the VM's data of `thread`, the calling one.
fn find(gvl: &Gvl<'_>, thread: RubyThread<'_>) -> Result<usize, Unknown> {
    let distance = version::name_before_storage()?;
    let memory = Checked::new().ok_or(Unknown::Access)?;
    let words = memory.words(data_of(thread), WORDS);
    let storage = thread.with_mark(gvl, |place, mark| {
        let has_mark = |storage: &usize| {
            let word = storage.checked_add(place * WORD);
            is_address(*storage) && word.and_then(|it| memory.word(it)) == Some(mark)
        };
        words.iter().position(has_mark)
    });
    let offset = storage
        .flatten()
        .and_then(|it| (it * WORD).checked_sub(distance));
    let is_name = |offset: &usize| {
        let word = words.get(offset / WORD);
        word.is_some_and(|word| can_be_name(&memory, *word))
    };
    offset.filter(is_name).ok_or(Unknown::Form)
}

/// Whether an object can be there.
fn is_address(word: usize) -> bool {
    word.is_multiple_of(WORD) && word >= 1 << 16
}

/// Whether this is nil or a frozen String.
fn can_be_name(memory: &impl Memory, word: usize) -> bool {
    let is_string = |flags: usize| {
        let object_type = flags & rb_sys::ruby_value_type::RUBY_T_MASK as usize;
        let is_frozen = flags & rb_sys::ruby_fl_type::RUBY_FL_FREEZE as usize != 0;
        object_type == rb_sys::ruby_value_type::RUBY_T_STRING as usize && is_frozen
    };
    word == NIL as usize || is_address(word) && memory.word(word).is_some_and(is_string)
}

/// The main Ractor's main thread, by the address of its object. A forked child may have another one.
static MAIN_THREAD: AtomicUsize = AtomicUsize::new(0);

/// Notes which thread is the main one. On a thread of the main Ractor, as a session begins.
pub fn note_main() {
    // SAFETY: on a Ruby thread with the GVL. The VM keeps the main thread's object, and pins it.
    MAIN_THREAD.store(unsafe { rb_sys::rb_thread_main() } as usize, Relaxed);
}

/// The name that `thread` is shown by without one of its own, if it is the main one. On the main
/// Ractor.
pub fn of_main(_gvl: &Gvl<'_>, thread: RubyThread<'_>) -> Option<&'static str> {
    // SAFETY: on a Ruby thread with the GVL.
    let main = unsafe { rb_sys::rb_thread_main() };
    (main as usize == thread.object() as usize).then_some(MAIN)
}

/// The name of a thread of the Ractor whose GVL the caller holds.
pub struct ThreadName<'g>(RubyThread<'g>);

impl<'g> ThreadName<'g> {
    /// The name of `thread`.
    ///
    /// # Safety
    /// The calling thread holds the GVL of the thread's Ractor for `'g`.
    #[inline]
    pub unsafe fn of(thread: RubyThread<'g>) -> Self {
        Self(thread)
    }

    fn object(&self) -> Option<VALUE> {
        let offset = OFFSET.get()?.ok()?;
        let field = with_exposed_provenance::<VALUE>(data_of(self.0) + offset);
        // SAFETY: `find` has found the name there, in data that lives as long as the thread's object.
        let name = unsafe { field.read() };
        (name != NIL).then_some(name)
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
