//! The names of references, modules and variables, for the graph. In the forked child; nothing here runs
//! Ruby code. What is allocated here is never collected: the collector is off.

use super::contexts::{Contexts, ThreadFacts};
use super::functions::{Functions, bytes};
use super::slots::Slots;
use magnus::rb_sys::protect;
use rb_sys::{ID, VALUE};
use rperf_protocol::heap::kind::Kind;
use rperf_protocol::heap::write::{Sink, Writer};
use std::collections::HashMap;
use std::ffi::c_int;

/// What the VM calls the Hash of `Thread#thread_variable_set`, which a thread has as if by an instance variable.
const THREAD_VARIABLES: &[u8] = b"locals";

/// Entries of such a Hash, or that of `Fiber[]`, above which they are no names: the Hash is told of as one that
/// grows.
const MOST_ENTRIES: usize = 100;

/// A constant, as the VM's table has it (`rb_const_entry_t`, constant.h; the same in all versions).
#[repr(C)]
struct Constant {
    flag: c_int,
    line: c_int,
    value: VALUE,
    file: VALUE,
}

/// How entries of a Hash are called.
#[derive(Clone, Copy)]
struct Words {
    /// Before the name.
    begin: &'static [u8],
    /// Behind it.
    end: &'static [u8],
    /// The Hash itself.
    all: &'static [u8],
}

/// Names that were sent, by what they are names of.
pub struct Names<'a> {
    functions: &'a Functions,
    threads: &'a [ThreadFacts],
    contexts: Option<&'a Contexts>,
    slots: &'a Slots,
    /// The present context of each thread, 0 where it isn't known.
    present: Vec<usize>,
    ids: HashMap<ID, u32>,
    /// With a dot in front, as fields have it.
    fields: HashMap<ID, u32>,
    texts: HashMap<Vec<u8>, u32>,
    found: Vec<(ID, VALUE)>,
}

impl<'a> Names<'a> {
    /// None was sent. `present`: the context of each thread, 0 where it isn't known.
    pub fn new(
        functions: &'a Functions,
        threads: &'a [ThreadFacts],
        contexts: Option<&'a Contexts>,
        slots: &'a Slots,
        present: Vec<usize>,
    ) -> Self {
        Names {
            functions,
            threads,
            contexts,
            slots,
            present,
            ids: HashMap::new(),
            fields: HashMap::new(),
            texts: HashMap::new(),
            found: Vec::new(),
        }
    }

    /// The number of a text.
    pub fn text<S: Sink>(&mut self, text: &[u8], writer: &mut Writer<S>) -> u32 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        let number = writer.name(text);
        self.texts.insert(text.to_vec(), number);
        number
    }

    /// Adds what an object refers to by names: instance and class variables, constants, fields of a Struct, variables
    /// of threads and fibers.
    ///
    /// # Safety
    /// A live object of this kind; no collection is under way.
    pub unsafe fn of_references<S: Sink>(
        &mut self,
        object: VALUE,
        kind: Kind,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        if kind.is_of_vm() {
            return;
        }
        if kind.is_fiber() {
            // SAFETY: as the caller promises.
            unsafe { self.of_fiber(object, named, writer) };
        }
        if kind.ruby_type() == Kind::STRUCT {
            // SAFETY: as the caller promises.
            unsafe { self.find_fields(object) };
            self.send_fields(named, writer);
        }
        let found = (&raw mut self.found).expose_provenance();
        // SAFETY: as the caller promises; the callback makes no objects and doesn't unwind. The VM takes any object:
        // one that is no Object, class or module may have its variables in a table of the VM's, where it is looked up.
        unsafe { (self.functions.variables)(object, add_variable, found) };
        if kind.is_thread() {
            // SAFETY: as the caller promises.
            unsafe { self.of_thread(object, named, writer) };
        }
        self.send_found(b"@", named, writer);
        if kind.is_module() {
            let found = (&raw mut self.found).expose_provenance();
            // SAFETY: as above. The table has entries of the VM's, which stay.
            unsafe {
                let table = (self.functions.constants)(object, std::ptr::null_mut());
                if !table.is_null() {
                    (self.functions.each)(table, add_constant, found);
                    (self.functions.free)(table);
                }
            }
            self.send_found(b"", named, writer);
        }
    }

    /// Sends the names of what was found that begin so.
    fn send_found<S: Sink>(
        &mut self,
        begin: &[u8],
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        for place in 0..self.found.len() {
            let (id, value) = self.found[place];
            let name = self.of_id(id, begin, writer);
            if name > 0 {
                named.push((name, value));
            }
        }
        self.found.clear();
    }

    fn of_id<S: Sink>(&mut self, id: ID, begin: &[u8], writer: &mut Writer<S>) -> u32 {
        if let Some(&number) = self.ids.get(&id) {
            return number;
        }
        // SAFETY: the name of an ID, a String of the VM's or 0.
        let name = unsafe { bytes((self.functions.name)(id)) };
        // A variable of C code may be called like a constant: it isn't kept as one without a name.
        let Some(name) = name.filter(|it| it.starts_with(begin)) else {
            return 0;
        };
        let number = writer.name(name);
        self.ids.insert(id, number);
        number
    }

    /// Finds the fields of a Struct, unless it is hidden.
    ///
    /// # Safety
    /// A live one; no collection is under way.
    unsafe fn find_fields(&mut self, object: VALUE) {
        let found = &mut self.found;
        // SAFETY: an object begins with its flags and its class.
        let [_, class] =
            unsafe { std::ptr::with_exposed_provenance::<[VALUE; 2]>(object as usize).read() };
        if class == 0 {
            return;
        }
        // SAFETY: as the caller promises. The class has an Array of Symbols, one for each field, which the VM has read
        // before it made the first instance; so nothing is raised, and `protect` is there for C code that makes
        // instances in another way. With a number as its key a field is read without a method.
        let _ = protect(|| unsafe {
            let members = rb_sys::rb_struct_members(object);
            for place in 0..rb_sys::macros::RARRAY_LEN(members) {
                let name = rb_sys::rb_sym2id(rb_sys::rb_ary_entry(members, place));
                let number = rb_sys::rb_int2inum(place as isize);
                found.push((name, rb_sys::rb_struct_aref(object, number)));
            }
            rb_sys::Qnil.into()
        });
    }

    /// Sends the names of fields that were found, as methods read them.
    fn send_fields<S: Sink>(&mut self, named: &mut Vec<(u32, VALUE)>, writer: &mut Writer<S>) {
        for place in 0..self.found.len() {
            let (id, value) = self.found[place];
            let name = match self.fields.get(&id) {
                Some(&number) => number,
                None => {
                    // SAFETY: the name of an ID, a String of the VM's or 0.
                    let name = unsafe { bytes((self.functions.name)(id)) };
                    let number = self.text(&[b".", name.unwrap_or_default()].concat(), writer);
                    self.fields.insert(id, number);
                    number
                }
            };
            named.push((name, value));
        }
        self.found.clear();
    }

    /// Adds what a thread has by names; its instance variables were found.
    ///
    /// # Safety
    /// A live thread; no collection is under way.
    unsafe fn of_thread<S: Sink>(
        &mut self,
        object: VALUE,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        // SAFETY: the name of an ID, a String of the VM's or 0; and an object that the thread refers to.
        let is_variables = |&(id, value): &(ID, VALUE)| unsafe {
            use rb_sys::macros::RB_TYPE_P;
            bytes((self.functions.name)(id)) == Some(THREAD_VARIABLES)
                && RB_TYPE_P(value, rb_sys::ruby_value_type::RUBY_T_HASH)
        };
        let variables = self.found.iter().find(|it| is_variables(it)).map(|it| it.1);
        self.send_found(b"@", named, writer);
        if let Some(variables) = variables {
            let words = Words {
                begin: b"variable :",
                end: b"",
                all: b"variables",
            };
            // SAFETY: a live Hash, as the thread is live.
            unsafe { self.of_hash(variables, words, named, writer) };
        }
        let threads = self.threads;
        if let Some(place) = threads.iter().position(|it| it.object == object) {
            for &id in &threads[place].locals {
                // SAFETY: a thread that lives, and one of its variables; the VM looks it up in a table.
                let value = unsafe { (self.functions.local)(object, id) };
                self.of_variable(id, value, named, writer);
            }
            // SAFETY: the context of a thread that lives, or 0.
            unsafe { self.of_storage(self.present[place], named, writer) };
        }
    }

    /// Adds what a fiber has by names, unless that is its thread's at present.
    ///
    /// # Safety
    /// A live fiber; no collection is under way.
    unsafe fn of_fiber<S: Sink>(
        &mut self,
        object: VALUE,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        let Some(contexts) = self.contexts else {
            return;
        };
        // SAFETY: as the caller promises.
        let context = unsafe { contexts.of_fiber(object) };
        let Some(context) = context.filter(|it| !self.present.contains(it)) else {
            return;
        };
        // SAFETY: the context of a fiber that lives, in the child.
        for (id, value) in unsafe { contexts.variables(context) } {
            self.of_variable(id, value, named, writer);
        }
        // SAFETY: as above.
        unsafe { self.of_storage(context, named, writer) };
    }

    /// Adds a variable of `Thread#[]`.
    fn of_variable<S: Sink>(
        &mut self,
        id: ID,
        value: VALUE,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        // SAFETY: the name of an ID, a String of the VM's or 0.
        let name = unsafe { bytes((self.functions.name)(id)) };
        let text = [b"[:", name.unwrap_or_default(), b"]"].concat();
        named.push((self.text(&text, writer), value));
    }

    /// Adds what `Fiber[]` has.
    ///
    /// # Safety
    /// The context is one of a thread or fiber that lives, or 0; no collection is under way.
    unsafe fn of_storage<S: Sink>(
        &mut self,
        context: usize,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        let contexts = self.contexts.filter(|_| context > 0);
        // SAFETY: as the caller promises; in the child.
        let storage = contexts.and_then(|it| unsafe { it.storage(context, self.slots) });
        if let Some(storage) = storage {
            let words = Words {
                begin: b"Fiber[:",
                end: b"]",
                all: b"fiber storage",
            };
            // SAFETY: a live Hash.
            unsafe { self.of_hash(storage, words, named, writer) };
        }
    }

    /// Adds the Hash of a thread or fiber, and what it has by Symbols, as if the thread or fiber had that itself.
    ///
    /// # Safety
    /// A live Hash; no collection is under way.
    unsafe fn of_hash<S: Sink>(
        &mut self,
        hash: VALUE,
        words: Words,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        named.push((self.text(words.all, writer), hash));
        let Some(each) = self.functions.each_of_hash else {
            return;
        };
        let mut entries: Vec<(VALUE, VALUE)> = Vec::new();
        // SAFETY: as the caller promises. The VM reads the entries one by one, without noting in the Hash that it
        // does; the callback makes no objects and doesn't unwind.
        unsafe { each(hash, add_entry, (&raw mut entries).expose_provenance()) };
        if entries.len() > MOST_ENTRIES {
            return;
        }
        for (key, value) in entries {
            // SAFETY: a key of a live Hash; a Symbol's name is a String of the VM's.
            let name = unsafe {
                match rb_sys::macros::RB_SYMBOL_P(key) {
                    true => bytes(rb_sys::rb_sym2str(key)),
                    false => None,
                }
            };
            if let Some(name) = name {
                let text = [words.begin, name, words.end].concat();
                named.push((self.text(&text, writer), value));
            }
        }
    }

    /// The number of a module's name.
    pub fn of_module<S: Sink>(&mut self, module: VALUE, writer: &mut Writer<S>) -> Option<u32> {
        // SAFETY: a live class or module; its name is a String that it keeps, or nil.
        let name = unsafe { bytes((self.functions.module)(module)) };
        name.map(|it| writer.name(it))
    }

    /// The value of a global variable; `None` if it can't be had.
    pub fn global(&self, name: &[u8]) -> Option<VALUE> {
        let mut text = name.to_vec();
        text.push(0);
        // SAFETY: the name of a variable that the VM knows. A variable of C code has a function for it, and
        // `protect` catches what that raises.
        protect(|| unsafe { (self.functions.global)(text.as_ptr().cast()) }).ok()
    }
}

unsafe extern "C" fn add_variable(id: usize, value: usize, found: usize) -> c_int {
    // SAFETY: the Vec that was handed over, which nobody else uses meanwhile.
    let found = unsafe { &mut *std::ptr::with_exposed_provenance_mut::<Vec<(ID, VALUE)>>(found) };
    found.push((id as ID, value as VALUE));
    0
}

unsafe extern "C" fn add_entry(key: usize, value: usize, entries: usize) -> c_int {
    // SAFETY: the Vec that was handed over, which nobody else uses meanwhile.
    let entries =
        unsafe { &mut *std::ptr::with_exposed_provenance_mut::<Vec<(VALUE, VALUE)>>(entries) };
    entries.push((key as VALUE, value as VALUE));
    match entries.len() > MOST_ENTRIES {
        true => rb_sys::st_retval::ST_STOP as c_int,
        false => rb_sys::st_retval::ST_CONTINUE as c_int,
    }
}

unsafe extern "C" fn add_constant(id: usize, constant: usize, found: usize) -> c_int {
    // SAFETY: an entry of the VM's table, and the Vec as above.
    let (constant, found) = unsafe {
        (
            &*std::ptr::with_exposed_provenance::<Constant>(constant),
            &mut *std::ptr::with_exposed_provenance_mut::<Vec<(ID, VALUE)>>(found),
        )
    };
    found.push((id as ID, constant.value));
    0
}
