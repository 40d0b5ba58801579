//! The string table of a pprof file that is being read. Called by the reader; any thread.
//!
//! Any number of rows may name one long string. Each string is therefore looked into once only, and
//! work stays in proportion to the file.

use crate::ReadError;
use rperf_model::{StringId, Strings};
use rperf_report::one_line::{MAX_NAME, without_end};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// The table, with the ids that its entries have in the profile.
pub(crate) struct Texts<'a> {
    table: &'a [&'a [u8]],
    ids: Vec<Option<StringId>>,
    /// The strings of names that have lost their end, by row.
    long_names: FxHashMap<usize, StringId>,
    /// Bytes that names may have, and those that are left.
    limit: u64,
    left: u64,
}

impl<'a> Texts<'a> {
    /// Checks that entry 0 is the empty string, as it must be. The names of all frames may
    /// have `limit` bytes.
    pub(crate) fn new(table: &'a [&'a [u8]], limit: u64) -> Result<Self, ReadError> {
        if table.first().is_some_and(|text| !text.is_empty()) {
            return Err(ReadError::damaged("string 0 is not empty"));
        }
        let ids = vec![None; table.len()];
        Ok(Self {
            table,
            ids,
            long_names: FxHashMap::default(),
            limit,
            left: limit,
        })
    }

    /// The row of entry `index`. An index of 0 is good in an empty table too, since
    /// fields that are not set are 0.
    pub(crate) fn row(&self, index: i64) -> Result<usize, ReadError> {
        let row = usize::try_from(index).ok();
        row.filter(|&row| row == 0 || row < self.table.len())
            .ok_or_else(|| ReadError::damaged(format!("there is no string {index}")))
    }

    /// The text of entry `index`; bytes that are not UTF-8 are replaced.
    pub(crate) fn get(&self, index: i64) -> Result<Cow<'a, str>, ReadError> {
        self.bytes(index).map(String::from_utf8_lossy)
    }

    /// The bytes of entry `index`.
    pub(crate) fn bytes(&self, index: i64) -> Result<&'a [u8], ReadError> {
        let row = self.row(index)?;
        Ok(self.table.get(row).copied().unwrap_or_default())
    }

    /// The id of entry `index` in `strings`.
    pub(crate) fn intern(
        &mut self,
        index: i64,
        strings: &mut Strings,
    ) -> Result<StringId, ReadError> {
        let row = self.row(index)?;
        if let Some(id) = self.ids.get(row).copied().flatten() {
            return Ok(id);
        }
        let id = strings.intern(&self.get(index)?);
        if let Some(known) = self.ids.get_mut(row) {
            *known = Some(id);
        }
        Ok(id)
    }

    /// The id of entry `index` in `strings`, as the name or path of a frame.
    pub(crate) fn name(
        &mut self,
        index: i64,
        strings: &mut Strings,
    ) -> Result<StringId, ReadError> {
        let id = self.name_id(index, strings)?;
        self.charge(strings.get(id).len())?;
        Ok(id)
    }

    /// Counts text that a frame has. Frames may have it in common, but whoever shows them
    /// makes a copy for each.
    pub(crate) fn charge(&mut self, len: usize) -> Result<(), ReadError> {
        let left = self.left.checked_sub(len as u64);
        self.left = left.ok_or(ReadError::TooLarge {
            limit: self.limit,
            unit: "bytes of names",
        })?;
        Ok(())
    }

    fn name_id(&mut self, index: i64, strings: &mut Strings) -> Result<StringId, ReadError> {
        let bytes = self.bytes(index)?;
        if bytes.len() <= MAX_NAME {
            return self.intern(index, strings);
        }
        let row = self.row(index)?;
        let id = self.long_names.entry(row).or_insert_with(|| {
            // Some more bytes than are kept, so that the cut is not taken for the end.
            let bytes = bytes.get(..2 * MAX_NAME).unwrap_or(bytes);
            strings.intern(&without_end(&String::from_utf8_lossy(bytes)))
        });
        Ok(*id)
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }
}
