//! The fingerprint that is being made: words and signs, with one space where the statement has some, and
//! lists of values as one value.

use super::skip::Cut;
use super::words::is_in_word;
use std::str;

/// Bytes of a fingerprint at most.
pub(super) const LONGEST: usize = 500;

/// Stands where the rest isn't shown.
pub(super) const CUT: &str = "…";

/// What has been written of it.
pub(super) struct Fingerprint {
    bytes: [u8; LONGEST],
    len: usize,
    /// White space came behind it.
    has_space: bool,
}

impl Fingerprint {
    pub(super) fn new() -> Self {
        Self {
            bytes: [0; LONGEST],
            len: 0,
            has_space: false,
        }
    }

    /// Writes it to `out`. `is_cut`: something has been left out at its end.
    pub(super) fn finish(mut self, is_cut: bool, out: &mut String) {
        if is_cut {
            // Only for its space.
            let _ = self.push(b"");
            let mut end = self.len.min(LONGEST - CUT.len());
            while end < self.len && self.bytes[end] & 0xc0 == 0x80 {
                end -= 1;
            }
            self.len = end;
            let _ = self.add(CUT.as_bytes());
        }
        out.clear();
        out.push_str(str::from_utf8(self.written()).unwrap_or_default());
    }

    fn written(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn space(&mut self) {
        self.has_space = true;
    }

    /// The last byte, if there is no space behind it.
    pub(super) fn last(&self) -> Option<u8> {
        let last = self.written().last().copied();
        last.filter(|_| !self.has_space)
    }

    /// Whether a dot joins what comes to a name.
    pub(super) fn joins_name(&self) -> bool {
        let name = |it: u8| is_in_word(it) || !it.is_ascii() || matches!(it, b'"' | b'`' | b']');
        matches!(self.written(), [.., it, b'.'] if !self.has_space && name(*it))
    }

    /// Adds a sign.
    #[inline]
    pub(super) fn push_sign(&mut self, sign: u8) -> Result<(), Cut> {
        self.add_space()?;
        self.add_sign(sign)
    }

    /// Adds a word.
    #[inline]
    pub(super) fn push(&mut self, token: &[u8]) -> Result<(), Cut> {
        self.add_space()?;
        self.add(token)
    }

    #[inline]
    fn add_space(&mut self) -> Result<(), Cut> {
        if self.has_space {
            self.has_space = false;
            if !matches!(self.written().last(), None | Some(b'(' | b'[' | b' ')) {
                self.add_sign(b' ')?;
            }
        }
        Ok(())
    }

    /// Adds a sign that no space comes before.
    pub(super) fn push_close(&mut self, sign: u8) -> Result<(), Cut> {
        self.has_space = false;
        self.add_sign(sign)
    }

    /// Adds the `?` of a value; the signs that belong to a number go with it.
    pub(super) fn push_value(&mut self) -> Result<(), Cut> {
        while let [before @ .., b'-' | b'+'] = self.written()
            && !self.has_space
        {
            let operator = before.strip_suffix(b" ").unwrap_or(before).last();
            if operator.is_none_or(|it| !b"(,=<>*/%|&^~[+-".contains(it)) {
                break;
            }
            self.len -= 1;
        }
        self.push_sign(b'?')
    }

    /// An element of a list in brackets ends here. `is_constant`: with a word that is a value.
    pub(super) fn end_element(&mut self, is_constant: bool) {
        if is_constant {
            let word = self
                .written()
                .iter()
                .rev()
                .take_while(|&&it| is_in_word(it));
            let start = self.len - word.count();
            if begins_element(&self.bytes[..start]) {
                self.bytes[start] = b'?';
                self.len = start + 1;
            }
        }
        if let Some(before) = self.written().strip_suffix(b"?, ?")
            && begins_element(before)
        {
            self.len -= 3;
        }
    }

    /// Whether a value is the last element of a list.
    pub(super) fn ends_with_element(&self) -> bool {
        self.written()
            .strip_suffix(b"?")
            .is_some_and(begins_element)
    }

    /// The brackets that were opened at `start` are closed: they are left out if those before them are the same.
    pub(super) fn end_row(&mut self, start: usize) {
        let (before, row) = self.written().split_at(start);
        let same = before
            .strip_suffix(b", ")
            .and_then(|it| it.strip_suffix(row));
        if same.is_some() {
            self.len = start - 2;
        }
    }

    #[inline]
    fn add(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        let room = &mut self.bytes[self.len..];
        let Some(place) = room.get_mut(..bytes.len()) else {
            let part = &bytes[..room.len()];
            room.copy_from_slice(part);
            self.len = LONGEST;
            return Err(Cut);
        };
        place.copy_from_slice(bytes);
        self.len += bytes.len();
        Ok(())
    }

    #[inline]
    fn add_sign(&mut self, sign: u8) -> Result<(), Cut> {
        *self.bytes.get_mut(self.len).ok_or(Cut)? = sign;
        self.len += 1;
        Ok(())
    }
}

/// Whether an element of a list begins behind this.
fn begins_element(before: &[u8]) -> bool {
    matches!(before, [.., b'(' | b'['] | [.., b',', b' '])
}
