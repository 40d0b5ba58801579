//! The names of references, modules and variables, for the graph. In the forked child; nothing here runs
//! Ruby code. What is allocated here is never collected: the collector is off.

use crate::ruby::heap::{EachEntry, Missing, OfObject, find};
use magnus::rb_sys::protect;
use rb_sys::{ID, VALUE};
use rperf_heap::kind::Kind;
use rperf_heap::write::{Sink, Writer};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

type EachVariable = unsafe extern "C" fn(VALUE, EachEntry, usize);
type ConstantsAt = unsafe extern "C" fn(VALUE, *mut c_void) -> *mut c_void;
type Each = unsafe extern "C" fn(*mut c_void, EachEntry, usize) -> c_int;
type FreeTable = unsafe extern "C" fn(*mut c_void);
type NameOf = unsafe extern "C" fn(ID) -> VALUE;
type Global = unsafe extern "C" fn(*const c_char) -> VALUE;
type Local = unsafe extern "C" fn(VALUE, ID) -> VALUE;

/// What the VM's functions are called.
pub struct Functions {
    variables: EachVariable,
    constants: ConstantsAt,
    each: Each,
    free: FreeTable,
    name: NameOf,
    module: OfObject,
    global: Global,
    local: Local,
}

impl Functions {
    /// Looks them up.
    pub fn find() -> Result<Self, Missing> {
        let get = |name: &'static CStr| find(name).ok_or(Missing(name));
        let variables = get(c"rb_ivar_foreach")?;
        let constants = get(c"rb_mod_const_at")?;
        let each = get(c"rb_st_foreach")?;
        let free = get(c"rb_st_free_table")?;
        let name = get(c"rb_id2str")?;
        let module = get(c"rb_class_path_cached")?;
        let global = get(c"rb_gv_get")?;
        let local = get(c"rb_thread_local_aref")?;
        // SAFETY: functions of these names have these forms in all versions that have them.
        unsafe {
            Ok(Functions {
                variables: transmute::<*mut c_void, EachVariable>(variables),
                constants: transmute::<*mut c_void, ConstantsAt>(constants),
                each: transmute::<*mut c_void, Each>(each),
                free: transmute::<*mut c_void, FreeTable>(free),
                name: transmute::<*mut c_void, NameOf>(name),
                module: transmute::<*mut c_void, OfObject>(module),
                global: transmute::<*mut c_void, Global>(global),
                local: transmute::<*mut c_void, Local>(local),
            })
        }
    }
}

/// A thread, as Ruby tells of it.
pub struct ThreadFacts {
    /// The thread.
    pub object: VALUE,
    /// What it is called.
    pub name: Vec<u8>,
    /// The names of its local variables.
    pub locals: Vec<rb_sys::ID>,
}

/// A constant, as the VM's table has it (`rb_const_entry_t`, constant.h; the same in all versions).
#[repr(C)]
struct Constant {
    flag: c_int,
    line: c_int,
    value: VALUE,
    file: VALUE,
}

/// Names that were sent, by what they are names of.
pub struct Names<'a> {
    functions: &'a Functions,
    threads: &'a [ThreadFacts],
    ids: HashMap<ID, u32>,
    /// With a dot in front, as fields have it.
    fields: HashMap<ID, u32>,
    texts: HashMap<Vec<u8>, u32>,
    found: Vec<(ID, VALUE)>,
}

impl<'a> Names<'a> {
    /// None was sent.
    pub fn new(functions: &'a Functions, threads: &'a [ThreadFacts]) -> Self {
        Names {
            functions,
            threads,
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

    /// Adds what an object refers to by names: instance and class variables, constants, fields of a Struct, locals of
    /// a thread.
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
        if kind.is_thread() {
            return self.locals(object, named, writer);
        }
        match kind.ruby_type() {
            // SAFETY: as the caller promises.
            Kind::STRUCT => unsafe { self.find_fields(object) },
            Kind::OBJECT | Kind::CLASS | Kind::MODULE => {}
            _ => return,
        }
        self.send_fields(named, writer);
        let found = (&raw mut self.found).expose_provenance();
        // SAFETY: as the caller promises; the callback makes no objects and doesn't unwind.
        unsafe { (self.functions.variables)(object, add_variable, found) };
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
        let name = name.filter(|it| it.starts_with(begin));
        let number = name.map_or(0, |it| writer.name(it));
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

    fn locals<S: Sink>(
        &mut self,
        object: VALUE,
        named: &mut Vec<(u32, VALUE)>,
        writer: &mut Writer<S>,
    ) {
        let threads = self.threads;
        for thread in threads.iter().filter(|it| it.object == object) {
            for &id in &thread.locals {
                // SAFETY: a thread that lives, and one of its variables; the VM looks it up in a table.
                let (value, name) = unsafe {
                    let name = bytes((self.functions.name)(id));
                    ((self.functions.local)(object, id), name)
                };
                let text = [b"[:", name.unwrap_or_default(), b"]"].concat();
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

/// The bytes of a String; `None` if it is none.
///
/// # Safety
/// It lives, and isn't changed meanwhile.
unsafe fn bytes<'a>(value: VALUE) -> Option<&'a [u8]> {
    use rb_sys::macros::{RB_TYPE_P, RSTRING_LEN, RSTRING_PTR, SPECIAL_CONST_P};
    if value == 0 || SPECIAL_CONST_P(value) {
        return None;
    }
    // SAFETY: as the caller promises.
    unsafe {
        if !RB_TYPE_P(value, rb_sys::ruby_value_type::RUBY_T_STRING) {
            return None;
        }
        let length = usize::try_from(RSTRING_LEN(value)).ok()?;
        Some(std::slice::from_raw_parts(
            RSTRING_PTR(value).cast(),
            length,
        ))
    }
}

unsafe extern "C" fn add_variable(id: usize, value: usize, found: usize) -> c_int {
    // SAFETY: the Vec that was handed over, which nobody else uses meanwhile.
    let found = unsafe { &mut *std::ptr::with_exposed_provenance_mut::<Vec<(ID, VALUE)>>(found) };
    found.push((id as ID, value as VALUE));
    0
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
