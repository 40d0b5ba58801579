//! What a reader of shared sums lacks: pages of what is new, and of the rows that have changed.

use super::keys::KeyTables;
use super::rows::SumsRow;
use super::{SharedSums, SumsFacts};
use crate::{Frame, LabelSet, LabelSetId, Node, NodeId, StringId};
use std::fmt;
use std::str::FromStr;

/// Rows of each table that a page has at most.
pub const PAGE_ROWS: usize = 8192;

/// Bytes of text that a page has at most; more only if a single text is longer.
pub const PAGE_TEXT: usize = 128 << 10;

/// How far a reader is. As text it is numbers with dots between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cursor {
    /// The table's serial number; 0 for a reader that has nothing.
    pub serial: u64,
    /// Strings that it has.
    pub strings: u64,
    /// Frames.
    pub frames: u64,
    /// Nodes.
    pub nodes: u64,
    /// Label sets.
    pub label_sets: u64,
    /// The generation up to which the reader has all changes of rows.
    pub since: u64,
    /// And up to this one, those of the rows before `place`.
    pub until: u64,
    /// Where its next page begins; 0 if it has read to the end.
    pub place: u64,
}

impl Cursor {
    /// All numbers, in the order of the text.
    fn numbers(&mut self) -> [&mut u64; 8] {
        [
            &mut self.serial,
            &mut self.strings,
            &mut self.frames,
            &mut self.nodes,
            &mut self.label_sets,
            &mut self.since,
            &mut self.until,
            &mut self.place,
        ]
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cursor = *self;
        let numbers = cursor.numbers().map(|number| number.to_string());
        f.write_str(&numbers.join("."))
    }
}

impl FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut cursor = Self::default();
        let mut parts = text.split('.');
        for number in cursor.numbers() {
            let part = parts.next().ok_or(())?;
            let is_number = part.bytes().all(|byte| byte.is_ascii_digit());
            *number = part.parse().ok().filter(|_| is_number).ok_or(())?;
        }
        parts.next().map_or(Ok(cursor), |_| Err(()))
    }
}

/// A page of changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Facts about the session.
    pub facts: SumsFacts,
    /// The reader has to forget all that it has.
    pub reset: bool,
    /// There is another page.
    pub more: bool,
    /// Where the reader is when it has taken this page in.
    pub cursor: Cursor,
    /// Strings that follow those which the reader has.
    pub strings: Vec<String>,
    /// Frames, likewise.
    pub frames: Vec<Frame>,
    /// Nodes.
    pub nodes: Vec<Node>,
    /// Label sets.
    pub label_sets: Vec<LabelSet>,
    /// Rows with their present sums.
    pub rows: Vec<SumsRow>,
}

impl SharedSums {
    /// What a reader that is at `cursor` lacks, or a page of it. A cursor of another table means
    /// that it has nothing.
    pub fn changes(&mut self, cursor: Cursor) -> Changes {
        let is_known = cursor.serial == self.serial && self.can_be_at(&cursor);
        let cursor = if is_known {
            cursor
        } else {
            Cursor {
                serial: self.serial,
                ..Cursor::default()
            }
        };
        let mut page = Changes {
            facts: self.facts(),
            reset: !is_known,
            cursor,
            ..Changes::default()
        };
        self.keys.add_new(&mut page);
        page.more = !self.keys.are_all_at(&page.cursor);
        if !page.more {
            self.add_rows(&mut page);
        }
        page
    }

    /// Whether a reader can have as much as `cursor` says.
    fn can_be_at(&self, cursor: &Cursor) -> bool {
        self.keys.has_all_of(cursor)
            && cursor.place <= self.rows.len() as u64
            && cursor.since <= cursor.until
            && cursor.until <= self.rows.generation()
    }

    fn add_rows(&mut self, page: &mut Changes) {
        let cursor = &mut page.cursor;
        if cursor.place == 0 {
            // All pages are about what has changed up to now: a row that changes again meanwhile
            // comes once more afterwards.
            cursor.until = self.rows.end_generation();
        }
        let (rows, next) = self
            .rows
            .since(cursor.since, cursor.place as usize, PAGE_ROWS);
        page.rows = rows;
        page.more = next.is_some();
        match next {
            Some(next) => cursor.place = next as u64,
            None => (cursor.since, cursor.place) = (cursor.until, 0),
        }
    }
}

impl KeyTables {
    /// Whether a reader can have as much of the tables as `cursor` says.
    fn has_all_of(&self, cursor: &Cursor) -> bool {
        cursor.strings <= self.strings.len() as u64
            && cursor.frames <= self.frames.len() as u64
            && cursor.nodes <= self.tree.len() as u64
            && cursor.label_sets <= self.label_sets.len() as u64
    }

    /// Whether a reader at `cursor` has all that there is.
    fn are_all_at(&self, cursor: &Cursor) -> bool {
        cursor.strings == self.strings.len() as u64
            && cursor.frames == self.frames.len() as u64
            && cursor.nodes == self.tree.len() as u64
            && cursor.label_sets == self.label_sets.len() as u64
    }

    /// What refers to something comes behind it: frames only when all strings are there, and
    /// nodes when all frames are.
    fn add_new(&self, page: &mut Changes) {
        let mut room = PAGE_TEXT;
        let first = page.cursor.strings as usize;
        for number in (first..self.strings.len()).take(PAGE_ROWS) {
            let text = self.strings.get(StringId(number as u32));
            if text.len() > room && number > first {
                return;
            }
            room = room.saturating_sub(text.len());
            page.strings.push(text.into());
            page.cursor.strings += 1;
        }
        if page.cursor.strings < self.strings.len() as u64 {
            return;
        }
        let frames = self.frames.iter().skip(page.cursor.frames as usize);
        page.frames
            .extend(frames.take(PAGE_ROWS).map(|(_, frame)| *frame));
        page.cursor.frames += page.frames.len() as u64;
        if page.cursor.frames < self.frames.len() as u64 {
            return;
        }
        let first = page.cursor.nodes as u32 + 1;
        let nodes = (first..).map_while(|number| self.tree.get(NodeId(number)));
        page.nodes.extend(nodes.take(PAGE_ROWS));
        page.cursor.nodes += page.nodes.len() as u64;
        let first = page.cursor.label_sets as usize;
        for number in (first..self.label_sets.len()).take(PAGE_ROWS) {
            let set = self.label_sets.get(LabelSetId(number as u32));
            page.label_sets.push(set.to_vec());
            page.cursor.label_sets += 1;
        }
    }
}
