//! The state of a thread that the kernel saves for a handler, and whether another handler can return to
//! it: `go_on_as` copies a context into the frame of a later signal.

use libc::ucontext_t;

/// Whether a copy of the interrupted context, in the frame of another signal, leads back to where it was
/// taken. On x86-64 always: large state lies behind a pointer, and stays where it is.
///
/// # Safety
/// `context` is what the kernel passed to a handler.
#[cfg(target_arch = "x86_64")]
pub unsafe fn can_be_copied(_: *const ucontext_t) -> bool {
    true
}

/// Whether a copy of the interrupted context, in the frame of another signal, leads back to where it was
/// taken. Not where the kernel has put a part behind the frame: it demands that this follows on the frame
/// that names it, and else ends the process (`parse_user_sigframe` in Linux's arch/arm64/kernel/signal.c).
///
/// # Safety
/// `context` is what the kernel passed to a handler.
#[cfg(target_arch = "aarch64")]
pub unsafe fn can_be_copied(context: *const ucontext_t) -> bool {
    use std::mem::{offset_of, size_of};
    // `__reserved` of `struct sigcontext` in Linux's asm/sigcontext.h; aligned to 16 bytes, and the last.
    const RECORDS: usize = 4096;
    const { assert!(size_of::<libc::mcontext_t>() > RECORDS) };
    let begin = offset_of!(ucontext_t, uc_mcontext) + size_of::<libc::mcontext_t>() - RECORDS;
    // SAFETY: by this function's contract all of the context can be read.
    let records = unsafe { &*context.cast::<u8>().add(begin).cast::<[u8; RECORDS]>() };
    !names_more(records)
}

/// Whether records of saved state name more of it elsewhere. Each has a mark and its size in bytes, both of
/// 32 bits; mark 0 ends them.
#[cfg(any(target_arch = "aarch64", test))]
fn names_more(records: &[u8]) -> bool {
    /// `EXTRA_MAGIC` in Linux's asm/sigcontext.h.
    const MORE: u32 = 0x4558_5401;
    const HEAD: usize = 8;
    let mut rest = records;
    while let Some((head, _)) = rest.split_first_chunk::<HEAD>() {
        let [a, b, c, d, sizes @ ..] = *head;
        let (mark, size) = (
            u32::from_ne_bytes([a, b, c, d]),
            u32::from_ne_bytes(sizes) as usize,
        );
        match mark {
            0 => return false,
            MORE => return true,
            _ if size < HEAD => return false,
            _ => rest = rest.get(size..).unwrap_or_default(),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const VECTORS: u32 = 0x4650_8001;
    const MORE: u32 = 0x4558_5401;

    fn records(of: &[(u32, u32)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(mark, size) in of {
            let end = bytes.len() + (size as usize).max(8);
            bytes.extend(mark.to_ne_bytes());
            bytes.extend(size.to_ne_bytes());
            // As marks would be, were they looked for between records.
            bytes.resize(end, 0x01);
        }
        bytes
    }

    #[test]
    fn records_name_more_or_they_dont() {
        assert!(!names_more(&records(&[(VECTORS, 528), (0, 0)])));
        assert!(names_more(&records(&[(VECTORS, 528), (MORE, 32), (0, 0)])));
        assert!(names_more(&records(&[(MORE, 32)])));
        // What comes after their end means nothing.
        assert!(!names_more(&records(&[(VECTORS, 528), (0, 0), (MORE, 32)])));
    }

    #[test]
    fn broken_records_end() {
        for size in [0, 7] {
            assert!(!names_more(&records(&[(VECTORS, size), (MORE, 32)])));
        }
        assert!(!names_more(&records(&[(VECTORS, 528)])));
        assert!(!names_more(&VECTORS.to_ne_bytes()));
        let mut beyond = VECTORS.to_ne_bytes().to_vec();
        beyond.extend(u32::MAX.to_ne_bytes());
        assert!(!names_more(&beyond));
        assert!(!names_more(&[]));
    }
}
