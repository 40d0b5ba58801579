//! Tests of listings by method and by file.

use super::*;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{LabelSetId, State, WeightKey};

const TIME: Column = Column(1);
const MAIN: TestFrame<'_> = ("<main>", "/srv/app.rb", 1, 20);
const WORK: TestFrame<'_> = ("Object#work", "/srv/app.rb", 5, 7);
const SORT: TestFrame<'_> = ("Array#sort", "<C method>", 0, 0);

fn profile() -> Profile {
    let mut profile = Profile::new(test_support::cpu_schema());
    let stacks: [(&[TestFrame<'_>], State, i64); 4] = [
        (&[MAIN, WORK, SORT], State::Running, 10),
        (&[MAIN, WORK], State::Running, 3),
        (&[MAIN, WORK], State::GcMarking, 2),
        (&[MAIN, WORK, WORK], State::Running, 1),
    ];
    for (frames, state, ns) in stacks {
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        profile.weights.push(key, &[1, ns]);
    }
    profile
}

fn lines(listing: &Listing) -> Vec<(u32, i64, i64)> {
    let lines = listing.lines.iter();
    lines
        .map(|(line, values)| (*line, values.self_value, values.total_value))
        .collect()
}

#[test]
fn a_method_has_its_lines() {
    let profile = profile();
    let pattern = NamePattern::new("work", &profile).expect("a pattern");
    let found = Listing::of(&profile, TIME, &Subject::Functions(pattern));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].function.name, "Object#work");
    let (self_value, total_value) = (found[0].self_value, found[0].total_value);
    assert_eq!((found[0].first_line, self_value, total_value), (5, 4, 16));
    assert_eq!(lines(&found[0]), [(7, 4, 16)]);
}

#[test]
fn a_file_has_the_lines_of_all_its_methods() {
    let profile = profile();
    for path in ["app.rb", "./app.rb", "/srv/app.rb"] {
        let found = Listing::of(&profile, TIME, &Subject::File(path.to_string()));
        assert_eq!(found.len(), 1, "{path}");
        assert_eq!(found[0].function.path, "/srv/app.rb");
        assert_eq!(lines(&found[0]), [(7, 4, 16), (20, 0, 16)]);
    }
    for path in ["pp.rb", "", "/app.rb"] {
        let subject = Subject::File(path.to_string());
        assert!(Listing::of(&profile, TIME, &subject).is_empty(), "{path}");
    }
}
