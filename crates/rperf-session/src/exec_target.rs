//! Whether the program that a call of `exec` is to start is there. Asked by the extension on the thread
//! that calls `exec`.

use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Words with which Ruby has the shell run a command line, as it does for other characters than plain ones.
const SHELL_WORDS: [&str; 28] = [
    ".", ":", "break", "case", "continue", "do", "done", "elif", "else", "esac", "eval", "exec",
    "exit", "export", "fi", "for", "if", "in", "readonly", "return", "set", "shift", "then",
    "times", "trap", "unset", "until", "while",
];

/// Whether the program of `command` certainly doesn't exist. `command` is its name, or a whole line
/// (`is_line`), which the shell runs if it isn't plain; `path` has the directories that are searched.
pub fn is_missing(command: &OsStr, is_line: bool, path: Option<&OsStr>) -> bool {
    let name = match is_line {
        true => name_in(command),
        false => Some(command),
    };
    name.is_some_and(|name| !is_found(name, path))
}

/// The first word of a line that needs no shell.
fn name_in(line: &OsStr) -> Option<&OsStr> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_./+ -".contains(byte);
    let bytes = line.as_bytes();
    if !bytes.iter().all(is_plain) {
        return None;
    }
    let mut words = bytes.split(|&byte| byte == b' ');
    let word = words.find(|word| !word.is_empty())?;
    let is_shells = SHELL_WORDS.iter().any(|known| known.as_bytes() == word);
    (!is_shells).then(|| OsStr::from_bytes(word))
}

#[expect(
    clippy::disallowed_methods,
    reason = "as exec looks for it; nothing is opened"
)]
fn is_found(name: &OsStr, path: Option<&OsStr>) -> bool {
    if name.as_bytes().contains(&b'/') {
        return Path::new(name).exists();
    }
    // Without PATH, which directories are searched is up to the system.
    let Some(path) = path else {
        return true;
    };
    let mut directories = path.as_bytes().split(|&byte| byte == b':');
    directories.any(|directory| {
        let file = Path::new(OsStr::from_bytes(directory)).join(name);
        access(&file, AccessFlags::X_OK).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn is_missing_in(command: &str, is_line: bool, path: Option<&str>) -> bool {
        is_missing(OsStr::new(command), is_line, path.map(OsStr::new))
    }

    #[test]
    fn programs_are_looked_for_as_the_system_does() {
        let directory = tempfile::tempdir().expect("a directory");
        let (program, text) = (
            directory.path().join("program"),
            directory.path().join("text"),
        );
        for (file, mode) in [(&program, 0o755), (&text, 0o644)] {
            std::fs::write(file, "").expect("a file");
            std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).expect("a mode");
        }
        let path = format!("/no/such/directory:{}", directory.path().display());
        for (command, is_line, expected) in [
            ("program", false, false),
            ("program", true, false),
            ("program -x", true, false),
            ("program -x", false, true),
            ("text", false, true),
            ("other", false, true),
            ("other 1 2", true, true),
            ("other; program", true, false),
            ("exit 3", true, false),
            ("exit", false, true),
            ("", true, false),
            ("/no/such/program", false, true),
            ("/no/such/program x", true, true),
            (program.to_str().expect("text"), false, false),
        ] {
            let missing = is_missing_in(command, is_line, Some(&path));
            assert_eq!(missing, expected, "{command:?} {is_line}");
        }
        assert!(!is_missing_in("other", false, None));
    }
}
