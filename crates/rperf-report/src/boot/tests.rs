//! The loading of files, in made-up stacks.

use super::*;
use rperf_model::test_profile::TestProfile;
use rperf_model::test_support::{TestFrame, node};
use rperf_model::{LabelSetId, State, WeightKey};

const MAIN: TestFrame<'_> = ("<main>", "/app/bin/app", 1, 2);
const REQUIRE: TestFrame<'_> = ("Kernel#require", "<C method>", 0, 0);
const RUBYGEMS: TestFrame<'_> = (
    "Kernel#require",
    "/usr/lib/ruby/3.4.0/rubygems/core_ext/kernel_require.rb",
    30,
    136,
);
const RACK: &str = "/gems/rack-3.1.8/lib/rack.rb";

fn file(path: &str, line: u32) -> TestFrame<'_> {
    ("<top (required)>", path, 1, line)
}

fn boot(stacks: &[(&[TestFrame<'_>], i64)]) -> Boot {
    let mut test = TestProfile::wall();
    for (frames, value) in stacks {
        let key = WeightKey {
            node: node(&mut test.profile, frames),
            thread: 1,
            labels: LabelSetId(0),
            state: State::Running,
        };
        test.profile.weights.push(key, &[1, *value, 0]);
    }
    Boot::of(&test.profile, Column(1), Sort::SelfValue)
}

fn text(place: &Place) -> String {
    match place.line {
        0 => place.path.clone(),
        line => format!("{}:{line}", place.path),
    }
}

/// File, own time, load, total, and the line that has loaded it.
fn rows(boot: &Boot) -> Vec<(String, i64, i64, i64, Option<String>)> {
    let row = |it: &LoadedFile| {
        let from = it.from.as_ref().map(text);
        (text(&it.place), it.own, it.load, it.total, from)
    };
    boot.files.iter().map(row).collect()
}

fn row(
    file: &str,
    numbers: [i64; 3],
    from: Option<&str>,
) -> (String, i64, i64, i64, Option<String>) {
    let [own, load, total] = numbers;
    (file.into(), own, load, total, from.map(Into::into))
}

#[test]
fn what_require_takes_is_the_load_of_the_file_that_its_line_leads_to() {
    let boot = boot(&[
        (&[MAIN], 5),
        (&[MAIN, RUBYGEMS, REQUIRE], 20),
        (&[MAIN, RUBYGEMS], 1),
        (&[MAIN, RUBYGEMS, REQUIRE, file(RACK, 3)], 30),
        (
            &[
                MAIN,
                RUBYGEMS,
                REQUIRE,
                file(RACK, 3),
                ("Integer#times", "<C method>", 0, 0),
            ],
            4,
        ),
        (&[MAIN, ("Object#run", "/app/lib/app.rb", 1, 2)], 6),
    ]);
    let expected = [
        row(RACK, [34, 21, 55], Some("/app/bin/app:2")),
        row("/app/bin/app", [11, 0, 66], None),
    ];
    assert_eq!(rows(&boot), expected);
    assert_eq!((boot.total, boot.program), (66, 11));
    let gems: Vec<_> = boot
        .gems
        .iter()
        .map(|it| (&*it.name, it.files, it.own, it.total))
        .collect();
    assert_eq!(
        gems,
        [("rack-3.1.8", 1, 55, 55), ("(application)", 1, 11, 66)]
    );
}

#[test]
fn a_program_may_time_its_require_in_a_block() {
    const TIMED: &str = "/app/lib/timed.rb";
    let wrapper = ("Kernel#require", TIMED, 2, 3);
    let timer = (
        "Benchmark.realtime",
        "/usr/lib/ruby/3.4.0/benchmark.rb",
        1,
        5,
    );
    let block = ("block in Kernel#require", TIMED, 3, 4);
    let wrapped = [MAIN, wrapper, timer, block, RUBYGEMS, REQUIRE];
    let with = |rest: &[TestFrame<'static>]| [&wrapped, rest].concat();
    let [first, second] = ["/app/a.rb", "/app/b.rb"].map(|path| file(path, 1));
    let nested = [&[first], &wrapped[1..], &[second]].concat();
    let boot = boot(&[
        (&wrapped[..3], 1),
        (&with(&[]), 2),
        (&with(&[first]), 30),
        (&with(&nested), 40),
    ]);
    let expected = [
        row("/app/b.rb", [40, 0, 40], Some("/app/a.rb:1")),
        row("/app/a.rb", [30, 3, 73], Some("/app/bin/app:2")),
        row("/app/bin/app", [0, 0, 73], None),
    ];
    assert_eq!(rows(&boot), expected);
}

#[test]
fn a_line_stands_for_files_without_samples_and_for_several() {
    let lists = ("Object#all", "/app/lib/all.rb", 1, 9);
    let [first, second] = [file("/app/a.rb", 1), file("/app/b.rb", 1)];
    let boot = boot(&[
        (&[MAIN, REQUIRE], 7),
        (&[MAIN, lists, REQUIRE], 10),
        (&[MAIN, lists, REQUIRE, first], 2),
        (&[MAIN, lists, REQUIRE, second], 3),
        (&[MAIN, lists, REQUIRE, second, REQUIRE], 1),
    ]);
    let expected = [
        row("/app/lib/all.rb:9", [0, 10, 10], None),
        row("/app/bin/app:2", [0, 7, 7], None),
        row("/app/b.rb", [3, 0, 4], Some("/app/lib/all.rb:9")),
        row("/app/a.rb", [2, 0, 2], Some("/app/lib/all.rb:9")),
        row("/app/b.rb:1", [0, 1, 1], None),
    ];
    let mut found = rows(&boot);
    found.retain(|row| row.0 != "/app/bin/app");
    assert_eq!(found, expected);
    assert_eq!(boot.total, 23);
}

#[test]
fn the_tree_has_each_file_below_the_one_that_loads_it() {
    let [a, b] = [file("/app/a.rb", 4), file("/app/b.rb", 5)];
    let boot = boot(&[
        (&[MAIN, REQUIRE, a], 1),
        (&[MAIN, REQUIRE, a, REQUIRE, b], 8),
        // Loaded again, by itself: counted once in its total.
        (&[MAIN, REQUIRE, a, REQUIRE, b, REQUIRE, b], 2),
        (&[file("/app/preloaded.rb", 1)], 3),
    ]);
    let tree: Vec<_> = boot
        .branches
        .iter()
        .map(|it| (it.depth, text(&it.place), it.own, it.total))
        .collect();
    let expected = [
        (0, "/app/bin/app", 0, 11),
        (1, "/app/a.rb", 1, 11),
        (2, "/app/b.rb", 8, 10),
        (3, "/app/b.rb", 2, 2),
        (0, "/app/preloaded.rb", 3, 3),
    ];
    let expected = expected.map(|(depth, path, own, total)| (depth, path.to_string(), own, total));
    assert_eq!(tree, expected);
    assert_eq!(
        rows(&boot)[0],
        row("/app/b.rb", [10, 0, 10], Some("/app/a.rb:4"))
    );
    assert_eq!(boot.total, 14);
}

#[test]
fn only_what_files_do_as_they_are_loaded_counts() {
    let boot = boot(&[
        (&[("Object#work", "/app/work.rb", 1, 2)], 100),
        (&[], 50),
        (&[("block in <top (required)>", "/app/thread.rb", 1, 2)], 9),
        (&[("<main>", "(eval at /app/x.rb:3)", 1, 1)], 4),
        // By the command line: ruby -rset.
        (&[REQUIRE], 2),
        // In a request: a constant that is loaded when it is needed.
        (
            &[
                ("Object#work", "/app/work.rb", 1, 7),
                REQUIRE,
                file("/app/late.rb", 1),
            ],
            6,
        ),
    ]);
    let expected = [
        row("/app/late.rb", [6, 0, 6], Some("/app/work.rb:7")),
        row("(RUBYOPT)", [0, 2, 2], None),
    ];
    assert_eq!(rows(&boot), expected);
    assert_eq!(boot.total, 8);
}

#[test]
fn initializers_of_rails_are_the_blocks_that_it_runs() {
    let run = (
        RUNS_INITIALIZER,
        "/gems/railties-8.0.1/lib/rails/initializable.rb",
        30,
        32,
    );
    let exec = ("BasicObject#instance_exec", "<C method>", 0, 0);
    let block = (
        "block in <class:Railtie>",
        "/gems/activerecord-8.0.1/lib/active_record/railtie.rb",
        40,
        44,
    );
    let boot = boot(&[
        (&[MAIN, run, exec, block], 5),
        (
            &[
                MAIN,
                run,
                exec,
                block,
                ("Object#connect", "/app/db.rb", 1, 2),
            ],
            6,
        ),
        (&[MAIN, run, exec], 1),
        (&[MAIN], 2),
    ]);
    let found: Vec<_> = boot
        .initializers
        .iter()
        .map(|it| (&*it.name, text(&it.place), it.total))
        .collect();
    let place = "/gems/activerecord-8.0.1/lib/active_record/railtie.rb:40".to_string();
    assert_eq!(found, [("block in <class:Railtie>", place, 11)]);
}

#[test]
fn the_line_with_the_most_has_loaded_a_file() {
    let at = |line| ("<main>", "/app/bin/app", 1, line);
    let load = ("Kernel#load", "<C method>", 0, 0);
    let slow = file("/app/slow.rb", 1);
    let boot = boot(&[(&[at(3), load, slow], 10), (&[at(5), load, slow], 200)]);
    let expected = row("/app/slow.rb", [210, 0, 210], Some("/app/bin/app:5"));
    assert_eq!(rows(&boot)[0], expected);
}

#[test]
fn what_others_put_before_require_is_part_of_it() {
    let bundler = (
        "block (2 levels) in Gem::BUNDLED_GEMS.replace_require",
        "/usr/lib/ruby/3.4.0/bundled_gems.rb",
        60,
        82,
    );
    let original = ("Kernel.require", "<C method>", 0, 0);
    let in_block = ("block in Kernel#require", RUBYGEMS.1, 40, 50);
    let boot = boot(&[
        (&[MAIN, bundler, original], 20),
        (&[MAIN, bundler, original, file(RACK, 3)], 30),
        (&[MAIN, RUBYGEMS, in_block, REQUIRE, file(RACK, 3)], 4),
        (&[("<main>", "/app/bin/app", 1, 7), bundler, original], 5),
    ]);
    let expected = [
        row(RACK, [34, 20, 54], Some("/app/bin/app:2")),
        row("/app/bin/app:7", [0, 5, 5], None),
    ];
    let mut found = rows(&boot);
    found.retain(|row| row.0 != "/app/bin/app");
    assert_eq!(found, expected);
}

#[test]
fn what_a_loader_loads_for_itself_is_not_what_its_line_leads_to() {
    let decorator = ("Kernel#require", "/app/decorator.rb", 5, 8);
    let helps = ("Decorator.prepare", "/app/decorator.rb", 20, 21);
    let boot = boot(&[
        (&[MAIN, decorator, REQUIRE], 100),
        (&[MAIN, decorator, REQUIRE, file("/app/big.rb", 1)], 7),
        (&[MAIN, decorator, helps, REQUIRE], 2),
        (
            &[MAIN, decorator, helps, REQUIRE, file("/app/helper.rb", 1)],
            1,
        ),
    ]);
    let expected = [
        row("/app/big.rb", [7, 100, 107], Some("/app/bin/app:2")),
        row("/app/helper.rb", [1, 2, 3], Some("/app/decorator.rb:21")),
    ];
    let mut found = rows(&boot);
    found.retain(|row| row.0 != "/app/bin/app");
    assert_eq!(found, expected);
}

#[test]
fn a_file_without_a_loader_in_its_stack_comes_from_the_line_that_calls_it() {
    let boot = boot(&[(&[MAIN, file("/app/a.rb", 1)], 3)]);
    assert_eq!(
        rows(&boot)[0],
        row("/app/a.rb", [3, 0, 3], Some("/app/bin/app:2"))
    );
}
