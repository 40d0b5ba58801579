//! Tests of tables: with and without a terminal, and at any width.

use super::*;
use proptest::prelude::*;

fn function(name: &str, path: &str) -> Function {
    Function {
        name: name.to_string(),
        path: path.to_string(),
        short_path: path.to_string(),
    }
}

fn on(width: usize) -> Surface<'static> {
    Surface {
        width: Some(width),
        ..Surface::PLAIN
    }
}

#[test]
fn numbers_are_aligned_to_the_right() {
    let mut table = Table::new(["flat", "flat%"].map(Column::new));
    for (name, value, percent) in [("a", "1,000.0 ms", "99.9%"), ("b\n", "2 µs", "0.1%")] {
        let cells = [value, percent].map(String::from).into();
        table.push(Row::of(&function(name, "a.rb"), cells, 0.0));
    }
    assert_eq!(
        table.render(Surface::PLAIN),
        "      flat  flat%\n1,000.0 ms  99.9%  a (a.rb)\n      2 µs   0.1%  b  (a.rb)\n"
    );
}

#[test]
fn columns_of_less_weight_are_hidden_first() {
    let mut table = Table::new([
        Column::new("flat"),
        Column::weighing("sum%", 1),
        Column::weighing("cum", 2),
    ]);
    let cells = ["1,000.0 ms", "99.9%", "1,000.0 ms"].map(String::from);
    let name = "ActiveRecord::Relation#records";
    table.push(Row::of(&function(name, "relation.rb"), cells.into(), 0.0));
    let head = |width| {
        let text = table.render(on(width));
        let lines: Vec<_> = text.lines().map(String::from).collect();
        assert!(
            lines[lines.len() - 1].ends_with(name)
                || lines[lines.len() - 1].contains(&format!("{name} ")),
            "{text}"
        );
        lines[..lines.len() - 1].join("\n")
    };
    assert_eq!(head(61), "      flat   sum%         cum");
    let hidden = "Too narrow for: sum% ('... | less -S' shows all)\n      flat         cum";
    assert_eq!(head(60), hidden);
    assert_eq!(
        head(42),
        "Too narrow for: sum%, cum ('... | less -S'\n  shows all)\n      flat"
    );
}

#[test]
fn a_name_comes_before_its_path() {
    let name = Name {
        name: "Order#total",
        detail: "app/models/shop/order.rb",
        note: "  line 7",
        ..Name::default()
    };
    let fitted = |room| {
        let (name, end) = name.fitted(Some(room));
        name + &end
    };
    let whole = "Order#total (app/models/shop/order.rb)  line 7";
    assert_eq!(fitted(99), whole);
    assert_eq!(fitted(40), "Order#total (app/mode…/order.rb)  line 7");
    assert_eq!(fitted(32), "Order#total (…/order.rb)  line 7");
    assert_eq!(fitted(31), "Order#total …  line 7");
    assert_eq!(fitted(20), "Order#total  line 7");
    let line = Name {
        name: "rouge-4.5.1/lib/rouge/regex_lexer.rb:271",
        detail: "Rouge::RegexLexer#step",
        needs_detail: true,
        note: "",
    };
    let (name, end) = line.fitted(Some(50));
    assert_eq!(
        name + &end,
        "rouge-4.5.1…/regex_lexer.rb:271 (Rouge::R…er#step)"
    );
}

#[test]
fn trees_keep_their_innermost_lines() {
    assert_eq!(narrowed("│  │  ├─ ", 9), "│  │  ├─ ");
    assert_eq!(narrowed("│  │  ├─ ", 8), "⋯ │  ├─ ");
    assert_eq!(narrowed("⋯ │  ├─ ", 7), "⋯ ├─ ");
    assert_eq!(narrowed("│  ├─ ", 0), "⋯ ");
}

#[test]
fn lines_of_words_are_parted_between_them() {
    let text = "Type: wall, 1.0 ms, of which\n  two\n";
    assert_eq!(wrapped(text, 28, "  "), text);
    assert_eq!(
        wrapped(text, 20, "  "),
        "Type: wall, 1.0 ms,\n  of which\n  two\n"
    );
    let path = format!("in {}/file.rb\n", "x".repeat(40));
    assert_eq!(wrapped(&path, 24, ""), "in\nxxxxxxxxxxxx…xxx/file.rb\n");
}

proptest! {
    #[test]
    fn rows_fit_terminals_and_are_whole_elsewhere(
        rows in prop::collection::vec((
            "\\PC{0,40}", "([a-z計]{1,12}/){0,6}[a-z]{1,30}\\.rb", "( {2}[a-z ]{1,40})?", "(│ {2}|├─ ){0,12}", 0..10_u64.pow(9)
        ), 1..5),
        width in 0..160_usize,
        is_text: bool,
        needs_detail: bool,
    ) {
        let mut table = Table::new([
            Column::new("a"), Column::weighing("b", 2), Column::weighing("cc", 1), Column::weighing("dd", 3),
        ]);
        for (name, path, note, prefix, number) in &rows {
            let mut row = Row::of(&function(name, path), vec![number.to_string(); 4], 0.0);
            row.note.clone_from(note);
            row.prefix.clone_from(prefix);
            (row.is_text, row.needs_detail) = (is_text, needs_detail);
            table.push(row);
        }
        for line in table.render(on(width)).lines() {
            // A number with its gap, the least of a tree's lines, and the least of a name.
            let least = 9 + 2 + 2 + LEAST;
            prop_assert!(columns(line) <= width.max(least), "{line:?}");
        }
        let whole = table.render(Surface::PLAIN);
        prop_assert!(!whole.contains("Too narrow"));
        for (name, path, note, ..) in &rows {
            prop_assert!(whole.contains(&*function_name(name)));
            prop_assert!(is_text || whole.contains(path) && whole.contains(note));
        }
    }
}
