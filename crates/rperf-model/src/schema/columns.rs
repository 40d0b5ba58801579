//! The columns that rperf itself makes, each with its name, its unit and the options that add it: of samples,
//! times, calls and objects. Used by those who fill a column, and by those who look for one. Any thread, no I/O.

use crate::{Column, Schema, ValueType};
use OwnColumn::{
    BlockCalls, Bytes, BytesInUse, CallTime, Calls, Cpu, GcCost, GvlBlame, GvlWaitedFor, Objects,
    ObjectsInUse, Overhead, Samples, Wall,
};

const COUNT: &str = "count";
const NANOSECONDS: &str = "nanoseconds";

/// A column that rperf itself makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OwnColumn {
    /// The number of samples.
    Samples,
    /// Time on the clock: of samples, or of traced calls.
    Wall,
    /// CPU time.
    Cpu,
    /// Calls of methods, those written in C among them.
    Calls,
    /// Calls of blocks, which have the names of their methods.
    BlockCalls,
    /// Time on the clock of calls of chosen methods.
    CallTime,
    /// Time that tracing has taken.
    Overhead,
    /// Objects that were made.
    Objects,
    /// Bytes of their slots.
    Bytes,
    /// Time that other threads waited for the GVL while a stack had it.
    GvlBlame,
    /// Time that a request waited for the GVL while a stack had it, under the request's labels.
    GvlWaitedFor,
    /// Objects that were alive at the end of the profile's time.
    ObjectsInUse,
    /// Bytes of their slots.
    BytesInUse,
    /// Time of collections that the objects of a site have cost: a model.
    GcCost,
}

/// What is known of a column.
struct Facts {
    column: OwnColumn,
    name: &'static str,
    unit: &'static str,
    /// The options of a recording that add it; empty where they aren't needed, or don't suffice.
    options: &'static str,
}

/// The columns in the order of their numbers. Objects have the names that other tools give them.
const TABLE: [Facts; 14] = [
    facts(Samples, "samples", COUNT, ""),
    facts(Wall, "wall", NANOSECONDS, ""),
    facts(Cpu, "cpu", NANOSECONDS, ""),
    facts(Calls, "calls", COUNT, ""),
    facts(BlockCalls, "block_calls", COUNT, ""),
    facts(CallTime, "call_time", NANOSECONDS, ""),
    facts(Overhead, "overhead", NANOSECONDS, ""),
    facts(Objects, "alloc_objects", COUNT, "--measure alloc"),
    facts(Bytes, "alloc_space", "bytes", "--measure alloc"),
    facts(
        GvlBlame,
        "gvl_blame",
        NANOSECONDS,
        "-m wall --measure blame",
    ),
    facts(
        GvlWaitedFor,
        "gvl_waited_for",
        NANOSECONDS,
        "-m wall --measure requests,blame",
    ),
    facts(ObjectsInUse, "inuse_objects", COUNT, "--measure heap"),
    facts(BytesInUse, "inuse_space", "bytes", "--measure heap"),
    facts(GcCost, "gc_cost", NANOSECONDS, "--measure gc_cost"),
];

const fn facts(
    column: OwnColumn,
    name: &'static str,
    unit: &'static str,
    options: &'static str,
) -> Facts {
    Facts {
        column,
        name,
        unit,
        options,
    }
}

impl OwnColumn {
    /// Every column.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|it| it.column)
    }

    /// Its name in files.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].name
    }

    /// Its unit in files.
    pub const fn unit(self) -> &'static str {
        TABLE[self as usize].unit
    }

    /// The options of a recording that add it; `None` where they aren't needed, or don't suffice.
    pub fn options(self) -> Option<&'static str> {
        Some(TABLE[self as usize].options).filter(|it| !it.is_empty())
    }

    /// The column with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|column| column.name() == name)
    }

    /// Its name and unit as the type of a profile's values.
    pub fn value_type(self) -> ValueType {
        ValueType::new(self.name(), self.unit())
    }

    /// Whether it is about objects.
    pub fn is_of_objects(self) -> bool {
        matches!(self, Objects | Bytes | GcCost) || self.is_level()
    }

    /// Whether it is a level: what there is at a moment, and no sum of what has happened. Levels of one
    /// process at two moments aren't added up, nor is the earlier one taken from the later.
    pub fn is_level(self) -> bool {
        matches!(self, ObjectsInUse | BytesInUse)
    }
}

impl ValueType {
    /// The column of ours that has this name. Other tools have columns of such names, too.
    pub fn own(&self) -> Option<OwnColumn> {
        OwnColumn::named(&self.name)
    }
}

impl Schema {
    /// The schema with these columns; `None` if there are none or `default` is not one of them.
    pub fn of(columns: impl IntoIterator<Item = OwnColumn>, default: OwnColumn) -> Option<Self> {
        let columns: Vec<_> = columns.into_iter().collect();
        let default = columns.iter().position(|it| *it == default)?;
        let types = columns.into_iter().map(OwnColumn::value_type);
        Self::new(types.collect(), Column(default))
    }

    /// The schema with further columns behind its own.
    pub fn with(&self, columns: impl IntoIterator<Item = OwnColumn>) -> Self {
        let mut schema = self.clone();
        let types = columns.into_iter().map(OwnColumn::value_type);
        schema.types.extend(types);
        schema
    }

    /// The first column with the name of `column`.
    pub fn find_own(&self, column: OwnColumn) -> Option<Column> {
        self.find(column.name())
    }

    /// The column that counts samples, if there is one.
    pub fn samples(&self) -> Option<Column> {
        self.find_exactly(Samples)
    }

    /// The column that counts calls, if there is one.
    pub fn calls(&self) -> Option<Column> {
        self.find_exactly(Calls)
    }

    /// The column of ours that the default column has the name of.
    pub fn default_own(&self) -> Option<OwnColumn> {
        self.default_type().own()
    }

    /// Whether the columns are those of calls that rperf has traced one by one, and has no samples
    /// beside.
    pub fn is_traced(&self) -> bool {
        let has = |column| self.find_own(column).is_some();
        let has_chosen = || has(CallTime) && self.samples().is_none();
        has(Calls) && (has(BlockCalls) || has_chosen())
    }

    /// The first column with this name and unit.
    fn find_exactly(&self, column: OwnColumn) -> Option<Column> {
        let is_it = |it: &ValueType| it.name == column.name() && it.unit == column.unit();
        self.types.iter().position(is_it).map(Column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_columns() {
        for (index, column) in OwnColumn::all().enumerate() {
            assert_eq!(column as usize, index);
            assert_eq!(OwnColumn::named(column.name()), Some(column));
            assert_eq!(column.value_type().own(), Some(column));
        }
        assert_eq!(OwnColumn::named("inuse_spaces"), None);
    }

    #[test]
    fn traces_are_told_by_their_columns() {
        let is_traced = |columns: &[OwnColumn]| {
            let schema = Schema::of(columns.iter().copied(), columns[0]);
            schema.expect("a schema").is_traced()
        };
        assert!(is_traced(&[Calls, Wall, BlockCalls]) && is_traced(&[Calls, CallTime]));
        assert!(!is_traced(&[Samples, Wall]) && !is_traced(&[Calls]));
        assert!(!is_traced(&[Samples, Calls, CallTime]));
    }

    #[test]
    fn schemas_are_made_of_columns_and_grow() {
        assert_eq!(Schema::of([Samples, Wall], Cpu), None);
        let schema = Schema::of([Samples, Wall], Wall).expect("a schema");
        assert_eq!(schema.default_own(), Some(Wall));
        let schema = schema.with([Objects, Bytes]);
        let expected = "samples/count, wall/nanoseconds, alloc_objects/count, alloc_space/bytes";
        assert_eq!(schema.to_string(), expected);
        assert_eq!(schema.default_column(), Column(1));
        assert_eq!(schema.find_own(Bytes), Some(Column(3)));
        assert_eq!(schema.find_own(Cpu), None);
    }
}
