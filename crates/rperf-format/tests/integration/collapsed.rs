//! Collapsed stacks against the obvious way to make them.

use crate::profiles;
use proptest::prelude::*;
use rperf_format::{Format, TextOptions, write};
use rperf_model::{DisplayFrame, Profile};
use std::collections::BTreeMap;

/// Every stack as names from the root, with its weight.
fn obvious(profile: &Profile) -> BTreeMap<Vec<String>, u64> {
    let mut stacks: BTreeMap<_, u64> = BTreeMap::new();
    let name = |frame: DisplayFrame| match profile.frame_text(frame).name {
        "" => "(unnamed)".to_string(),
        name => name.replace(char::is_control, " ").replace(';', ":"),
    };
    for weight in &profile.weights {
        let mut names: Vec<_> = profile.display_stack(weight).map(name).collect();
        names.reverse();
        let sum = stacks.entry(names).or_default();
        *sum = sum.saturating_add(weight.values.weight_ns(profile.meta.mode));
    }
    stacks.retain(|_, ns| *ns > 0);
    stacks
}

proptest! {
    #[test]
    fn any_profile_gives_its_stacks_in_order(profile in profiles::arbitrary()) {
        let mut expected = String::new();
        for (names, ns) in obvious(&profile) {
            expected.push_str(&format!("{} {ns}\n", names.join(";")));
        }
        let mut output = Vec::new();
        let options = TextOptions::default();
        write(&profile, Format::Collapsed, options, &mut output).expect("memory takes everything");
        prop_assert_eq!(String::from_utf8(output).expect("text"), expected);
    }
}
