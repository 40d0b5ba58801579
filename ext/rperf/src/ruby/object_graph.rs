//! The graph of all objects, as the forked child sends it: what each object is, its bytes, and what it refers
//! to. The functions are exported by the VM, and looked up by name. Some ask the VM for memory, and those of
//! extensions may do anything: so the collector is switched off in the child. The VM's take no lock that
//! another thread could have had at the fork, while there is one Ractor.

mod contexts;
mod functions;
mod names;
mod samples;
mod slots;

use super::heap::{Missing, OfObject, Quiet, each_page, find, type_of};
use super::threads::RubyThread;
use contexts::Contexts;
pub use contexts::ThreadFacts;
use names::Names;
use rb_sys::VALUE;
use rperf_protocol::heap::kind::Kind;
use rperf_protocol::heap::write::{Object, Reference, Sink, Writer};
use rperf_vm::Gvl;
pub use samples::Samples;
use slots::{Slots, flags, is_live};
use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::ptr::with_exposed_provenance;

type Push = unsafe extern "C" fn(VALUE, *mut c_void);
type PushRoot = unsafe extern "C" fn(*const c_char, VALUE, *mut c_void);
type ReachableFrom = unsafe extern "C" fn(VALUE, Push, *mut c_void);
type ReachableFromRoots = unsafe extern "C" fn(PushRoot, *mut c_void);
type SizeOf = unsafe extern "C" fn(VALUE) -> usize;

/// What the VM's functions are called.
pub struct Functions {
    reachable: ReachableFrom,
    roots: ReachableFromRoots,
    size: SizeOf,
    real_class: OfObject,
    names: functions::Functions,
    contexts: Option<Contexts>,
    /// The types of threads and fibers, by their addresses.
    thread: usize,
    fiber: usize,
}

impl Functions {
    /// Looks them up.
    pub fn find(gvl: &Gvl<'_>) -> Result<Self, Missing> {
        let get = |name: &'static CStr| find(name).ok_or(Missing(name));
        let thread = RubyThread::current(gvl);
        let fiber = thread.present_fiber().0;
        let reachable = get(c"rb_objspace_reachable_objects_from")?;
        let roots = get(c"rb_objspace_reachable_objects_from_root")?;
        let size = get(c"rb_obj_memsize_of")?;
        let real_class = get(c"rb_class_real")?;
        get(c"rb_objspace_each_objects")?;
        let names = functions::Functions::find()?;
        // SAFETY: functions of these names have these forms in all versions that have them.
        unsafe {
            Ok(Functions {
                reachable: transmute::<*mut c_void, ReachableFrom>(reachable),
                roots: transmute::<*mut c_void, ReachableFromRoots>(roots),
                size: transmute::<*mut c_void, SizeOf>(size),
                real_class: transmute::<*mut c_void, OfObject>(real_class),
                contexts: names.contexts(gvl),
                names,
                thread: type_of(thread.object()),
                fiber: type_of(fiber as VALUE),
            })
        }
    }
}

/// All that is known before the fork. It is valid as long as the calling thread keeps the GVL and makes no
/// objects; and in the child.
pub struct Before<'a> {
    /// The first slot of each page, its end, and the bytes of a slot.
    pages: Vec<(usize, usize, usize)>,
    /// Objects with the names of their categories.
    roots: Vec<(&'static CStr, VALUE)>,
    threads: &'a [ThreadFacts],
    globals: &'a [Vec<u8>],
    /// The helper: what it refers to is ours.
    helper: VALUE,
    functions: Functions,
}

impl<'a> Before<'a> {
    /// Takes it. A collection that is under way is ended. `None` if something went wrong.
    pub fn take(
        quiet: &Quiet<'_, '_>,
        functions: Functions,
        helper: VALUE,
        threads: &'a [ThreadFacts],
        globals: &'a [Vec<u8>],
    ) -> Option<Self> {
        let mut pages = Vec::new();
        if !each_page(quiet, |start, end, slot| pages.push((start, end, slot))) {
            return None;
        }
        let mut roots = Vec::new();
        // SAFETY: with the GVL, on a Ruby thread; no collection is under way, and the callback makes no
        // objects and doesn't unwind.
        unsafe { (functions.roots)(push_root, (&raw mut roots).cast()) };
        Some(Before {
            pages,
            roots,
            threads,
            globals,
            helper,
            functions,
        })
    }

    /// Sends the graph, and the samples of its objects. In the child.
    pub fn send(&self, sink: impl Sink, samples: Option<&Samples<'_>>) -> bool {
        let (slots, count) = Slots::of(&self.pages);
        let mut writer = Writer::begin(sink, count);
        let contexts = self.functions.contexts.as_ref();
        let present = self.threads.iter().map(|it| {
            let is_thread = |it| slots.number(it as usize).is_some() && self.kind(it).is_thread();
            let contexts = contexts.filter(|_| is_thread(it.object));
            // SAFETY: a live thread, as was looked at: the one that was listed, or another in its slot. In the child,
            // which has no other one that runs.
            contexts.map_or(0, |all| unsafe { all.of_thread(it.object) })
        });
        let present = present.collect();
        let functions = &self.functions.names;
        let mut names = Names::new(functions, self.threads, contexts, &slots, present);
        let mut found = Found::default();
        for &(start, end, slot) in &self.pages {
            for object in (start..end).step_by(slot.max(1)) {
                if is_live(object)
                    && !self.send_object(
                        object as VALUE,
                        &slots,
                        &mut names,
                        &mut found,
                        &mut writer,
                    )
                {
                    return false;
                }
            }
        }
        writer.end_objects() && self.send_rest(&slots, &mut names, samples, writer)
    }

    fn send_object<S: Sink>(
        &self,
        object: VALUE,
        slots: &Slots,
        names: &mut Names<'_>,
        found: &mut Found,
        writer: &mut Writer<S>,
    ) -> bool {
        found.clear();
        let kind = self.kind(object);
        // SAFETY: a live object; no collection is under way, nor can one begin: there is no other thread.
        let (class, bytes) = unsafe {
            if object != self.helper {
                (self.functions.reachable)(object, push, (&raw mut found.values).cast());
                names.of_references(object, kind, &mut found.named, writer);
            }
            let class = match kind.is_of_vm() {
                true => 0,
                false => (*with_exposed_provenance::<rb_sys::RBasic>(object as usize)).klass,
            };
            let class = if class == 0 {
                0
            } else {
                (self.functions.real_class)(class)
            };
            (class, (self.functions.size)(object) as u64)
        };
        for &(name, value) in &found.named {
            if let Some(target) = slots.number(value as usize) {
                found.references.push(Reference { name, target });
                found.known.push(value);
            }
        }
        let is_long = found.known.len() > 16;
        if is_long {
            found.known.sort_unstable();
        }
        for value in &found.values {
            let is_known = match is_long {
                true => found.known.binary_search(value).is_ok(),
                false => found.known.contains(value),
            };
            if !is_known && let Some(target) = slots.number(*value as usize) {
                found.others.push(target);
            }
        }
        writer.object(&Object {
            kind,
            class: slots.number(class as usize),
            bytes,
            named: &found.references,
            others: &found.others,
        })
    }

    fn send_rest<S: Sink>(
        &self,
        slots: &Slots,
        names: &mut Names<'_>,
        samples: Option<&Samples<'_>>,
        mut writer: Writer<S>,
    ) -> bool {
        for &(category, value) in &self.roots {
            // The helper's own stack.
            if category == c"machine_context" {
                continue;
            }
            let category = names.text(category.to_bytes(), &mut writer);
            if let Some(target) = slots.number(value as usize)
                && !writer.root(category, target, 0)
            {
                return false;
            }
        }
        for &(start, end, slot) in &self.pages {
            for object in (start..end).step_by(slot.max(1)).filter(|it| is_live(*it)) {
                if self.kind(object as VALUE).is_module()
                    && let Some(number) = slots.number(object)
                    && let Some(name) = names.of_module(object as VALUE, &mut writer)
                    && !writer.called(number, name)
                {
                    return false;
                }
            }
        }
        for thread in self.threads {
            if let Some(number) = slots.number(thread.object as usize) {
                let name = names.text(&thread.name, &mut writer);
                writer.called(number, name);
            }
        }
        if samples.is_some_and(|it| !it.send(slots, names, &mut writer)) {
            return false;
        }
        // What comes now runs functions of extensions that define variables: if one ends the process, all
        // else has been sent.
        if !writer.begin_globals() {
            return false;
        }
        let category = names.text(b"global_tbl", &mut writer);
        for global in self.globals {
            let value = names.global(global);
            if let Some(target) = value.and_then(|it| slots.number(it as usize)) {
                let name = names.text(global, &mut writer);
                if !writer.root(category, target, name) {
                    return false;
                }
            }
        }
        writer.end()
    }

    fn kind(&self, object: VALUE) -> Kind {
        let flags = flags(object as usize);
        let kind = (flags & rb_sys::ruby_value_type::RUBY_T_MASK as usize) as u8;
        let more = match kind {
            Kind::CLASS if flags & SINGLETON != 0 => Kind::SINGLETON,
            T_DATA => match type_of(object) {
                0 => 0,
                it if it == self.functions.thread => Kind::THREAD,
                it if it == self.functions.fiber => Kind::FIBER,
                _ => 0,
            },
            _ => 0,
        };
        Kind(kind | more)
    }
}

const T_DATA: u8 = rb_sys::ruby_value_type::RUBY_T_DATA as u8;

/// The flag of a singleton class: RUBY_FL_USER1 (`RUBY_FL_SINGLETON` in all versions).
const SINGLETON: usize = 1 << (rb_sys::ruby_fl_ushift::RUBY_FL_USHIFT as usize + 1);

/// What is found of an object; kept to be used again.
#[derive(Default)]
struct Found {
    values: Vec<VALUE>,
    named: Vec<(u32, VALUE)>,
    references: Vec<Reference>,
    known: Vec<VALUE>,
    others: Vec<u32>,
}

impl Found {
    fn clear(&mut self) {
        self.values.clear();
        self.named.clear();
        self.references.clear();
        self.known.clear();
        self.others.clear();
    }
}

unsafe extern "C" fn push(value: VALUE, values: *mut c_void) {
    // SAFETY: the Vec that was handed over, which nobody else uses meanwhile.
    unsafe { (*values.cast::<Vec<VALUE>>()).push(value) };
}

unsafe extern "C" fn push_root(category: *const c_char, value: VALUE, roots: *mut c_void) {
    // SAFETY: as above; categories are literals of the VM.
    unsafe {
        let category = CStr::from_ptr::<'static>(category);
        (*roots.cast::<Vec<(&'static CStr, VALUE)>>()).push((category, value));
    }
}
