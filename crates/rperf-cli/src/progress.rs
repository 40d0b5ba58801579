//! The line that shows how far a command is that takes its time. On the main thread, and on those that ask
//! programs.

use crate::say;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;

/// The line that shows how far it is, where there is a terminal.
pub struct Progress {
    is_shown: bool,
    /// The line that is there.
    line: Mutex<String>,
}

impl Progress {
    /// A line that shows nothing yet.
    pub fn new() -> Self {
        Progress {
            is_shown: std::io::stderr().is_terminal(),
            line: Mutex::default(),
        }
    }

    /// Shows this line in the place of the one that is there.
    pub fn show(&self, line: String) {
        if !self.is_shown {
            return;
        }
        let mut shown = self.line.lock().unwrap_or_else(|it| it.into_inner());
        if *shown != line {
            let rest = shown.len().saturating_sub(line.len());
            let _ = write!(std::io::stderr(), "\r{line}{}", " ".repeat(rest));
            *shown = line;
        }
    }

    /// Says something in a line of its own.
    pub fn say(&self, message: &str) {
        let mut shown = self.line.lock().unwrap_or_else(|it| it.into_inner());
        if !shown.is_empty() {
            let _ = write!(std::io::stderr(), "\r{}\r", " ".repeat(shown.len()));
            shown.clear();
        }
        say(message);
    }

    /// Takes the line away.
    pub fn end(&self) {
        self.show(String::new());
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r");
        }
    }
}
