//! Whether the VM still tells of its collections. In some versions the hooks of the main Ractor fall
//! silent, all of them, when a Ractor's object is freed. The next collection is then not seen, and
//! the hook must be registered anew.
//!
//! Fed by the bridge's GC hook, with the GVL of the Ractor that collects; asked by it and by the
//! handler of a tick, async-signal-safe.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// How often the hook is registered anew at most, in ns.
const LISTEN_INTERVAL_NS: u64 = 20_000_000;

/// No number of collections.
const MISSED: u64 = u64::MAX;

/// The process's collections, as its hook tells of them.
pub static GC_WATCH: GcWatch = GcWatch::new();

/// What the GC hook has told.
#[derive(Debug)]
pub struct GcWatch {
    /// Whether this VM loses events.
    can_miss: AtomicBool,
    /// A collection is in its marking phase, which may take several pieces.
    marking: AtomicBool,
    /// How many collections had begun when the last one was seen to begin; [`MISSED`] if
    /// events of one were.
    collections: AtomicU64,
    /// When the hook was registered anew, on the monotonic clock.
    listened_ns: AtomicU64,
    /// Events were found missing since the session began.
    has_missed: AtomicBool,
}

impl GcWatch {
    /// Nothing was told yet.
    pub const fn new() -> Self {
        Self {
            can_miss: AtomicBool::new(false),
            marking: AtomicBool::new(false),
            collections: AtomicU64::new(0),
            listened_ns: AtomicU64::new(0),
            has_missed: AtomicBool::new(false),
        }
    }

    /// A session begins: what was missing before is none of its.
    pub fn session_begins(&self) {
        self.has_missed.store(false, Relaxed);
    }

    /// The hook is about to be registered: a collection may be under way, and marking.
    pub fn begin(&self, can_miss: bool, is_marking: bool) {
        self.can_miss.store(can_miss, Relaxed);
        self.marking.store(is_marking, Relaxed);
    }

    /// The hook is there, so many collections have begun, and the last may be marking: to register it
    /// takes memory, for which the VM may have begun one unseen.
    pub fn begun(&self, collections: u64, is_marking: bool) {
        self.marking.store(is_marking, Relaxed);
        self.collections.store(collections, Relaxed);
    }

    /// Marking begins, of the last of so many collections.
    pub fn mark_begins(&self, collections: u64) {
        self.marking.store(true, Relaxed);
        self.collections.store(collections, Relaxed);
    }

    /// Marking ends.
    pub fn mark_ends(&self) {
        self.marking.store(false, Relaxed);
    }

    /// Whether the collection at hand is in its marking phase.
    pub fn is_marking(&self) -> bool {
        self.marking.load(Relaxed)
    }

    /// Whether no collection is marking, when so many have begun and the hook has told of the last one.
    pub fn is_between_marks(&self, collections: u64) -> bool {
        !self.is_marking() && self.collections.load(Relaxed) == collections
    }

    /// The end of a collection was not told: its beginning doesn't count.
    pub fn end_is_missing(&self) {
        self.collections.store(MISSED, Relaxed);
    }

    /// Whether events are missing, when so many collections have begun, and it is time to
    /// register the hook anew. Events of other Ractors are missing, too. Async-signal-safe.
    pub fn is_silent(&self, collections: impl FnOnce() -> u64, now: impl FnOnce() -> u64) -> bool {
        self.can_miss.load(Relaxed)
            && self.collections.load(Relaxed) != collections()
            && now().saturating_sub(self.listened_ns.load(Relaxed)) >= LISTEN_INTERVAL_NS
    }

    /// The hook is registered still, and so many collections have begun: notes whether events are
    /// missing.
    pub fn look(&self, collections: u64) {
        if self.can_miss.load(Relaxed) && self.collections.load(Relaxed) != collections {
            self.has_missed.store(true, Relaxed);
        }
    }

    /// Whether events were found missing since the session began: of collections, and so of
    /// whatever else hooks tell of.
    pub fn has_missed(&self) -> bool {
        self.has_missed.load(Relaxed)
    }

    /// The hook is registered anew at `now`.
    pub fn listen(&self, now: u64) {
        self.listened_ns.store(now, Relaxed);
    }
}

impl Default for GcWatch {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LATE: u64 = 10 * LISTEN_INTERVAL_NS;

    fn watch(can_miss: bool) -> GcWatch {
        let watch = GcWatch::new();
        watch.begin(can_miss, false);
        watch.begun(3, false);
        watch
    }

    #[test]
    fn nothing_marks_once_the_hook_has_told_of_the_last_collections_end() {
        let watch = watch(false);
        assert!(watch.is_between_marks(3));
        assert!(!watch.is_between_marks(4), "one isn't told");
        watch.mark_begins(4);
        assert!(!watch.is_between_marks(4));
        watch.mark_ends();
        assert!(watch.is_between_marks(4));
        watch.begun(5, true);
        assert!(
            !watch.is_between_marks(5),
            "it began as the hook was registered"
        );
    }

    #[test]
    fn a_collection_that_was_not_told_is_noticed_until_the_hook_is_registered_anew() {
        let watch = watch(true);
        assert!(!watch.is_silent(|| 3, || LATE));
        watch.mark_begins(4);
        assert!(!watch.is_silent(|| 4, || LATE), "told");
        assert!(watch.is_silent(|| 5, || LATE));
        watch.listen(LATE);
        assert!(!watch.is_silent(|| 6, || LATE + LISTEN_INTERVAL_NS - 1));
        assert!(watch.is_silent(|| 6, || LATE + LISTEN_INTERVAL_NS));
        watch.begun(6, false);
        assert!(!watch.is_silent(|| 6, || LATE + LISTEN_INTERVAL_NS));
    }

    #[test]
    fn a_collection_without_its_end_was_missed() {
        let watch = watch(true);
        watch.end_is_missing();
        assert!(watch.is_silent(|| 3, || LATE));
    }

    #[test]
    fn what_was_missed_is_known_until_a_session_begins() {
        let watch = watch(true);
        watch.look(3);
        assert!(!watch.has_missed());
        watch.look(4);
        watch.begun(4, false);
        watch.look(4);
        assert!(watch.has_missed());
        watch.session_begins();
        assert!(!watch.has_missed());
    }

    #[test]
    fn a_vm_that_loses_no_events_is_not_asked() {
        let watch = watch(false);
        let asked = || panic!("not asked");
        assert!(!watch.is_silent(asked, || LATE));
        watch.look(9);
        assert!(!watch.has_missed());
    }

    #[test]
    fn marking_goes_on_from_piece_to_piece() {
        let watch = GcWatch::new();
        watch.begin(true, true);
        assert!(watch.is_marking(), "it was under way");
        watch.mark_ends();
        assert!(!watch.is_marking());
        watch.mark_begins(1);
        assert!(watch.is_marking());
    }
}
