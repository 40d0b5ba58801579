//! Reading words of the VM's own memory: where a fault is caught anyway, and where none may happen.

use std::io::{PipeReader, PipeWriter, Read, pipe};
use std::os::fd::AsRawFd;
use std::ptr;

/// Reads words of this process's memory.
pub trait Memory {
    /// The word at `address`; `None` if none can be read there.
    fn word(&self, address: usize) -> Option<usize>;

    /// The 32 bits at `address`.
    fn half_word(&self, address: usize) -> Option<u32>;
}

/// Reads at once: in the signal handler of a tick, where a fault is expected, and what can be read.
pub struct MayFault(());

impl MayFault {
    /// For a caller that is ready for a fault, or knows that words can be read where it reads.
    ///
    /// # Safety
    /// That holds as long as this is used.
    #[inline]
    pub unsafe fn new() -> Self {
        Self(())
    }
}

impl Memory for MayFault {
    #[inline]
    fn word(&self, address: usize) -> Option<usize> {
        // SAFETY: the caller of `new` is ready for a fault, or knows that there is a word.
        Some(unsafe { (address as *const usize).read_volatile() })
    }

    #[inline]
    fn half_word(&self, address: usize) -> Option<u32> {
        // SAFETY: as above.
        Some(unsafe { (address as *const u32).read_volatile() })
    }
}

/// Bytes that [`Checked::words`] reads at once.
const BLOCK: usize = 32 * size_of::<usize>();

/// Has the kernel read, which tells of addresses that lead nowhere: they can't be written into a
/// pipe. No sandbox forbids that, as some do with calls that are made for reading memory.
pub struct Checked {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Checked {
    /// `None` if the process gets no pipe.
    pub fn new() -> Option<Self> {
        let (reader, writer) = pipe().ok()?;
        Some(Self { reader, writer })
    }

    /// The words from `address` on, up to `most` or to where none can be read.
    pub fn words(&self, address: usize, most: usize) -> Vec<usize> {
        let mut words = Vec::with_capacity(most);
        let mut at = Some(address);
        while words.len() < most
            && let Some(bytes) = at.and_then(|at| self.read::<BLOCK>(at))
        {
            let (block, _) = bytes.as_chunks();
            words.extend(block.iter().copied().map(usize::from_ne_bytes));
            at = at.and_then(|at| at.checked_add(BLOCK));
        }
        words.truncate(most);
        words
    }

    /// Reads as many bytes as the value has: few enough for any pipe.
    fn read<const SIZE: usize>(&self, address: usize) -> Option<[u8; SIZE]> {
        let from = ptr::with_exposed_provenance(address);
        // SAFETY: the kernel looks whether there is something at `address`.
        let written = unsafe { libc::write(self.writer.as_raw_fd(), from, SIZE) };
        let written = usize::try_from(written).ok()?;
        let mut bytes = [0; SIZE];
        (&self.reader).read_exact(bytes.get_mut(..written)?).ok()?;
        (written == SIZE).then_some(bytes)
    }
}

impl Memory for Checked {
    fn word(&self, address: usize) -> Option<usize> {
        self.read(address).map(usize::from_ne_bytes)
    }

    fn half_word(&self, address: usize) -> Option<u32> {
        self.read(address).map(u32::from_ne_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_lead_nowhere_have_no_words() {
        let memory = Checked::new().expect("there are descriptors for a pipe");
        let words = [7_usize, 9];
        let address = words.as_ptr().addr();
        assert_eq!(memory.word(address), Some(7));
        assert_eq!(memory.word(address + size_of::<usize>()), Some(9));
        assert_eq!(memory.half_word(address), Some(7));
        let many: Vec<usize> = (0..100).collect();
        for most in [1, 32, 33, 68] {
            assert_eq!(memory.words(many.as_ptr().addr(), most), many[..most]);
        }
        for nowhere in [0, 8, usize::MAX - 16] {
            assert_eq!(memory.word(nowhere), None);
            assert_eq!(memory.half_word(nowhere), None);
            assert!(memory.words(nowhere, 3).is_empty());
        }
    }
}
