//! Fingerprints of SQL: the text of a statement without any value. Any thread.
//!
//! One reader serves PostgreSQL, MySQL and MariaDB, SQLite, SQL Server and Oracle, and isn't told which one it
//! is. Where they disagree about what is a literal, it takes what shows less, or shows no more.
//!
//! What stands in double quotes is a name for all but MySQL, whose strings they are, too; and SQLite takes a name
//! that it doesn't know for a string. So it is shown only if it looks like a name, and
//! - a dot joins it to a name: `"users"."id"`, `"users".*`;
//! - or only a name can stand there: behind FROM, JOIN, INTO, UPDATE, TABLE, SET, AS, and as a column that INSERT
//!   names or SET assigns to;
//! - or an operand begins there (behind SELECT, WHERE, AND, OR, ON, BY, HAVING), and the statement has another name
//!   that MySQL wouldn't take.
//!
//! All else is `?`: what follows `=`, LIKE, IN, a comma or a function's bracket. So columns that are written
//! without their table are not always shown.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod context;
mod fingerprint;
mod reader;
mod skip;
mod words;

use reader::Reader;

/// Bytes of a fingerprint at most.
pub const LONGEST: usize = fingerprint::LONGEST;

/// Bytes of a statement that are read at most.
const READ: usize = 1 << 16;

/// Writes the fingerprint of `statement` to `out`, which is emptied first: literals, numbers and placeholders
/// are `?`, lists and rows of them are one, comments are gone. It ends with `…` where the rest can't be read, or
/// is too long. What a name or a keyword is stays as it is written.
///
/// Words outside of quotes are always shown: nobody writes a value so.
pub fn normalise(statement: &[u8], out: &mut String) {
    let input = &statement[..statement.len().min(READ)];
    let is_whole = input.len() == statement.len();
    let mut reader = Reader::new(input, false);
    let mut end = reader.read();
    if reader.is_worth_another_look() {
        reader = Reader::new(input, true);
        end = reader.read();
    }
    reader.finish(is_whole && end.is_ok(), out);
}

#[cfg(test)]
mod tests;
