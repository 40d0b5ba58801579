//! How the Ruby processes of a session come to be profiled: by variables, which have them load us
//! and find the session's directory, and by the settings in there. lib/rperf/processes/launch.rb reads
//! both, in Rubies of any age. Used by the command, and by the extension for sessions that a program
//! starts. Any thread.

use crate::directory;
use crate::library_link::{self, is_blank};
use crate::output::without_write_signals;
use crate::settings::{Inherit, LISTEN, PREFIX, SESSION_VARIABLE, Settings};
use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The variables by which Ruby loads us, and what stands between the parts of their values.
pub const RUBY_VARIABLES: [(&str, &str); 2] = [("RUBYOPT", " "), ("RUBYLIB", ":")];

/// The names of what is in the settings besides what users can set.
pub mod names {
    /// What had the processes profiled, for messages.
    pub const INITIATOR: &str = "INITIATOR";
    /// Whether all Rubies of the session are profiled: 1, or the first one only: 0.
    pub const INHERIT: &str = "INHERIT";
    /// In front of a variable's name: what was added to its value.
    pub const ADDED: &str = "ADDED_";
    /// In front of a variable's name: its value before.
    pub const ORIGINAL: &str = "ORIGINAL_";
}

/// The file that loads us by our own path, whichever way it was found.
const LAUNCHED: &str = "rperf/launched";

/// Rubies can't be made to load us: RUBYOPT is split at blanks, and RUBYLIB at colons.
#[derive(Debug, thiserror::Error)]
#[error(
    "rperf is installed in {}, and Ruby can't load from a directory with both a blank and a ':' in its path",
    .0.display()
)]
pub struct UnloadableLibrary(PathBuf);

/// What the processes of a session need to know.
#[derive(Debug)]
pub struct Environment {
    settings: Vec<(String, OsString)>,
}

impl Environment {
    /// `library` is the directory that holds `rperf.rb`.
    pub fn new(
        settings: &Settings,
        initiator: &str,
        library: &Path,
    ) -> Result<Self, UnloadableLibrary> {
        let inherit = match settings.inherit() {
            Inherit::All => "1",
            Inherit::Forked | Inherit::None => "0",
        };
        let own = [(names::INITIATOR, initiator), (names::INHERIT, inherit)];
        let mut pairs: Vec<_> = own.map(|(name, value)| (name.into(), value.into())).into();
        pairs.extend(settings.for_children());
        for (name, value) in additions(library, library_link::to)? {
            pairs.push((format!("{}{name}", names::ADDED), value));
            if let Some(original) = env::var_os(name) {
                pairs.push((format!("{}{name}", names::ORIGINAL), original));
            }
        }
        Ok(Self { settings: pairs })
    }

    /// All settings, by their names.
    pub fn settings(&self) -> &[(String, OsString)] {
        &self.settings
    }

    /// Writes the settings to the session's directory: `NAME=value` with a zero byte after each.
    #[expect(
        clippy::disallowed_methods,
        reason = "the directory is the user's alone"
    )]
    pub fn write_settings(&self, directory: &Path) -> io::Result<()> {
        let mut text = Vec::new();
        for (name, value) in &self.settings {
            for part in [name.as_bytes(), b"=", value.as_bytes(), b"\0"] {
                text.extend_from_slice(part);
            }
        }
        without_write_signals(|| std::fs::write(directory.join(directory::SETTINGS), text))
    }

    /// The variables with which processes find the session in `directory`. All else is there.
    pub fn variables(&self, directory: &Path) -> Vec<(OsString, OsString)> {
        let joined = |(name, separator): (&str, &str)| {
            let added = format!("{}{name}", names::ADDED);
            let (_, ours) = self.settings.iter().find(|(name, _)| *name == added)?;
            let mut value = ours.clone();
            if let Some(original) = env::var_os(name) {
                value.push(separator);
                value.push(original);
            }
            Some((name.into(), value))
        };
        let session = (SESSION_VARIABLE.into(), directory.into());
        let ruby = RUBY_VARIABLES.into_iter().filter_map(joined);
        ruby.chain([session]).collect()
    }
}

impl Environment {
    /// The variables as they are to be when the session is over, or hidden: what was added to them is taken
    /// away. A value that somebody has added to since loses only our part of it.
    pub fn variables_without(&self) -> Vec<(OsString, Option<OsString>)> {
        let restored = |(name, separator): (&str, &str)| {
            let ours = self.setting(names::ADDED, name)?;
            let original = self.setting(names::ORIGINAL, name);
            let value = without_part(&env::var_os(name)?, ours, original, separator);
            Some((name.into(), value))
        };
        let session = (SESSION_VARIABLE.into(), None);
        let ruby = RUBY_VARIABLES.into_iter().filter_map(restored);
        ruby.chain([session]).collect()
    }

    fn setting(&self, prefix: &str, name: &str) -> Option<&OsStr> {
        let mut settings = self.settings.iter();
        let is_it = |known: &str| known.strip_prefix(prefix) == Some(name);
        let (_, value) = settings.find(|(known, _)| is_it(known))?;
        Some(value)
    }
}

/// `value` without `ours`, which was put in front of `original`; `None` if nothing is left.
fn without_part(
    value: &OsStr,
    ours: &OsStr,
    original: Option<&OsStr>,
    separator: &str,
) -> Option<OsString> {
    let separator = separator.as_bytes();
    let mut whole = ours.as_bytes().to_vec();
    if let Some(original) = original {
        whole.extend_from_slice(separator);
        whole.extend_from_slice(original.as_bytes());
    }
    if value.as_bytes() == whole {
        return original.map(OsStr::to_os_string);
    }
    let is_separator = |byte: &u8| separator.contains(byte);
    let mut parts: Vec<&[u8]> = value.as_bytes().split(is_separator).collect();
    if let Some(place) = parts.iter().position(|part| *part == ours.as_bytes()) {
        parts.remove(place);
    }
    let rest = parts.join(separator);
    (!parts.is_empty()).then(|| OsString::from_vec(rest))
}

/// The variables that have the Rubies of a program open their ports, and nothing else. Where the user
/// has told them to, that stands: the ports may be to be elsewhere.
pub fn with_ports(library: &Path) -> Result<Vec<(OsString, OsString)>, UnloadableLibrary> {
    let name = OsString::from(format!("{PREFIX}{}", LISTEN.key()));
    let listens = env::var_os(&name).is_some_and(|value| !value.is_empty() && value != "0");
    let mut variables = Vec::new();
    if !listens {
        variables.push((name, "1".into()));
    }
    for (name, mut value) in additions(library, library_link::to)? {
        let separator = RUBY_VARIABLES.iter().find(|it| it.0 == name);
        if let (Some(original), Some((_, separator))) = (env::var_os(name), separator) {
            value.push(separator);
            value.push(original);
        }
        variables.push((name.into(), value));
    }
    Ok(variables)
}

/// The variables of an outer rperf, which mustn't mix with ours.
pub fn foreign_variables() -> impl Iterator<Item = OsString> {
    let names = env::vars_os().map(|(name, _)| name);
    names.filter(|name| name.as_bytes().starts_with(PREFIX.as_bytes()))
}

/// What is put in front of the variables' values. A path with a blank can't be in RUBYOPT: a link to it
/// is, or it must come by RUBYLIB, which some children don't have.
fn additions(
    library: &Path,
    link_to: impl Fn(&Path) -> Option<PathBuf>,
) -> Result<Vec<(&'static str, OsString)>, UnloadableLibrary> {
    let [(rubyopt, _), (rubylib, _)] = RUBY_VARIABLES;
    let path = library.as_os_str();
    if !path.as_bytes().iter().any(is_blank) {
        return Ok(vec![(rubyopt, loader(library, "rperf"))]);
    }
    if let Some(link) = link_to(library) {
        return Ok(vec![(rubyopt, loader(&link, LAUNCHED))]);
    }
    if path.as_bytes().contains(&b':') {
        return Err(UnloadableLibrary(library.into()));
    }
    // Another project's `rperf` may come first in the program's load path.
    let loader = format!("-r{LAUNCHED}").into();
    Ok(vec![(rubyopt, loader), (rubylib, path.into())])
}

/// The option that has Ruby load `file` of `library`.
fn loader(library: &Path, file: &str) -> OsString {
    let mut option = OsString::from("-r");
    option.push(library.join(file));
    option
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(library: &str) -> Result<Vec<String>, UnloadableLibrary> {
        added_with(library, None)
    }

    fn added_with(library: &str, link: Option<&str>) -> Result<Vec<String>, UnloadableLibrary> {
        let additions = additions(Path::new(library), |_| link.map(PathBuf::from))?.into_iter();
        let shown = additions.map(|(name, value)| format!("{name}={}", value.display()));
        Ok(shown.collect())
    }

    #[test]
    fn rubies_find_us_by_our_path_unless_it_has_a_blank() {
        assert_eq!(
            added("/a:b/lib").expect("taken"),
            ["RUBYOPT=-r/a:b/lib/rperf"]
        );
        assert_eq!(
            added("/a b/lib").expect("taken"),
            ["RUBYOPT=-rrperf/launched", "RUBYLIB=/a b/lib"]
        );
        assert_eq!(
            added_with("/a b:c/lib", Some("/cache/link")).expect("taken"),
            ["RUBYOPT=-r/cache/link/rperf/launched"]
        );
        for library in ["/a b:c/lib", "/a\tb:c/lib", "/a\x0bb:c/lib"] {
            let refusal = added(library).expect_err("refused").to_string();
            assert!(refusal.contains("both a blank and a ':'"));
        }
    }

    #[test]
    fn what_was_added_is_taken_away_and_nothing_else() {
        let ours = "-r/lib/rperf";
        for (value, original, rest) in [
            ("-r/lib/rperf", None, None),
            ("-r/lib/rperf -w", Some("-w"), Some("-w")),
            ("-r/lib/rperf ", Some(""), Some("")),
            ("-r/lib/rperf -w", None, Some("-w")),
            ("-d -r/lib/rperf -w", Some("-w"), Some("-d -w")),
            ("-r/lib/rperf", Some("-w"), None),
            ("-w", Some("-w"), Some("-w")),
        ] {
            let left = without_part(value.as_ref(), ours.as_ref(), original.map(OsStr::new), " ");
            assert_eq!(left.as_deref(), rest.map(OsStr::new), "{value:?}");
        }
    }

    #[test]
    fn the_settings_are_what_processes_need() {
        let given = [(&crate::settings::LINES, "1".into())];
        let settings = Settings::from_flags(given, true).expect("allowed");
        let library = Path::new("/lib");
        let environment = Environment::new(&settings, "rperf stat", library).expect("ok");
        let directory = tempfile::tempdir().expect("a directory");
        environment
            .write_settings(directory.path())
            .expect("written");
        let text = std::fs::read_to_string(directory.path().join("settings")).expect("a file");
        let pairs: Vec<_> = text.split_terminator('\0').collect();
        let known = [
            "INITIATOR=rperf stat",
            "INHERIT=1",
            "MODE=wall",
            "FREQUENCY=1000",
            "MAX_OVERHEAD=5",
            "MAX_NODES=1000000",
            "LINES=1",
            "AGGREGATE=1",
            "LISTEN=0",
            "STAT=0",
            "ADDED_RUBYOPT=-r/lib/rperf",
        ];
        assert_eq!(&pairs[..known.len()], known);
        let variables = environment.variables(directory.path());
        let (name, value) = variables.last().expect("a variable");
        assert_eq!(
            (name.to_str(), Path::new(value)),
            (Some("RPERF_SESSION"), directory.path())
        );
        assert!(variables[0].1.to_string_lossy().starts_with("-r/lib/rperf"));
    }
}
