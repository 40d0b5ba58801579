//! `rperf report --format json`: the answers for programs to read. docs/json.md has the
//! schema, which grows but doesn't change.

use super::pages::Page;
use rperf_model::State;
use rperf_report::{By, Direction, Function, Sort, Top, Totals, Tree, TreeLimits, state_name};
use std::fmt::Write;

/// The least share of a branch of the tree, in percent.
const LEAST_PERCENT: f64 = 0.5;

/// The profile in numbers.
pub fn json(page: &Page<'_>, sort: Sort) -> String {
    let profile = page.profile;
    let (schema, counters) = (&profile.schema, &profile.meta.counters);
    let totals = Totals::of(profile, schema.default_column());
    let value_type = |it: &rperf_model::ValueType| {
        object([("name", string(&it.name)), ("unit", string(&it.unit))])
    };
    let states = State::ALL.map(|state| (state_name(state), totals.state(state).to_string()));
    let number = |number: u64| number.to_string();
    let losses = object([
        ("dropped_samples", number(counters.dropped_samples)),
        ("dropped_ns", number(counters.dropped_ns)),
        ("truncated_samples", number(counters.truncated_samples)),
        ("unlabelled_samples", number(counters.unlabelled_samples)),
    ]);
    let samples = profile.sample_count();
    let samples = samples.map_or("null".to_string(), |samples| samples.to_string());
    object([
        ("version", "1".to_string()),
        ("type", value_type(schema.default_type())),
        ("types", array(schema.types().iter().map(value_type))),
        ("total", page.whole.to_string()),
        ("left", totals.value.to_string()),
        ("samples", samples),
        ("duration_ns", number(profile.meta.duration_ns)),
        ("frequency", profile.meta.frequency.to_string()),
        ("states", object(states)),
        ("losses", losses),
        ("top", top(page, sort)),
        ("tree", tree(page)),
    ]) + "\n"
}

fn top(page: &Page<'_>, sort: Sort) -> String {
    let column = page.profile.schema.default_column();
    let top = Top::of(page.profile, column, &By::Function);
    let rows = top.sorted(sort).into_iter();
    array(rows.take(page.limit.unwrap_or(usize::MAX)).map(|row| {
        let [name, path] = function(&row.function);
        object([
            name,
            path,
            ("self", row.self_value.to_string()),
            ("total", row.total_value.to_string()),
            ("self_samples", row.self_samples.to_string()),
            ("total_samples", row.total_samples.to_string()),
        ])
    }))
}

fn tree(page: &Page<'_>) -> String {
    let limits = TreeLimits {
        least: (page.whole.unsigned_abs() as f64 * LEAST_PERCENT / 100.0).ceil() as u64,
        ..TreeLimits::default()
    };
    let column = page.profile.schema.default_column();
    let tree = Tree::of(page.profile, column, Direction::TopDown, limits);
    array(tree.branches.iter().map(|branch| {
        let [name, path] = function(&tree.functions[branch.function]);
        object([
            name,
            path,
            ("depth", branch.depth.to_string()),
            ("self", branch.self_value.to_string()),
            ("total", branch.total_value.to_string()),
            ("left_out", branch.left_out.to_string()),
        ])
    }))
}

fn function(function: &Function) -> [(&'static str, String); 2] {
    [
        ("name", string(&function.name)),
        ("path", string(&function.path)),
    ]
}

fn array(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}

fn object<const N: usize>(fields: [(&str, String); N]) -> String {
    let fields = fields.map(|(name, value)| format!("{}:{value}", string(name)));
    format!("{{{}}}", fields.join(","))
}

fn string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            // Also what ends a line, or a script, where somebody puts it into one.
            letter if letter.is_control() || matches!(letter, '<' | '\u{2028}' | '\u{2029}') => {
                // Writing to a String doesn't fail.
                let _ = write!(quoted, "\\u{:04x}", letter as u32);
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::screen::Screen;
    use rperf_model::test_profile::TestProfile;

    #[test]
    fn strings_are_quoted() {
        assert_eq!(
            string("a\"b\\c\n</script>"),
            r#""a\"b\\c\u000a\u003c/script>""#
        );
        assert_eq!(string("Größe\u{2028}"), "\"Größe\\u2028\"");
    }

    #[test]
    fn all_answers_are_there() {
        let mut test = TestProfile::cpu()
            .with(&["main", "work"], 1, State::Running, 30)
            .with(&["main"], 1, State::GcMarking, 10);
        test.profile.meta.counters.dropped_samples = 2;
        let page = Page {
            profile: &test.profile,
            whole: 50,
            screen: Screen::default(),
            limit: Some(1),
        };
        let expected = concat!(
            r#"{"version":1,"type":{"name":"cpu","unit":"nanoseconds"},"#,
            r#""types":[{"name":"samples","unit":"count"},{"name":"cpu","unit":"nanoseconds"}],"#,
            r#""total":50,"left":40,"samples":2,"duration_ns":0,"frequency":1000,"#,
            r#""states":{"running":30,"GVL blocked":0,"GVL wait":0,"GC marking":10,"#,
            r#""GC sweeping":0},"losses":{"dropped_samples":2,"dropped_ns":0,"#,
            r#""truncated_samples":0,"unlabelled_samples":0},"#,
            r#""top":[{"name":"work","path":"a.rb","self":30,"total":30,"#,
            r#""self_samples":1,"total_samples":1}],"#,
            r#""tree":[{"name":"main","path":"a.rb","depth":0,"self":0,"total":40,"left_out":0},"#,
            r#"{"name":"work","path":"a.rb","depth":1,"self":30,"total":30,"left_out":0},"#,
            r#"{"name":"[GC marking]","path":"\u003cGC>","depth":1,"self":10,"total":10,"#,
            r#""left_out":0}]}"#,
            "\n"
        );
        assert_eq!(json(&page, Sort::Flat), expected);
    }
}
