//! The writer of the stream, in the program's forked child. It allocates its buffer, and nothing else.

use super::kind::Kind;
use super::sampled::{Place, Sample, Session, Site};
pub use super::tags::LONGEST_NAME;
use super::tags::{
    CALLED, END, GLOBALS, MAGIC, NAME, OBJECT, OBJECTS_END, ROOT, SAMPLE, SESSION, SITE,
};

/// How many bytes are sent at a time.
const PIECE: usize = 64 << 10;

/// Takes bytes; false if nobody takes them any more.
pub trait Sink {
    /// Takes all of these.
    fn take(&mut self, bytes: &[u8]) -> bool;
}

/// A reference of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The number of its name; 0 if it has none.
    pub name: u32,
    /// The object's number.
    pub target: u32,
}

/// An object.
#[derive(Debug, Clone, Copy)]
pub struct Object<'a> {
    /// Its kind.
    pub kind: Kind,
    /// The number of its class, if that is an object of the graph.
    pub class: Option<u32>,
    /// Its bytes, with its slot.
    pub bytes: u64,
    /// References that have names.
    pub named: &'a [Reference],
    /// Objects that it refers to otherwise.
    pub others: &'a [u32],
}

/// The writer. Each of its methods returns false once nobody reads any more.
pub struct Writer<S> {
    sink: S,
    buffer: Vec<u8>,
    objects: u32,
    references: u64,
    names: u32,
}

impl<S: Sink> Writer<S> {
    /// Begins a stream of so many objects.
    pub fn begin(sink: S, objects: u32) -> Self {
        let mut writer = Writer {
            sink,
            buffer: Vec::with_capacity(PIECE + (PIECE >> 2)),
            objects: 0,
            references: 0,
            names: 0,
        };
        writer.buffer.extend_from_slice(MAGIC);
        writer.number(u64::from(objects));
        writer
    }

    /// Writes a name, of which so much is kept as there may be. Its number.
    pub fn name(&mut self, text: &[u8]) -> u32 {
        let text = &text[..text.len().min(LONGEST_NAME)];
        self.buffer.push(NAME);
        self.number(text.len() as u64);
        self.buffer.extend_from_slice(text);
        self.names += 1;
        self.names
    }

    /// Writes the next object.
    pub fn object(&mut self, object: &Object<'_>) -> bool {
        let own = self.objects;
        self.objects += 1;
        self.references += (object.named.len() + object.others.len()) as u64;
        self.buffer.extend_from_slice(&[OBJECT, object.kind.0]);
        self.number(object.class.map_or(0, |it| u64::from(it) + 1));
        self.number(object.bytes);
        self.number(object.named.len() as u64);
        self.number(object.others.len() as u64);
        for reference in object.named {
            self.number(u64::from(reference.name));
            self.difference(own, reference.target);
        }
        let mut is_read = true;
        for &target in object.others {
            self.difference(own, target);
            if self.buffer.len() >= PIECE {
                is_read &= self.send();
            }
        }
        is_read && (self.buffer.len() < PIECE || self.send())
    }

    /// All objects were written.
    pub fn end_objects(&mut self) -> bool {
        self.buffer.push(OBJECTS_END);
        self.send()
    }

    /// Writes a root: the name of its category, and that of its variable, or 0.
    pub fn root(&mut self, category: u32, target: u32, variable: u32) -> bool {
        self.buffer.push(ROOT);
        self.number(u64::from(category));
        self.number(u64::from(target));
        self.number(u64::from(variable));
        self.buffer.len() < PIECE || self.send()
    }

    /// Writes what an object is called.
    pub fn called(&mut self, object: u32, name: u32) -> bool {
        self.buffer.push(CALLED);
        self.number(u64::from(object));
        self.number(u64::from(name));
        self.buffer.len() < PIECE || self.send()
    }

    /// Writes the session that follows samples, of which so many come.
    pub fn session(&mut self, session: &Session, samples: u64) {
        self.buffer.push(SESSION);
        self.number(session.elapsed_ns);
        self.number(session.bytes_per_sample);
        self.number(session.lost_bytes);
        self.number(samples);
    }

    /// Writes the next site.
    pub fn site(&mut self, site: &Site) -> bool {
        self.buffer.push(SITE);
        for Place { method, path, line } in [site.made_in, site.called_by] {
            self.number(u64::from(method));
            self.number(u64::from(path));
            self.number(u64::from(line));
        }
        self.number(u64::from(site.endpoint));
        self.buffer.len() < PIECE || self.send()
    }

    /// Writes a sample.
    pub fn sample(&mut self, sample: &Sample) -> bool {
        self.buffer.push(SAMPLE);
        self.number(u64::from(sample.object));
        self.number(u64::from(sample.site));
        self.number(sample.bytes);
        self.number(sample.mean);
        self.number(sample.age_ns);
        self.number(sample.collections);
        self.buffer.len() < PIECE || self.send()
    }

    /// All was written but global variables.
    pub fn begin_globals(&mut self) -> bool {
        self.buffer.push(GLOBALS);
        self.send()
    }

    /// Writes the end.
    pub fn end(mut self) -> bool {
        self.buffer.push(END);
        self.number(self.references);
        self.send()
    }

    /// Sends what there is.
    pub fn send(&mut self) -> bool {
        let is_taken = self.sink.take(&self.buffer);
        self.buffer.clear();
        is_taken
    }

    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.buffer.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.buffer.push(number as u8);
    }

    fn difference(&mut self, own: u32, target: u32) {
        let difference = i64::from(target) - i64::from(own);
        self.number(((difference << 1) ^ (difference >> 63)) as u64);
    }
}
