//! Lines in a profile change what shows lines, and nothing else.

use crate::profiles;
use proptest::prelude::*;
use rperf_format::{Format, TextOptions, write};
use rperf_model::{Node, NodeId, Profile, WeightKey, WeightTable};

fn written(profile: &Profile, format: Format, lines: bool) -> String {
    let mut output = Vec::new();
    let options = TextOptions { lines, whole: None };
    write(profile, format, options, &mut output).expect("memory takes everything");
    String::from_utf8(output).expect("text")
}

/// The profile as it would be if no lines had been recorded.
fn without_lines(mut profile: Profile) -> Profile {
    let tree = std::mem::take(&mut profile.tree);
    let mut nodes = vec![NodeId::ROOT];
    for (_, node) in tree.iter() {
        let parent = nodes[node.parent.0 as usize];
        nodes.push(profile.tree.intern(Node {
            parent,
            line: 0,
            ..*node
        }));
    }
    let mut weights = WeightTable::new(profile.schema.len());
    for weight in profile.weights.iter() {
        let node = nodes[weight.key.node.0 as usize];
        let key = WeightKey { node, ..weight.key };
        weights.add(key, weight.values);
    }
    profile.weights = weights.into_weights();
    assert_eq!(profile.check(), Ok(()));
    profile
}

proptest! {
    #[test]
    fn stacks_and_functions_are_the_same_with_and_without_lines(profile in profiles::arbitrary()) {
        let bare = without_lines(profile.clone());
        for format in [Format::Collapsed, Format::Text] {
            prop_assert_eq!(written(&profile, format, false), written(&bare, format, false));
        }
    }

    #[test]
    fn the_table_of_lines_comes_after_the_others(profile in profiles::arbitrary()) {
        let plain = written(&profile, Format::Text, false);
        let with_lines = written(&profile, Format::Text, true);
        let table = with_lines.strip_prefix(&plain).expect("the same up to the table");
        prop_assert!(table.starts_with("\nLines:"));
        let bare = written(&without_lines(profile), Format::Text, true);
        prop_assert!(bare.ends_with("\nLines: none were recorded\n"));
    }
}
