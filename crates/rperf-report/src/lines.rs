//! Totals of a profile by line of source. Used by the text report. Any thread, no I/O.

use crate::stack::groups::is_file;
use crate::stack::walk::{OnceSums, Values, Visitor, walk};
use crate::text::code_paths::CodePaths;
use rperf_model::{Column, Frame, FrameId, Node, NodeId, Order, Profile, Strings, Weight};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

pub(crate) mod listing;

/// The sums of a profile's weights by line.
///
/// Only frames in files have lines. C methods and Ruby's own built-in methods
/// (`<internal:array>`) have none: their time, and that of waiting and GC in them,
/// belongs to the line that called them, as in Ruby's backtraces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    /// The totals of each line in any stack, largest self value first, then largest total.
    pub lines: Vec<LineTotals>,
    /// Value of the stacks of which the innermost line is not known, or that have no
    /// frame in a file at all. With the self values it adds up to all weights.
    pub unknown: i64,
}

/// The sums of one line's weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTotals {
    /// Path of the file, as it was recorded.
    pub path: String,
    /// The path as people see it.
    pub short_path: String,
    /// Line in the file, from 1.
    pub line: u32,
    /// Name of the method, or block, in which the line is. Of several, as with a block
    /// within the line, the one with the most at it.
    pub method: String,
    /// Value of the stacks whose innermost line it is.
    pub self_value: i64,
    /// Value of the stacks that have it anywhere, each stack once.
    pub total_value: i64,
}

impl Lines {
    /// The lines of `profile`, with the values in `column`.
    pub fn of(profile: &Profile, column: Column) -> Self {
        let mut sums = LineSums {
            profile,
            unknown: 0,
            lines: Vec::new(),
            line_sums: OnceSums::new(0),
            line_rows: FxHashMap::default(),
            methods: Vec::new(),
            method_sums: OnceSums::new(0),
            method_rows: FxHashMap::default(),
            line_refs: FxHashMap::default(),
            innermost: Vec::new(),
        };
        walk(profile, [column], &mut sums);
        sums.finish()
    }
}

/// Where a frame is.
#[derive(Clone, Copy)]
enum LineRef {
    /// In no file.
    Nowhere,
    /// In a file, at a line that is not known.
    Unknown,
    /// At a line: rows of `LineSums`.
    Line { line: usize, method: usize },
}

/// Lines in the making.
struct LineSums<'a> {
    profile: &'a Profile,
    unknown: i64,
    lines: Vec<Line<'a>>,
    line_sums: OnceSums<1>,
    line_rows: FxHashMap<(&'a str, u32), usize>,
    methods: Vec<Method<'a>>,
    method_sums: OnceSums<1>,
    method_rows: FxHashMap<(usize, &'a str), usize>,
    line_refs: FxHashMap<(FrameId, u32), LineRef>,
    /// Where the nodes are that have been entered and not left, those in files.
    innermost: Vec<LineRef>,
}

struct Line<'a> {
    path: &'a str,
    number: u32,
    self_value: i64,
}

/// A method at one of its lines.
struct Method<'a> {
    line: usize,
    name: &'a str,
}

impl Visitor<1> for LineSums<'_> {
    fn enter(&mut self, _: NodeId, node: Node) {
        let line_ref = self.line_ref(node);
        if let LineRef::Line { line, method } = line_ref {
            self.line_sums.enter(line);
            self.method_sums.enter(method);
        }
        if !matches!(line_ref, LineRef::Nowhere) {
            self.innermost.push(line_ref);
        }
    }

    fn row(&mut self, _: Weight<'_>, [value]: Values<1>) {
        let sum = match self.innermost.last() {
            Some(LineRef::Line { line, .. }) => &mut self.lines[*line].self_value,
            _ => &mut self.unknown,
        };
        *sum = sum.saturating_add(value);
    }

    fn leave(&mut self, _: NodeId, node: Node, total: Values<1>) {
        let line_ref = self.line_ref(node);
        if let LineRef::Line { line, method } = line_ref {
            self.line_sums.leave(line, total);
            self.method_sums.leave(method, total);
        }
        if !matches!(line_ref, LineRef::Nowhere) {
            self.innermost.pop();
        }
    }
}

impl<'a> LineSums<'a> {
    fn line_ref(&mut self, node: Node) -> LineRef {
        let key = (node.frame, node.line);
        if let Some(&line_ref) = self.line_refs.get(&key) {
            return line_ref;
        }
        let profile = self.profile;
        let line_ref = match profile.frames.get(node.frame) {
            Some(frame) if is_file(profile.strings.get(frame.path)) => {
                self.line_in_file(&profile.strings, frame, node.line)
            }
            _ => LineRef::Nowhere,
        };
        self.line_refs.insert(key, line_ref);
        line_ref
    }

    fn line_in_file(&mut self, strings: &'a Strings, frame: &Frame, number: u32) -> LineRef {
        if number == 0 {
            return LineRef::Unknown;
        }
        let (path, name) = (strings.get(frame.path), strings.get(frame.name));
        let line = *self.line_rows.entry((path, number)).or_insert_with(|| {
            self.lines.push(Line {
                path,
                number,
                self_value: 0,
            });
            self.line_sums.push()
        });
        let method = *self.method_rows.entry((line, name)).or_insert_with(|| {
            self.methods.push(Method { line, name });
            self.method_sums.push()
        });
        LineRef::Line { line, method }
    }

    fn finish(self) -> Lines {
        // Least first, so that of those at one line the last one stays. Of equal ones
        // that is the shortest: `Object#run` rather than `block in Object#run`.
        let mut methods: Vec<_> = self.methods.iter().zip(&self.method_sums.totals).collect();
        methods.order_by_key(|(method, [total])| {
            let name = method.name;
            (total.unsigned_abs(), Reverse((name.len(), name)))
        });
        let methods = methods.iter();
        let names: FxHashMap<_, _> = methods
            .map(|(method, _)| (method.line, method.name))
            .collect();
        let paths = CodePaths::of(self.profile);
        let rows = self.lines.iter().zip(&self.line_sums.totals).enumerate();
        let mut lines: Vec<_> = rows
            .filter(|(_, (_, [total]))| *total != 0)
            .map(|(row, (line, [total]))| LineTotals {
                path: line.path.to_string(),
                short_path: paths.short(line.path).into_owned(),
                line: line.number,
                method: names[&row].to_string(),
                self_value: line.self_value,
                total_value: *total,
            })
            .collect();
        lines.order_by(|a, b| a.rank().cmp(&b.rank()));
        Lines {
            lines,
            unknown: self.unknown,
        }
    }
}

impl LineTotals {
    fn rank(&self) -> impl Ord + '_ {
        let values = [self.self_value, self.total_value].map(i64::unsigned_abs);
        (Reverse(values), &self.path, self.line)
    }
}

#[cfg(test)]
mod tests;
