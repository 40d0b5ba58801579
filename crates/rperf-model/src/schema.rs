//! The schema of a profile's values: one value type for each column. Used by all who make or ask a
//! profile. Any thread, no I/O.

use std::fmt;

pub(crate) mod columns;
pub(crate) mod mode;

/// Types that [`Schema`]'s text names before it says how many more there are.
const MAX_SHOWN: usize = 10;

/// The type of a column of values.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ValueType {
    /// Its name: `"wall"`, `"alloc_space"`.
    pub name: String,
    /// Its unit: `"nanoseconds"`, `"bytes"`.
    pub unit: String,
}

impl ValueType {
    /// The type with this name and unit.
    pub fn new(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            unit: unit.into(),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.name, self.unit)
    }
}

/// Index of a column in a [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Column(pub usize);

/// The value types of a profile, one for each column, and the column to show unless
/// another one is asked for. Two columns may have the same name, as in pprof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    pub(crate) types: Vec<ValueType>,
    default: Column,
}

impl Schema {
    /// The schema with these columns; `None` if there are none or `default` is not
    /// one of them.
    pub fn new(types: Vec<ValueType>, default: Column) -> Option<Self> {
        (default.0 < types.len()).then_some(Self { types, default })
    }

    /// The types, in the order of the columns.
    pub fn types(&self) -> &[ValueType] {
        &self.types
    }

    /// How many columns there are.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// All columns.
    pub fn columns(&self) -> impl Iterator<Item = Column> + use<> {
        (0..self.types.len()).map(Column)
    }

    /// The column to show unless another one is asked for.
    pub fn default_column(&self) -> Column {
        self.default
    }

    /// The type of the default column.
    pub fn default_type(&self) -> &ValueType {
        &self.types[self.default.0]
    }

    /// The type of `column`, if there is such a column.
    pub fn value_type(&self, column: Column) -> Option<&ValueType> {
        self.types.get(column.0)
    }

    /// The first column with this name.
    pub fn find(&self, name: &str) -> Option<Column> {
        self.types
            .iter()
            .position(|value_type| value_type.name == name)
            .map(Column)
    }

    /// For each of our columns the one of `other` with the same name and unit, if
    /// both have the same types in whatever order. Of several columns with one type
    /// the first is matched with the first.
    pub(crate) fn matching(&self, other: &Schema) -> Option<Vec<Column>> {
        if self.len() != other.len() {
            return None;
        }
        let mut is_taken = vec![false; other.len()];
        let mut columns = Vec::with_capacity(self.len());
        for wanted in &self.types {
            let found = other
                .types
                .iter()
                .zip(&is_taken)
                .position(|(value_type, taken)| !taken && value_type == wanted)?;
            is_taken[found] = true;
            columns.push(Column(found));
        }
        Some(columns)
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value_type) in self.types.iter().take(MAX_SHOWN).enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(f, "{separator}{value_type}")?;
        }
        match self.types.len().saturating_sub(MAX_SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(types: &[(&str, &str)]) -> Schema {
        let types = types.iter().map(|&(name, unit)| ValueType::new(name, unit));
        Schema::new(types.collect(), Column(0)).expect("it has a column")
    }

    #[test]
    fn there_is_a_default_column_always() {
        assert_eq!(Schema::new(Vec::new(), Column(0)), None);
        let types = vec![ValueType::new("cpu", "nanoseconds")];
        assert_eq!(Schema::new(types.clone(), Column(1)), None);
        let schema = Schema::new(types, Column(0)).expect("one column");
        assert_eq!(schema.default_type().to_string(), "cpu/nanoseconds");
        assert_eq!(schema.value_type(Column(1)), None);
    }

    #[test]
    fn of_equal_names_the_first_is_found() {
        let schema = schema(&[("a", "count"), ("b", "count"), ("b", "bytes")]);
        assert_eq!(schema.find("b"), Some(Column(1)));
        assert_eq!(schema.find("c"), None);
        assert_eq!(schema.samples(), None);
        assert!(schema.columns().eq([Column(0), Column(1), Column(2)]));
    }

    #[test]
    fn samples_are_counted_by_a_count() {
        let schema = schema(&[("samples", "bytes"), ("samples", "count")]);
        assert_eq!(schema.samples(), Some(Column(1)));
        assert_eq!(schema.calls(), None);
    }

    #[test]
    fn calls_are_counted_by_a_count() {
        let schema = schema(&[("calls", "ms"), ("calls", "count")]);
        assert_eq!(schema.calls(), Some(Column(1)));
    }

    #[test]
    fn columns_are_matched_by_name_and_unit_each_once() {
        let ours = schema(&[("a", "count"), ("a", "count"), ("b", "bytes")]);
        let theirs = schema(&[("b", "bytes"), ("a", "count"), ("a", "count")]);
        let columns = vec![Column(1), Column(2), Column(0)];
        assert_eq!(ours.matching(&theirs), Some(columns));
        for other in [
            &[("a", "count"), ("b", "bytes")][..],
            &[("a", "count"), ("b", "bytes"), ("b", "bytes")],
            &[("a", "count"), ("a", "bytes"), ("b", "bytes")],
            &[("a", "count"), ("a", "count"), ("b", "bytes"), ("c", "ms")],
        ] {
            assert_eq!(ours.matching(&schema(other)), None, "{other:?}");
        }
    }

    #[test]
    fn long_schemas_are_shown_in_part() {
        let two = schema(&[("samples", "count"), ("cpu", "nanoseconds")]);
        assert_eq!(two.to_string(), "samples/count, cpu/nanoseconds");
        let text = schema(&[("a", "b"); 12]).to_string();
        assert!(text.ends_with("a/b, a/b and 2 more"), "{text}");
    }
}
