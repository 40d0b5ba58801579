//! What JSON and Markdown have of a profile beside its stacks, if it is asked for. Any thread.

/// Answers that are there if they are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts {
    /// The loading of files.
    pub boot: bool,
    /// The tests of a suite.
    pub tests: bool,
    /// The ops.
    pub ops: bool,
    /// The collections.
    pub gc: bool,
}

impl Parts {
    /// Whether there are any.
    pub fn any(self) -> bool {
        self != Self::default()
    }
}
