//! The paths of a profile as people see them, and as they are compared: relative to the program's
//! directory, below a gem or below Ruby's library. Used by all answers and by formats; any thread.

use rperf_model::{CodePath, Order, PathView, Profile};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Where files of Ruby's library lie, as it is shown.
pub(crate) const RUBY: &str = "<ruby>/";

/// The forms that the paths of one profile have.
#[derive(Debug, Clone, Default)]
pub struct CodePaths {
    view: PathView,
    /// The directories of the program's own files, the innermost first.
    roots: Vec<String>,
    /// The directory that all of these have in common, if there are several.
    common_root: Option<String>,
    /// Paths below a root that files of several roots have: only their longer paths tell them apart.
    ambiguous: FxHashSet<String>,
}

/// The meaning of a path: the same for a file of a program wherever that lies, and for one of a gem
/// whatever the version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Meaning {
    /// A gem without its version, and the file in it.
    Gem(String),
    /// A file of Ruby's library.
    Ruby(String),
    /// A file of the program, relative to a root.
    Own(String),
    /// Code that the program has evaluated in this file.
    Eval(String),
    /// Anything else, as it was recorded.
    Other(String),
}

impl Meaning {
    /// The end of the path, of this many directories and files; `None` if it has fewer, or is none.
    pub(crate) fn end_of_file(&self, parts: usize) -> Option<&str> {
        let path = match self {
            Meaning::Gem(path) | Meaning::Ruby(path) | Meaning::Own(path) | Meaning::Eval(path) => {
                path
            }
            Meaning::Other(path) if path.is_empty() || path.starts_with('<') => return None,
            Meaning::Other(path) => path,
        };
        match path.rmatch_indices('/').nth(parts - 1) {
            Some((slash, _)) => Some(&path[slash + 1..]),
            None => (path.split('/').count() == parts).then_some(path),
        }
    }
}

impl CodePaths {
    /// The paths of `profile`: by the directories that it names, or else by the one that all files
    /// have in common that seem to be the program's own.
    pub fn of(profile: &Profile) -> Self {
        let frames = profile.frames.iter();
        let files = frames.map(|(_, frame)| profile.strings.get(frame.path));
        Self::of_files(profile.path_view.clone(), profile.meta.roots.clone(), files)
    }

    /// The paths of a program with these `files`, and with these directories or else with the one
    /// that its own files have in common.
    pub fn of_files<'a>(
        view: PathView,
        roots: Vec<String>,
        files: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut paths = Self {
            view,
            roots,
            ..Self::default()
        };
        let files = own_files(files);
        if paths.roots.is_empty() {
            paths.roots.extend(guessed_root(&files));
        }
        paths.roots.order_by(|a, b| (b.len(), b).cmp(&(a.len(), a)));
        paths.roots.dedup();
        if paths.roots.len() > 1 {
            let roots: Vec<&str> = paths.roots.iter().map(String::as_str).collect();
            paths.common_root = common_directory(&roots);
            paths.ambiguous = paths.ambiguous_files(&files);
        }
        paths
    }

    /// The directories that the program's own files belong to, as recorded or as guessed.
    pub(crate) fn roots(&self) -> &[String] {
        &self.roots
    }

    /// `path` as people see it.
    pub fn short<'a>(&self, path: &'a str) -> Cow<'a, str> {
        if self.view.is_full {
            return path.into();
        }
        match CodePath::of(path) {
            CodePath::Eval { file, line } => {
                format!("(eval at {}:{line})", self.short_of_file(file)).into()
            }
            _ => self.short_of_file(path),
        }
    }

    /// The short form of a path that isn't of evaluated code.
    fn short_of_file<'a>(&self, path: &'a str) -> Cow<'a, str> {
        match CodePath::of(path) {
            CodePath::Gem {
                directory, file, ..
            } => format!("{directory}/{file}").into(),
            CodePath::Ruby { file, .. } => format!("{RUBY}{file}").into(),
            CodePath::File(path) => self.relative(path).unwrap_or(path).into(),
            CodePath::Native(path) => self.trimmed(path).unwrap_or(path).into(),
            CodePath::Eval { .. } | CodePath::Marker(_) => path.into(),
        }
    }

    /// What `path` means, however it is shown.
    pub(crate) fn meaning(&self, path: &str) -> Meaning {
        match CodePath::of(path) {
            CodePath::Gem { name, file, .. } => Meaning::Gem(format!("{name}/{file}")),
            CodePath::Ruby { file, .. } => Meaning::Ruby(file.into()),
            CodePath::Eval { file, .. } => Meaning::Eval(match CodePath::of(file) {
                CodePath::Gem { name, file, .. } => format!("{name}/{file}"),
                CodePath::Ruby { file, .. } => format!("{RUBY}{file}"),
                _ => self.relative(file).unwrap_or(file).into(),
            }),
            CodePath::File(path) => match self.relative(path) {
                Some(rest) => Meaning::Own(rest.into()),
                None => Meaning::Other(path.into()),
            },
            CodePath::Native(path) => match self.trimmed(path) {
                Some(rest) => Meaning::Own(rest.into()),
                None => Meaning::Other(path.into()),
            },
            CodePath::Marker(path) => Meaning::Other(path.into()),
        }
    }

    /// The rest of a path that begins with what is to be taken off.
    fn trimmed<'a>(&self, path: &'a str) -> Option<&'a str> {
        let mut prefixes = self.view.trim.iter();
        prefixes.find_map(|prefix| below(path, prefix))
    }

    /// The path of a file of the program below its root.
    fn relative<'a>(&self, path: &'a str) -> Option<&'a str> {
        if let Some(rest) = self.trimmed(path) {
            return Some(rest);
        }
        if !path.starts_with('/') {
            return Some(path.strip_prefix("./").unwrap_or(path));
        }
        let rest = self.below_root(path)?;
        match self.ambiguous.contains(rest) {
            true => below(path, self.common_root.as_deref()?),
            false => Some(rest),
        }
    }

    fn below_root<'a>(&self, path: &'a str) -> Option<&'a str> {
        self.roots.iter().find_map(|root| below(path, root))
    }

    fn ambiguous_files(&self, files: &BTreeSet<&str>) -> FxHashSet<String> {
        let mut known: FxHashMap<&str, &str> = FxHashMap::default();
        let mut ambiguous = FxHashSet::default();
        for &path in files {
            if let Some(rest) = self.below_root(path)
                && *known.entry(rest).or_insert(path) != path
            {
                ambiguous.insert(rest.to_string());
            }
        }
        ambiguous
    }
}

/// The rest of `path`, if it lies in `directory`.
fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    let directory = directory.strip_suffix('/').unwrap_or(directory);
    let rest = path.strip_prefix(directory)?.strip_prefix('/')?;
    (!rest.is_empty()).then_some(rest)
}

/// The files with a whole path that are in no gem and no library, each once.
fn own_files<'a>(files: impl Iterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let own = files.filter_map(|path| match CodePath::of(path) {
        CodePath::File(path) => Some(path),
        CodePath::Eval { file, .. } => match CodePath::of(file) {
            CodePath::File(file) => Some(file),
            _ => None,
        },
        _ => None,
    });
    own.filter(|path| path.starts_with('/')).collect()
}

/// The directory that these files have in common. Commands of `bin` directories, such as `bundle`,
/// are no part of the programs that they start.
fn guessed_root(files: &BTreeSet<&str>) -> Option<String> {
    let is_command = |path: &str| {
        let mut names = path.rsplit('/');
        let file = names.next().unwrap_or_default();
        !file.contains('.') && names.next() == Some("bin")
    };
    let found: Vec<&str> = files
        .iter()
        .filter(|path| !is_command(path))
        .filter_map(|path| Some(path.rsplit_once('/')?.0))
        .collect();
    match (found.is_empty(), files.first()) {
        (false, _) => common_directory(&found),
        (true, first) => common_directory(&[first?.rsplit_once('/')?.0]),
    }
}

/// The innermost directory that all of these lie in, or are; `None` if that is the root of all.
fn common_directory(directories: &[&str]) -> Option<String> {
    let (first, rest) = directories.split_first()?;
    let mut common: Vec<&str> = first.split('/').collect();
    for directory in rest {
        let names = directory.split('/');
        let same = common
            .iter()
            .zip(names)
            .take_while(|(a, b)| *a == b)
            .count();
        common.truncate(same);
    }
    let common = common.join("/");
    (!common.is_empty()).then_some(common)
}

#[cfg(test)]
mod tests;
