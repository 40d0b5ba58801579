//! Statements made by chance, with a value of each kind that must not be seen.

use super::{LONGEST, fingerprint};
use proptest::prelude::*;
use proptest::sample::select;

/// Where it is read by which rules.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dialect {
    Postgres,
    MySql,
}

/// Pieces of values, each of which means something to some reader.
const PIECES: [&str; 22] = [
    "sekret", "'", "''", "\"", "`", "\\", "\\\\", "--", "-- ", "/*", "*/", "#", "$", "$$", "$a$",
    "(", "]", ";", "\n", "é", "1", "…",
];

const SIGNS: [&str; 24] = [
    "(", ")", ",", "=", "<", ">", "+", "-", "*", "/", "||", "::", "[", "]", ".", "?", ";", ":",
    "@", "%", "->>", "#>>", "#-", "&",
];

const WORDS: [&str; 30] = [
    "SELECT",
    "FROM",
    "where",
    "AND",
    "BETWEEN",
    "INSERT INTO",
    "VALUES",
    "SET",
    "NULL",
    "IN",
    "LIKE",
    "AS",
    "users",
    "t_2",
    "a$b",
    "E",
    "N",
    "q",
    "U&",
    "é",
    "\"a\".\"b\"",
    "\"users\"",
    "`a`",
    "[a]",
    "ARRAY",
    "now()",
    "UPDATE",
    "ON",
    "CONFLICT",
    "DISTINCT",
];

const NUMBERS: [&str; 9] = [
    "31337", "0x31337", "1.31337", ".31337", "31337e5", "1e-31337", "-31337", "1_31337", "$31337",
];

fn value() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(select(&PIECES[..]), 0..5);
    pieces.prop_map(|it| format!("{}sekret", it.concat()))
}

/// `value` with each `of` doubled, and backslashes as they are.
fn doubled(value: &str, of: char) -> String {
    value.replace(of, &format!("{of}{of}"))
}

/// `value` with escapes.
fn escaped(value: &str, of: char) -> String {
    let value = value.replace('\\', "\\\\");
    value.replace(of, &format!("\\{of}"))
}

/// Tokens whose inside is not to be seen.
fn hidden(dialect: Dialect) -> BoxedStrategy<String> {
    let of = move |(kind, value): (usize, String)| match (kind, dialect) {
        (0, Dialect::Postgres) => format!("'{}'", doubled(&value, '\'')),
        (0, Dialect::MySql) => {
            let value = value.replace('\\', "\\\\");
            format!("'{}'", doubled(&value, '\''))
        }
        (1, Dialect::Postgres) => format!("E'{}'", escaped(&value, '\'')),
        (1, Dialect::MySql) => format!("'{}'", escaped(&value, '\'')),
        (2, Dialect::Postgres) => format!("$x${value}$x$"),
        (2, Dialect::MySql) => format!("a = \"{}\"", escaped(&value, '"')),
        (3, _) => format!("N'{}'", value.replace(['\'', '\\'], "")),
        (4, Dialect::Postgres) => format!("-- {value}").replace('\n', " ") + "\n",
        (4, Dialect::MySql) => format!("# {value}").replace('\n', " ") + "\n",
        (5, Dialect::Postgres) => format!("--{value}").replace('\n', " ") + "\n",
        (5, Dialect::MySql) => format!("-- {value}").replace('\n', " ") + "\n",
        (6, Dialect::Postgres) => {
            format!("/* {0} /* {0} */ {0} */", value.replace(['*', '/'], ""))
        }
        (6, Dialect::MySql) => format!("/* {} */", value.replace("*/", "")),
        (7, Dialect::Postgres) => format!("U&'{}'", doubled(&value, '\'')),
        (7, Dialect::MySql) => format!("1--'{}'", escaped(&value, '\'')),
        // A string for MySQL and SQLite, or a name: such as no one reads for another one.
        (8, _) => "a = \"sekret\"".into(),
        (9, _) => "a LIKE \"sekret\"".into(),
        (10, _) => "a IN (\"sekret\", \"sekret\")".into(),
        (11, _) => "a = f(\"sekret\", a, \"sekret\")".into(),
        (12, _) => ":sekret".into(),
        (13, _) => "@sekret".into(),
        _ => "'sekret'".into(),
    };
    (0_usize..15, value()).prop_map(of).boxed()
}

fn token(dialect: Dialect) -> BoxedStrategy<String> {
    let kept = |texts: &'static [&'static str]| select(texts).prop_map(str::to_string);
    // What makes another token of the next one.
    let signs = kept(&SIGNS).prop_map(move |it| match (dialect, it.as_str()) {
        (Dialect::MySql, "#>>" | "#-") => "=".into(),
        _ => it,
    });
    prop_oneof![
        4 => hidden(dialect),
        3 => kept(&WORDS),
        3 => signs,
        1 => kept(&NUMBERS),
    ]
    .boxed()
}

fn statement() -> impl Strategy<Value = String> {
    let gaps = select(&[" ", "\n", "  ", "/**/"][..]);
    let dialects = select(&[Dialect::Postgres, Dialect::MySql][..]);
    dialects.prop_flat_map(move |it| {
        let tokens = prop::collection::vec((token(it), gaps.clone()), 1..14);
        tokens.prop_map(|all| {
            let texts = all.into_iter().map(|(token, gap)| token + gap);
            texts.collect::<String>()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100_000))]

    #[test]
    fn no_value_is_seen(statement in statement()) {
        let found = fingerprint(&statement);
        prop_assert!(!found.contains("sekret") && !found.contains("31337"), "{found}");
        prop_assert!(found.len() <= LONGEST);
        if !found.ends_with('…') {
            prop_assert_eq!(fingerprint(&found), found);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn bytes_of_any_kind_have_a_fingerprint(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(fingerprint(bytes).len() <= LONGEST);
    }

    /// Every literal, however it is written, is one `?`, and what follows is read as it is meant.
    #[test]
    fn what_follows_a_literal_is_as_it_was(value in value(), kind in 0..3) {
        let literal = match kind {
            0 => format!("E'{}'", escaped(&value, '\'')),
            1 => format!("$x${value}$x$"),
            _ => format!("'{}'", doubled(&value.replace('\\', "/"), '\'')),
        };
        let found = fingerprint(format!("SELECT a FROM b WHERE c = {literal} AND d IS NULL"));
        prop_assert_eq!(found, "SELECT a FROM b WHERE c = ? AND d IS NULL");
    }
}
