//! The fingerprint that is being made: words and signs, with one space where the statement has some, and
//! lists of values as one value.

use super::skip::Cut;
use super::words::is_in_word;

/// Bytes of a fingerprint at most.
pub(super) const LONGEST: usize = 500;

/// Stands where the rest isn't shown.
pub(super) const CUT: &str = "…";

/// What has been written of it.
pub(super) struct Fingerprint {
    bytes: Vec<u8>,
    /// White space came behind it.
    has_space: bool,
}

impl Fingerprint {
    /// An empty one, in the memory of `text`.
    pub(super) fn new(text: String) -> Self {
        let mut bytes = text.into_bytes();
        bytes.clear();
        bytes.reserve(LONGEST);
        Self {
            bytes,
            has_space: false,
        }
    }

    /// Its text. `is_cut`: something has been left out at its end.
    pub(super) fn finish(mut self, is_cut: bool) -> String {
        if is_cut {
            // Only for its space.
            let _ = self.push(b"");
            let mut end = self.bytes.len().min(LONGEST - CUT.len());
            while end < self.bytes.len() && self.bytes[end] & 0xc0 == 0x80 {
                end -= 1;
            }
            self.bytes.truncate(end);
            self.bytes.extend_from_slice(CUT.as_bytes());
        }
        String::from_utf8(self.bytes).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn space(&mut self) {
        self.has_space = true;
    }

    /// The last byte, if there is no space behind it.
    pub(super) fn last(&self) -> Option<u8> {
        let last = self.bytes.last().copied();
        last.filter(|_| !self.has_space)
    }

    /// Whether a dot joins what comes to a name.
    pub(super) fn joins_name(&self) -> bool {
        let name = |it: u8| is_in_word(it) || !it.is_ascii() || matches!(it, b'"' | b'`' | b']');
        matches!(self.bytes[..], [.., it, b'.'] if !self.has_space && name(it))
    }

    /// Adds a word or a sign.
    #[inline]
    pub(super) fn push(&mut self, token: &[u8]) -> Result<(), Cut> {
        if self.has_space {
            self.has_space = false;
            if !matches!(self.bytes.last(), None | Some(b'(' | b'[' | b' ')) {
                self.add(b" ")?;
            }
        }
        self.add(token)
    }

    /// Adds a sign that no space comes before.
    pub(super) fn push_close(&mut self, sign: u8) -> Result<(), Cut> {
        self.has_space = false;
        self.add(&[sign])
    }

    /// Adds the `?` of a value; a sign that belongs to a number goes with it.
    pub(super) fn push_value(&mut self) -> Result<(), Cut> {
        if let [before @ .., b'-' | b'+'] = &self.bytes[..]
            && !self.has_space
        {
            let operator = before.strip_suffix(b" ").unwrap_or(before).last();
            if operator.is_some_and(|it| b"(,=<>*/%|&^~[+-".contains(it)) {
                self.bytes.pop();
            }
        }
        self.push(b"?")
    }

    /// An element of a list in brackets ends here. `is_constant`: with a word that is a value.
    pub(super) fn end_element(&mut self, is_constant: bool) {
        if is_constant {
            let word = self.bytes.iter().rev().take_while(|&&it| is_in_word(it));
            let start = self.bytes.len() - word.count();
            if begins_element(&self.bytes[..start]) {
                self.bytes.truncate(start);
                self.bytes.push(b'?');
            }
        }
        if let Some(before) = self.bytes.strip_suffix(b"?, ?")
            && begins_element(before)
        {
            self.bytes.truncate(self.bytes.len() - 3);
        }
    }

    /// The brackets that were opened at `start` are closed: they are left out if those before them are the same.
    pub(super) fn end_row(&mut self, start: usize) {
        let (before, row) = self.bytes.split_at(start);
        let same = before
            .strip_suffix(b", ")
            .and_then(|it| it.strip_suffix(row));
        if same.is_some() {
            self.bytes.truncate(start - 2);
        }
    }

    fn add(&mut self, bytes: &[u8]) -> Result<(), Cut> {
        let room = LONGEST - self.bytes.len();
        if bytes.len() > room {
            self.bytes.extend_from_slice(&bytes[..room]);
            return Err(Cut);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

/// Whether an element of a list begins behind this.
fn begins_element(before: &[u8]) -> bool {
    matches!(before, [.., b'(' | b'['] | [.., b',', b' '])
}
