//! The name of a thread of another Ractor.

use rperf_vm::{NotedName, VmName};
use std::sync::Arc;

/// The name as it was noted last, with its text, which is made only where the name is another one.
#[derive(Debug, Default)]
pub(super) struct Name {
    noted: NotedName,
    text: Option<Arc<str>>,
}

impl Name {
    /// The thread has this name.
    pub(super) fn note(&mut self, name: &impl VmName) {
        if self.noted.differs(name) {
            self.text = self.noted.note(name);
        }
    }

    /// Its text, if the thread has a name.
    pub(super) fn text(&self) -> Option<&Arc<str>> {
        self.text.as_ref()
    }
}
