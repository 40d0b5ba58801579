//! The browser that an address can be opened in. Called by `viewer`.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

/// What can be done with an address.
#[derive(Debug, PartialEq, Eq)]
pub enum Browser {
    /// A command opens it.
    Command(OsString),
    /// The person sits at another machine.
    OverSsh,
    /// There is none.
    None,
}

impl Browser {
    /// The browser that the environment points to.
    pub fn of_environment() -> Self {
        Self::by(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
    }

    fn by(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let has = |names: &[&str]| names.iter().any(|&name| variable(name).is_some());
        if let Some(command) = variable("BROWSER") {
            Browser::Command(command)
        } else if has(&["SSH_CONNECTION", "SSH_TTY"]) {
            Browser::OverSsh
        } else if cfg!(target_os = "macos") {
            Browser::Command("open".into())
        } else if has(&["DISPLAY", "WAYLAND_DISPLAY"]) {
            Browser::Command("xdg-open".into())
        } else {
            Browser::None
        }
    }
}

/// Opens `url` by `command`, without waiting. What a browser prints is of no use here, and
/// if it fails, the address is on the screen.
pub fn open(command: &OsString, url: &str) {
    let mut command = Command::new(command);
    command.arg(url).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C, which ends the viewer, is not for the browser.
    command.process_group(0);
    if let Ok(mut child) = command.spawn() {
        // A thread of its own, since a browser may run for hours.
        // Without one it stays a zombie until the viewer ends.
        let _ = thread::Builder::new().spawn(move || child.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Browser {
        let value = |name: &str| set.iter().find(|pair| pair.0 == name);
        Browser::by(|name| value(name).map(|pair| pair.1.into()))
    }

    #[test]
    fn the_environment_tells_the_browser() {
        let chosen = with(&[("BROWSER", "firefox"), ("SSH_TTY", "/dev/pts/1")]);
        assert_eq!(chosen, Browser::Command("firefox".into()));
        let far = with(&[("SSH_CONNECTION", "a"), ("DISPLAY", ":0")]);
        assert_eq!(far, Browser::OverSsh);
        if cfg!(target_os = "linux") {
            let near = with(&[("WAYLAND_DISPLAY", "wayland-0")]);
            assert_eq!(near, Browser::Command("xdg-open".into()));
            assert_eq!(with(&[]), Browser::None);
        }
    }
}
