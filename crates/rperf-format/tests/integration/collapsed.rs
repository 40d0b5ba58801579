//! Collapsed stacks against the obvious way to make them.

use crate::profiles;
use proptest::prelude::*;
use rperf_format::{Format, TextOptions, write};
use rperf_model::{DisplayFrame, Profile};
use std::collections::BTreeMap;

/// Every stack as names from the root, with its value.
fn obvious(profile: &Profile) -> BTreeMap<Vec<String>, i64> {
    let mut stacks: BTreeMap<_, i64> = BTreeMap::new();
    let name = |frame: DisplayFrame| match profile.frame_text(frame).name {
        "" => "(unnamed)".to_string(),
        name => name.replace(char::is_control, " ").replace(';', ":"),
    };
    let column = profile.schema.default_column();
    for weight in profile.weights.iter() {
        let mut names: Vec<_> = profile.display_stack(weight.key).map(name).collect();
        names.reverse();
        let sum = stacks.entry(names).or_default();
        *sum = sum.saturating_add(weight.value(column));
    }
    stacks.retain(|_, value| *value != 0);
    stacks
}

proptest! {
    #[test]
    fn any_profile_gives_its_stacks_in_order(
        profile in prop_oneof![profiles::arbitrary(), profiles::with_any_columns()]
    ) {
        let mut expected = String::new();
        for (names, value) in obvious(&profile) {
            expected.push_str(&format!("{} {value}\n", names.join(";")));
        }
        let mut output = Vec::new();
        let options = TextOptions::default();
        write(&profile, Format::Collapsed, options, &mut output).expect("memory takes everything");
        prop_assert_eq!(String::from_utf8(output).expect("text"), expected);
    }
}
