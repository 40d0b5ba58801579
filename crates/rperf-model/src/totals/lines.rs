//! Totals of a profile by line of source, in one column of values. Used by the text report. Any thread, no I/O.

use crate::{Column, Frame, FrameId, NodeId, Profile, Strings};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// What the values in one column of a profile add up to by line. All sums saturate.
///
/// Only frames in files have lines. C methods and Ruby's own built-in methods
/// (`<internal:array>`) have none: their values, and that of waiting and GC in them,
/// belong to the line that called them, as in Ruby's backtraces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lines {
    /// One entry for each line in any stack, largest self values first, then largest
    /// total ones.
    pub lines: Vec<LineTotals>,
    /// Of the stacks of which the innermost line is not known, or that have no frame
    /// in a file at all. With the self values they add up to all values.
    pub unknown: i64,
}

/// What the values of one line add up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineTotals {
    /// Path of the file.
    pub path: String,
    /// Line in the file, from 1.
    pub line: u32,
    /// Name of the method, or block, in which the line is. Of several, as with a block
    /// within the line, the one with the largest values at it.
    pub method: String,
    /// Of the stacks whose innermost line it is.
    pub self_value: i64,
    /// Of the stacks that have it anywhere, each stack once.
    pub total_value: i64,
}

impl Lines {
    /// The lines of `profile`, with what they have in `column`.
    pub fn of(profile: &Profile, column: Column) -> Self {
        let mut sums = LineSums::default();
        for weight in profile.weights.iter() {
            sums.add(profile, weight.key.node, weight.value(column));
        }
        sums.finish()
    }
}

/// Where a frame is.
#[derive(Clone, Copy)]
enum Place {
    /// In no file.
    Nowhere,
    /// In a file, at a line that is not known.
    Unknown,
    /// At a line: rows of `LineSums`.
    Line { line: usize, method: usize },
}

/// Lines in the making.
#[derive(Default)]
struct LineSums<'a> {
    unknown: i64,
    lines: Vec<Line<'a>>,
    line_rows: FxHashMap<(&'a str, u32), usize>,
    methods: Vec<Method<'a>>,
    method_rows: FxHashMap<(usize, &'a str), usize>,
    places: FxHashMap<(FrameId, u32), Place>,
    stacks: u64,
}

struct Line<'a> {
    path: &'a str,
    number: u32,
    self_value: i64,
    total: StackSum,
}

/// A method at one of its lines.
struct Method<'a> {
    line: usize,
    name: &'a str,
    total: StackSum,
}

/// Recursion brings the same into a stack again, but the stack's values count once.
#[derive(Default)]
struct StackSum {
    value: i64,
    /// The number of the last stack that was added.
    last_stack: u64,
}

impl StackSum {
    fn add(&mut self, stack: u64, value: i64) {
        if self.last_stack != stack {
            self.last_stack = stack;
            self.value = self.value.saturating_add(value);
        }
    }
}

impl<'a> LineSums<'a> {
    fn add(&mut self, profile: &'a Profile, node: NodeId, value: i64) {
        self.stacks += 1;
        let mut innermost = None;
        for node in profile.tree.stack(node) {
            let place = self.place(profile, node.frame, node.line);
            if let Place::Line { line, method } = place {
                self.lines[line].total.add(self.stacks, value);
                self.methods[method].total.add(self.stacks, value);
            }
            if !matches!(place, Place::Nowhere) {
                innermost.get_or_insert(place);
            }
        }
        let sum = match innermost {
            Some(Place::Line { line, .. }) => &mut self.lines[line].self_value,
            _ => &mut self.unknown,
        };
        *sum = sum.saturating_add(value);
    }

    fn place(&mut self, profile: &'a Profile, frame: FrameId, line: u32) -> Place {
        if let Some(&place) = self.places.get(&(frame, line)) {
            return place;
        }
        let place = match profile.frames.get(frame) {
            Some(frame) if is_file(profile.strings.get(frame.path)) => {
                self.place_in_file(&profile.strings, frame, line)
            }
            _ => Place::Nowhere,
        };
        self.places.insert((frame, line), place);
        place
    }

    fn place_in_file(&mut self, strings: &'a Strings, frame: &Frame, number: u32) -> Place {
        if number == 0 {
            return Place::Unknown;
        }
        let (path, name) = (strings.get(frame.path), strings.get(frame.name));
        let line = *self.line_rows.entry((path, number)).or_insert_with(|| {
            self.lines.push(Line {
                path,
                number,
                self_value: 0,
                total: StackSum::default(),
            });
            self.lines.len() - 1
        });
        let method = *self.method_rows.entry((line, name)).or_insert_with(|| {
            self.methods.push(Method {
                line,
                name,
                total: StackSum::default(),
            });
            self.methods.len() - 1
        });
        Place::Line { line, method }
    }

    fn finish(mut self) -> Lines {
        // Least first, so that of those at one line the last one stays. Of equal
        // ones that is the shortest: `Object#run` rather than `block in Object#run`.
        self.methods.sort_by_key(|method| {
            let name = method.name;
            (
                method.total.value.unsigned_abs(),
                Reverse((name.len(), name)),
            )
        });
        let methods = self.methods.iter();
        let names: FxHashMap<_, _> = methods.map(|method| (method.line, method.name)).collect();
        let rows = self.lines.iter().enumerate();
        let mut lines: Vec<_> = rows
            .filter(|(_, line)| line.total.value != 0 || line.self_value != 0)
            .map(|(row, line)| LineTotals {
                path: line.path.to_string(),
                line: line.number,
                method: names[&row].to_string(),
                self_value: line.self_value,
                total_value: line.total.value,
            })
            .collect();
        lines.sort_by(|a, b| {
            let size = |line: &LineTotals| {
                let (own, total) = (line.self_value, line.total_value);
                (own.unsigned_abs(), total.unsigned_abs())
            };
            let larger = size(b).cmp(&size(a));
            larger.then_with(|| (&a.path, a.line).cmp(&(&b.path, b.line)))
        });
        Lines {
            lines,
            unknown: self.unknown,
        }
    }
}

/// Ruby writes what is no file in angle brackets: `<internal:kernel>`; and so do we.
fn is_file(path: &str) -> bool {
    !path.is_empty() && !path.starts_with('<')
}

#[cfg(test)]
mod tests;
