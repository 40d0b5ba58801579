//! Names and strings in double quotes.

use super::{check, fingerprint};

#[test]
fn names_that_a_dot_joins_stay() {
    check(&[
        (
            "SELECT \"users\".* FROM \"users\" WHERE \"users\".\"id\" = $1 LIMIT $2",
            "SELECT \"users\".* FROM \"users\" WHERE \"users\".\"id\" = ? LIMIT ?",
        ),
        (
            "\"users\".\"id\" = \"orders\".\"user_id\"",
            "\"users\".\"id\" = \"orders\".\"user_id\"",
        ),
        ("u.\"id\" = \"u\".id", "u.\"id\" = \"u\".id"),
        ("x = \"a b\".\"c\"", "x = ?.?"),
    ]);
}

#[test]
fn names_where_only_names_can_stand_stay() {
    check(&[
        (
            "INSERT INTO \"a\" (\"b\", \"c\") VALUES ($1, $2) RETURNING \"id\"",
            "INSERT INTO \"a\" (\"b\", \"c\") VALUES (?) RETURNING \"id\"",
        ),
        (
            "INSERT INTO a (\"b\") VALUES (1) ON CONFLICT (\"b\") DO UPDATE SET \"b\"=excluded.\"b\",\"c\"=2",
            "INSERT INTO a (\"b\") VALUES (?) ON CONFLICT (\"b\") DO UPDATE SET \"b\"=excluded.\"b\", \"c\"=?",
        ),
        (
            "UPDATE \"a\" SET \"b\" = $1, \"c\" = \"d\" WHERE \"a\".\"id\" = 1",
            "UPDATE \"a\" SET \"b\" = ?, \"c\" = ? WHERE \"a\".\"id\" = ?",
        ),
        (
            "SELECT 1 AS \"one\" FROM \"a\" \"b\" JOIN \"c\" ON \"b\".x = \"c\".x",
            "SELECT ? AS \"one\" FROM \"a\" \"b\" JOIN \"c\" ON \"b\".x = \"c\".x",
        ),
        ("SELECT 1 AS \"of all\"", "SELECT ? AS ?"),
    ]);
}

#[test]
fn operands_stay_if_the_statement_is_none_of_mysql() {
    check(&[
        (
            "SELECT \"id\" FROM \"a\" WHERE (\"b\" = 'x') AND \"c\" IS NULL ORDER BY \"d\"",
            "SELECT \"id\" FROM \"a\" WHERE (\"b\" = ?) AND \"c\" IS NULL ORDER BY \"d\"",
        ),
        (
            "SELECT \"id\" FROM a WHERE (\"b\" = 'x') AND \"c\" IS NULL ORDER BY \"d\"",
            "SELECT ? FROM a WHERE (? = ?) AND ? IS NULL ORDER BY ?",
        ),
        (
            "SELECT \"id\" FROM `a` WHERE \"a\".b = 1",
            "SELECT ? FROM `a` WHERE \"a\".b = ?",
        ),
    ]);
}

/// A value in double quotes, which MySQL and SQLite take for a string there.
#[test]
fn values_are_question_marks() {
    for statement in [
        "SELECT * FROM users WHERE name = \"sekret\"",
        "SELECT \"users\".* FROM \"users\" WHERE (name = \"sekret\")",
        "SELECT \"users\".* FROM \"users\" WHERE (name=\"sekret\" OR a <> \"sekret\")",
        "SELECT * FROM users WHERE name LIKE \"sekret\"",
        "SELECT * FROM \"users\" WHERE name IS NOT \"sekret\"",
        "SELECT * FROM \"users\" WHERE name IS DISTINCT FROM \"sekret\"",
        "SELECT * FROM users WHERE name IN (\"sekret\", \"sekret\")",
        "SELECT * FROM \"users\" WHERE \"users\".name BETWEEN \"sekret\" AND \"sekret\" AND a = 1",
        "SELECT * FROM \"users\" WHERE a BETWEEN (b BETWEEN 1 AND 2) AND \"sekret\"",
        "SELECT concat(\"sekret\", name, \"sekret\") FROM \"users\"",
        "SELECT trim(\"sekret\" FROM \"sekret\"), \"sekret\" FROM \"users\"",
        "SELECT \"sekret\" AS a",
        "SELECT \"sekret\", \"sekret\" FROM users WHERE \"sekret\" = name AND \"sekret\" LIKE name",
        "SELECT `a`, (\"sekret\") FROM `a` HAVING \"sekret\" < b",
        "SELECT CASE a WHEN \"sekret\" THEN \"sekret\" ELSE \"sekret\" END FROM \"a\"",
        "INSERT INTO users VALUES (\"sekret\", \"sekret\")",
        "INSERT INTO \"users\" (\"name\") VALUES (\"sekret\")",
        "INSERT INTO users VALUE (\"sekret\")",
        "INSERT INTO users (SELECT \"sekret\", \"sekret\")",
        "INSERT INTO users SET a = \"sekret\", b = \"sekret\"",
        "UPDATE users SET a = \"sekret\", b = concat(\"sekret\", \"sekret\") ORDER BY a, \"sekret\"",
        "INSERT INTO a (b) VALUES (1) ON DUPLICATE KEY UPDATE b = \"sekret\"",
        "SET PASSWORD = \"sekret\"",
        "SET @a = \"sekret\"",
        "LOAD DATA INFILE \"sekret\" INTO TABLE a",
        "SELECT a FROM b WHERE c = 'x' \"sekret\"",
        "SELECT a FROM b WHERE c = 1.\"sekret\"",
        "SELECT a FROM b WHERE c = @\"sekret\"",
        "SELECT \"a\".b FROM c; SELECT a FROM b WHERE x = \"sekret\"",
        r#"SELECT a FROM b WHERE c = "a\" OR "sekret" = d"#,
        r#"SELECT a FROM b WHERE c = "a""sekret" AND d"#,
    ] {
        let found = fingerprint(statement);
        assert!(!found.contains("sekret"), "{statement}: {found}");
        assert!(found.contains('?') || found.ends_with('…'), "{found}");
    }
}
