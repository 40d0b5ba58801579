//! The label sets of a session's samples. Under the GVL, in hooks too: a lookup
//! makes no object of the VM, and all but a set's first one are two comparisons.

use rperf_model::LabelSetId;
use rperf_model::label_keys::{AGE, CALL, CLASS, GC_CAUSE, LATENCY, RACTOR, REQUEST, set_apart};
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Pairs of key and value, sorted, each key once.
pub type LabelTexts = Arc<[(Box<str>, Box<str>)]>;

/// Different sets that a table takes.
const SET_CAP: usize = 1 << 16;
/// Bytes of text that it takes.
const TEXT_CAP: usize = 32 << 20;

/// In place of a number: the set found no room.
const REFUSED: u32 = u32::MAX;

/// A set of labels, as a program has put it on a fiber; clones are the same set. It gets a number only when
/// it is first sampled: the sets of a server's requests, most of which end between two samples, take no room.
#[derive(Debug, Clone)]
pub struct LabelSet {
    content: Arc<Content>,
    request: RequestNumber,
    op: OpNumber,
}

/// The number of a request or a job, in its session, from 1; 0 is none. After 2^32 of them numbers
/// come again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestNumber(pub u32);

impl RequestNumber {
    /// No request.
    pub const NONE: Self = Self(0);
}

/// The number of an op's name in its session, from 1 to [`OpNumber::MOST`]; 0 is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpNumber(pub u16);

impl OpNumber {
    /// No op.
    pub const NONE: Self = Self(0);

    /// The largest number.
    pub const MOST: u16 = (1 << Self::BITS) - 1;

    /// The bits that a number needs.
    pub const BITS: u32 = 12;
}

#[derive(Debug)]
struct Content {
    texts: LabelTexts,
    /// The table that it was looked up in last, and its number there.
    known: AtomicU64,
}

impl PartialEq for LabelSet {
    /// Whether both are the same set. Others can have the same texts.
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        let is_same = Arc::ptr_eq(&self.content, &other.content);
        is_same && self.request == other.request && self.op == other.op
    }
}

impl LabelSet {
    /// The empty one.
    pub fn empty() -> Self {
        Self::of(LabelTexts::default())
    }

    /// With these pairs.
    pub fn of(texts: LabelTexts) -> Self {
        let known = AtomicU64::new(0);
        Self {
            content: Arc::new(Content { texts, known }),
            request: RequestNumber::NONE,
            op: OpNumber::NONE,
        }
    }

    /// A copy of the set that is of a request.
    pub fn in_request(&self, request: RequestNumber) -> Self {
        Self {
            request,
            ..self.clone()
        }
    }

    /// A copy of the set that is in an op.
    pub fn in_op(&self, op: OpNumber) -> Self {
        Self { op, ..self.clone() }
    }

    /// The op that it is in.
    #[inline]
    pub fn op(&self) -> OpNumber {
        self.op
    }

    /// The request that it is of.
    #[inline]
    pub fn request(&self) -> RequestNumber {
        self.request
    }

    /// The label set of another Ractor's samples, with the Ractor's `name`.
    pub fn of_ractor(name: &str) -> Self {
        Self::of([(RACTOR.into(), name.into())].into())
    }

    /// A copy of the set, of no request and in no op, with a program's `changes`: new values, or none for
    /// keys that are taken away.
    pub fn with(&self, changes: impl IntoIterator<Item = (String, Option<String>)>) -> Self {
        let mut pairs = self.content.texts.to_vec();
        for (key, value) in changes {
            let key = Self::key(&key);
            let row = pairs.binary_search_by(|pair| (*pair.0).cmp(&*key));
            match (row, value) {
                (Ok(row), Some(value)) => pairs[row].1 = value.into(),
                (Ok(row), None) => drop(pairs.remove(row)),
                (Err(row), Some(value)) => pairs.insert(row, (key.into(), value.into())),
                (Err(_), None) => {}
            }
        }
        Self::of(pairs.into())
    }

    /// A program's key as it is in the pairs.
    pub fn key(key: &str) -> Cow<'_, str> {
        set_apart(key, |key| {
            [RACTOR, AGE, CALL, CLASS, LATENCY, REQUEST, GC_CAUSE].contains(&key)
        })
    }

    /// Its pairs.
    #[inline]
    pub fn texts(&self) -> &LabelTexts {
        &self.content.texts
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        text_bytes(&self.content.texts) + size_of_val(&*self.content.texts)
    }
}

/// The sets that samples carry, by number from 1; 0 is the empty one.
#[derive(Debug)]
pub struct LabelTable {
    /// No other table of this process has it.
    serial: u32,
    sets: Vec<LabelTexts>,
    numbers: FxHashMap<LabelTexts, u32>,
    text_bytes: usize,
    refused: u64,
}

impl Default for LabelTable {
    fn default() -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        Self {
            serial: SERIAL.fetch_add(1, Relaxed),
            sets: Vec::new(),
            numbers: FxHashMap::default(),
            text_bytes: 0,
            refused: 0,
        }
    }
}

impl LabelTable {
    /// The number of `set` for a sample of `count` ticks. If there is no room for it,
    /// the sample goes without labels, and is counted.
    #[inline]
    pub fn number(&mut self, set: &LabelSet, count: u64) -> LabelSetId {
        let known = set.content.known.load(Relaxed);
        let number = if (known >> 32) as u32 == self.serial {
            known as u32
        } else {
            self.look_up(set)
        };
        if number == REFUSED {
            self.refused += count;
            return LabelSetId::default();
        }
        LabelSetId(number)
    }

    /// The sets, from number 1.
    pub fn sets(&self) -> &[LabelTexts] {
        &self.sets
    }

    /// Takes the sets out, from number 1: the table is used no more.
    pub fn take_sets(&mut self) -> Vec<LabelTexts> {
        std::mem::take(&mut self.sets)
    }

    /// Samples that went without their labels.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let row = 2 * size_of::<LabelTexts>() + size_of::<u32>() + 1;
        self.sets.capacity() * row + self.text_bytes
    }

    #[cold]
    fn look_up(&mut self, set: &LabelSet) -> u32 {
        let texts = &set.content.texts;
        let number = if texts.is_empty() {
            0
        } else if let Some(&number) = self.numbers.get(texts) {
            number
        } else if self.sets.len() >= SET_CAP || self.text_bytes >= TEXT_CAP {
            REFUSED
        } else {
            self.text_bytes += set.memory();
            self.sets.push(Arc::clone(texts));
            let number = self.sets.len() as u32;
            self.numbers.insert(Arc::clone(texts), number);
            number
        };
        let known = u64::from(self.serial) << 32 | u64::from(number);
        set.content.known.store(known, Relaxed);
        number
    }
}

fn text_bytes(texts: &[(Box<str>, Box<str>)]) -> usize {
    let texts = texts.iter();
    texts.map(|(key, value)| key.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> LabelSet {
        let changes = pairs.iter();
        LabelSet::empty().with(changes.map(|&(key, value)| (key.into(), Some(value.into()))))
    }

    #[test]
    fn equal_sets_have_one_number_whatever_their_order() {
        let mut table = LabelTable::default();
        let (first, other) = (set(&[("a", "1"), ("b", "2")]), set(&[("a", "2")]));
        assert_eq!(
            (table.number(&first, 1).0, table.number(&other, 1).0),
            (1, 2)
        );
        assert_eq!(table.number(&set(&[("b", "2"), ("a", "1")]), 1).0, 1);
        assert_eq!(table.number(&first, 1).0, 1);
        assert_eq!(table.number(&set(&[]), 1).0, 0);
        assert_eq!(table.sets().len(), 2);
        assert_eq!(
            *table.sets()[1],
            *set(&[("a", "1"), ("a", "2")]).content.texts
        );
    }

    #[test]
    fn changes_are_merged_and_taken_away() {
        let base = set(&[("a", "1"), ("b", "2")]);
        let changed = base.with([("a".into(), None), ("c".into(), Some("3".into()))]);
        assert_eq!(changed.texts(), set(&[("b", "2"), ("c", "3")]).texts());
        assert_eq!(base.texts().len(), 2);
    }

    #[test]
    fn a_set_of_a_request_has_the_number_of_its_texts() {
        let mut table = LabelTable::default();
        let plain = set(&[("a", "1")]);
        let [one, other] = [1, 2].map(|number| plain.in_request(RequestNumber(number)));
        assert!(one != plain && one != other && one == one.clone());
        let number = table.number(&one, 1);
        assert_eq!(table.number(&plain, 1), number);
        assert_eq!(table.number(&other, 1), number);
        assert_eq!(one.with([]).request(), RequestNumber::NONE);
        assert_eq!(other.clone().request(), RequestNumber(2));
        let queried = other.in_op(OpNumber(3));
        assert!(queried != other && queried.request() == other.request());
        assert_eq!(table.number(&queried, 1), number);
        assert_eq!(queried.with([]).op(), OpNumber::NONE);
    }

    #[test]
    fn a_set_has_a_number_of_its_own_in_each_table() {
        let (mut one, mut two) = (LabelTable::default(), LabelTable::default());
        let (a, b) = (set(&[("a", "")]), set(&[("b", "")]));
        assert_eq!((one.number(&a, 1).0, one.number(&b, 1).0), (1, 2));
        assert_eq!((two.number(&b, 1).0, two.number(&a, 1).0), (1, 2));
        assert_eq!((one.number(&a, 1).0, one.number(&b, 1).0), (1, 2));
    }

    #[test]
    fn what_finds_no_room_is_counted_and_goes_without_labels() {
        let mut table = LabelTable::default();
        for number in 1..=SET_CAP as u32 {
            assert_eq!(
                table.number(&set(&[("id", &number.to_string())]), 1),
                LabelSetId(number)
            );
        }
        let late = set(&[("id", "late")]);
        assert_eq!((table.number(&late, 1).0, table.number(&late, 3).0), (0, 0));
        assert_eq!(
            table.number(&set(&[("id", "7")]), 1).0,
            7,
            "known ones stay"
        );
        assert_eq!(table.refused(), 4);
        let mut table = LabelTable::default();
        let long = "x".repeat(TEXT_CAP);
        assert_eq!(table.number(&set(&[("id", &long)]), 1).0, 1);
        assert_eq!(table.number(&late, 1).0, 0);
        assert!(table.memory() >= TEXT_CAP);
    }
}
