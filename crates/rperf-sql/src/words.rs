//! The words of SQL that say whether a name may come next.

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// Says nothing.
    Plain,
    /// `AND`: an operand comes, or the end of a `BETWEEN`.
    And,
    /// `ARRAY`.
    Array,
    /// `BETWEEN`.
    Between,
    /// `CONFLICT`: columns come.
    Conflict,
    /// A value that is a word.
    Constant,
    /// `DISTINCT`.
    Distinct,
    /// `FROM`: a table comes, unless it is that of a function's arguments.
    From,
    /// `IDENTIFIED`: what comes is a password, however it is written.
    Identified,
    /// `INTO`: a table comes, and perhaps its columns.
    Into,
    /// A name comes.
    Name,
    /// `ON`, `OR`: an operand comes.
    Operand,
    /// A clause begins, with an operand.
    Clause,
    /// `RETURNING`: a clause begins, with a name.
    Returning,
    /// `SELECT`.
    Select,
    /// `SET`: columns and their values come.
    Set,
    /// A table comes.
    Table,
}

/// Bytes of the longest word.
const LONGEST: usize = 10;

impl Word {
    /// What `text` is; in either case.
    pub(super) fn of(text: &[u8]) -> Self {
        if text.len() > 8 {
            return Self::of_long(text);
        }
        match packed(text) {
            AND => Self::And,
            ARRAY => Self::Array,
            BETWEEN => Self::Between,
            CONFLICT => Self::Conflict,
            NULL | TRUE | FALSE | DEFAULT => Self::Constant,
            DISTINCT => Self::Distinct,
            FROM => Self::From,
            INTO => Self::Into,
            AS | COLUMN | EXISTS | INDEX | WITH => Self::Name,
            ON | OR => Self::Operand,
            BY | HAVING | WHERE => Self::Clause,
            SELECT => Self::Select,
            SET => Self::Set,
            JOIN | TABLE | UPDATE => Self::Table,
            _ => Self::Plain,
        }
    }

    fn of_long(text: &[u8]) -> Self {
        let is = |word: &str| text.eq_ignore_ascii_case(word.as_bytes());
        match text.len() {
            9 if is("RETURNING") => Self::Returning,
            LONGEST if is("CONSTRAINT") => Self::Name,
            LONGEST if is("IDENTIFIED") => Self::Identified,
            _ => Self::Plain,
        }
    }
}

/// Up to eight bytes as a number, letters as capitals. No other byte of a word becomes a letter.
const fn packed(text: &[u8]) -> u64 {
    let (mut all, mut index) = (0, 0);
    while index < text.len() {
        all = all << 8 | (text[index] & 0xdf) as u64;
        index += 1;
    }
    all
}

const AND: u64 = packed(b"AND");
const ARRAY: u64 = packed(b"ARRAY");
const AS: u64 = packed(b"AS");
const BETWEEN: u64 = packed(b"BETWEEN");
const BY: u64 = packed(b"BY");
const COLUMN: u64 = packed(b"COLUMN");
const CONFLICT: u64 = packed(b"CONFLICT");
const DEFAULT: u64 = packed(b"DEFAULT");
const DISTINCT: u64 = packed(b"DISTINCT");
const EXISTS: u64 = packed(b"EXISTS");
const FALSE: u64 = packed(b"FALSE");
const FROM: u64 = packed(b"FROM");
const HAVING: u64 = packed(b"HAVING");
const INDEX: u64 = packed(b"INDEX");
const INTO: u64 = packed(b"INTO");
const JOIN: u64 = packed(b"JOIN");
const NULL: u64 = packed(b"NULL");
const ON: u64 = packed(b"ON");
const OR: u64 = packed(b"OR");
const SELECT: u64 = packed(b"SELECT");
const SET: u64 = packed(b"SET");
const TABLE: u64 = packed(b"TABLE");
const TRUE: u64 = packed(b"TRUE");
const UPDATE: u64 = packed(b"UPDATE");
const WHERE: u64 = packed(b"WHERE");
const WITH: u64 = packed(b"WITH");

/// Bytes of which words are made, without what isn't ASCII: a table, because each byte is looked at.
const IN_WORDS: [bool; 256] = {
    let mut all = [false; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        all[byte as usize] = byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$';
        byte += 1;
    }
    all
};

#[inline]
pub(super) fn is_in_word(byte: u8) -> bool {
    IN_WORDS[usize::from(byte)]
}

/// Whether what stands in double quotes could be a name: the longest of MySQL and PostgreSQL have 64 bytes.
pub(super) fn looks_like_name(text: &[u8]) -> bool {
    let starts = |it: &u8| it.is_ascii_alphabetic() || *it == b'_';
    let goes_on = |&it: &u8| is_in_word(it) || it == b'.';
    text.len() <= 64 && text.first().is_some_and(starts) && text.iter().all(goes_on)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_known_in_either_case_and_no_others_are() {
        assert_eq!(Word::of(b"select"), Word::Select);
        assert_eq!(Word::of(b"Returning"), Word::Returning);
        for text in ["selects", "elect", "", "SELECT_", "se1ect", "\u{13}ELECT"] {
            assert_eq!(Word::of(text.as_bytes()), Word::Plain, "{text}");
        }
    }

    #[test]
    fn names_begin_with_a_letter() {
        for text in ["users", "_a", "public.users_2", "A$"] {
            assert!(looks_like_name(text.as_bytes()), "{text}");
        }
        let long = "a".repeat(65);
        for text in ["", "1a", ".a", "a b", "a-b", "é", "$a", long.as_str()] {
            assert!(!looks_like_name(text.as_bytes()), "{text}");
        }
    }
}
