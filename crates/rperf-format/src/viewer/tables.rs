//! The tables of RPV1, which all profiles of a view share: strings, frames, nodes, labels, threads,
//! sources. Called by `viewer`; any thread.

use super::columns::Columns;
use super::interned::{Interned, SeenLists};
use rperf_model::{
    CallTree, DisplayFrame, FrameId, FrameText, Meta, Node, NodeId, Profile, State, StringId,
    Weight,
};
use rperf_report::{CodePaths, initializer_nodes};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// The frame that stands for the stacks that were left out.
pub(super) const PRUNED: &str = "(pruned)";

/// The root's number.
const ROOT: u32 = NodeId::ROOT.0;

/// The tables in the making.
#[derive(Debug)]
pub(super) struct Tables {
    strings: Interned<String>,
    frames: Interned<FrameRow>,
    /// The first line of each frame.
    first_lines: Vec<u32>,
    /// The path of each frame, as it was recorded.
    paths: Vec<u32>,
    /// The category and the library of each frame.
    origins: Vec<(u32, u32)>,
    /// The call tree, whose frames are rows of `frames`.
    nodes: CallTree,
    /// The nodes at which an initializer of Rails begins, each with the first line of its block.
    initializers: BTreeMap<u32, u32>,
    label_sets: Interned<Vec<(u32, u32)>>,
    threads: Interned<(u32, u32)>,
    sources: Vec<(u32, u32)>,
}

/// What the paths of a profile say to people.
#[derive(Debug)]
struct Paths<'p> {
    shown: CodePaths,
    meta: &'p Meta,
}

/// A function, as reports tell it from others: a method and its blocks are one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FrameRow {
    name: u32,
    file: u32,
}

/// The rows of one profile, sorted by node.
#[derive(Debug)]
pub(super) struct Rows<'a>(Vec<Row<'a>>);

/// A row of a profile, as indexes into the tables.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) node: u32,
    pub(super) thread: u32,
    pub(super) label_set: u32,
    pub(super) state: u32,
    pub(super) is_idle: bool,
    /// `None` for the stacks that were left out.
    pub(super) weight: Option<Weight<'a>>,
}

impl<'a> Rows<'a> {
    pub(super) fn all(&self) -> impl Iterator<Item = Row<'a>> + '_ {
        self.0.iter().copied()
    }
}

impl Default for Tables {
    fn default() -> Self {
        let mut tables = Self {
            strings: Interned::default(),
            frames: Interned::default(),
            first_lines: Vec::new(),
            paths: Vec::new(),
            origins: Vec::new(),
            nodes: CallTree::default(),
            initializers: BTreeMap::new(),
            label_sets: Interned::default(),
            threads: Interned::default(),
            sources: Vec::new(),
        };
        // What a missing column means is index 0.
        tables.strings.id(String::new());
        tables.label_sets.id(Vec::new());
        tables
    }
}

impl Tables {
    /// Adds what the rows of `profile` need, and returns these; one for what was left
    /// out if `has_pruned`. `is_idle` has an entry for each of `rows`.
    pub(super) fn add_profile<'a>(
        &mut self,
        profile: &Profile,
        rows: &[Weight<'a>],
        is_idle: &[bool],
        has_pruned: bool,
    ) -> Rows<'a> {
        let paths = Paths {
            shown: CodePaths::of(profile),
            meta: &profile.meta,
        };
        let mut ids = Ids::of(self, profile, &paths, rows);
        let mut written: Vec<Row<'a>> = rows
            .iter()
            .zip(is_idle)
            .map(|(&weight, &is_idle)| Row {
                is_idle,
                ..ids.row(self, profile, weight)
            })
            .collect();
        if has_pruned {
            let text = FrameText {
                name: PRUNED,
                path: "",
                first_line: 0,
                line: 0,
            };
            written.push(Row {
                node: self.node(ROOT, text, &paths),
                thread: self.threads.id((0, 0)),
                label_set: 0,
                state: State::Running as u32,
                is_idle: false,
                weight: None,
            });
        }
        written.sort_by_key(|row| (row.node, row.thread, row.label_set, row.state));
        Rows(written)
    }

    pub(super) fn add_source(&mut self, path: &str, text: &str) {
        let source = (self.string(path), self.string(text));
        self.sources.push(source);
    }

    /// Writes all tables.
    pub(super) fn write(&self, columns: &mut Columns) {
        let strings = self.strings.rows();
        columns.unsigned("strings/length", strings.map(|text| text.len() as u32));
        let text: Vec<u8> = self.strings.rows().flat_map(|text| text.bytes()).collect();
        columns.bytes("strings/text", &text);
        self.write_frames(columns);
        self.write_nodes(columns);
        if !self.initializers.is_empty() {
            columns.deltas("initializers/node", self.initializers.keys().copied());
            columns.unsigned("initializers/line", self.initializers.values().copied());
        }

        let sets = || self.label_sets.rows();
        columns.unsigned("label_sets/length", sets().map(|set| set.len() as u32));
        columns.unsigned("labels/key", sets().flatten().map(|label| label.0));
        columns.unsigned("labels/value", sets().flatten().map(|label| label.1));
        let threads = || self.threads.rows();
        columns.unsigned("threads/number", threads().map(|thread| thread.0));
        columns.unsigned("threads/name", threads().map(|thread| thread.1));
        let sources = || self.sources.iter();
        columns.unsigned("sources/file", sources().map(|source| source.0));
        columns.unsigned("sources/text", sources().map(|source| source.1));
    }

    fn write_frames(&self, columns: &mut Columns) {
        let frames = || self.frames.rows();
        columns.unsigned("frames/name", frames().map(|frame| frame.name));
        columns.unsigned("frames/file", frames().map(|frame| frame.file));
        columns.unsigned("frames/path", self.paths.iter().copied());
        columns.unsigned("frames/line", self.first_lines.iter().copied());
        let origins = || self.origins.iter();
        columns.unsigned("frames/category", origins().map(|origin| origin.0));
        columns.unsigned("frames/library", origins().map(|origin| origin.1));
    }

    fn write_nodes(&self, columns: &mut Columns) {
        let nodes = || self.nodes.iter().map(|(_, node)| node);
        let parents = self.nodes.iter().map(|(id, node)| id.0 - node.parent.0);
        columns.unsigned("nodes/parent", parents);
        let mut callees = SeenLists::default();
        let parent_frame = |node: &Node| Some(self.nodes.get(node.parent)?.frame.0);
        let indexes: Vec<u32> = nodes()
            .map(|node| callees.index(parent_frame(node), node.frame.0))
            .collect();
        columns.unsigned("nodes/callee", indexes.into_iter());
        columns.unsigned("callees/frame", callees.new.into_iter());
        let mut lines = SeenLists::default();
        let indexes: Vec<u32> = nodes()
            .map(|node| lines.index(Some(node.frame.0), node.line))
            .collect();
        columns.unsigned("nodes/line", indexes.into_iter());
        columns.unsigned("lines/line", lines.new.into_iter());
    }

    pub(super) fn string(&mut self, text: &str) -> u32 {
        match self.strings.index.get(text) {
            Some(&id) => id,
            None => self.strings.id(text.to_string()),
        }
    }

    /// The node below `parent` for a frame as shown.
    fn node(&mut self, parent: u32, text: FrameText<'_>, paths: &Paths<'_>) -> u32 {
        let frame = self.frame(text, paths);
        let node = Node {
            parent: NodeId(parent),
            frame: FrameId(frame),
            line: text.line,
        };
        self.nodes.intern(node).0
    }

    fn frame(&mut self, text: FrameText<'_>, paths: &Paths<'_>) -> u32 {
        let row = FrameRow {
            name: self.string(text.name),
            file: self.string(&paths.shown.short(text.path)),
        };
        let path = self.string(text.path);
        let frame = self.frames.id(row);
        match self.first_lines.get_mut(frame as usize) {
            None => {
                let origin = paths.meta.origin(text.name, text.path);
                let library = self.string(origin.library);
                self.origins.push((origin.category as u32, library));
                self.paths.push(path);
                self.first_lines.push(text.first_line);
            }
            // That of a method, and not of a block in it.
            Some(line) if *line == 0 || (1..*line).contains(&text.first_line) => {
                *line = text.first_line;
            }
            Some(_) => {}
        }
        frame
    }
}

/// The ids in the tables of what the rows of one profile need: what filters have taken out of
/// a profile must not be in what people pass on.
struct Ids<'p> {
    paths: &'p Paths<'p>,
    nodes: Vec<u32>,
    leaves: FxHashMap<(NodeId, DisplayFrame), u32>,
    label_sets: Vec<u32>,
    threads: FxHashMap<u32, u32>,
}

impl<'p> Ids<'p> {
    fn of(
        tables: &mut Tables,
        profile: &Profile,
        paths: &'p Paths<'p>,
        rows: &[Weight<'_>],
    ) -> Self {
        let nodes = nodes(tables, profile, paths, rows);
        let mut has_labels = vec![false; profile.label_sets.len()];
        let mut has_thread = FxHashSet::default();
        for row in rows {
            has_labels[row.key.labels.0 as usize] = true;
            has_thread.insert(row.key.thread);
        }
        let text = |id: StringId| profile.strings.get(id);
        let label_sets = profile
            .label_sets
            .iter()
            .zip(has_labels)
            .map(|(set, is_used)| {
                let set = if is_used { set.iter() } else { [].iter() };
                let set = set.map(|&(key, value)| (text(key), text(value)));
                let set = set.map(|(key, value)| (tables.string(key), tables.string(value)));
                let set = set.collect();
                tables.label_sets.id(set)
            })
            .collect();
        let threads = profile
            .threads
            .iter()
            .filter(|thread| has_thread.contains(&thread.seq))
            .map(|thread| {
                let name = tables.string(text(thread.name));
                (thread.seq, tables.threads.id((thread.seq, name)))
            })
            .collect();
        Self {
            paths,
            nodes,
            leaves: FxHashMap::default(),
            label_sets,
            threads,
        }
    }

    fn row<'a>(&mut self, tables: &mut Tables, profile: &Profile, weight: Weight<'a>) -> Row<'a> {
        let key = weight.key;
        let mut node = self.nodes[key.node.0 as usize];
        if let Some(leaf) = profile.display_leaf(key) {
            let text = profile.frame_text(leaf);
            let (parent, paths) = (node, self.paths);
            let leaves = &mut self.leaves;
            node = *leaves
                .entry((key.node, leaf))
                .or_insert_with(|| tables.node(parent, text, paths));
        }
        let threads = &mut self.threads;
        let thread = *threads
            .entry(key.thread)
            .or_insert_with(|| tables.threads.id((key.thread, 0)));
        Row {
            node,
            thread,
            label_set: self.label_sets[key.labels.0 as usize],
            state: key.state as u32,
            is_idle: false,
            weight: Some(weight),
        }
    }
}

/// The number of each node of `profile` that is in the stack of a row; of all others 0.
fn nodes(
    tables: &mut Tables,
    profile: &Profile,
    paths: &Paths<'_>,
    rows: &[Weight<'_>],
) -> Vec<u32> {
    let mut is_used = vec![false; profile.tree.len() + 1];
    for row in rows {
        let mut node = row.key.node;
        while let Some(at) = profile.tree.get(node) {
            // So are its callers then.
            if std::mem::replace(&mut is_used[node.0 as usize], true) {
                break;
            }
            node = at.parent;
        }
    }
    let mut frames = vec![None; profile.frames.len()];
    let mut nodes = vec![ROOT; is_used.len()];
    for (id, node) in profile.tree.iter() {
        let id = id.0 as usize;
        if !is_used[id] {
            continue;
        }
        let &Node {
            parent,
            frame,
            line,
        } = node;
        let shown = DisplayFrame::Real { frame, line: 0 };
        let frame = *frames[frame.0 as usize]
            .get_or_insert_with(|| tables.frame(profile.frame_text(shown), paths));
        let node = Node {
            parent: NodeId(nodes[parent.0 as usize]),
            frame: FrameId(frame),
            line,
        };
        nodes[id] = tables.nodes.intern(node).0;
    }
    for (node, block) in initializer_nodes(profile) {
        // The blocks of a class are one frame of the tables: their lines tell them apart.
        let line = profile.frames.get(block).map_or(0, |it| it.first_line);
        if is_used[node.0 as usize] {
            let node = nodes[node.0 as usize];
            tables.initializers.entry(node).or_insert(line);
        }
    }
    nodes
}
