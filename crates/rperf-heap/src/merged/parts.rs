//! Rows of the merged tree in the making, and the groups of objects that may become some.

use crate::graph::NONE;
use crate::holders::Known;
use std::cmp::Reverse;

/// Objects of one class that are held by one name.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Group {
    pub(super) name: Name,
    /// A class that is called as theirs are; [`NONE`] for that of rows that have none.
    pub(super) class: u32,
    pub(super) objects: Vec<u32>,
    /// How many would go with them, and themselves.
    pub(super) count: u64,
    /// The bytes that would go with them.
    pub(super) bytes: u64,
}

/// What a row is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    /// By the number of a holder's name.
    Holder(u32),
    /// By that of a variable or field.
    Variable(u32),
}

impl Group {
    pub(super) fn new(name: Name, class: u32) -> Self {
        Group {
            name,
            class,
            objects: Vec::new(),
            count: 0,
            bytes: 0,
        }
    }

    pub(super) fn add(&mut self, known: &Known<'_>, object: u32) {
        self.objects.push(object);
        self.count += u64::from(known.dominators.count(object));
        self.bytes += known.dominators.retained(object);
    }

    pub(super) fn add_all(&mut self, mut other: Group) {
        self.objects.append(&mut other.objects);
        self.count += other.count;
        self.bytes += other.bytes;
    }

    /// Whether its objects have nothing below them.
    pub(super) fn is_leaf(&self) -> bool {
        self.objects.len() as u64 == self.count
    }
}

/// A group that may become a row. The one with most bytes does so first, of several the first one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Candidate {
    pub(super) bytes: u64,
    pub(super) number: Reverse<u64>,
    pub(super) parent: u32,
    pub(super) group: Group,
}

/// A row in the making.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) name: Name,
    pub(super) class: u32,
    pub(super) parent: u32,
    pub(super) level: u32,
    /// What would go with it.
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// What its groups have.
    pub(super) count_below: u64,
    pub(super) bytes_below: u64,
    /// Its groups that are no rows: those that may become some, and those that are cut.
    pub(super) others: u64,
    pub(super) cut: Cut,
}

/// Groups that become no rows.
#[derive(Debug, Default)]
pub(super) struct Cut {
    pub(super) count: u64,
    pub(super) bytes: u64,
    /// The name and class of the last such group, if it has nothing below it.
    pub(super) leaf: Option<(Name, u32)>,
}

impl Default for Row {
    fn default() -> Self {
        Row {
            name: Name::Variable(0),
            class: NONE,
            parent: 0,
            level: 0,
            count: 0,
            bytes: 0,
            count_below: 0,
            bytes_below: 0,
            others: 0,
            cut: Cut::default(),
        }
    }
}
