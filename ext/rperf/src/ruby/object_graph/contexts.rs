//! What threads and fibers keep by names in their execution contexts: the variables of `Thread#[]`, and the
//! Hash of `Fiber[]`. No function of the VM's tells it of a fiber that doesn't run. So it is read where the VM
//! has it: in the forked child, after a look in the program whether it is there.

use super::slots::{Slots, flags};
use crate::ruby::ractor::{data_of, known_layout};
use crate::ruby::threads::RubyThread;
use crate::ruby::version::{self, FiberLayout, TableLayout};
use magnus::rb_sys::protect;
use rb_sys::{ID, VALUE};
use rperf_vm::{Checked, Gvl, MayFault, Memory};
use std::ffi::CStr;

/// A thread, as Ruby tells of it.
pub struct ThreadFacts {
    /// The thread.
    pub object: VALUE,
    /// What it is called.
    pub name: Vec<u8>,
    /// The names of its local variables.
    pub locals: Vec<ID>,
}

/// A variable: its ID, and what it has.
pub type Variable = (ID, VALUE);

/// Entries of a table above which it is taken for none: in the copy, and in the program, where each read is a system
/// call.
const LARGEST: usize = 1 << 20;
const LARGEST_IN_PROGRAM: usize = 1 << 8;

/// Bytes of a fiber's data before its execution context, at most.
const FURTHEST: usize = 1 << 12;

/// The variable that the helper has while it looks.
const MARK: &CStr = c"__rperf_mark__";

/// Where the VM has the execution contexts of threads and fibers.
pub struct Contexts {
    layout: &'static FiberLayout,
    /// The address of a thread's present one, in its data.
    in_thread: usize,
    /// A fiber's own, in its data.
    in_fiber: usize,
}

impl Contexts {
    /// Looks whether all but the storage is where it is believed to be; `None` if not. In the program, on the helper, which has a
    /// variable more meanwhile. `name` asks the VM for the name of an ID.
    pub fn find(gvl: &Gvl<'_>, name: impl Fn(ID) -> VALUE) -> Option<Self> {
        let layout = version::fiber_layout().ok()?;
        let in_thread = known_layout().ok()?.context;
        let memory = Checked::new()?;
        let thread = RubyThread::current(gvl);
        let data = data_of(thread);
        // SAFETY: the present fiber of the calling thread.
        let fiber = unsafe { data_of_fiber(thread.present_fiber().0 as VALUE) };
        let context = memory.word(data.checked_add(in_thread)?)?;
        let word = |offset: usize| memory.word(context.checked_add(offset)?);
        if word(layout.fiber)? != fiber || word(layout.thread)? != data {
            return None;
        }
        let in_fiber = context.checked_sub(fiber).filter(|it| *it < FURTHEST)?;
        // SAFETY: the name is a C string.
        let mark = unsafe { rb_sys::rb_intern(MARK.as_ptr()) };
        let set = |value| {
            // SAFETY: a variable of the calling thread. `protect` catches that somebody has frozen it.
            protect(|| unsafe { rb_sys::rb_thread_local_aset(thread.object(), mark, value) })
        };
        let is_set = set(rb_sys::Qtrue as VALUE).is_ok();
        let found = variables(&memory, layout, context, LARGEST_IN_PROGRAM);
        let is_unset = set(rb_sys::Qnil as VALUE).is_ok();
        let is_mark = |it: &Variable| it.1 == rb_sys::Qtrue as VALUE && name(it.0) == name(mark);
        let is_there = is_set && is_unset && found?.iter().any(is_mark);
        is_there.then_some(Contexts {
            layout,
            in_thread,
            in_fiber,
        })
    }

    /// The present context of a thread.
    ///
    /// # Safety
    /// It is an object of a thread that has begun, and no other thread runs.
    pub unsafe fn of_thread(&self, thread: VALUE) -> usize {
        // SAFETY: an object of a thread, as the caller promises.
        let data = data_of(unsafe { RubyThread::from_raw(thread) });
        // SAFETY: the VM's data of a thread, in which `find` has seen where the context is.
        let memory = unsafe { MayFault::new() };
        memory.word(data + self.in_thread).unwrap_or(0)
    }

    /// The context of a fiber; `None` for an object of which the VM has made no fiber yet.
    ///
    /// # Safety
    /// It is a live object of a fiber.
    pub unsafe fn of_fiber(&self, fiber: VALUE) -> Option<usize> {
        // SAFETY: as the caller promises.
        let data = unsafe { data_of_fiber(fiber) };
        (data > 0).then_some(data + self.in_fiber)
    }

    /// The variables there.
    ///
    /// # Safety
    /// The context is a thread's or a fiber's that lives, and no other thread runs.
    pub unsafe fn variables(&self, context: usize) -> Vec<Variable> {
        // SAFETY: `find` has read such a table by this layout. The VM keeps it as long as the context.
        let memory = unsafe { MayFault::new() };
        variables(&memory, self.layout, context, LARGEST).unwrap_or_default()
    }

    /// The Hash of `Fiber[]` there; `None` if there is none.
    ///
    /// # Safety
    /// The context is a thread's or a fiber's that lives, and no other thread runs.
    pub unsafe fn storage(&self, context: usize, slots: &Slots) -> Option<VALUE> {
        // SAFETY: a word of a context. What it says is believed only if there is an object.
        let memory = unsafe { MayFault::new() };
        let word = memory.word(context.checked_add(self.layout.storage)?)?;
        let is_hash = |slot: usize| {
            let kind = flags(slot) & rb_sys::ruby_value_type::RUBY_T_MASK as usize;
            kind == rb_sys::ruby_value_type::RUBY_T_HASH as usize
        };
        (slots.number(word).is_some() && is_hash(word)).then_some(word as VALUE)
    }
}

/// Where the VM keeps its data of a fiber; 0 if there is none.
///
/// # Safety
/// It is a live object of a fiber.
unsafe fn data_of_fiber(fiber: VALUE) -> usize {
    // SAFETY: a Fiber is an object with data.
    unsafe { rb_sys::macros::RTYPEDDATA_GET_DATA(fiber) }.expose_provenance()
}

/// The variables of a context; `None` if what is there is no table of so many entries at most.
fn variables(
    memory: &impl Memory,
    layout: &FiberLayout,
    context: usize,
    largest: usize,
) -> Option<Vec<Variable>> {
    let TableLayout {
        capacity,
        count,
        entries,
        entry,
        value,
        id_shift,
        id_kind,
    } = layout.table;
    let table = memory.word(context.checked_add(layout.variables)?)?;
    let mut found = Vec::new();
    if table == 0 {
        return Some(found);
    }
    if !table.is_multiple_of(size_of::<usize>()) {
        return None;
    }
    let capacity = memory.half_word(table.checked_add(capacity)?)? as usize;
    let count = memory.half_word(table.checked_add(count)?)? as usize;
    let first = memory.word(table.checked_add(entries)?)?;
    if capacity > largest || count > capacity || !first.is_multiple_of(size_of::<usize>()) {
        return None;
    }
    for place in 0..capacity {
        let at = first.checked_add(place * entry)?;
        let key = memory.half_word(at)? as usize;
        if key > 0 {
            let id = key << id_shift | id_kind;
            found.push((id as ID, memory.word(at.checked_add(value)?)? as VALUE));
        }
    }
    (found.len() == count).then_some(found)
}
