//! A digest by which the stack of a wait is known again. After a long wait the caches are cold, and the
//! VM reads many words of each frame's code to tell its line.

/// What the VM reads of a stack to tell its backtrace, in 64 bits: stacks with equal digests have equal
/// backtraces, but for one pair in 2^64, as long as no object of theirs is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StackDigest(u64);

impl StackDigest {
    /// The digest of a made-up stack.
    #[cfg(any(test, feature = "fake-vm"))]
    pub fn of(word: usize) -> Self {
        Self::default().with(word)
    }

    /// The digest with a further word: a folded multiplication, as in wyhash (Wang Yi, 2019).
    #[inline]
    #[must_use]
    pub(crate) fn with(self, word: usize) -> Self {
        const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
        const NO_WORD: u64 = 0x2D35_8DCC_AA6C_78A5;
        let mixed = u128::from(self.0 ^ FACTOR) * u128::from(word as u64 ^ NO_WORD);
        let product = (mixed >> 64) as u64 ^ mixed as u64;
        Self(product ^ self.0.rotate_left(29))
    }
}
