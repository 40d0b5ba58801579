//! Tests of the reader with files that are small, or small when they are zipped, and
//! would take much memory or time: each is refused for what it has too much of. The limits
//! are a sixteenth of the real ones.

use super::*;
use crate::pprof::proto::Line;
use prost::encoding::{encode_varint, encoded_len_varint};

const SMALL: Limits = Limits {
    bytes: LIMITS.bytes / 16,
    rows: LIMITS.rows / 16,
    memory: LIMITS.memory / 16,
    text: LIMITS.text / 16,
    frames: FrameLimits {
        all: LIMITS.frames.all / 16,
        unshared: LIMITS.frames.unshared / 16,
    },
};

/// A file in the making: one sample type, one function, and what is added.
struct Bomb(Vec<u8>);

impl Bomb {
    fn new() -> Self {
        let mut bomb = Self(Vec::new());
        for text in ["", "cpu", "thread_seq"] {
            bomb.add(6, text.as_bytes());
        }
        bomb.add(1, &numbers([(1, 1)]));
        bomb.add(5, &numbers([(1, 1), (2, 1)]));
        bomb
    }

    /// Adds a field that is a message or text.
    fn add(&mut self, number: u32, content: &[u8]) {
        self.0.extend(field(number, content));
    }

    fn add_location(&mut self, id: u64, lines: impl Iterator<Item = i64>) {
        let mut location = numbers([(1, id)]);
        for line in lines {
            let function_id = 1;
            location.extend(field(4, &Line { function_id, line }.encode_to_vec()));
        }
        self.add(4, &location);
    }

    fn add_sample(&mut self, location_ids: impl Iterator<Item = u64>, labels: &[u8]) {
        let mut ids = Vec::new();
        location_ids.for_each(|id| encode_varint(id, &mut ids));
        let sample = [&field(1, &ids)[..], &field(2, &[1]), labels].concat();
        self.add(2, &sample);
    }

    /// What the file has too much of.
    fn refused_for(&self) -> String {
        match read_within(&SMALL, &mut self.0.as_slice()) {
            Err(ReadError::TooLarge { unit, .. }) => unit.to_string(),
            Err(error) => error.to_string(),
            Ok(_) => "nothing".to_string(),
        }
    }
}

fn field(number: u32, content: &[u8]) -> Vec<u8> {
    let mut field = Vec::with_capacity(content.len() + 10);
    encode_varint(u64::from(number << 3 | 2), &mut field);
    encode_varint(content.len() as u64, &mut field);
    field.extend(content);
    field
}

/// Fields that are numbers.
fn numbers<const N: usize>(fields: [(u32, u64); N]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for (number, value) in fields {
        encode_varint(u64::from(number << 3), &mut encoded);
        encode_varint(value, &mut encoded);
    }
    encoded
}

/// The label with this key and number.
fn label(key: u64, number: u64) -> Vec<u8> {
    field(3, &numbers([(1, key), (3, number), (4, 1)]))
}

#[test]
fn a_file_that_unpacks_without_end_is_refused_when_it_is_large_enough() {
    let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    io::copy(&mut io::repeat(0).take(1 << 20), &mut member).expect("memory takes it");
    let member = member.finish().expect("memory takes it");
    // As they may stand one behind the other, this is 20 GB of zeros.
    let mut left = 20 << 10;
    let mut rest: &[u8] = &[];
    let mut bomb = Repeated(|buffer: &mut [u8]| {
        if rest.is_empty() && left > 0 {
            (rest, left) = (&member, left - 1);
        }
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        rest = &rest[len..];
        len
    });
    let error = read_within(&SMALL, &mut bomb).expect_err("refused");
    let expected = "the profile is too large: more than 16,777,216 bytes";
    assert_eq!(error.to_string(), expected);
    assert!(left > (20 << 10) - 32, "most of it is not even looked at");
}

struct Repeated<F>(F);

impl<F: FnMut(&mut [u8]) -> usize> Read for Repeated<F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok((self.0)(buffer))
    }
}

#[test]
fn tables_of_too_many_rows_are_refused() {
    for (number, unit) in [
        (1, "sample types"),
        (3, "mappings"),
        (4, "locations"),
        (5, "functions"),
        (6, "strings"),
    ] {
        let mut bomb = Bomb::new();
        bomb.0.extend(field(number, &[]).repeat(SMALL.rows + 1));
        assert_eq!(bomb.refused_for(), unit);
    }
    let mut bomb = Bomb::new();
    bomb.add(13, &vec![1; SMALL.rows + 1]);
    assert_eq!(bomb.refused_for(), "comments");
    let mut bomb = Bomb::new();
    bomb.add_location(1, (0..=SMALL.rows as i64).map(|line| line % 100));
    assert_eq!(bomb.refused_for(), "lines of locations");
}

#[test]
fn samples_with_too_much_of_anything_are_refused() {
    const MANY: usize = 1 << 21;
    for (number, content, unit) in [
        (1, vec![1; MANY + 1], "locations in a stack"),
        (2, vec![1; MANY + 1], "values in a sample"),
    ] {
        let mut bomb = Bomb::new();
        bomb.add(2, &field(number, &content));
        assert_eq!(bomb.refused_for(), unit);
    }
    let mut bomb = Bomb::new();
    bomb.add(2, &field(3, &[]).repeat(MANY + 1));
    assert_eq!(bomb.refused_for(), "labels of a sample");
    let mut bomb = Bomb::new();
    bomb.0.extend(field(2, &[]).repeat(SMALL.rows * 10));
    assert!(bomb.refused_for().contains("a sample has 0 values"));
}

#[test]
fn what_takes_too_much_memory_is_refused() {
    let labels = |key: u64| {
        let mut bomb = Bomb::new();
        bomb.add_location(1, [1].into_iter());
        for number in 1..600_000 {
            bomb.add_sample([1].into_iter(), &label(key, number));
        }
        bomb.refused_for()
    };
    assert_eq!(labels(1), "bytes in memory");
    // Threads have no text, but a row each.
    assert_eq!(labels(2), "bytes in memory");

    let mut bomb = Bomb::new();
    (1..100).for_each(|id| bomb.add_location(id, [id as i64].into_iter()));
    // All stacks differ from their second frame on.
    for first in 1..100 {
        for second in 1..100 {
            let rest = (0..250).map(move |index| 1 + (first * index + second) % 99);
            bomb.add_sample(rest.chain([second, first]), &[]);
        }
    }
    assert_eq!(bomb.refused_for(), "bytes in memory");
}

#[test]
fn long_stacks_and_names_of_a_small_file_are_refused() {
    let mut bomb = Bomb::new();
    bomb.add_location(1, (0..1_000).map(|line| line % 2));
    for _ in 0..20 {
        bomb.add_sample(std::iter::repeat_n(1, 1_000), &[]);
    }
    assert!(encoded_len_varint(bomb.0.len() as u64) < 4, "it is small");
    assert_eq!(bomb.refused_for(), "frames in all stacks");

    let mut bomb = Bomb::new();
    bomb.add(6, &[b'x'; 10_000]);
    for id in 2..1_000 {
        bomb.add(5, &numbers([(1, id), (2, 3), (5, id)]));
    }
    assert_eq!(bomb.refused_for(), "bytes of names");

    let mut bomb = Bomb::new();
    for number in 0..100_u64 {
        bomb.add(6, format!("{number:0>50000}").as_bytes());
        let text = numbers([(1, 1), (2, 3 + number)]);
        bomb.add_sample([].into_iter(), &field(3, &text));
    }
    assert_eq!(bomb.refused_for(), "bytes of names and labels");
}

#[test]
fn very_long_names_lose_their_end_only() {
    let mut bomb = Bomb::new();
    bomb.add(6, &[b'x'; 100_000]);
    bomb.add(6, &[0xff; 100_000]);
    bomb.add(5, &numbers([(1, 2), (2, 3), (4, 4)]));
    let profile = read_within(&SMALL, &mut bomb.0.as_slice()).expect("taken");
    let texts = profile.strings.iter().map(str::len);
    let most = rperf_report::one_line::MAX_NAME;
    assert!(texts.max().is_some_and(|len| len > most - 6 && len <= most));
}
