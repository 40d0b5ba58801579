//! Finds the program that a command names, as a shell would. Called by `launch`.

use crate::{NOT_EXECUTABLE, NOT_FOUND, Refusal};
use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The path of the program `name`, looked up in `search` (the value of PATH)
/// unless it has a slash in it.
pub fn find(name: &OsStr, search: Option<&OsStr>) -> Result<PathBuf, Refusal> {
    let shown = name.to_string_lossy();
    let candidates: Vec<PathBuf> = if name.as_bytes().contains(&b'/') {
        vec![name.into()]
    } else if name.is_empty() {
        Vec::new()
    } else {
        std::env::split_paths(search.unwrap_or_default())
            .map(|directory| directory.join(name))
            .collect()
    };
    if let Some(program) = candidates.iter().find(|path| is_program(path)) {
        return Ok(program.clone());
    }
    #[expect(clippy::disallowed_methods, reason = "for the message only")]
    let not_executable = candidates.iter().any(|path| path.exists());
    let (what, status) = if not_executable {
        ("can't be executed", NOT_EXECUTABLE)
    } else {
        ("command not found", NOT_FOUND)
    };
    let message = if is_script(name) {
        format!("{what}: {shown} (did you mean 'ruby {shown}'?)")
    } else {
        format!("{what}: {shown}")
    };
    Err(Refusal { message, status })
}

fn is_program(path: &Path) -> bool {
    path.is_file() && access(path, AccessFlags::X_OK).is_ok()
}

fn is_script(name: &OsStr) -> bool {
    let path = Path::new(name);
    path.extension().is_some_and(|extension| extension == "rb") && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    fn directory_with(name: &str, mode: u32) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(name);
        fs::write(&path, "").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(mode)).expect("permissions");
        directory
    }

    #[test]
    fn programs_are_found_in_path_and_by_their_own_path() {
        let directory = directory_with("tool", 0o755);
        let path = directory.path().join("tool");
        let found = find(OsStr::new("tool"), Some(directory.path().as_os_str())).expect("found");
        assert_eq!(found, path);
        assert_eq!(find(path.as_os_str(), None).expect("found"), path);
    }

    #[test]
    fn what_is_not_there_is_127_and_what_is_no_program_126() {
        let directory = directory_with("data", 0o644);
        let search = Some(directory.path().as_os_str());
        let refusal = find(OsStr::new("nothing"), search).expect_err("not there");
        assert_eq!(
            (refusal.status, &*refusal.message),
            (127, "command not found: nothing")
        );
        assert_eq!(
            find(OsStr::new("data"), search)
                .expect_err("no program")
                .status,
            126
        );
        assert_eq!(
            find(directory.path().as_os_str(), None)
                .expect_err("a directory")
                .status,
            126
        );
        assert_eq!(find(OsStr::new(""), search).expect_err("empty").status, 127);
    }

    #[test]
    fn a_script_without_ruby_gets_a_hint() {
        let directory = directory_with("app.rb", 0o644);
        let path = directory.path().join("app.rb");
        let message = find(path.as_os_str(), None)
            .expect_err("no program")
            .message;
        assert!(message.ends_with(&format!("(did you mean 'ruby {}'?)", path.display())));
    }
}
