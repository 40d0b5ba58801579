//! The reader of the stream. The program may be hostile: what it sends is bounded, and each number in it is
//! looked at before it is used.

use crate::graph::{Graph, NONE, Root};
use rperf_protocol::heap::kind::Kind;
use rperf_protocol::heap::sampled::{Place, Sample, Session, Site};
use rperf_protocol::heap::tags::{
    CALLED, END, GLOBALS, LONGEST_NAME, MAGIC, NAME, OBJECT, OBJECTS_END, ROOT, SAMPLE, SESSION,
    SITE,
};
use std::io::{self, BufRead};

/// Objects at most.
pub const MAX_OBJECTS: u64 = 64 << 20;
/// References at most.
pub const MAX_REFERENCES: u64 = 256 << 20;
/// Names, and roots, at most.
const MAX_NAMES: usize = 4 << 20;
/// Samples, and sites, at most.
const MAX_SAMPLES: usize = 1 << 20;
/// The mean gap between samples at most, in bytes.
const MAX_GAP: u64 = 1 << 40;
/// Bytes of all names at most.
const MAX_TEXT: usize = 256 << 20;
/// Bytes of all objects together: their sums are to have room.
const MAX_BYTES: u64 = 1 << 60;

/// Bytes of memory that an object takes, a reference, and a name, root or what something is called, until all
/// is told of them: with the tree of dominators, the paths, and lists that grow.
const PER_OBJECT: u64 = 160;
const PER_REFERENCE: u64 = 40;
const PER_NAME: u64 = 96;
/// Bytes of a site or a sample, with its row and the paths of that.
const PER_SITE: u64 = 512;

/// Why a stream gives no graph.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The stream ends before all has come that tells of what is held.
    #[error("it ended early")]
    Short,
    /// The stream is of another kind, or of another version.
    #[error("it is no graph of objects that this rperf can read")]
    Other,
    /// The stream is damaged.
    #[error("it is damaged")]
    Damaged,
    /// There are more objects or references than are read.
    #[error("it has more than 64 million objects, or 256 million references")]
    TooLarge,
    /// There is more than this machine has the memory for.
    #[error("this machine has too little free memory for so many objects and references")]
    NoMemory,
    /// The stream can't be read.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => ReadError::Short,
            _ => ReadError::Io(error),
        }
    }
}

/// Reads a graph, for which there is so much memory, in bytes. One that lacks nothing but global variables is
/// taken as it is: `is_whole` says so. Without some of the roots it would tell that nothing refers to what they hold.
pub fn read(input: impl BufRead, memory: u64) -> Result<Graph, ReadError> {
    let mut reader = Reader {
        input,
        graph: Graph {
            texts: vec!["".into()],
            starts: vec![0],
            ..Graph::default()
        },
        objects: 0,
        text: 0,
        sum: 0,
        samples: None,
        has_globals_only: false,
        memory,
    };
    reader.begin()?;
    let has_objects = reader.objects()?;
    match has_objects.then(|| reader.rest()) {
        Some(Ok(())) => reader.graph.is_whole = true,
        // It was ended meanwhile.
        Some(Err(ReadError::Short)) if reader.has_globals_only => {}
        Some(Err(error)) => return Err(error),
        None => return Err(ReadError::Damaged),
    }
    if !reader.has_all_samples() {
        return Err(ReadError::Damaged);
    }
    let mut graph = reader.graph;
    graph.called.sort_unstable();
    graph.called.dedup_by_key(|it| it.0);
    Ok(graph)
}

struct Reader<I> {
    input: I,
    graph: Graph,
    objects: u32,
    /// Bytes of all names so far.
    text: usize,
    /// Bytes of all objects so far.
    sum: u64,
    /// How many samples the session has.
    samples: Option<u64>,
    /// Whether what comes is global variables, after all else.
    has_globals_only: bool,
    /// Bytes of memory that are left.
    memory: u64,
}

impl<I: BufRead> Reader<I> {
    fn begin(&mut self) -> Result<(), ReadError> {
        let mut magic = [0; MAGIC.len()];
        self.input.read_exact(&mut magic)?;
        if &magic != MAGIC {
            return Err(ReadError::Other);
        }
        let objects = self.number()?;
        if objects > MAX_OBJECTS {
            return Err(ReadError::TooLarge);
        }
        self.objects = objects as u32;
        self.spend(objects * PER_OBJECT)
    }

    /// Takes this much of the memory.
    fn spend(&mut self, bytes: u64) -> Result<(), ReadError> {
        let rest = self.memory.checked_sub(bytes);
        self.memory = rest.ok_or(ReadError::NoMemory)?;
        Ok(())
    }

    /// Reads up to the end of the objects. Whether there are as many as it said.
    fn objects(&mut self) -> Result<bool, ReadError> {
        loop {
            match self.byte()? {
                NAME => self.name()?,
                OBJECT => self.object()?,
                OBJECTS_END => return Ok(self.graph.len() == self.objects as usize),
                _ => return Err(ReadError::Damaged),
            }
        }
    }

    /// Reads up to the end.
    fn rest(&mut self) -> Result<(), ReadError> {
        loop {
            match self.byte()? {
                NAME => self.name()?,
                ROOT => {
                    let root = Root {
                        category: self.name_number()?,
                        target: self.object_number()?,
                        variable: self.name_number()?,
                    };
                    if self.graph.roots.len() >= MAX_NAMES {
                        return Err(ReadError::TooLarge);
                    }
                    self.spend(PER_NAME)?;
                    self.graph.roots.push(root);
                }
                CALLED => {
                    let called = (self.object_number()?, self.name_number()?);
                    if self.graph.called.len() >= MAX_NAMES {
                        return Err(ReadError::TooLarge);
                    }
                    self.spend(PER_NAME)?;
                    self.graph.called.push(called);
                }
                SESSION => self.session()?,
                SITE => self.site()?,
                SAMPLE => self.sample()?,
                GLOBALS => self.has_globals_only = true,
                END => {
                    let references = self.number()?;
                    let is_all = references == self.graph.targets.len() as u64;
                    return match is_all && self.has_globals_only {
                        true => Ok(()),
                        false => Err(ReadError::Damaged),
                    };
                }
                _ => return Err(ReadError::Damaged),
            }
        }
    }

    fn has_all_samples(&self) -> bool {
        self.graph.sampled.samples.len() as u64 == self.samples.unwrap_or(0)
    }

    fn session(&mut self) -> Result<(), ReadError> {
        if self.samples.is_some() {
            return Err(ReadError::Damaged);
        }
        let session = Session {
            elapsed_ns: self.number()?,
            bytes_per_sample: self.number()?,
            lost_bytes: self.number()?,
        };
        self.samples = Some(self.number()?);
        self.graph.sampled.session = Some(session);
        Ok(())
    }

    fn site(&mut self) -> Result<(), ReadError> {
        let site = Site {
            made_in: self.place()?,
            called_by: self.place()?,
            endpoint: self.name_number()?,
        };
        if self.graph.sampled.sites.len() >= MAX_SAMPLES {
            return Err(ReadError::TooLarge);
        }
        self.spend(PER_SITE)?;
        self.graph.sampled.sites.push(site);
        Ok(())
    }

    fn place(&mut self) -> Result<Place, ReadError> {
        Ok(Place {
            method: self.name_number()?,
            path: self.name_number()?,
            line: u32::try_from(self.number()?).map_err(|_| ReadError::Damaged)?,
        })
    }

    fn sample(&mut self) -> Result<(), ReadError> {
        let sample = Sample {
            object: self.object_number()?,
            site: u32::try_from(self.number()?).map_err(|_| ReadError::Damaged)?,
            bytes: self.number()?,
            mean: self.number()?,
            age_ns: self.number()?,
            collections: self.number()?,
        };
        let gaps = 1..=MAX_GAP;
        if sample.site as usize > self.graph.sampled.sites.len()
            || !gaps.contains(&sample.bytes)
            || !gaps.contains(&sample.mean)
        {
            return Err(ReadError::Damaged);
        }
        if self.graph.sampled.samples.len() >= MAX_SAMPLES {
            return Err(ReadError::TooLarge);
        }
        self.spend(PER_SITE)?;
        self.graph.sampled.samples.push(sample);
        Ok(())
    }

    fn name(&mut self) -> Result<(), ReadError> {
        let length = self.number()? as usize;
        if length > LONGEST_NAME {
            return Err(ReadError::Damaged);
        }
        self.text += length;
        if self.graph.texts.len() > MAX_NAMES || self.text > MAX_TEXT {
            return Err(ReadError::TooLarge);
        }
        self.spend(PER_NAME + length as u64)?;
        let mut bytes = [0; LONGEST_NAME];
        self.input.read_exact(&mut bytes[..length])?;
        let text = String::from_utf8_lossy(&bytes[..length]);
        self.graph.texts.push(text.into());
        Ok(())
    }

    fn object(&mut self) -> Result<(), ReadError> {
        let own = self.graph.len() as u64;
        if own >= u64::from(self.objects) {
            return Err(ReadError::Damaged);
        }
        let kind = Kind(self.byte()?);
        let class = match self.number()? {
            0 => NONE,
            number if number <= u64::from(self.objects) => (number - 1) as u32,
            _ => return Err(ReadError::Damaged),
        };
        let bytes = self.number()?;
        self.sum = self.sum.saturating_add(bytes);
        let (named, others) = (self.number()?, self.number()?);
        let references = named.saturating_add(others);
        let all = references.saturating_add(self.graph.targets.len() as u64);
        if all > MAX_REFERENCES || self.sum > MAX_BYTES {
            return Err(ReadError::TooLarge);
        }
        self.spend(references * PER_REFERENCE)?;
        for place in 0..references {
            let name = match place < named {
                true => self.name_number()?,
                false => 0,
            };
            let coded = self.number()?;
            let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
            let target = (own as i64).checked_add(difference);
            let is_there = |it: &i64| (0..i64::from(self.objects)).contains(it);
            let target = target.filter(is_there).ok_or(ReadError::Damaged)?;
            self.graph.targets.push(target as u32);
            self.graph.names.push(name);
        }
        self.graph.kinds.push(kind);
        self.graph.classes.push(class);
        self.graph.bytes.push(bytes);
        self.graph.starts.push(self.graph.targets.len() as u32);
        Ok(())
    }

    fn name_number(&mut self) -> Result<u32, ReadError> {
        let number = self.number()?;
        match number < self.graph.texts.len() as u64 {
            true => Ok(number as u32),
            false => Err(ReadError::Damaged),
        }
    }

    fn object_number(&mut self) -> Result<u32, ReadError> {
        let number = self.number()?;
        match number < u64::from(self.objects) {
            true => Ok(number as u32),
            false => Err(ReadError::Damaged),
        }
    }

    fn byte(&mut self) -> Result<u8, ReadError> {
        let buffer = self.input.fill_buf()?;
        let Some(&byte) = buffer.first() else {
            return Err(ReadError::Short);
        };
        self.input.consume(1);
        Ok(byte)
    }

    fn number(&mut self) -> Result<u64, ReadError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ReadError::Damaged)
    }
}
