//! Which calls are traced, and how. Used by the bridge's hooks, by traces and by notes. Any thread, no
//! I/O.

/// Which calls are traced, and whether they are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLevel {
    /// Methods of C, too.
    pub c_methods: bool,
    /// Calls have times. Without, there are events of calls only, and none of returns.
    pub timed: bool,
}

impl TraceLevel {
    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let (c_methods, timed) = match name {
            "ruby" => (false, true),
            "all" => (true, true),
            "count" => (false, false),
            "count-all" => (true, false),
            _ => return None,
        };
        Some(Self { c_methods, timed })
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match (self.c_methods, self.timed) {
            (false, true) => "ruby",
            (true, true) => "all",
            (false, false) => "count",
            (true, false) => "count-all",
        }
    }
}
