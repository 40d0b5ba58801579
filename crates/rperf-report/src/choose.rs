//! The choice among a profile's values, as `--value` has it. Called by `rperf report`, `rperf diff`
//! and the Ruby API; any thread.

use rperf_model::{Column, OwnColumn, Profile, Schema};

/// There are no such values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there are no values named '{wanted}'; the profile has {names}{advice}")]
pub struct NoSuchValues {
    wanted: String,
    names: String,
    /// How profiles get these values, if that must be asked for.
    advice: String,
}

/// Makes the values that `wanted` names (`cpu`, `cpu/nanoseconds`), or numbers, the ones
/// that the profile is about.
pub fn choose_values(profile: &mut Profile, wanted: &str) -> Result<(), NoSuchValues> {
    let schema = &profile.schema;
    let by_type = || {
        let mut columns = schema.columns();
        columns.find(|column| {
            let value_type = schema.value_type(*column);
            value_type.is_some_and(|it| it.to_string() == wanted)
        })
    };
    let by_number = || wanted.parse().ok().map(Column);
    let column = schema.find(wanted).or_else(by_type).or_else(by_number);
    match column.and_then(|column| Schema::new(schema.types().to_vec(), column)) {
        Some(schema) => {
            profile.schema = schema;
            Ok(())
        }
        None => {
            let names: Vec<_> = schema.types().iter().map(|it| it.name.as_str()).collect();
            Err(NoSuchValues {
                wanted: wanted.to_string(),
                names: names.join(", "),
                advice: match OwnColumn::named(wanted).and_then(OwnColumn::options) {
                    Some(options) => format!(" ({options} adds them)"),
                    None => String::new(),
                },
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::wall_schema;

    #[test]
    fn values_are_chosen_by_name_type_or_number() {
        let mut profile = Profile::new(wall_schema());
        for (wanted, name) in [
            ("cpu", "cpu"),
            ("wall/nanoseconds", "wall"),
            ("0", "samples"),
        ] {
            choose_values(&mut profile, wanted).expect("it is there");
            assert_eq!(profile.schema.default_type().name, name);
        }
        let error = choose_values(&mut profile, "3").expect_err("only three");
        assert_eq!(
            error.to_string(),
            "there are no values named '3'; the profile has samples, wall, cpu"
        );
        assert_eq!(profile.schema.default_type().name, "samples");
        for (wanted, advice) in [
            ("gvl_blame", "cpu (-m wall --measure blame adds them)"),
            (
                "gvl_waited_for",
                "cpu (-m wall --measure requests,blame adds them)",
            ),
            ("alloc_space", "cpu (--measure alloc adds them)"),
            ("gc_cost", "cpu (--measure gc_cost adds them)"),
            ("inuse_space", "cpu (--measure heap adds them)"),
        ] {
            let error = choose_values(&mut profile, wanted).expect_err("not measured");
            assert!(error.to_string().ends_with(advice), "{error}");
        }
    }
}
