//! The VM's functions that tell names, and what they hand over. In the forked child; none of them runs Ruby code.

use super::contexts::Contexts;
use crate::ruby::heap::{EachEntry, Missing, OfObject, find};
use rb_sys::{ID, VALUE};
use rperf_vm::Gvl;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;

type EachVariable = unsafe extern "C" fn(VALUE, EachEntry, usize);
type ConstantsAt = unsafe extern "C" fn(VALUE, *mut c_void) -> *mut c_void;
type Each = unsafe extern "C" fn(*mut c_void, EachEntry, usize) -> c_int;
type FreeTable = unsafe extern "C" fn(*mut c_void);
type NameOf = unsafe extern "C" fn(ID) -> VALUE;
type Global = unsafe extern "C" fn(*const c_char) -> VALUE;
type Local = unsafe extern "C" fn(VALUE, ID) -> VALUE;
type EachOfHash = unsafe extern "C" fn(VALUE, EachEntry, usize) -> c_int;

/// What the VM's functions are called.
pub struct Functions {
    /// Goes through the instance variables of an object, of a class or module also its class variables.
    pub variables: EachVariable,
    /// A new table of the constants of a module.
    pub constants: ConstantsAt,
    /// Goes through a table.
    pub each: Each,
    /// Frees such a table.
    pub free: FreeTable,
    /// The name of an ID.
    pub name: NameOf,
    /// The name of a module.
    pub module: OfObject,
    /// The value of a global variable.
    pub global: Global,
    /// A variable of a thread's present fiber.
    pub local: Local,
    /// Goes through the entries of a Hash. Without it, these have no names.
    pub each_of_hash: Option<EachOfHash>,
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
        let each_of_hash = find(c"rb_hash_stlike_foreach");
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
                each_of_hash: each_of_hash.map(|it| transmute::<*mut c_void, EachOfHash>(it)),
            })
        }
    }

    /// Where the VM has what fibers keep by names, if that is known. In the program.
    pub fn contexts(&self, gvl: &Gvl<'_>) -> Option<Contexts> {
        // SAFETY: the VM looks an ID up in its table, whatever it is.
        Contexts::find(gvl, |id| unsafe { (self.name)(id) })
    }
}

/// The bytes of a String; `None` if it is none.
///
/// # Safety
/// It lives, and isn't changed meanwhile.
pub unsafe fn bytes<'a>(value: VALUE) -> Option<&'a [u8]> {
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
