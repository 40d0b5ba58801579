//! Fingerprints of statements.

mod double_quotes;
mod random;

use super::*;

fn fingerprint(statement: impl AsRef<[u8]>) -> String {
    let mut out = "what was there".to_string();
    normalise(statement.as_ref(), &mut out);
    out
}

/// Checks the fingerprint of each statement.
fn check(cases: &[(&str, &str)]) {
    for (statement, expected) in cases {
        assert_eq!(fingerprint(statement), *expected, "{statement}");
    }
}

#[test]
fn literals_are_question_marks() {
    check(&[
        ("SELECT 'a'", "SELECT ?"),
        ("SELECT 'it''s'", "SELECT ?"),
        ("SELECT ''''", "SELECT ?"),
        ("SELECT ''", "SELECT ?"),
        ("SELECT 'a\nb'", "SELECT ?"),
        (r"SELECT E'it\'s', 1", "SELECT ?, ?"),
        (r"SELECT e'\\', 1", "SELECT ?, ?"),
        (
            "SELECT N'a', n'a', B'01', X'ff', x'ff'",
            "SELECT ?, ?, ?, ?, ?",
        ),
        (r"SELECT U&'d\0061t' UESCAPE '!'", "SELECT ? UESCAPE ?"),
        ("SELECT $$it's$$, $a$ $$ $b$ $a$", "SELECT ?, ?"),
        ("SELECT $é$it's$é$ x", "SELECT ? x"),
        ("SELECT DATE '2020-01-01'", "SELECT DATE ?"),
        ("SELECT _utf8mb4'é'", "SELECT _utf8mb4?"),
        ("a LIKE'x%'", "a LIKE?"),
        ("data->>'key'", "data->>?"),
        ("data #>> '{a,b}' = 'x'", "data #>> ? = ?"),
        ("data #- '{a}'", "data #- ?"),
        ("'2'::int", "?::int"),
    ]);
}

#[test]
fn numbers_and_placeholders_are_question_marks() {
    check(&[
        ("1, 1.5, .5, 1., 1e5", "?, ?, ?, ?, ?"),
        ("1E-5 + 1e+5 0xFF 0b01 1_000", "? + ? ? ? ?"),
        ("a = -1 AND b >-1.5 OR c=+2", "a = ? AND b >? OR c=?"),
        ("a - 1, a -1, a-1", "a - ?, a -?, a-?"),
        ("5 - -3, a+-+3, (+-2)", "? - ?, a+?, (?)"),
        ("$1, $23, $1.50", "?, ?, ?"),
        ("?, ?1", "?, ?"),
        (
            ":name, :1, a::int, b := 2, a[1:2]",
            "?, ?, a::int, b := ?, a[??]",
        ),
        ("@p1, @@version, a @> b", "?, @@version, a @> b"),
        ("@'a' $name $ 1", "@? ? $ ?"),
        ("table_2.c3 = t4.v$5", "table_2.c3 = t4.v$5"),
        ("12ab34 é1 1é", "? é1 ?"),
        ("t.5", "t.?"),
        ("x = 0x1e-5", "x = ?-?"),
    ]);
}

#[test]
fn comments_and_white_space_are_gone() {
    check(&[
        ("  SELECT\n\t a -- it's\r\n FROM b  ", "SELECT a FROM b"),
        ("SELECT a # don't\nFROM b", "SELECT a …"),
        ("SELECT a # do\nFROM b", "SELECT a FROM b"),
        ("SELECT a--\nFROM b", "SELECT a FROM b"),
        ("SELECT a --x\nFROM b", "SELECT a FROM b"),
        ("SELECT/* it's */a", "SELECT a"),
        ("/*a='1',b='2'*/ SELECT 1 /* /* b */ c */", "SELECT ?"),
        ("SELECT /*+ hint */ /*!40001 CACHE */ a", "SELECT a"),
        ("/* only */ -- that", ""),
        ("", ""),
        ("f( 1 , a )", "f(?, a)"),
        ("a , b,c", "a, b, c"),
        ("a;  b", "a; b"),
    ]);
}

#[test]
fn lists_and_rows_are_one() {
    check(&[
        ("a IN (1,2, 3)", "a IN (?)"),
        ("a IN (?)", "a IN (?)"),
        ("a IN ('x', $1, -3, NULL, true)", "a IN (?)"),
        ("VALUES (1, 'a'), (2, 'b'),(3,NULL)", "VALUES (?)"),
        (
            "VALUES (1, now()), (2, now()) RETURNING a",
            "VALUES (?, now()) RETURNING a",
        ),
        ("(a, b) IN ((1, 2), (3, 4))", "(a, b) IN ((?))"),
        ("f(?, ?, a, ?, ?)", "f(?, a, ?)"),
        ("f(a, ?, b)", "f(a, ?, b)"),
        ("(1 + 2, 3)", "(? + ?, ?)"),
        ("ARRAY[1, 2] || ARRAY['a]''s', 'b']", "ARRAY[?] || ARRAY[?]"),
        ("a IN (1,2 ,3, 4,b, 5)", "a IN (?, b, ?)"),
        ("a IN (b + 1, 2, 3, c)", "a IN (b + ?, ?, c)"),
        ("a IN (?, $2, ?3, $, 4)", "a IN (?, $, ?)"),
        ("LIMIT 1, 2", "LIMIT ?, ?"),
        ("a IS NOT NULL AND b = TRUE", "a IS NOT NULL AND b = TRUE"),
        ("(a, null_count)", "(a, null_count)"),
        ("(SELECT 1), (SELECT 1)", "(SELECT ?)"),
        (")], (", ")], ("),
    ]);
    let ids: Vec<_> = (0..5_000).map(|it| it.to_string()).collect();
    let list = format!("SELECT a FROM b WHERE id IN ({}) LIMIT 3", ids.join(","));
    assert_eq!(fingerprint(list), "SELECT a FROM b WHERE id IN (?) LIMIT ?");
    let rows = vec!["(1, 'a', now())"; 2_000].join(", ");
    let expected = "INSERT INTO a VALUES (?, now())";
    assert_eq!(
        fingerprint(format!("INSERT INTO a VALUES {rows}")),
        expected
    );
}

#[test]
fn names_in_backticks_and_brackets_stay() {
    check(&[
        ("SELECT `a`.`b c` FROM `t_2`", "SELECT `a`.`b c` FROM `t_2`"),
        ("SELECT `it's`, `a``b`", "SELECT ?, ?"),
        (
            "SELECT [a].[Order Details] FROM [dbo].[t_2]",
            "SELECT [a].[Order Details] FROM [dbo].[t_2]",
        ),
        ("SELECT [it's] FROM a WHERE b = 'c'", "SELECT …"),
        ("SELECT [a]]b'c] FROM a", "SELECT …"),
        ("a[1], ('{1}'::int[])[2]", "a[?], (?::int[])[?]"),
    ]);
}

#[test]
fn what_cannot_be_read_is_cut() {
    check(&[
        ("a = 'open", "a = …"),
        ("a = \"open", "a = …"),
        ("a = `open", "a = …"),
        ("a = $$open$", "a = …"),
        ("a = E'open\\'", "a = …"),
        ("a /* open /* */", "a …"),
        ("a = 1 \0 b", "a = ? …"),
        ("a = 'x\0y' b", "a = …"),
        ("a \\ b", "a …"),
        ("a ‘b’ c", "a …"),
        ("a\u{a0}b c", "…"),
        // MySQL's string ends elsewhere than PostgreSQL's.
        (r"a = 'C:\' AND b = 'c'", "a = …"),
        (r"a = 'it\'s' AND b = c", "a = …"),
        (r"a = 'C:\\' AND b = 'c'", "a = ? AND b = ?"),
        (r"a = 'C:\n' AND b = 'c'", "a = ? AND b = ?"),
        ("a = q'[it's]'", "a = …"),
        ("a = nq'[it's]'", "a = …"),
        ("5--'x\n y'", "?…"),
        ("a -- b\rc = 'd\ne'", "a …"),
        ("/* a /* b */ c = 'd */ e'", "…"),
        ("/*! a = 'b */ c' */", "…"),
        ("CREATE USER a IDENTIFIED BY b", "CREATE USER a …"),
    ]);
    assert_eq!(fingerprint(b"a = 'x\xff' AND b"), "a = …");
    assert_eq!(fingerprint(b"a = b\xff AND c"), "a = …");
    assert_eq!(fingerprint(b"a = 1\xff AND c"), "a = …");
    // In Shift JIS, the second byte of this character is a backslash.
    assert_eq!(fingerprint(b"a = '\x95\\' AND b = 'c'"), "a = …");
    let nested = "(".repeat(100) + "'a'";
    assert_eq!(fingerprint(nested), "(".repeat(32) + "…");
}

#[test]
fn what_is_too_long_is_cut() {
    let words = "é ".repeat(400);
    let found = fingerprint(&words);
    assert!((LONGEST - 3..=LONGEST).contains(&found.len()), "{found}");
    assert!(found.ends_with(" …") || found.ends_with("é…"), "{found}");
    let exact = "a".repeat(LONGEST);
    assert_eq!(fingerprint(&exact), exact);
    let longer = "a".repeat(LONGEST + 1);
    assert_eq!(fingerprint(longer), "a".repeat(LONGEST - 3) + "…");
    let late = format!("a {} b", " ".repeat(READ));
    assert_eq!(fingerprint(late), "a …");
    let late = format!("a = '{}' AND b", "x".repeat(READ));
    assert_eq!(fingerprint(late), "a = …");
}

#[test]
fn nothing_takes_long() {
    let began = std::time::Instant::now();
    for piece in [
        "(", ")", "[", "()", "(),", "[a],", "/*", "--", "#", "$", "$a", "$a$", "'", "'\\", "\\",
        "\"a\"", "`", ".", "1e", "@", ":", "?,", "(?,", "NULL,", "é", "a ", ",",
    ] {
        let found = fingerprint(piece.repeat((1 << 20) / piece.len()));
        assert!(found.len() <= LONGEST, "{piece}");
    }
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}
