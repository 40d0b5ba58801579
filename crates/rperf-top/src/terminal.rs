//! The terminal while the screens have it, and as it was before: whatever ends them, it is put back.

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, stdout};
use std::panic;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The screens have the terminal.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// A thread has panicked.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Puts the terminal back when it goes.
#[derive(Debug)]
pub struct Guard(());

impl Guard {
    /// The screens get the terminal.
    pub fn new() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let previous = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                // So that what is said of the panic can be read.
                PANICKED.store(true, SeqCst);
                put_back();
                previous(panic);
            }));
        });
        let guard = Guard(());
        guard.take()?;
        Ok(guard)
    }

    /// The screens get it again.
    pub fn take(&self) -> io::Result<()> {
        IN_USE.store(true, SeqCst);
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, Hide)
    }

    /// Makes the terminal what it was before.
    pub fn give_back(&self) {
        put_back();
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        put_back();
    }
}

/// Whether a thread has panicked while the screens were there.
pub fn has_panicked() -> bool {
    PANICKED.load(SeqCst)
}

fn put_back() {
    if IN_USE.swap(false, SeqCst) {
        // If it is gone, there is nothing to put back.
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}
