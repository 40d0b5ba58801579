//! The time that a program takes to load its files: which file, which gem, and who loads it. Asked by
//! `rperf report --boot` and for JSON; any thread.
//!
//! A file runs while its `<main>` or `<top (required)>` is in the stack: the innermost one is the file
//! whose *own* time it is. Below a call of `require` or `load` there is no such frame until the file runs:
//! that is the *load* of the file that the calling line leads to. If that isn't known, because the file had
//! no sample of its own, or one line loads several, the line itself stands for it.

mod load_tree;

use crate::stack::groups::{gem, is_file};
use crate::text::code_paths::CodePaths;
use crate::top::Sort;
use load_tree::{LoadTree, What};
use rperf_model::{Column, FrameId, NodeId, Order, Profile, StringId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// What runs an initializer of a Rails program: its caller.
const RUNS_INITIALIZER: &str = "Rails::Initializable::Initializer#run";

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Boot {
    /// All time in which files were loaded: the sum of their own times and loads.
    pub total: i64,
    /// The part of it that is the own time of the program's first file, and not only loading.
    pub program: i64,
    /// Each file once, and each line that stands for files: the largest own time and load first.
    pub files: Vec<LoadedFile>,
    /// The gems of these files, the largest own time and load first.
    pub gems: Vec<LoadedGem>,
    /// The initializers of a Rails program, the largest first.
    pub initializers: Vec<Initializer>,
    /// Which file loads which, from the program's own: depth first, the largest first.
    pub branches: Vec<LoadBranch>,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceKind {
    /// A file.
    File,
    /// A line, for the files that it loads.
    Line,
    /// The options of RUBYOPT, for the files that they load.
    Options,
}

impl PlaceKind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Line => "line",
            Self::Options => "options",
        }
    }
}

/// A file, or a line of one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What it is.
    pub kind: PlaceKind,
    /// Path of the file, as it was recorded; `(RUBYOPT)` for options.
    pub path: String,
    /// The path as people see it.
    pub short_path: String,
    /// The line; 0 if it isn't known, and for a file.
    pub line: u32,
}

/// What stands for a path where the options of RUBYOPT load files. Those of the command line itself are
/// loaded before anything is recorded.
const OPTIONS: &str = "(RUBYOPT)";

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
    /// The gem with its version, or in brackets the kind of code, such as `(application)`.
    pub name: String,
    /// How many of its files had time, those that they load included.
    pub files: usize,
    /// The own time of these files, and their load.
    pub own: i64,
    /// Own time and load of these files and of all that they load.
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
    /// Own time and load of the file and of all that it loads.
    pub total: i64,
}

impl Boot {
    /// The loading of files in `profile`, by the values in `column`. Files are in the order of `sort`:
    /// own time and load, or total.
    pub fn of(profile: &Profile, column: Column, sort: Sort) -> Self {
        let mut tree = LoadTree::of(profile, column);
        tree.add_up();
        let shown = Shown {
            profile,
            paths: CodePaths::of(profile),
        };
        let roots = || tree.roots().map(|row| &tree.rows[row]);
        let sum = |values: &mut dyn Iterator<Item = i64>| values.fold(0, i64::saturating_add);
        let mut boot = Boot {
            total: sum(&mut roots().map(|row| row.total)),
            program: sum(&mut roots().filter(|row| row.site.is_none()).map(|row| row.own)),
            files: files(&tree, &shown),
            gems: gems(&tree, &shown),
            initializers: initializers(profile, column, &shown),
            branches: branches(&tree, &shown),
        };
        let value = |file: &LoadedFile| match sort {
            Sort::SelfValue => file.own.saturating_add(file.load),
            Sort::TotalValue => file.total,
        };
        boot.files
            .sort_by_cached_key(|it| (Reverse(value(it)), it.place.clone()));
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
    fn place(&self, kind: PlaceKind, path: Option<StringId>, line: u32) -> Place {
        let Some(path) = path.map(|id| self.profile.strings.get(id)) else {
            return Place {
                kind: PlaceKind::Options,
                path: OPTIONS.into(),
                short_path: OPTIONS.into(),
                line: 0,
            };
        };
        Place {
            kind,
            path: path.into(),
            short_path: self.paths.short(path).into_owned(),
            line,
        }
    }

    fn what(&self, tree: &LoadTree, what: What) -> Place {
        match what {
            What::File(path) => self.place(PlaceKind::File, Some(path), 0),
            What::Line(site) => self.site(tree, site),
        }
    }

    fn site(&self, tree: &LoadTree, site: usize) -> Place {
        let site = &tree.sites[site];
        self.place(PlaceKind::Line, site.path, site.line)
    }

    /// Whose code a place is.
    fn gem(&self, place: &Place) -> String {
        match place.kind {
            PlaceKind::Options => OPTIONS.into(),
            _ => gem(self.profile.meta.origin("", &place.path), &place.path).into_owned(),
        }
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
    let mut counted: FxHashSet<What> = FxHashSet::default();
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    let mut gems: Vec<LoadedGem> = Vec::new();
    let mut gem_of = Vec::with_capacity(tree.rows.len());
    for (row, found) in tree.rows.iter().enumerate() {
        let gem = *known.entry(found.what).or_insert_with(|| {
            let name = shown.gem(&shown.what(tree, found.what));
            *by_name.entry(name).or_insert_with_key(|name| {
                gems.push(LoadedGem {
                    name: name.clone(),
                    files: 0,
                    own: 0,
                    total: 0,
                });
                gems.len() - 1
            })
        });
        if found.total != 0 && matches!(found.what, What::File(_)) && counted.insert(found.what) {
            gems[gem].files += 1;
        }
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
        rows.order_by_key(|row| (tree.rows[*row].total, Reverse(*row)));
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

/// The nodes of the call tree at which an initializer of Rails begins: where Rails calls the first code
/// in a file. In the order of their numbers, each with its block.
pub fn initializer_nodes(profile: &Profile) -> Vec<(NodeId, FrameId)> {
    let text = |id: StringId| profile.strings.get(id);
    let frame = |id| profile.frames.get(id);
    let runs = |id| frame(id).is_some_and(|it| text(it.name) == RUNS_INITIALIZER);
    let in_file = |id| frame(id).is_some_and(|it| is_file(text(it.path)));
    let mut found = Vec::new();
    if !profile.frames.iter().any(|(frame, _)| runs(frame)) {
        return found;
    }
    // For each node: whether the next frame in a file is an initializer.
    let mut begins = vec![false];
    for (id, node) in profile.tree.iter() {
        let is_next = begins[node.parent.0 as usize];
        let is_one = is_next && !runs(node.frame) && in_file(node.frame);
        if is_one {
            found.push((id, node.frame));
        }
        begins.push(runs(node.frame) || is_next && !is_one);
    }
    found
}

/// The blocks that Rails runs as initializers, each with all below it.
fn initializers(profile: &Profile, column: Column, shown: &Shown<'_>) -> Vec<Initializer> {
    let mut starts = initializer_nodes(profile).into_iter().peekable();
    if starts.peek().is_none() {
        return Vec::new();
    }
    let text = |id: StringId| profile.strings.get(id);
    // For each node: the initializer that runs.
    let mut running: Vec<Option<FrameId>> = vec![None];
    for (id, node) in profile.tree.iter() {
        let start = starts.next_if(|(start, _)| *start == id);
        let above = running[node.parent.0 as usize];
        running.push(start.map(|(_, frame)| frame).or(above));
    }
    let mut sums: FxHashMap<FrameId, i64> = FxHashMap::default();
    for row in profile.weights.iter() {
        if let Some(frame) = running[row.key.node.0 as usize] {
            let sum = sums.entry(frame).or_default();
            *sum = sum.saturating_add(row.value(column));
        }
    }
    let sums = sums.into_iter().filter(|(_, total)| *total != 0);
    let shown = |(id, total)| {
        let frame = profile.frames.get(id)?;
        Some(Initializer {
            name: text(frame.name).into(),
            place: shown.place(PlaceKind::Line, Some(frame.path), frame.first_line),
            total,
        })
    };
    sums.filter_map(shown).collect()
}

#[cfg(test)]
mod tests;
