//! Which file loads which, with the time of each. Made of a profile's call tree; any thread.

use crate::stack::groups::is_file;
use rperf_model::frame_kind::{is_main, method_of};
use rperf_model::{CodePath, Column, Frame, Order, Profile, StringId};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The methods that load files. Those that others put before them have the same names.
const LOADERS: [&str; 6] = [
    "Kernel#require",
    "Kernel#require_relative",
    "Kernel#load",
    "Kernel.require",
    "Kernel.require_relative",
    "Kernel.load",
];

/// What Ruby puts before `require` where there is Bundler: its block is the new method.
const BUNDLED_GEMS: (&str, &str) = ("replace_require", "/bundled_gems.rb");

/// What a row of the tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A file, by its path.
    File(StringId),
    /// A line that loads files of which no more is known.
    Line(usize),
}

/// A line that calls `require` or its like.
#[derive(Debug)]
pub(super) struct Site {
    /// The file; none: Ruby itself loads, as the command line says.
    pub path: Option<StringId>,
    pub line: u32,
    leads_to: LeadsTo,
}

/// The files that have run below a line.
#[derive(Debug, Clone, Copy)]
enum LeadsTo {
    None,
    One(StringId),
    Several,
}

/// A file at a place in the tree.
#[derive(Debug)]
pub(super) struct Row {
    pub what: What,
    /// The file that loads it.
    caller: Option<usize>,
    /// The line that does; of several, the one with the most.
    pub site: Option<usize>,
    pub own: i64,
    pub load: i64,
    /// With all that it loads, after [`LoadTree::add_up`].
    pub total: i64,
    /// The files that it loads.
    pub loads: Vec<usize>,
}

/// The tree.
pub(super) struct LoadTree {
    /// Each after the one that loads it.
    pub rows: Vec<Row>,
    pub sites: Vec<Site>,
    known: FxHashMap<(Option<usize>, What), usize>,
}

/// What is known at a node of the call tree.
#[derive(Debug, Clone, Copy, Default)]
struct At {
    /// The innermost file that runs.
    file: Option<usize>,
    /// The line that has loaded this file.
    loaded_by: Option<usize>,
    /// The line that loads one, which doesn't run yet.
    site: Option<usize>,
    /// Other code has been called since that line.
    is_beyond_site: bool,
    /// The innermost line of a file.
    path: Option<StringId>,
    line: u32,
}

/// What a frame means here.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// The code of a file outside of methods.
    File,
    /// What loads one.
    Loader,
    /// A block of what loads one, which another method may call: a program may time its `require`.
    InLoader,
    /// A method in a file.
    InFile,
    Other,
}

impl LoadTree {
    /// The tree of all files that run or are loaded in `profile`, with the values in `column`.
    pub(super) fn of(profile: &Profile, column: Column) -> Self {
        let mut tree = LoadTree {
            rows: Vec::new(),
            sites: Vec::new(),
            known: FxHashMap::default(),
        };
        let at = tree.read(profile);
        let mut loads: FxHashMap<(Option<usize>, usize), i64> = FxHashMap::default();
        let mut by_site: FxHashMap<(usize, usize), i64> = FxHashMap::default();
        for weight in profile.weights.iter() {
            let value = weight.value(column);
            let sum = match at[weight.key.node.0 as usize] {
                At {
                    file,
                    site: Some(site),
                    ..
                } => loads.entry((file, site)).or_default(),
                At {
                    file: Some(file),
                    loaded_by,
                    ..
                } => {
                    if let Some(site) = loaded_by {
                        add(by_site.entry((file, site)).or_default(), value);
                    }
                    &mut tree.rows[file].own
                }
                _ => continue,
            };
            add(sum, value);
        }
        let mut loads: Vec<_> = loads.into_iter().collect();
        loads.sort_unstable();
        for ((file, site), value) in loads {
            let what = match tree.sites[site].leads_to {
                LeadsTo::One(path) => What::File(path),
                _ => What::Line(site),
            };
            let row = tree.row(file, what, Some(site));
            add(&mut tree.rows[row].load, value);
            add(by_site.entry((row, site)).or_default(), value);
        }
        tree.choose_sites(by_site);
        tree
    }

    /// Each row has the line with the most of its own time and load.
    fn choose_sites(&mut self, by_site: FxHashMap<(usize, usize), i64>) {
        let mut by_site: Vec<_> = by_site.into_iter().collect();
        by_site.order_by_key(|((row, site), value)| (*row, *value, Reverse(*site)));
        for ((row, site), _) in by_site {
            self.rows[row].site = Some(site);
        }
    }

    /// Adds the files and lines of the call tree. Returns what is known at each of its nodes.
    fn read(&mut self, profile: &Profile) -> Vec<At> {
        let kinds: Vec<_> = profile
            .frames
            .iter()
            .map(|(_, frame)| kind(profile, frame))
            .collect();
        let mut sites: FxHashMap<(Option<StringId>, u32), usize> = FxHashMap::default();
        let mut at = vec![At::default()];
        for (_, node) in profile.tree.iter() {
            let above = at[node.parent.0 as usize];
            let kind = kinds.get(node.frame.0 as usize).copied();
            let here = At {
                path: profile.frames.get(node.frame).map(|frame| frame.path),
                line: node.line,
                ..above
            };
            at.push(match (kind.unwrap_or(Kind::Other), above.site) {
                (Kind::File, site) => {
                    if let (Some(site), Some(path)) = (site, here.path) {
                        self.sites[site].leads_to(path);
                    }
                    let has_caller = site.is_none() && above.path.is_some();
                    let loaded_by = match has_caller {
                        true => Some(self.site(&mut sites, above)),
                        false => site,
                    };
                    let file = here
                        .path
                        .map(|path| self.row(above.file, What::File(path), loaded_by));
                    At {
                        file,
                        loaded_by,
                        site: None,
                        is_beyond_site: false,
                        ..here
                    }
                }
                (Kind::Loader, Some(_)) if !above.is_beyond_site => above,
                (Kind::InLoader, Some(_)) => At {
                    is_beyond_site: false,
                    ..above
                },
                (Kind::Loader | Kind::InLoader, _) => At {
                    site: Some(self.site(&mut sites, above)),
                    is_beyond_site: false,
                    ..above
                },
                (Kind::InFile, site) => At {
                    is_beyond_site: site.is_some(),
                    ..here
                },
                _ => above,
            });
        }
        at
    }

    /// The line at which the stack of `at` stands.
    fn site(&mut self, known: &mut FxHashMap<(Option<StringId>, u32), usize>, at: At) -> usize {
        *known.entry((at.path, at.line)).or_insert_with(|| {
            self.sites.push(Site {
                path: at.path,
                line: at.line,
                leads_to: LeadsTo::None,
            });
            self.sites.len() - 1
        })
    }

    /// The row of `what`, which `caller` loads.
    fn row(&mut self, caller: Option<usize>, what: What, site: Option<usize>) -> usize {
        let next = self.rows.len();
        let row = *self.known.entry((caller, what)).or_insert(next);
        if row == next {
            self.rows.push(Row {
                what,
                caller,
                site,
                own: 0,
                load: 0,
                total: 0,
                loads: Vec::new(),
            });
            if let Some(caller) = caller {
                self.rows[caller].loads.push(row);
            }
        }
        row
    }

    /// Makes the totals.
    pub(super) fn add_up(&mut self) {
        for row in (0..self.rows.len()).rev() {
            let found = &mut self.rows[row];
            add(&mut found.total, found.own.saturating_add(found.load));
            let (total, caller) = (found.total, found.caller);
            if let Some(caller) = caller {
                add(&mut self.rows[caller].total, total);
            }
        }
    }

    /// The rows that no other file loads.
    pub(super) fn roots(&self) -> impl Iterator<Item = usize> + '_ {
        let rows = self.rows.iter().enumerate();
        rows.filter(|(_, row)| row.caller.is_none())
            .map(|(place, _)| place)
    }

    /// The files that lead to `row`, the nearest first.
    pub(super) fn callers(&self, row: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.rows[row].caller, |row| self.rows[*row].caller)
    }
}

impl Site {
    fn leads_to(&mut self, path: StringId) {
        self.leads_to = match self.leads_to {
            LeadsTo::None => LeadsTo::One(path),
            LeadsTo::One(known) if known == path => LeadsTo::One(path),
            _ => LeadsTo::Several,
        };
    }
}

fn add(sum: &mut i64, value: i64) {
    *sum = sum.saturating_add(value);
}

fn kind(profile: &Profile, frame: &Frame) -> Kind {
    let [name, path] = [frame.name, frame.path].map(|id| profile.strings.get(id));
    let is_evaluated = matches!(CodePath::of(path), CodePath::Eval { .. });
    let method = method_of(name);
    let is_replaced = method.ends_with(BUNDLED_GEMS.0) && path.ends_with(BUNDLED_GEMS.1);
    if is_main(name) && !is_evaluated {
        Kind::File
    } else if is_replaced || LOADERS.contains(&name) {
        Kind::Loader
    } else if LOADERS.contains(&method) {
        Kind::InLoader
    } else if is_file(path) {
        Kind::InFile
    } else {
        Kind::Other
    }
}
