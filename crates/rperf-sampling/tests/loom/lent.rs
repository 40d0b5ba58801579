//! Handlers use what the session's end frees.

use crate::in_use::{Lent, Users};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// What the handlers serve. Freed, it is written to.
struct Session(UnsafeCell<u32>);

/// The places of `signal.rs`, and who uses them.
struct Handlers {
    active: Lent<Session>,
    fault_active: Lent<Session>,
    users: Users,
}

impl Handlers {
    fn use_session(&self, place: &Lent<Session>) {
        // SAFETY: loom says if somebody writes meanwhile.
        let read = |session: &Session| session.0.with(|it| unsafe { *it });
        assert_eq!(place.with(&self.users, read).unwrap_or_default(), 0);
    }
}

/// A handler begins to use it, another one reads a stack and may fault, and the session ends.
pub fn taken_back() {
    let handlers = Arc::new(Handlers {
        active: Lent::empty(),
        fault_active: Lent::empty(),
        users: Users::none(),
    });
    assert!(handlers.active.is_empty() && handlers.fault_active.is_empty());
    assert_eq!(handlers.users.count(), 0);
    let session = Box::into_raw(Box::new(Session(UnsafeCell::new(0))));
    // SAFETY: it is freed when both are taken back.
    unsafe {
        handlers.fault_active.put(session);
        handlers.active.put(session);
    }
    let interrupted = Arc::clone(&handlers);
    let interrupted = thread::spawn(move || interrupted.use_session(&interrupted.active));
    let faulty = Arc::clone(&handlers);
    let faulty = thread::spawn(move || faulty.use_session(&faulty.fault_active));
    let taken = handlers.active.take_back(&handlers.users);
    assert_eq!(handlers.fault_active.take_back(&handlers.users), taken);
    // SAFETY: it is in a Box, and loom says if somebody uses it.
    let session = unsafe { Box::from_raw(taken) };
    // SAFETY: as above.
    session.0.with_mut(|it| unsafe { *it = 1 });
    interrupted.join().expect("it doesn't panic");
    faulty.join().expect("it doesn't panic");
}
