//! Whether a program has more rights than who has started it, by its file: then whoever has set its
//! environment may be without them. Any thread.

#[cfg(not(target_os = "linux"))]
use nix::unistd::{getegid, geteuid, getgid, getuid};

/// Whether the file of this program has given it rights: another user or group, or capabilities.
pub fn are_of_file() -> bool {
    #[cfg(target_os = "linux")]
    // SAFETY: reads a number that the kernel gave the process at its start.
    return unsafe { libc::getauxval(libc::AT_SECURE) } != 0;
    #[cfg(target_os = "macos")]
    // SAFETY: only asks.
    return unsafe { libc::issetugid() } != 0;
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    return false;
}

/// Whether this program was started as another user or group than its caller, because its file says so.
/// With capabilities alone it wasn't: there Ruby itself does what RUBYOPT says.
pub fn are_of_another_user() -> bool {
    are_of_file() && was_another_user()
}

/// What the kernel gave the process at its start: a program can make its numbers equal later.
#[cfg(target_os = "linux")]
fn was_another_user() -> bool {
    // SAFETY: reads numbers.
    let at_start = |number| unsafe { libc::getauxval(number) };
    let differ = |real, effective| at_start(real) != at_start(effective);
    differ(libc::AT_UID, libc::AT_EUID) || differ(libc::AT_GID, libc::AT_EGID)
}

#[cfg(not(target_os = "linux"))]
fn was_another_user() -> bool {
    getuid() != geteuid() || getgid() != getegid()
}
