//! Where rperf is installed: its Ruby files, and the Ruby that has started the command. Asked first
//! of all, on the main thread.

use crate::{FAILURE, Refusal};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What lib/rperf/cli.rb begins with; the interpreter and the library follow.
const STARTED_BY: &str = "--started-by-ruby";

/// Where the parts of rperf are that the command doesn't have in itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Installation {
    /// A Ruby that has TLS.
    pub ruby: PathBuf,
    /// The directory that holds `rperf.rb`.
    library: PathBuf,
}

impl Installation {
    /// Takes what lib/rperf/cli.rb has put in front of the user's arguments. If nothing is there, the
    /// library is what the executable lies in, and Ruby that of PATH.
    pub fn take(arguments: &mut Vec<OsString>) -> Self {
        if arguments.len() >= 3 && arguments[0] == STARTED_BY {
            let mut ours = arguments.drain(..3).skip(1).map(PathBuf::from);
            if let (Some(ruby), Some(library)) = (ours.next(), ours.next()) {
                return Self { ruby, library };
            }
        }
        let executable = std::env::current_exe().and_then(|path| path.canonicalize());
        Self {
            ruby: "ruby".into(),
            library: library_of(&executable.unwrap_or_default()),
        }
    }

    /// The directory that holds `rperf.rb`. Fails if it doesn't.
    pub fn library(&self) -> Result<&Path, Refusal> {
        if self.library.join("rperf.rb").is_file() {
            return Ok(&self.library);
        }
        let message = format!(
            "rperf's Ruby files are not in {}: the command is to stay where it was installed; \
             a symbolic link to it may be anywhere",
            self.library.display()
        );
        Err(Refusal {
            message,
            status: FAILURE,
        })
    }
}

/// The directory for `rperf.rb` if this is lib/rperf/bin/rperf-command.
fn library_of(executable: &Path) -> PathBuf {
    executable.ancestors().nth(3).unwrap_or(executable).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(arguments: &[&str]) -> (Installation, Vec<OsString>) {
        let mut arguments = arguments.iter().map(OsString::from).collect();
        (Installation::take(&mut arguments), arguments)
    }

    #[test]
    fn the_arguments_of_ruby_are_no_users() {
        let (installation, rest) = taken(&[STARTED_BY, "/bin/ruby", "/gem/lib", "report", "-m"]);
        assert_eq!(
            installation,
            Installation {
                ruby: "/bin/ruby".into(),
                library: "/gem/lib".into(),
            }
        );
        assert_eq!(rest, ["report", "-m"]);
    }

    #[test]
    fn without_them_the_library_is_around_the_executable() {
        let (installation, rest) = taken(&["report", STARTED_BY, "a", "b"]);
        assert_eq!(rest.len(), 4);
        assert_eq!(installation.ruby, Path::new("ruby"));
        let executable = Path::new("/gem/lib/rperf/bin/rperf-command");
        assert_eq!(library_of(executable), Path::new("/gem/lib"));
    }

    #[test]
    fn a_library_without_our_files_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let installation = Installation {
            ruby: "ruby".into(),
            library: directory.path().into(),
        };
        let refusal = installation.library().expect_err("empty");
        assert!(refusal.message.contains("rperf's Ruby files are not in /"));
        std::fs::write(directory.path().join("rperf.rb"), "").expect("written");
        assert_eq!(installation.library().expect("there"), directory.path());
    }
}
