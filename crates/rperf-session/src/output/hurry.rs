//! Whether somebody waits for the end of what is being written: then a slow reader gets no more than a
//! moment. Any thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// For so long a slow reader is waited for when somebody waits for the end.
pub const HURRY: Duration = Duration::from_secs(2);
/// How often it is looked whether somebody does.
pub const STEP: Duration = Duration::from_millis(100);

/// Whether somebody waits for the end of all that this process writes.
static ALL: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether somebody waits for the end of what this thread writes.
    static THREADS: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

/// From now on all that this process writes hurries. Async-signal-safe.
pub fn hurry() {
    ALL.store(true, Relaxed);
}

/// What `work` returns, on this thread. It hurries as soon as the flag is true.
pub fn hurrying_by<T>(flag: Arc<AtomicBool>, work: impl FnOnce() -> T) -> T {
    let _before = Before(THREADS.replace(Some(flag)));
    work()
}

/// What was there before, which comes back, also after a panic.
struct Before(Option<Arc<AtomicBool>>);

impl Drop for Before {
    fn drop(&mut self) {
        THREADS.replace(self.0.take());
    }
}

pub(super) fn is_hurried() -> bool {
    let is_threads =
        |flag: &Option<Arc<AtomicBool>>| flag.as_ref().is_some_and(|it| it.load(Relaxed));
    ALL.load(Relaxed) || THREADS.with_borrow(is_threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_hurries_by_its_own_flag() {
        let [flag, inner] = [false, true].map(|it| Arc::new(AtomicBool::new(it)));
        hurrying_by(Arc::clone(&flag), || {
            assert!(!is_hurried());
            hurrying_by(inner, || assert!(is_hurried()));
            assert!(!is_hurried());
            flag.store(true, Relaxed);
            assert!(is_hurried());
        });
        assert!(!is_hurried());
    }
}
