//! Reading words of the VM's own memory: where a fault is caught anyway, and where none may happen.

/// Reads words of this process's memory.
pub trait Memory {
    /// The word at `address`; `None` if none can be read there.
    fn word(&self, address: usize) -> Option<usize>;

    /// The 32 bits at `address`.
    fn half_word(&self, address: usize) -> Option<u32>;
}

/// Reads at once. Made where a fault is expected: in the signal handler of a tick.
pub struct MayFault(());

impl MayFault {
    /// For a caller that is ready for a fault.
    ///
    /// # Safety
    /// It is, as long as this is used.
    pub unsafe fn new() -> Self {
        Self(())
    }
}

impl Memory for MayFault {
    fn word(&self, address: usize) -> Option<usize> {
        // SAFETY: the caller of `new` is ready for a fault.
        Some(unsafe { (address as *const usize).read_volatile() })
    }

    fn half_word(&self, address: usize) -> Option<u32> {
        // SAFETY: as above.
        Some(unsafe { (address as *const u32).read_volatile() })
    }
}

/// Has the kernel read, which tells of addresses that lead nowhere.
pub struct Checked(());

impl Checked {
    /// `None` if the system doesn't do that for this process.
    pub fn new() -> Option<Self> {
        let known = 0x1234_5678_usize;
        let checked = Self(());
        (checked.word((&raw const known).addr()) == Some(known)).then_some(checked)
    }

    /// Reads as many bytes as `value` has.
    #[cfg(target_os = "linux")]
    fn read<T: Copy + Default>(address: usize) -> Option<T> {
        let mut value = T::default();
        let size = size_of::<T>();
        let part = |base: *mut libc::c_void| libc::iovec {
            iov_base: base,
            iov_len: size,
        };
        let here = part((&raw mut value).cast());
        let there = part(std::ptr::without_provenance_mut(address));
        // SAFETY: `here` is `value`; the kernel looks whether there is something at `address`.
        let read = unsafe {
            libc::process_vm_readv(libc::getpid(), &raw const here, 1, &raw const there, 1, 0)
        };
        (usize::try_from(read) == Ok(size)).then_some(value)
    }

    #[cfg(not(target_os = "linux"))]
    fn read<T: Copy + Default>(_: usize) -> Option<T> {
        None
    }
}

impl Memory for Checked {
    fn word(&self, address: usize) -> Option<usize> {
        Self::read(address)
    }

    fn half_word(&self, address: usize) -> Option<u32> {
        Self::read(address)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_nowhere_have_no_words() {
        let memory = Checked::new().expect("the kernel reads for the process itself");
        let words = [7_usize, 9];
        let address = words.as_ptr().addr();
        assert_eq!(memory.word(address), Some(7));
        assert_eq!(memory.word(address + size_of::<usize>()), Some(9));
        assert_eq!(memory.half_word(address), Some(7));
        for nowhere in [0, 8, usize::MAX - 16] {
            assert_eq!(memory.word(nowhere), None);
            assert_eq!(memory.half_word(nowhere), None);
        }
    }
}
