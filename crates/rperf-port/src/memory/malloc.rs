//! What this process's malloc has counted, by functions that are looked up by name: which malloc there
//! is, is known only as the program runs. They take the locks of malloc for a while. On the port's
//! thread.

use nix::unistd::{SysconfVar, sysconf};
use rperf_protocol::memory::{Counts, MallocAnswer};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::transmute;
use std::ptr;
use std::time::Instant;

/// glibc's answer: sizes, in this order.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Info<T> {
    arena: T,
    ordblks: T,
    smblks: T,
    hblks: T,
    hblkhd: T,
    usmblks: T,
    fsmblks: T,
    uordblks: T,
    fordblks: T,
    keepcost: T,
}

type Mallinfo2 = unsafe extern "C" fn() -> Info<usize>;
type Mallinfo = unsafe extern "C" fn() -> Info<c_int>;
type Mallctl =
    unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

/// What it has counted; `None` on systems on which it isn't asked.
pub fn counted() -> Option<MallocAnswer> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let began = Instant::now();
    let library = library_of(find(c"malloc"))?;
    let control = find(c"mallctl");
    let is_of_libc = library.starts_with("libc.so") || library.starts_with("libc-");
    let counts = match control {
        // One that is loaded, and isn't used, counts nothing.
        _ if is_of_libc => glibc(),
        control if control.is_null() => None,
        control => jemalloc(control),
    };
    Some(MallocAnswer {
        allocator: match counts.is_some() {
            true if is_of_libc => "glibc".into(),
            true => "jemalloc".into(),
            false => library,
        },
        counts,
        elapsed_ns: u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX),
    })
}

/// The address of this name; null if nobody has it.
fn find(name: &CStr) -> *mut c_void {
    // SAFETY: looks a name up.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }
}

/// The file that the function is in, without its directory.
fn library_of(function: *mut c_void) -> Option<String> {
    let mut found = libc::Dl_info {
        dli_fname: ptr::null(),
        dli_fbase: ptr::null_mut(),
        dli_sname: ptr::null(),
        dli_saddr: ptr::null_mut(),
    };
    // SAFETY: writes to `found`, and reads nothing at the address.
    let is_found = unsafe { libc::dladdr(function, &raw mut found) } != 0;
    if function.is_null() || !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a text of the loader's, which stays as long as the file is loaded; a malloc is never unloaded.
    let path = unsafe { CStr::from_ptr(found.dli_fname) }.to_string_lossy();
    Some(path.rsplit('/').next().unwrap_or_default().into())
}

/// By `mallinfo2`, from glibc 2.33 on. Before it there is `mallinfo`, whose numbers begin anew at 4 GB: a
/// program with mappings of that much has no counts. `None` with another C library.
fn glibc() -> Option<Counts> {
    let (new, old) = (find(c"mallinfo2"), find(c"mallinfo"));
    if !new.is_null() {
        // SAFETY: glibc's function of this name has this form. It takes the lock of each arena, as malloc
        // does; a fork waits for these.
        let info = unsafe { transmute::<*mut c_void, Mallinfo2>(new)() };
        return Some(Counts {
            free: info.fordblks as u64,
            in_use: info.uordblks as u64,
            mapped: info.hblkhd as u64,
            mapped_free: 0,
        });
    }
    if old.is_null() || mapped()? > u64::from(u32::MAX) {
        return None;
    }
    // SAFETY: as above.
    let info = unsafe { transmute::<*mut c_void, Mallinfo>(old)() };
    let number = |it: c_int| u64::from(it.cast_unsigned());
    Some(Counts {
        free: number(info.fordblks),
        in_use: number(info.uordblks),
        mapped: number(info.hblkhd),
        mapped_free: 0,
    })
}

/// The bytes of all mappings of this process: no count of malloc is larger.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
fn mapped() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    let page = sysconf(SysconfVar::PAGE_SIZE).ok().flatten()?;
    pages.checked_mul(u64::try_from(page).ok()?)
}

/// By jemalloc's `mallctl`.
fn jemalloc(control: *mut c_void) -> Option<Counts> {
    // SAFETY: jemalloc's function of this name has this form, and no other library has the name.
    let control = unsafe { transmute::<*mut c_void, Mallctl>(control) };
    // Its counts are those of the last time that somebody set this.
    let mut epoch: u64 = 1;
    let length = size_of::<u64>();
    // SAFETY: it reads a number of so many bytes, if it knows the name.
    let result = unsafe {
        control(
            c"epoch".as_ptr(),
            ptr::null_mut(),
            ptr::null_mut(),
            (&raw mut epoch).cast(),
            length,
        )
    };
    let number = |name: &CStr| {
        let mut value: usize = 0;
        let mut length = size_of::<usize>();
        // SAFETY: it writes a number of so many bytes, if it knows the name, and else says so.
        let result = unsafe {
            control(
                name.as_ptr(),
                (&raw mut value).cast(),
                &raw mut length,
                ptr::null_mut(),
                0,
            )
        };
        (result == 0).then_some(value as u64)
    };
    if result != 0 {
        return None;
    }
    let allocated = number(c"stats.allocated")?;
    // With what it needs itself.
    let resident = number(c"stats.resident")?;
    Some(Counts {
        free: 0,
        in_use: 0,
        mapped: allocated,
        mapped_free: resident.saturating_sub(allocated),
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_env = "gnu")]
    fn malloc_counts_a_block_that_is_handed_out() {
        const SIZE: usize = 90 << 20;
        let counts = || {
            let answer = counted().expect("an answer");
            assert_eq!(answer.allocator, "glibc");
            answer.counts.expect("counts")
        };
        let before = counts();
        let block = std::hint::black_box(vec![1_u8; SIZE]);
        let after = counts();
        let grown = (after.mapped + after.in_use).abs_diff(before.mapped + before.in_use);
        // Other tests have some, too.
        assert!(grown.abs_diff(SIZE as u64) < 16 << 20, "{grown}");
        drop(block);
    }

    #[test]
    fn a_library_is_known_by_its_functions() {
        assert_eq!(library_of(ptr::null_mut()), None);
        let library = library_of(find(c"malloc")).expect("a library");
        assert!(
            library.starts_with("lib") || library.starts_with("ld-musl"),
            "{library}"
        );
    }
}
