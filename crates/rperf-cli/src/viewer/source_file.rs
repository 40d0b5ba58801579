//! Files of source that profiles name. A profile may come from anybody: whatever it names, nothing is
//! waited for, and nothing but a regular file is read. Used by `report` and `viewer`.

#[cfg(target_os = "linux")]
use nix::sys::statfs::{FsType, fstatfs};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// File systems of the kernel's own, whose files say something else each time, or wait: proc, sysfs,
/// tracefs, debugfs (Linux's magic.h).
#[cfg(target_os = "linux")]
const OF_KERNEL: [i128; 4] = [0x9fa0, 0x6265_6572, 0x7472_6163, 0x6462_6720];

/// What files with Ruby code end in.
const RUBY: [&str; 14] = [
    "rb", "erb", "rake", "ru", "gemspec", "haml", "slim", "jbuilder", "builder", "rabl", "arb",
    "jb", "thor", "podspec",
];

/// Names of files with Ruby code that have no such end.
const RUBY_FILES: [&str; 5] = ["Rakefile", "Gemfile", "Guardfile", "Capfile", "Thorfile"];

/// Whether a file is called as those with Ruby code are.
pub fn is_ruby(path: &Path) -> bool {
    let extension = path.extension().and_then(|it| it.to_str());
    let name = path.file_name().and_then(|it| it.to_str());
    extension.is_some_and(|it| RUBY.contains(&it))
        || name.is_some_and(|it| RUBY_FILES.contains(&it))
}

/// Whether this is the text of a script that Ruby runs, whatever its file is called.
pub fn is_script(text: &str) -> bool {
    let first = text.lines().next().unwrap_or_default();
    first.starts_with("#!") && first.contains("ruby")
}

/// Where links lead to from `path`, if there is something.
pub fn resolved(path: &str) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

/// The text of the file at `path`, if it has `max` bytes at most.
pub fn read(path: &Path, max: u64) -> Option<String> {
    let file = open(path)?;
    let mut bytes = Vec::new();
    file.take(max + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= max).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// What is no regular file isn't opened, because that can do something to a device or to who waits at a
/// pipe. One that has taken the file's place meanwhile is opened without waiting, and refused.
#[expect(
    clippy::disallowed_methods,
    reason = "what is opened is looked at once more"
)]
fn open(path: &Path) -> Option<File> {
    fs::metadata(path).ok().filter(|it| it.is_file())?;
    let mut options = OpenOptions::new();
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = options.read(true).custom_flags(flags).open(path).ok()?;
    (file.metadata().ok()?.is_file() && !is_of_kernel(&file)).then_some(file)
}

#[cfg(target_os = "linux")]
fn is_of_kernel(file: &File) -> bool {
    let kind = fstatfs(file).map(|system| system.filesystem_type());
    kind.map_or(true, |FsType(kind)| OF_KERNEL.contains(&i128::from(kind)))
}

#[cfg(not(target_os = "linux"))]
fn is_of_kernel(_: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::stat::Mode;

    #[test]
    fn ruby_code_is_known_by_a_name_or_by_the_first_line() {
        for name in ["a.rb", "/a/b.html.erb", "Rakefile", "/a/config.ru"] {
            assert!(is_ruby(Path::new(name)), "{name}");
        }
        for name in ["/etc/shadow", "id_rsa", "a.rb/b", ".rb", "a.rb.txt", ""] {
            assert!(!is_ruby(Path::new(name)), "{name}");
        }
        assert!(is_script("#!/usr/bin/env ruby\nputs 1\n"));
        for text in ["", "# ruby", "#!/bin/sh\nruby a.rb\n", "\n#!ruby"] {
            assert!(!is_script(text), "{text}");
        }
    }

    #[test]
    fn only_regular_files_of_a_disk_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name| directory.path().join(name);
        fs::write(at("a.rb"), "puts 1\n").expect("written");
        assert_eq!(read(&at("a.rb"), 7).as_deref(), Some("puts 1\n"));
        assert_eq!(read(&at("a.rb"), 6), None, "too large");
        assert_eq!(read(&at("none.rb"), 7), None);
        assert_eq!(read(directory.path(), 7), None);
        nix::unistd::mkfifo(&at("pipe.rb"), Mode::S_IRWXU).expect("a pipe");
        assert_eq!(read(&at("pipe.rb"), 7), None);
        assert_eq!(read(Path::new("/dev/zero"), 7), None);
        if cfg!(target_os = "linux") {
            assert_eq!(read(Path::new("/proc/self/status"), 1 << 20), None);
            assert_eq!(read(Path::new("/proc/kmsg"), 1 << 20), None);
        }
    }
}
