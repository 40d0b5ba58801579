//! The objects that are made while calls are traced: each counts for the frame that was innermost.
//! Under the GVL, in the hook on new objects.

use crate::event::TracedKind;
use crate::tracer::Tracer;
use rperf_vm::{AllocationSite, Allocations};

impl Tracer {
    /// From now on objects are counted.
    pub fn count_objects(&mut self) {
        self.objects = Some(Allocations::new(false));
    }

    /// An object of `class` and so many bytes was made. `line` asks the VM for the line in execution
    /// of the innermost frame of Ruby.
    #[inline]
    pub fn allocated(&mut self, class: usize, bytes: u64, line: impl FnOnce() -> u32) {
        let Some(objects) = &mut self.objects else {
            return;
        };
        let node = self.fibers.charged();
        let labels = self.threads.get_running().map(|it| it.labels);
        let site = AllocationSite {
            thread: self.threads.running_number().0 + 1,
            place: node as usize,
            line: match self.tree.node(node).kind {
                TracedKind::C | TracedKind::InsertedC => 0,
                _ => line(),
            },
            class,
            labels: labels.unwrap_or_default(),
        };
        objects.add(site, bytes);
    }

    /// The classes of objects: the garbage collector's roots.
    pub fn classes(&self) -> &[usize] {
        self.objects.as_ref().map_or(&[], Allocations::words)
    }

    /// The classes that are new since this was asked last.
    #[inline]
    pub fn new_classes(&mut self) -> &[usize] {
        self.objects.as_mut().map_or(&[], Allocations::new_words)
    }
}
