//! The VM's heap: where its pages are, and a walk of all objects. On Ruby threads of the main Ractor,
//! with the GVL. The functions are exported by the VM, and used by its own library `objspace`; those that
//! no header has are looked up by name.

use super::ractor;
use super::threads::RubyThread;
use magnus::rb_sys::protect;
use magnus::{Error, Ruby};
use rb_sys::VALUE;
use rperf_vm::Gvl;
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;

type Callback = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void) -> c_int;
type EachObjects = unsafe extern "C" fn(Callback, *mut c_void);
type SizeOf = unsafe extern "C" fn(VALUE) -> usize;

/// What is done with each entry of a table.
pub type EachEntry = unsafe extern "C" fn(usize, usize, usize) -> c_int;

/// A function of the VM's that gives an object for one.
pub type OfObject = unsafe extern "C" fn(VALUE) -> VALUE;

/// The name of a function that this VM lacks.
pub struct Missing(pub &'static CStr);

/// The function of this name; `None` if this VM has none.
pub fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: looks a name up.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    Some(found).filter(|it| !it.is_null())
}

/// A program whose heap only this thread uses: it has the GVL, and there are no other Ractors, whose
/// threads have GVLs of their own, and would change the list of pages and the objects meanwhile.
pub struct Quiet<'a, 'gvl>(&'a mut Gvl<'gvl>);

impl<'a, 'gvl> Quiet<'a, 'gvl> {
    /// `None` if there are other Ractors. Only the main Ractor makes the first other one, so there are
    /// none as long as this thread keeps the GVL and runs no Ruby code. Runs Ruby code.
    pub fn of(ruby: &Ruby, gvl: &'a mut Gvl<'gvl>) -> Result<Option<Self>, Error> {
        let are_there = ractor::are_there_others(ruby, gvl)?;
        Ok((!are_there).then_some(Quiet(gvl)))
    }

    /// The GVL, for what runs no Ruby code and keeps it.
    pub fn gvl(&mut self) -> &mut Gvl<'gvl> {
        self.0
    }
}

/// Calls `visit` for each page of objects with the address of its first slot, that behind its last one,
/// and the bytes of a slot. A collection that is under way is ended before. Returns whether this VM can
/// do that, and all went well.
///
/// `visit` makes no objects, and doesn't unwind.
pub fn each_page(_: &Quiet<'_, '_>, mut visit: impl FnMut(usize, usize, usize)) -> bool {
    unsafe extern "C" fn call<V: FnMut(usize, usize, usize)>(
        start: *mut c_void,
        end: *mut c_void,
        slot_bytes: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: the closure below, which nobody else uses meanwhile.
        let visit = unsafe { &mut *visit.cast::<V>() };
        visit(
            start.expose_provenance(),
            end.expose_provenance(),
            slot_bytes,
        );
        0
    }
    fn callback_of<V: FnMut(usize, usize, usize)>(_: &V) -> Callback {
        call::<V>
    }
    let Some(each) = find(c"rb_objspace_each_objects") else {
        return false;
    };
    // SAFETY: the function of this name has this form in all versions.
    let each = unsafe { transmute::<*mut c_void, EachObjects>(each) };
    let callback = callback_of(&visit);
    let data = (&raw mut visit).cast::<c_void>();
    // SAFETY: with the GVL and without other Ractors, so nobody changes the list of pages meanwhile; the
    // closure lives until the call returns. `protect` catches what the VM may raise, such as that there
    // is no memory.
    let done = protect(|| unsafe {
        each(callback, data);
        rb_sys::Qnil as VALUE
    });
    done.is_ok()
}

/// What a walk of all objects has found.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walked {
    /// How many objects there are, with those of the VM.
    pub count: u64,
    /// The bytes that they have from malloc, as malloc rounds them.
    pub malloc_bytes: u64,
}

/// Functions for the walk.
#[derive(Clone, Copy)]
pub struct Walk {
    size_of: SizeOf,
    slot_size: SizeOf,
    /// The types of threads and fibers, by their addresses: what they say of their size has their stacks,
    /// which aren't malloc's, or are told apart.
    with_stacks: [usize; 2],
}

impl Walk {
    /// `None` if this VM can't.
    pub fn find(gvl: &Gvl<'_>) -> Option<Self> {
        let thread = RubyThread::current(gvl);
        let fiber = thread.present_fiber().0;
        let with_stacks = [thread.object(), fiber as VALUE].map(type_of);
        let size_of = find(c"rb_obj_memsize_of")?;
        let slot_size = find(c"rb_gc_obj_slot_size")?;
        // SAFETY: functions of these names have these forms in all versions that have them.
        unsafe {
            Some(Walk {
                size_of: transmute::<*mut c_void, SizeOf>(size_of),
                slot_size: transmute::<*mut c_void, SizeOf>(slot_size),
                with_stacks,
            })
        }
    }

    /// Walks all objects, and asks each for the bytes that it has beside its slot. Extensions' functions
    /// say it of theirs. `None` if something went wrong.
    pub fn run(self, quiet: &Quiet<'_, '_>) -> Option<Walked> {
        let mut walked = Walked::default();
        let is_done = each_page(quiet, |start, end, slot_bytes| {
            for object in (start..end).step_by(slot_bytes.max(1)) {
                // SAFETY: a slot of a page of objects, as the VM has just said, which has ended the
                // collection before, and keeps another one from beginning as long as pages are visited.
                // There are no other Ractors.
                unsafe { self.add(object as VALUE, &mut walked) };
            }
        });
        is_done.then_some(walked)
    }

    /// # Safety
    /// The slot is one of a page of objects, no collection is under way, and no other thread runs that
    /// uses objects.
    unsafe fn add(self, object: VALUE, walked: &mut Walked) {
        // SAFETY: each slot begins with flags, which are 0 where it has no object.
        let flags = unsafe { std::ptr::with_exposed_provenance::<usize>(object as usize).read() };
        if !has_size(flags) {
            return;
        }
        walked.count += 1;
        if kind(flags) == T_DATA && self.with_stacks.contains(&type_of(object)) {
            return;
        }
        // SAFETY: a slot with an object, whose size `ObjectSpace.count_objects_size` asks for, too.
        let (all, slot) = unsafe { ((self.size_of)(object), (self.slot_size)(object)) };
        walked.malloc_bytes += rounded(all.saturating_sub(slot) as u64);
    }
}

/// Whether there is an object in a slot with these flags, that is, one that hasn't moved, or waits for
/// its end.
pub fn has_size(flags: usize) -> bool {
    use rb_sys::ruby_value_type::{RUBY_T_MOVED, RUBY_T_NODE, RUBY_T_NONE, RUBY_T_ZOMBIE};
    let none = [RUBY_T_NONE, RUBY_T_MOVED, RUBY_T_ZOMBIE, RUBY_T_NODE];
    !none.map(|it| it as usize).contains(&kind(flags))
}

const T_DATA: usize = rb_sys::ruby_value_type::RUBY_T_DATA as usize;

fn kind(flags: usize) -> usize {
    flags & rb_sys::ruby_value_type::RUBY_T_MASK as usize
}

/// The address of the type of an object with data; 0 if it has none.
pub fn type_of(object: VALUE) -> usize {
    // SAFETY: an object with data, whose head is read.
    unsafe {
        match rb_sys::macros::RTYPEDDATA_P(object) {
            true => rb_sys::macros::RTYPEDDATA_TYPE(object).addr(),
            false => 0,
        }
    }
}

/// What malloc needs for a block of these bytes: it has a word in front of it, and is as long as a
/// multiple of two words; a large one has whole pages.
fn rounded(bytes: u64) -> u64 {
    const LARGE: u64 = 128 << 10;
    match bytes {
        0 => 0,
        1..LARGE => (bytes + 8).next_multiple_of(16).max(32),
        LARGE.. => (bytes + 16).next_multiple_of(4096),
    }
}
