//! What can stand next in a statement, as far as it decides whether something in double quotes is a name.

use super::skip::Cut;
use super::words::Word;
use std::mem;

/// Brackets in brackets at most.
const DEEPEST: usize = 32;

/// What can stand next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// A value.
    Value,
    /// The beginning of an operand: a column, or a value in MySQL.
    Operand,
    /// A name, or MySQL's string for one.
    Name,
    /// A column.
    Column,
    /// A table, or its alias.
    Table,
}

/// Whether the columns of an INSERT come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Into {
    No,
    /// The table comes first.
    Table,
    /// The columns come next.
    Columns,
}

/// What a comma stands between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Arguments, elements, operands.
    List,
    /// Parts of a query.
    Query,
    /// Columns.
    Columns,
    /// Columns with their values.
    Set,
    /// Elements of an array, or nothing: SQL Server's names are in such brackets.
    Array,
}

/// What is in one pair of brackets.
#[derive(Debug, Clone, Copy)]
struct Group {
    kind: Kind,
    /// A BETWEEN waits for its AND.
    is_between: bool,
    /// Where the fingerprint has the opening one.
    start: u16,
}

/// What is known of what has been read.
pub(super) struct Context {
    pub(super) place: Place,
    into: Into,
    /// The last word, if nothing came behind it.
    pub(super) word: Word,
    /// The statement itself, and the brackets that are open.
    groups: [Group; DEEPEST],
    /// How many are open.
    depth: usize,
}

impl Context {
    /// At the beginning of a statement.
    pub(super) fn new() -> Self {
        let statement = Group {
            kind: Kind::Query,
            is_between: false,
            start: 0,
        };
        Self {
            place: Place::Value,
            into: Into::No,
            word: Word::Plain,
            groups: [statement; DEEPEST],
            depth: 0,
        }
    }

    fn group(&mut self) -> &mut Group {
        &mut self.groups[self.depth]
    }

    pub(super) fn is_in_brackets(&self) -> bool {
        self.depth > 0
    }

    pub(super) fn is_in_array(&self) -> bool {
        self.groups[self.depth].kind == Kind::Array
    }

    /// A sign or a value: then `place`.
    pub(super) fn see(&mut self, place: Place) {
        self.place = place;
        self.into = Into::No;
        self.word = Word::Plain;
    }

    /// The end of a statement, behind which another one may come.
    pub(super) fn see_semicolon(&mut self) {
        self.see(Place::Value);
        if self.depth == 0 {
            *self = Self::new();
        }
    }

    /// A name in quotes. `is_joined`: to the one before, by a dot.
    pub(super) fn see_name(&mut self, is_joined: bool) {
        self.note_name(true, is_joined);
        // A table may have an alias.
        if self.place != Place::Table {
            self.place = Place::Value;
        }
        self.word = Word::Plain;
    }

    /// A word, which may be a name.
    pub(super) fn see_word(&mut self, word: Word, is_joined: bool) {
        self.note_name(word == Word::Plain, is_joined);
        self.place = self.place_behind(word);
        self.word = word;
    }

    fn note_name(&mut self, is_name: bool, is_joined: bool) {
        self.into = match self.into {
            Into::Table if is_name => Into::Columns,
            Into::Columns if is_name && is_joined => Into::Columns,
            _ => Into::No,
        };
    }

    /// What joins names keeps what is expected of the next one.
    pub(super) fn see_dot(&mut self) {
        self.word = Word::Plain;
    }

    /// An opening bracket, which the fingerprint has at `start`. Fails if there are too many.
    pub(super) fn open(&mut self, sign: u8, start: usize) -> Result<(), Cut> {
        let (kind, place) = match (sign, self.into, self.place) {
            (b'[', ..) => (Kind::Array, Place::Value),
            (_, Into::Columns, _) => (Kind::Columns, Place::Column),
            (_, _, Place::Operand) => (Kind::List, Place::Operand),
            _ => (Kind::List, Place::Value),
        };
        self.see(place);
        self.depth += 1;
        *self.groups.get_mut(self.depth).ok_or(Cut)? = Group {
            kind,
            is_between: false,
            start: start as u16,
        };
        Ok(())
    }

    /// A closing bracket: where the fingerprint has the opening one.
    pub(super) fn close(&mut self) -> Option<usize> {
        self.see(Place::Value);
        let start = (self.depth > 0).then(|| usize::from(self.group().start));
        self.depth = self.depth.saturating_sub(1);
        start
    }

    pub(super) fn see_comma(&mut self) {
        let place = match self.group().kind {
            Kind::Columns | Kind::Set => Place::Column,
            Kind::List | Kind::Query | Kind::Array => Place::Value,
        };
        self.see(place);
    }

    fn place_behind(&mut self, word: Word) -> Place {
        let last = self.word;
        match word {
            Word::Plain | Word::Array | Word::Constant | Word::Distinct | Word::Identified => {
                Place::Value
            }
            Word::And if mem::take(&mut self.group().is_between) => Place::Value,
            Word::And | Word::Operand => Place::Operand,
            Word::Between => {
                self.group().is_between = true;
                Place::Value
            }
            Word::Clause => self.end_set(Place::Operand),
            Word::Conflict => {
                self.into = Into::Columns;
                Place::Value
            }
            // `x IS DISTINCT FROM y`, `trim(x FROM y)`.
            Word::From if last == Word::Distinct => Place::Value,
            Word::From => match self.group().kind {
                Kind::Query | Kind::Set => self.end_set(Place::Table),
                Kind::List | Kind::Columns | Kind::Array => Place::Value,
            },
            Word::Into => {
                self.into = Into::Table;
                Place::Table
            }
            Word::Name => Place::Name,
            Word::Returning => self.end_set(Place::Name),
            Word::Select => {
                self.group().kind = Kind::Query;
                Place::Operand
            }
            Word::Set => {
                self.group().kind = Kind::Set;
                Place::Column
            }
            Word::Table => Place::Table,
        }
    }

    /// A clause begins, with `place`: what SET assigns is over.
    fn end_set(&mut self, place: Place) -> Place {
        if self.group().kind == Kind::Set {
            self.group().kind = Kind::Query;
        }
        place
    }
}
