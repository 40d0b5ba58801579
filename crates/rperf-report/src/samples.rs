//! Which column counts samples. Any thread.

use rperf_model::{Column, Schema};

/// The column that counts the samples behind a row's values, by the name that profilers
/// give it. Other counts, as of allocated objects, are scaled, and no samples.
pub fn sample_column(schema: &Schema) -> Option<Column> {
    schema.columns().find(|column| {
        schema.value_type(*column).is_some_and(|value_type| {
            matches!(&*value_type.name, "samples" | "sample") && value_type.unit == "count"
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::ValueType;

    #[test]
    fn samples_are_told_from_other_counts() {
        let schema = |name: &str, unit: &str| {
            let types = vec![
                ValueType::new("inuse_space", "bytes"),
                ValueType::new(name, unit),
            ];
            Schema::new(types, Column(0)).expect("two columns")
        };
        assert_eq!(sample_column(&schema("samples", "count")), Some(Column(1)));
        assert_eq!(sample_column(&schema("alloc_objects", "count")), None);
        assert_eq!(sample_column(&schema("samples", "bytes")), None);
    }
}
