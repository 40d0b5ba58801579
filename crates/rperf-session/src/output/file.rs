//! Writes a finished file so that a reader never sees half of it. Used by the command, and through
//! the extension by `Rperf.save` and when a session ends; any thread.

use super::foreign::{Found, directory_of, found};
use super::stream::Stream;
use super::write_signals::without_write_signals;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The mode of new files, of which the umask takes some away.
const USUAL: u32 = 0o666;
/// The mode of a file for its user only.
const OWN: u32 = 0o600;

/// Writes `content` to `path`: a file comes into being, or takes its old self's
/// place, at once; pipes, devices and open descriptors are written to as they are. Fails with EACCES
/// if another user has prepared what is there.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    write_streaming(path, |output| output.write_all(content))
}

/// The counterpart of [`write()`] for content that is too much to be held in memory.
pub fn write_streaming<E: From<io::Error>>(
    path: &Path,
    produce: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    without_write_signals(|| {
        match found(path) {
            None => Err(io::Error::from_raw_os_error(libc::EACCES).into()),
            Some(Found::Descriptor(descriptor)) => buffered(descriptor, produce),
            // Of a link, the file that it leads to is replaced, not the link.
            Some(Found::There(target, metadata)) if metadata.is_file() => {
                replace(&target, Some(metadata.permissions()), produce)
            }
            Some(Found::There(target, metadata)) => {
                buffered(Stream::open(&target, &metadata)?, produce)
            }
            Some(Found::Nothing) => replace(path, None, produce),
        }
    })
}

/// Hands a buffer in front of `output` to `produce`, and empties it.
pub fn buffered<E: From<io::Error>>(
    output: impl Write,
    produce: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut output = BufWriter::new(output);
    let written = produce(&mut output).and_then(|()| Ok(output.flush()?));
    if written.is_err() {
        // Dropped, it would try once more.
        let _ = output.into_parts();
    }
    written
}

/// With no permissions given, a file gets those of every new one.
fn replace<E: From<io::Error>>(
    path: &Path,
    permissions: Option<Permissions>,
    produce: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    // make_in and as_file_mut: the errors of tempfile's other ways have its
    // temporary name in them and no longer the system's number.
    let mut file =
        tempfile::Builder::new()
            .prefix(".rperf-")
            .make_in(directory_of(path), |path| {
                let mut options = OpenOptions::new();
                // Until it is whole and has its old self's mode, it is for this user only.
                let mode = permissions.as_ref().map_or(USUAL, |_| OWN);
                options.write(true).create_new(true).mode(mode).open(path)
            })?;
    buffered(file.as_file_mut(), produce)?;
    if let Some(permissions) = permissions {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_has_the_usual_permissions_and_no_leftovers() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("new");
        write(&path, b"one").expect("written");
        assert_eq!(fs::read(&path).expect("a file"), b"one");
        let mode = fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o600, 0o600);
        assert_eq!(
            fs::read_dir(directory.path()).expect("a directory").count(),
            1
        );
    }

    #[test]
    fn an_old_file_keeps_its_permissions_and_its_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, link) = (directory.path().join("old"), directory.path().join("link"));
        fs::write(&path, "a longer text").expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("permissions");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let modes = || {
            let entries = fs::read_dir(directory.path())
                .expect("a directory")
                .flatten();
            let ours =
                entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(b".rperf-"));
            let metadata = ours.map(|it| it.metadata().expect("a file"));
            metadata
                .map(|it| it.permissions().mode() & 0o777)
                .collect::<Vec<_>>()
        };
        let written = write_streaming(&link, |output| {
            assert_eq!(modes(), [0o600], "for its user only until it is whole");
            output.write_all(b"two")
        });
        written.expect("written");
        assert_eq!(fs::read(&path).expect("a file"), b"two");
        assert!(link.is_symlink());
        assert_eq!(
            fs::metadata(&path).expect("a file").permissions().mode() & 0o777,
            0o640
        );
    }

    #[test]
    fn a_directory_that_is_not_there_is_an_error() {
        let error = write(Path::new("/no/such/directory/file"), b"").expect_err("no directory");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }
}
