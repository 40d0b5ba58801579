//! Where literals and comments end. Databases differ: what they could read in two ways, so that they would
//! disagree about what behind it is a literal, is given up ([`Cut`]).

use std::str;

/// The text can't be read, or not shown, from here on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut;

/// What a backslash does in a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backslash {
    /// The backslash is a character like others.
    Plain,
    /// A quote behind it doesn't end the literal.
    Escapes,
    /// MySQL's escapes, and PostgreSQL's doesn't: a literal with a quote behind one can't be read.
    Unknown,
}

/// The place behind a literal whose opening `quote` is at `start`. A doubled quote doesn't end it.
pub(super) fn quoted(
    input: &[u8],
    start: usize,
    quote: u8,
    backslash: Backslash,
) -> Result<usize, Cut> {
    let (mut at, mut is_wide) = (start + 1, false);
    let is_special = |&it: &u8| it == quote || it == b'\\' || it == 0 || !it.is_ascii();
    loop {
        at += input[at..].iter().position(is_special).ok_or(Cut)?;
        let byte = input[at];
        at += 1;
        if byte == quote {
            if input.get(at) != Some(&quote) {
                break;
            }
            at += 1;
        } else if byte == b'\\' && backslash != Backslash::Plain {
            let more = input[at..].iter().take_while(|&&it| it == b'\\').count();
            at += more;
            let is_before_quote = more % 2 == 0 && input.get(at) == Some(&quote);
            match backslash {
                Backslash::Unknown if is_before_quote => return Err(Cut),
                _ => at += usize::from(is_before_quote),
            }
        } else if byte == 0 {
            return Err(Cut);
        } else {
            is_wide = true;
        }
    }
    // In other encodings the second byte of a character may be a backslash.
    match is_wide && str::from_utf8(&input[start..at]).is_err() {
        true => Err(Cut),
        false => Ok(at),
    }
}

/// The place behind PostgreSQL's `$tag$..$tag$` that begins at `start`; `None` if none begins there.
pub(super) fn dollar_quoted(input: &[u8], start: usize) -> Option<Result<usize, Cut>> {
    let is_tag = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let length = input[start + 1..].iter().position(|it| !is_tag(it))?;
    let inner = start + length + 2;
    let tag = &input[start..inner];
    if tag.last() != Some(&b'$') || tag[1].is_ascii_digit() {
        return None;
    }
    let found = input[inner..].windows(tag.len()).position(|it| it == tag);
    let Some(length) = found else {
        return Some(Err(Cut));
    };
    let end = inner + length + tag.len();
    let is_text = str::from_utf8(&input[start..end]).is_ok() && !input[inner..end].contains(&0);
    Some(if is_text { Ok(end) } else { Err(Cut) })
}

/// The place behind a comment to the end of the line. `is_certain`: every database has it for one; otherwise
/// the line may be code, and what could open a literal in it is given up.
pub(super) fn line_comment(input: &[u8], start: usize, is_certain: bool) -> Result<usize, Cut> {
    let mut at = start;
    while let Some(&byte) = input.get(at) {
        match byte {
            b'\n' => return Ok(at + 1),
            // PostgreSQL's comment ends there, MySQL's goes on.
            b'\r' if input.get(at + 1).is_some_and(|&it| it != b'\n') => return Err(Cut),
            0 => return Err(Cut),
            b'\'' | b'"' | b'`' | b'$' if !is_certain => return Err(Cut),
            b'/' if !is_certain && input.get(at + 1) == Some(&b'*') => return Err(Cut),
            _ => at += 1,
        }
    }
    Ok(at)
}

/// The place behind a comment whose `/*` is at `start`. They are nested in PostgreSQL, and not in MySQL: what
/// is behind the end of an inner one may be code, as what MySQL has in `/*! */` is.
pub(super) fn block_comment(input: &[u8], start: usize) -> Result<usize, Cut> {
    let mut at = start + 2;
    let mut depth = 1_u32;
    let mut may_be_code = matches!(input[at..], [b'!', ..] | [b'M', b'!', ..]);
    loop {
        match input[at..] {
            [b'*', b'/', ..] if depth == 1 => return Ok(at + 2),
            [b'*', b'/', ..] => {
                depth -= 1;
                may_be_code = true;
                at += 2;
            }
            [b'/', b'*', ..] => {
                depth += 1;
                at += 2;
            }
            [] | [0, ..] => return Err(Cut),
            [b'\'' | b'"' | b'`' | b'$' | b'#' | b'\\' | b'[', ..] | [b'-', b'-', ..]
                if may_be_code =>
            {
                return Err(Cut);
            }
            _ => at += 1,
        }
    }
}

/// Whether the `[name]` that begins at `start`, as SQL Server has it, has nothing in it that would be a literal
/// or a comment for others.
pub(super) fn is_plain_in_brackets(input: &[u8], start: usize) -> bool {
    const LONGEST: usize = 130;
    let inner = &input[start + 1..];
    let Some(length) = inner.iter().take(LONGEST).position(|&it| it == b']') else {
        return false;
    };
    let special = |it: &u8| matches!(it, b'\'' | b'"' | b'`' | b'$' | b'#' | b'\\' | b'[');
    let name = &inner[..length];
    let has_comment = name.windows(2).any(|it| it == b"--" || it == b"/*");
    !name.iter().any(special) && !has_comment && inner.get(length + 1) != Some(&b']')
}
