//! Tests of the initializers of Rails in RPV1.

use super::*;
use rperf_model::test_support::TestFrame;

const RUN: TestFrame<'_> = (
    "Rails::Initializable::Initializer#run",
    "/gems/railties-8.0.1/lib/rails/initializable.rb",
    30,
    32,
);

fn block(first_line: u32, line: u32) -> TestFrame<'static> {
    (
        "block in <class:Railtie>",
        "/gems/a-1.0/railtie.rb",
        first_line,
        line,
    )
}

#[test]
fn each_block_that_rails_runs_has_its_nodes_with_its_first_line() {
    let mut profile = Profile::new(wall_schema());
    for stack in [
        &[RUN, block(40, 44)][..],
        &[RUN, block(40, 45), ("A#b", "/app/b.rb", 1, 2)],
        &[RUN, block(60, 61)],
        // Not called by Rails.
        &[block(80, 81)],
    ] {
        let key = WeightKey {
            node: test_support::node(&mut profile, stack),
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
        };
        profile.weights.push(key, &[1, 10, 5]);
    }
    // No row has this one.
    test_support::node(&mut profile, &[RUN, block(90, 91)]);
    let decoded = Decoded::of(&view(&[("", &profile)]), MAX_BYTES);
    let stacks = decoded.stacks();
    let nodes = decoded.column("initializers/node").into_iter();
    let found: Vec<_> = nodes
        .map(|node| stacks[node as usize].last().expect("a frame").1)
        .zip(decoded.column("initializers/line"))
        .collect();
    assert_eq!(found, [(44, 40), (45, 40), (61, 60)]);

    let without = profile_without();
    let decoded = Decoded::of(&view(&[("", &without)]), MAX_BYTES);
    let columns = decoded.header["columns"].as_array().expect("a list");
    let mut names = columns.iter().filter_map(|entry| entry["name"].as_str());
    assert!(!names.any(|name| name.starts_with("initializers/")));
}

fn profile_without() -> Profile {
    profile(&[(&[("main", 1)], State::Running, [1, 10, 5])])
}
