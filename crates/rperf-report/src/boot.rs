//! The time that a program takes to load its files: which file, which gem, and who loads it. Asked by
//! `rperf report --boot` and for JSON; any thread.
//!
//! A file runs while its `<main>` or `<top (required)>` is in the stack: the innermost one is the file
//! whose *own* time it is. Below a call of `require` or `load` there is no such frame until the file runs:
//! that is the *load* of the file that the calling line leads to. If that isn't known, because the file had
//! no sample of its own, or one line loads several, the line itself stands for it.

mod load_tree;

use crate::code_paths::CodePaths;
use crate::groups::{gem, is_file};
use load_tree::{LoadTree, What};
use rperf_model::{Column, FrameId, Profile, StringId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// What runs an initializer of a Rails program: its caller.
const RUNS_INITIALIZER: &str = "Rails::Initializable::Initializer#run";

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boot {
    /// All time in which files were loaded: the sum of their own times and loads.
    pub total: i64,
    /// Each file once, and each line that stands for files: the largest own time and load first.
    pub files: Vec<LoadedFile>,
    /// The gems of these files, the largest own time and load first.
    pub gems: Vec<LoadedGem>,
    /// The initializers of a Rails program, the largest first.
    pub initializers: Vec<Initializer>,
    /// Which file loads which, from the program's own: depth first, the largest first.
    pub branches: Vec<LoadBranch>,
}

/// A file, or a line of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    /// Path of the file, as it was recorded; empty if the files come from the command line.
    pub path: String,
    /// The path as people see it.
    pub short_path: String,
    /// A line that loads files; 0: the file itself.
    pub line: u32,
}

/// What the loading of a file has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedFile {
    /// The file; or a line, for the files that it loads.
    pub place: Place,
    /// While its own code ran, and methods that this calls.
    pub own: i64,
    /// While it was looked for, read and compiled.
    pub load: i64,
    /// Both, and the same of the files that it loads.
    pub total: i64,
    /// The line that has loaded it; of several, the one with the most.
    pub from: Option<Place>,
}

/// What the loading of a gem's files has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedGem {
    /// The gem with its version, or the kind of code: `app`, `stdlib`.
    pub name: String,
    /// How many of its files had time.
    pub files: usize,
    /// The own time of these files, and their load.
    pub own: i64,
    /// The same, with that of all files that they load.
    pub total: i64,
}

/// An initializer of Rails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initializer {
    /// The block: `block in <class:Railtie>`.
    pub name: String,
    /// Where it begins.
    pub place: Place,
    /// All that it has taken.
    pub total: i64,
}

/// A line of the tree of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadBranch {
    /// The file; or a line, for the files that it loads.
    pub place: Place,
    /// How many files lead to it.
    pub depth: usize,
    /// Its own time and load.
    pub own: i64,
    /// The same, with that of the files that it loads.
    pub total: i64,
}

impl Boot {
    /// The loading of files in `profile`, by the values in `column`.
    pub fn of(profile: &Profile, column: Column) -> Self {
        let mut tree = LoadTree::of(profile, column);
        tree.add_up();
        let shown = Shown {
            profile,
            paths: CodePaths::of(profile),
        };
        let mut boot = Boot {
            total: tree.roots().map(|row| tree.rows[row].total).sum(),
            files: files(&tree, &shown),
            gems: gems(&tree, &shown),
            initializers: initializers(profile, column, &shown),
            branches: branches(&tree, &shown),
        };
        boot.files
            .sort_by_cached_key(|it| (Reverse(it.own.saturating_add(it.load)), it.place.clone()));
        boot.gems
            .sort_by_cached_key(|it| (Reverse(it.own), it.name.clone()));
        boot.initializers
            .sort_by_cached_key(|it| (Reverse(it.total), it.place.clone()));
        boot
    }
}

/// How places are shown.
struct Shown<'a> {
    profile: &'a Profile,
    paths: CodePaths,
}

impl Shown<'_> {
    fn path(&self, path: Option<StringId>) -> &str {
        path.map_or("", |id| self.profile.strings.get(id))
    }

    fn place(&self, path: Option<StringId>, line: u32) -> Place {
        let path = self.path(path);
        Place {
            path: path.into(),
            short_path: self.paths.short(path).into_owned(),
            line,
        }
    }

    fn what(&self, tree: &LoadTree, what: What) -> Place {
        match what {
            What::File(path) => self.place(Some(path), 0),
            What::Line(site) => self.site(tree, site),
        }
    }

    fn site(&self, tree: &LoadTree, site: usize) -> Place {
        let site = &tree.sites[site];
        self.place(site.path, site.line)
    }

    /// Whose code a file, or the line, is.
    fn gem(&self, tree: &LoadTree, what: What) -> String {
        let path = self.path(match what {
            What::File(path) => Some(path),
            What::Line(site) => tree.sites[site].path,
        });
        gem(self.profile.meta.origin("", path), path).into_owned()
    }
}

fn files(tree: &LoadTree, shown: &Shown<'_>) -> Vec<LoadedFile> {
    let mut files: FxHashMap<What, (LoadedFile, i64)> = FxHashMap::default();
    for (row, found) in tree.rows.iter().enumerate() {
        let (file, most) = files.entry(found.what).or_insert_with(|| {
            let file = LoadedFile {
                place: shown.what(tree, found.what),
                own: 0,
                load: 0,
                total: 0,
                from: None,
            };
            (file, i64::MIN)
        });
        file.own = file.own.saturating_add(found.own);
        file.load = file.load.saturating_add(found.load);
        if !tree.callers(row).any(|it| tree.rows[it].what == found.what) {
            file.total = file.total.saturating_add(found.total);
        }
        if let (What::File(_), Some(site)) = (found.what, found.site)
            && found.total > *most
        {
            *most = found.total;
            file.from = Some(shown.site(tree, site));
        }
    }
    let files = files.into_values().map(|(file, _)| file);
    files.filter(|it| it.total != 0 || it.own != 0).collect()
}

fn gems(tree: &LoadTree, shown: &Shown<'_>) -> Vec<LoadedGem> {
    let mut known: FxHashMap<What, usize> = FxHashMap::default();
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    let mut gems: Vec<LoadedGem> = Vec::new();
    let mut gem_of = Vec::with_capacity(tree.rows.len());
    for (row, found) in tree.rows.iter().enumerate() {
        let gem = *known.entry(found.what).or_insert_with(|| {
            let name = shown.gem(tree, found.what);
            let gem = *by_name.entry(name).or_insert_with_key(|name| {
                gems.push(LoadedGem {
                    name: name.clone(),
                    files: 0,
                    own: 0,
                    total: 0,
                });
                gems.len() - 1
            });
            gems[gem].files += usize::from(matches!(found.what, What::File(_)));
            gem
        });
        gem_of.push(gem);
        let sum = &mut gems[gem];
        sum.own = sum.own.saturating_add(found.own).saturating_add(found.load);
        if !tree.callers(row).any(|caller| gem_of[caller] == gem) {
            sum.total = sum.total.saturating_add(found.total);
        }
    }
    gems.retain(|it| it.total != 0);
    gems
}

fn branches(tree: &LoadTree, shown: &Shown<'_>) -> Vec<LoadBranch> {
    let by_size = |rows: &mut Vec<usize>| {
        // The last one is taken first.
        rows.sort_by_key(|row| (tree.rows[*row].total, Reverse(*row)));
    };
    let mut open: Vec<usize> = tree.roots().collect();
    by_size(&mut open);
    let mut open: Vec<_> = open.into_iter().map(|row| (row, 0)).collect();
    let mut branches = Vec::with_capacity(tree.rows.len());
    while let Some((row, depth)) = open.pop() {
        let found = &tree.rows[row];
        branches.push(LoadBranch {
            place: shown.what(tree, found.what),
            depth,
            own: found.own.saturating_add(found.load),
            total: found.total,
        });
        let mut loaded = found.loads.clone();
        by_size(&mut loaded);
        open.extend(loaded.into_iter().map(|row| (row, depth + 1)));
    }
    branches
}

/// The blocks that Rails runs as initializers, each with all below it.
fn initializers(profile: &Profile, column: Column, shown: &Shown<'_>) -> Vec<Initializer> {
    let text = |id: StringId| profile.strings.get(id);
    let frame = |id| profile.frames.get(id);
    let runs = |id| frame(id).is_some_and(|it| text(it.name) == RUNS_INITIALIZER);
    let in_file = |id| frame(id).is_some_and(|it| is_file(text(it.path)));
    if !profile.frames.iter().any(|(frame, _)| runs(frame)) {
        return Vec::new();
    }
    // For each node: the initializer that runs; and whether the next frame in a file is one.
    let mut running: Vec<(Option<FrameId>, bool)> = vec![(None, false)];
    for (_, node) in profile.tree.iter() {
        let (running_above, begins) = running[node.parent.0 as usize];
        running.push(match (runs(node.frame), begins) {
            (true, _) => (running_above, true),
            (false, true) if in_file(node.frame) => (Some(node.frame), false),
            (false, begins) => (running_above, begins),
        });
    }
    let mut sums: FxHashMap<FrameId, i64> = FxHashMap::default();
    for row in profile.weights.iter() {
        if let (Some(frame), _) = running[row.key.node.0 as usize] {
            let sum = sums.entry(frame).or_default();
            *sum = sum.saturating_add(row.value(column));
        }
    }
    let sums = sums.into_iter().filter(|(_, total)| *total != 0);
    let shown = |(id, total)| {
        let frame = frame(id)?;
        Some(Initializer {
            name: text(frame.name).into(),
            place: shown.place(Some(frame.path), frame.first_line),
            total,
        })
    };
    sums.filter_map(shown).collect()
}

#[cfg(test)]
mod tests;
