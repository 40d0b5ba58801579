//! Numbers by chance that are the same in each run. For tests.

/// Draws numbers from a state, which isn't 0.
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    /// A number from 0 up to `most`, drawn evenly.
    pub(crate) fn next(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most
    }
}
