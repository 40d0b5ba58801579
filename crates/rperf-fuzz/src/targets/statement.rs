//! Statements of SQL, whose values nobody is to see.

use rperf_sql::{LONGEST, normalise};

pub fn statements() -> Vec<Vec<u8>> {
    [
        r#"SELECT "a"."b", count(*) FROM "a" WHERE "a"."c" = $1 AND d IN (1, -2.5e3, 0xff) LIMIT 5"#,
        r"INSERT INTO `t_2` (`a`, b) VALUES ('it''s', E'\'', X'ff'), (NULL, $x$ $$ $x$, :name)",
        "SELECT [a b].c #>> '{d}' /* e /* f */ */ FROM g -- h\nWHERE i = \"j\" OR k BETWEEN 1 AND 2",
        "# é\nUPDATE a SET b = N'é', c = ARRAY[1, 2]::int[], d = U&'!0041' UESCAPE '!' WHERE e LIKE ?",
    ]
    .map(|text| text.as_bytes().to_vec())
    .into()
}

/// The input is a statement, and the value of several.
pub fn read_statement(input: &[u8]) {
    fingerprint(input);
    let text = String::from_utf8_lossy(input);
    let escaped = text.replace('\\', "\\\\").replace('\'', "\\'");
    is_one_value(&format!("E'{escaped}'"));
    is_one_value(&format!("'{}'", text.replace('\'', "''")));
    is_one_value(&format!("\"{}\"", text.replace('"', "\"\"")));
    let mut tag = String::from("$x");
    while text.contains(&tag) {
        tag.push('x');
    }
    is_one_value(&format!("{tag}${text}{tag}$"));
}

/// Checks that a literal counts as any value, or that nothing from there on is seen.
fn is_one_value(literal: &str) {
    let found = fingerprint(format!("a = {literal} AND b").as_bytes());
    assert!(
        ["a = ? AND b", "a = …"].contains(&found.as_str()),
        "{found}"
    );
}

fn fingerprint(statement: &[u8]) -> String {
    let mut out = String::new();
    normalise(statement, &mut out);
    assert!(out.len() <= LONGEST);
    out
}
