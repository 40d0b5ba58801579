//! Golden tests of the pages: what a profile looks like in each of them.

use super::*;
use rperf_model::test_support::{self, TestFrame};
use rperf_model::{LabelSetId, State, Thread, WeightKey, WeightTable};
use rperf_report::{Direction, Listing, NamePattern, Subject};

const MAIN: TestFrame<'_> = ("<main>", "app.rb", 1, 9);
const WORK: TestFrame<'_> = ("Object#work", "app.rb", 2, 3);
const DEEP: TestFrame<'_> = ("Object#work", "app.rb", 2, 4);
const SORT: TestFrame<'_> = ("Array#sort", "<C method>", 0, 0);
const IDLE: TestFrame<'_> = ("Object#\u{1b}[31midle", "lib/idle.rb", 1, 2);

fn profile() -> Profile {
    let mut profile = Profile::new(test_support::wall_schema());
    let mut table = WeightTable::new(3);
    let stacks: [(&[TestFrame<'_>], State, i64); 5] = [
        (&[MAIN, WORK, SORT], State::Running, 400),
        (&[MAIN, WORK], State::Running, 100),
        (&[MAIN, WORK, DEEP], State::Running, 50),
        (&[MAIN, IDLE], State::GvlBlocked, 449),
        (&[MAIN, IDLE], State::Running, 1),
    ];
    for (frames, state, ms) in stacks {
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread: 1,
            labels: LabelSetId(0),
            state,
        };
        table.add(key, &[ms, ms * 1_000_000, ms * 500_000]);
    }
    profile.weights = table.into_weights();
    let name = profile.strings.intern("");
    profile.threads.push(Thread { seq: 1, name });
    profile.meta.duration_ns = 1_000_000_000;
    profile.meta.counters.dropped_samples = 2;
    profile
}

fn page(profile: &Profile, limit: Option<usize>) -> Page<'_> {
    Page {
        counts: None,
        profile,
        before: profile.sum(profile.schema.default_column()),
        whole: profile.sum(profile.schema.default_column()),
        idle: IdleTime::LeftOut(0),
        screen: Screen::default(),
        limit,
    }
}

const HEAD: &str = "\
Type: wall, 1,000.0 ms, 1,000 samples, duration 1.000 s
Lost: 2 samples dropped (0.0 ms)
";

#[test]
fn top_has_what_pprof_shows() {
    let profile = profile();
    let expected = "\
Showing 4 of 5 methods: 1,000.0 ms (100.0%)

    self  self%    sum%     total  total%
449.0 ms  44.9%   44.9%  449.0 ms   44.9%  [GVL blocked] (<GVL>)
400.0 ms  40.0%   84.9%  400.0 ms   40.0%  Array#sort (<C method>)
150.0 ms  15.0%   99.9%  550.0 ms   55.0%  Object#work (app.rb)
  1.0 ms   0.1%  100.0%  450.0 ms   45.0%  Object# [31midle (lib/idle.rb)
";
    let shown = top(&page(&profile, Some(4)), &By::Function, Sort::SelfValue);
    assert_eq!(shown, format!("{HEAD}{expected}"));
    let by_cum = top(&page(&profile, Some(1)), &By::File, Sort::TotalValue);
    let row = "\n150.0 ms  15.0%  15.0%  1,000.0 ms  100.0%  app.rb\n";
    assert!(by_cum.ends_with(row), "{by_cum}");
}

#[test]
fn a_tree_indents_only_where_it_forks() {
    let profile = profile();
    let options = TreeOptions {
        direction: Direction::TopDown,
        least_percent: 1.0,
    };
    let expected = "\
Call tree with callees below, branches of at least 1%

     total  total%      self  self%
1,000.0 ms  100.0%    0.0 ms   0.0%  <main> (app.rb)
  550.0 ms   55.0%  100.0 ms  10.0%  ├─ Object#work (app.rb)
  400.0 ms   40.0%  400.0 ms  40.0%  │  ├─ Array#sort (<C method>)
   50.0 ms    5.0%   50.0 ms   5.0%  │  └─ Object#work (app.rb)
  450.0 ms   45.0%    1.0 ms   0.1%  └─ Object# [31midle (lib/idle.rb)
  449.0 ms   44.9%  449.0 ms  44.9%     [GVL blocked] (<GVL>)
";
    assert_eq!(
        tree(&page(&profile, None), options),
        format!("{HEAD}{expected}")
    );
    let options = TreeOptions {
        direction: Direction::BottomUp,
        least_percent: 10.0,
    };
    let expected = "\
Call tree with callers below, branches of at least 10%

    self  self%
449.0 ms  44.9%  [GVL blocked] (<GVL>)
449.0 ms  44.9%  Object# [31midle (lib/idle.rb)
449.0 ms  44.9%  <main> (app.rb)
400.0 ms  40.0%  Array#sort (<C method>)
400.0 ms  40.0%  Object#work (app.rb)
400.0 ms  40.0%  <main> (app.rb)
150.0 ms  15.0%  Object#work (app.rb)  [+1 smaller]
100.0 ms  10.0%  <main> (app.rb)
[+1 smaller]
";
    let shown = tree(&page(&profile, None), options);
    assert_eq!(shown, format!("{HEAD}{expected}"));
}

#[test]
fn callers_have_their_lines() {
    let profile = profile();
    let pattern = NamePattern::new("Object#work", &profile).expect("a name");
    let found = Neighbours::of(&profile, profile.schema.default_column(), &pattern);
    let expected = "
Object#work (app.rb): 550.0 ms (55.0%), self 150.0 ms (15.0%)
  called by
    550.0 ms  55.0%  <main> (app.rb)  line 9
     50.0 ms   5.0%  Object#work (app.rb)  line 3
  calls
    400.0 ms  40.0%  Array#sort (<C method>)  line 3
     50.0 ms   5.0%  Object#work (app.rb)  line 3
";
    let shown = callers(&page(&profile, None), &found);
    assert_eq!(shown, format!("{HEAD}{expected}"));
}

#[test]
fn source_has_what_each_line_costs() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("app.rb");
    let source = "# a comment\ndef work(list)\n\twork(list.sort)\n  1 + 1\nend\n\nother\n";
    std::fs::write(&path, source).expect("a file");
    let path = path.display().to_string();
    let mut profile = Profile::new(test_support::cpu_schema());
    let frames = [("Object#work", path.as_str(), 2, 3), SORT];
    for (frames, ms) in [(&frames[..1], 30), (&frames[..], 70)] {
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread: 0,
            labels: LabelSetId(0),
            state: State::Running,
        };
        profile.weights.push(key, &[ms, ms * 1_000_000]);
    }
    let pattern = NamePattern::new("work", &profile).expect("a pattern");
    let column = profile.schema.default_column();
    let found = Listing::of(&profile, column, &Subject::Functions(pattern));
    let expected = "
   self     total
                   2  def work(list)
30.0 ms  100.0 ms  3      work(list.sort)
                   4    1 + 1
                   5  end
";
    let shown = annotate(&page(&profile, None), &found);
    assert!(shown.ends_with(&expected[1..]), "{shown}");
    std::fs::remove_file(&path).expect("removed");
    let expected = "
   self     total
30.0 ms  100.0 ms  3
";
    let shown = annotate(&page(&profile, None), &found);
    assert!(shown.ends_with(&expected[1..]), "{shown}");
    assert!(shown.contains("  no source: "), "{shown}");
}

#[test]
fn callers_add_up_to_the_total() {
    let neighbour = |name: &str, value| Neighbour {
        function: Function::named(name),
        value,
        lines: Vec::new(),
    };
    let callers = |callers: &[Neighbour]| {
        let found = with_rest(&Neighbours {
            function: Function::named("work"),
            self_value: 10,
            total_value: 10,
            callers: callers.to_vec(),
            callees: Vec::new(),
        });
        let rows = found.into_iter().map(|it| (it.function.name, it.value));
        rows.collect::<Vec<_>>()
    };
    let rest = |value| ("(no caller)".to_string(), value);
    assert_eq!(callers(&[neighbour("a", 7)])[1..], [rest(3)]);
    assert_eq!(callers(&[neighbour("a", 10)]).len(), 1);
    // What calls itself has more, or less, in its callers.
    assert_eq!(callers(&[neighbour("work", 4)]).len(), 1);
}

#[test]
fn the_loading_of_files_is_told_by_file_and_gem_and_as_a_tree() {
    const REQUIRE: TestFrame<'_> = ("Kernel#require", "<C method>", 0, 0);
    const RACK: TestFrame<'_> = ("<top (required)>", "/gems/rack-3.1.8/lib/rack.rb", 1, 4);
    let mut profile = profile();
    let mut table = WeightTable::new(3);
    let stacks: [(&[TestFrame<'_>], i64); 4] = [
        (&[MAIN], 2),
        (&[MAIN, REQUIRE], 30),
        (&[MAIN, REQUIRE, RACK], 40),
        (&[MAIN, REQUIRE, RACK, REQUIRE], 28),
    ];
    for (frames, ms) in stacks {
        let key = WeightKey {
            node: test_support::node(&mut profile, frames),
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
        };
        table.add(key, &[ms, ms * 1_000_000, 0]);
    }
    profile.weights = table.into_weights();
    let shown = boot(&page(&profile, Some(2)), Sort::SelfValue);
    let (_, tables) = shown.split_once("Loading ").expect("a line about all");
    let (_, tables) = tables.split_once("are left out.\n").expect("the columns");
    let expected = "
    own     load    total  total%  file
40.0 ms  30.0 ms  98.0 ms   98.0%  rack-3.1.8/lib/rack.rb (from app.rb:9)
 0.0 ms  28.0 ms  28.0 ms   28.0%  rack-3.1.8/lib/rack.rb:4
(1 more; -n shows more)

By gem (self: own and load of its files)
   self     total  files  gem
98.0 ms   98.0 ms      1  rack-3.1.8
 2.0 ms  100.0 ms      1  (application)

Which file loads which, from 1% on
   total     self
100.0 ms   2.0 ms  app.rb
 98.0 ms  70.0 ms  rack-3.1.8/lib/rack.rb
 28.0 ms  28.0 ms  rack-3.1.8/lib/rack.rb:4
";
    assert_eq!(tables, expected);
}
