//! Reads a statement token by token.

use super::context::{Context, Place};
use super::fingerprint::Fingerprint;
use super::skip::{self, Backslash, Cut};
use super::words::{Word, is_in_word, looks_like_name};
use std::str;

pub(super) struct Reader<'a> {
    input: &'a [u8],
    at: usize,
    fingerprint: Fingerprint,
    context: Context,
    /// Double quotes are known to be those of names.
    has_ansi_names: bool,
    /// A name in double quotes has been seen where MySQL would take none.
    saw_ansi_name: bool,
    /// Whether a name in double quotes was left out that may be MySQL's string.
    left_out_name: bool,
    saw_backtick: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(input: &'a [u8], has_ansi_names: bool) -> Self {
        Self {
            input,
            at: 0,
            fingerprint: Fingerprint::new(),
            context: Context::new(),
            has_ansi_names,
            saw_ansi_name: false,
            left_out_name: false,
            saw_backtick: false,
        }
    }

    /// Names that were left out can be shown, as is known now.
    pub(super) fn is_worth_another_look(&self) -> bool {
        self.left_out_name && self.saw_ansi_name && !self.saw_backtick
    }

    /// Writes the fingerprint to `out`.
    pub(super) fn finish(self, is_whole: bool, out: &mut String) {
        self.fingerprint.finish(!is_whole, out);
    }

    /// Reads all, or as far as it can be read.
    pub(super) fn read(&mut self) -> Result<(), Cut> {
        while let Some(&byte) = self.input.get(self.at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.skip_to(self.at + 1),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => self.word()?,
                b'0'..=b'9' => self.number(self.at)?,
                b'\'' => self.string(self.at, Backslash::Unknown)?,
                b'"' => self.double_quoted()?,
                b'`' => self.backticked()?,
                b',' => self.comma()?,
                b'(' => self.open(byte)?,
                b'[' => self.bracket()?,
                b')' | b']' => self.close(byte)?,
                b'?' => self.placeholder(self.at + 1)?,
                b'.' if self.starts_fraction() => self.number(self.at)?,
                b'.' => self.dot()?,
                b':' => self.colon()?,
                b'@' => self.at_sign()?,
                b'$' => self.dollar()?,
                b'-' if self.peek(1) == Some(b'-') => self.dashes()?,
                b'/' if self.peek(1) == Some(b'*') => {
                    self.skip_to(skip::block_comment(self.input, self.at)?);
                }
                b'#' if !self.is_json_operator() => {
                    self.skip_to(skip::line_comment(self.input, self.at + 1, false)?);
                }
                b'\\' | 0..0x20 | 0x7f => return Err(Cut),
                _ => self.sign(1)?,
            }
        }
        Ok(())
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.input.get(self.at + ahead).copied()
    }

    /// A token ends at `end`; the space behind it is seen, too, so that the loop has less to do.
    #[inline]
    fn go_to(&mut self, end: usize) {
        self.at = end;
        if self.input.get(end) == Some(&b' ') {
            self.skip_to(end + 1);
        }
    }

    /// White space and comments.
    #[inline]
    fn skip_to(&mut self, end: usize) {
        self.at = end;
        self.fingerprint.space();
    }

    fn sign(&mut self, length: usize) -> Result<(), Cut> {
        let sign = &self.input[self.at..self.at + length];
        match sign {
            [sign] => self.fingerprint.push_sign(*sign)?,
            signs => self.fingerprint.push(signs)?,
        }
        self.go_to(self.at + length);
        match sign {
            b";" => self.context.see_semicolon(),
            _ => self.context.see(Place::Value),
        }
        Ok(())
    }

    /// A value that ends at `end`.
    fn value(&mut self, end: usize) -> Result<(), Cut> {
        self.fingerprint.push_value()?;
        self.go_to(end);
        self.context.see(Place::Value);
        Ok(())
    }

    fn string(&mut self, start: usize, backslash: Backslash) -> Result<(), Cut> {
        self.value(skip::quoted(self.input, start, b'\'', backslash)?)
    }

    /// The end of the bytes of a word from `start` on; fails if they are no text.
    #[inline]
    fn end_of_word(&self, start: usize) -> Result<usize, Cut> {
        let rest = &self.input[start..];
        let length = rest.iter().position(|&it| !is_in_word(it));
        let end = length.map_or(self.input.len(), |it| start + it);
        match self.input.get(end) {
            Some(it) if !it.is_ascii() => self.end_of_wide_word(start),
            _ => Ok(end),
        }
    }

    #[cold]
    fn end_of_wide_word(&self, start: usize) -> Result<usize, Cut> {
        let rest = &self.input[start..];
        let is_end = |&it: &u8| it.is_ascii() && !is_in_word(it);
        let length = rest.iter().position(is_end).unwrap_or(rest.len());
        let text = str::from_utf8(&rest[..length]).map_err(|_| Cut)?;
        // Quotation marks and blanks of other scripts are no part of a name.
        let is_letter = |it: char| it.is_ascii() || it.is_alphanumeric();
        match text.chars().all(is_letter) {
            true => Ok(start + length),
            false => Err(Cut),
        }
    }

    fn word(&mut self) -> Result<(), Cut> {
        let end = self.end_of_word(self.at)?;
        let text = &self.input[self.at..end];
        match (text, &self.input[end..]) {
            ([b'e' | b'E'], [b'\'', ..]) => return self.string(end, Backslash::Escapes),
            ([b'b' | b'B' | b'n' | b'N' | b'x' | b'X'], [b'\'', ..]) => {
                return self.string(end, Backslash::Unknown);
            }
            ([b'u' | b'U'], [b'&', b'\'', ..]) => return self.string(end + 1, Backslash::Unknown),
            // Oracle's own quotes: q'[it's]'.
            ([b'q' | b'Q'] | [b'n' | b'N', b'q' | b'Q'], [b'\'', ..]) => return Err(Cut),
            _ => {}
        }
        let word = Word::of(text);
        if word == Word::Identified {
            return Err(Cut);
        }
        let is_joined = self.fingerprint.joins_name();
        self.context.see_word(word, is_joined);
        self.fingerprint.push(text)?;
        self.go_to(end);
        Ok(())
    }

    /// A number, and what is written on behind it: MySQL has names that begin so, but it may be a value.
    fn number(&mut self, start: usize) -> Result<(), Cut> {
        let rest = &self.input[start..];
        let is_hex = matches!(rest, [b'0', b'x' | b'X', ..]);
        let mut end = start;
        loop {
            let next = self.end_of_word(end)?;
            let is_exponent = !is_hex && matches!(self.input[..next], [.., b'e' | b'E']);
            end = match &self.input[next..] {
                [b'.', ..] => next + 1,
                [b'+' | b'-', b'0'..=b'9', ..] if is_exponent && next > end => next + 1,
                _ => break self.value(next),
            };
        }
    }

    fn starts_fraction(&self) -> bool {
        let is_name = |it: u8| is_in_word(it) || !it.is_ascii() || b"\"`])".contains(&it);
        self.peek(1).is_some_and(|it| it.is_ascii_digit())
            && !self.fingerprint.last().is_some_and(is_name)
    }

    fn dot(&mut self) -> Result<(), Cut> {
        self.context.see_dot();
        self.fingerprint.push_sign(b'.')?;
        self.at += 1;
        Ok(())
    }

    /// `?` with its number, of which `digits` is the place.
    fn placeholder(&mut self, digits: usize) -> Result<(), Cut> {
        let digit = |it: &&u8| it.is_ascii_digit();
        let length = self.input[digits..].iter().take_while(digit).count();
        self.value(digits + length)
    }

    fn colon(&mut self) -> Result<(), Cut> {
        match self.peek(1) {
            Some(b':') => self.sign(2),
            Some(it) if is_in_word(it) || !it.is_ascii() => {
                self.value(self.end_of_word(self.at + 1)?)
            }
            _ => self.sign(1),
        }
    }

    /// `@name` is a placeholder or a variable; `@@name` a setting of the server.
    fn at_sign(&mut self) -> Result<(), Cut> {
        match self.peek(1) {
            Some(b'@') => self.sign(2),
            Some(it) if is_in_word(it) || !it.is_ascii() => {
                self.value(self.end_of_word(self.at + 1)?)
            }
            _ => self.sign(1),
        }
    }

    fn dollar(&mut self) -> Result<(), Cut> {
        if let Some(end) = skip::dollar_quoted(self.input, self.at) {
            return self.value(end?);
        }
        match self.peek(1) {
            Some(b'0'..=b'9') => self.number(self.at + 1),
            Some(it) if is_in_word(it) || !it.is_ascii() => {
                self.value(self.end_of_word(self.at + 1)?)
            }
            _ => self.sign(1),
        }
    }

    /// A comment; for MySQL only if white space comes next.
    fn dashes(&mut self) -> Result<(), Cut> {
        let is_certain = self.peek(2).is_none_or(|it| it.is_ascii_whitespace());
        self.skip_to(skip::line_comment(self.input, self.at + 2, is_certain)?);
        Ok(())
    }

    /// Whether `#` begins PostgreSQL's `#>`, `#>>` or `#-`, and not a comment of MySQL: a value comes next.
    fn is_json_operator(&self) -> bool {
        let rest = &self.input[self.at + 1..];
        let Some(rest) = [&b">>"[..], b">", b"-"]
            .iter()
            .find_map(|it| rest.strip_prefix(*it))
        else {
            return false;
        };
        let blanks = rest.iter().take_while(|&&it| it == b' ').count();
        matches!(rest[blanks..], [b'\'' | b'?', ..] | [b'$', b'0'..=b'9', ..])
    }

    fn open(&mut self, sign: u8) -> Result<(), Cut> {
        self.fingerprint.push_sign(sign)?;
        self.at += 1;
        self.context.open(sign, self.fingerprint.len() - 1)
    }

    /// The `[` of an array, or of a name of SQL Server's.
    fn bracket(&mut self) -> Result<(), Cut> {
        let is_operand = |it: u8| is_in_word(it) || !it.is_ascii() || b"\"`])[?".contains(&it);
        let is_array = self.context.word == Word::Array
            || self.context.is_in_array()
            || self.fingerprint.last().is_some_and(is_operand);
        if !is_array && !skip::is_plain_in_brackets(self.input, self.at) {
            return Err(Cut);
        }
        self.open(b'[')
    }

    fn close(&mut self, sign: u8) -> Result<(), Cut> {
        self.end_element();
        match sign {
            b')' => self.fingerprint.push_close(sign)?,
            // Two of them would be SQL Server's for one in a name.
            _ => self.fingerprint.push_sign(sign)?,
        }
        self.at += 1;
        if let Some(start) = self.context.close() {
            self.fingerprint.end_row(start);
        }
        Ok(())
    }

    fn comma(&mut self) -> Result<(), Cut> {
        self.end_element();
        let is_in_list = self.context.is_in_brackets() && self.fingerprint.ends_with_element();
        let comma = if is_in_list {
            self.last_comma()
        } else {
            self.at
        };
        self.fingerprint.push_close(b',')?;
        self.skip_to(comma + 1);
        self.context.see_comma();
        Ok(())
    }

    /// The comma behind all numbers and placeholders that the one here is followed by: they are one value with
    /// the element before, and there may be thousands.
    fn last_comma(&self) -> usize {
        let mut comma = self.at;
        loop {
            let rest = &self.input[comma + 1..];
            let blanks = rest.iter().take_while(|&&it| it == b' ').count();
            let (sign, least) = match rest.get(blanks) {
                Some(b'?') => (1, 0),
                Some(b'$') => (1, 1),
                _ => (0, 1),
            };
            let digit = |it: &&u8| it.is_ascii_digit();
            let digits = rest[blanks + sign..].iter().take_while(digit).count();
            let length = sign + digits;
            if digits < least || rest.get(blanks + length) != Some(&b',') {
                return comma;
            }
            comma += 1 + blanks + length;
        }
    }

    fn end_element(&mut self) {
        if self.context.is_in_brackets() {
            let is_constant = self.context.word == Word::Constant;
            self.fingerprint.end_element(is_constant);
        }
    }

    fn double_quoted(&mut self) -> Result<(), Cut> {
        let end = skip::quoted(self.input, self.at, b'"', Backslash::Unknown)?;
        let text = &self.input[self.at..end];
        // `?` stands for a name in quotes that isn't shown.
        let starts_name = |it: u8| it.is_ascii_alphabetic() || b"_\"*[?".contains(&it);
        let is_joined = self.fingerprint.joins_name()
            || matches!(self.input[end..], [b'.', next, ..] if starts_name(next));
        if !looks_like_name(&text[1..text.len() - 1]) {
            return self.value(end);
        }
        let place = self.context.place;
        let is_operand = place == Place::Operand;
        self.left_out_name |= is_operand && !is_joined && !self.has_ansi_names;
        if !is_joined && (place == Place::Value || is_operand && !self.has_ansi_names) {
            return self.value(end);
        }
        self.saw_ansi_name |= is_joined || matches!(place, Place::Column | Place::Table);
        self.name(end)
    }

    /// A name of MySQL's or SQLite's: what isn't like one is left out.
    fn backticked(&mut self) -> Result<(), Cut> {
        const LONGEST_NAME: usize = 64;
        self.saw_backtick = true;
        let end = skip::quoted(self.input, self.at, b'`', Backslash::Plain)?;
        let text = str::from_utf8(&self.input[self.at + 1..end - 1]).map_err(|_| Cut)?;
        let is_shown = |it: char| it.is_alphanumeric() || "_$ .-".contains(it);
        match text.len() <= LONGEST_NAME && text.chars().all(is_shown) {
            true => self.name(end),
            false => self.value(end),
        }
    }

    /// A name in quotes, which ends at `end`.
    fn name(&mut self, end: usize) -> Result<(), Cut> {
        let is_joined = self.fingerprint.joins_name();
        self.context.see_name(is_joined);
        self.fingerprint.push(&self.input[self.at..end])?;
        self.go_to(end);
        Ok(())
    }
}
