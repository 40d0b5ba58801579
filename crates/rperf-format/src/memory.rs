//! The file of `rperf memory`, as JSON: what the memory of a process was made of at one moment. Written
//! and read by the command; any thread.

use rperf_model::Order;
use rperf_report::memory::mappings::Resident;
use rperf_report::memory::rows::{RowKind, Rows};
use rperf_report::memory::{File, Memory, Pool};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// The version of the form.
const VERSION: u32 = 1;

/// What says that a file is one of these.
const KIND: &str = "rperf memory";

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryFile {
    /// The version of this form; later ones only add to it.
    pub version: u32,
    /// The kind of file, by which it is told from others.
    pub kind: String,
    /// The process.
    #[serde(flatten)]
    pub facts: MemoryFacts,
    /// All rows together: the RSS of the reading.
    pub total: Amounts,
    /// The rows.
    pub rows: Vec<MemoryRow>,
    /// The pools of Ruby's heap.
    #[serde(default)]
    pub pools: Vec<MemoryPool>,
    /// What malloc says.
    #[serde(default)]
    pub malloc: Option<MemoryMalloc>,
    /// The objects, if they were walked.
    #[serde(default)]
    pub objects: Option<MemoryObjects>,
    /// The files that are mapped.
    #[serde(default)]
    pub files: Vec<MappedFile>,
    /// What couldn't be known.
    #[serde(default)]
    pub lacks: Vec<Lack>,
}

/// Which process it is of, and how it was asked.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryFacts {
    /// Its number.
    pub pid: i32,
    /// What it calls itself.
    #[serde(default)]
    pub program: String,
    /// The version of Ruby; null if it has no port.
    #[serde(default)]
    pub ruby: Option<String>,
    /// The garbage collector; null if the VM hasn't said.
    #[serde(default)]
    pub collector: Option<String>,
    /// When this was, in nanoseconds since 1970.
    pub time_ns: u64,
    /// How long it took.
    #[serde(default)]
    pub elapsed_ns: u64,
    /// For how long the program's GVL was held for it without a break, at most.
    #[serde(default)]
    pub held_ns: u64,
    /// Whether the main thread was woken for it.
    #[serde(default)]
    pub woken: bool,
}

/// Bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Amounts {
    /// Resident.
    pub rss_bytes: u64,
    /// Resident, where each page counts for as many parts as processes share it.
    pub pss_bytes: u64,
    /// The part of the first that is shared with other processes.
    pub shared_bytes: u64,
    /// Swapped out.
    pub swap_bytes: u64,
}

impl AddAssign for Amounts {
    fn add_assign(&mut self, other: Self) {
        self.rss_bytes = self.rss_bytes.saturating_add(other.rss_bytes);
        self.pss_bytes = self.pss_bytes.saturating_add(other.pss_bytes);
        self.shared_bytes = self.shared_bytes.saturating_add(other.shared_bytes);
        self.swap_bytes = self.swap_bytes.saturating_add(other.swap_bytes);
    }
}

impl From<Resident> for Amounts {
    fn from(resident: Resident) -> Self {
        Amounts {
            rss_bytes: resident.rss,
            pss_bytes: resident.pss,
            shared_bytes: resident.shared,
            swap_bytes: resident.swap,
        }
    }
}

/// A row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRow {
    /// [`RowKind::name`].
    pub name: String,
    /// How much there is.
    #[serde(flatten)]
    pub amounts: Amounts,
}

impl MemoryRow {
    /// What it is called for people; the name of one that later versions have.
    pub fn title(&self) -> &str {
        match RowKind::from_name(&self.name) {
            Some(kind) => kind.title(),
            None => &self.name,
        }
    }
}

/// A pool of slots of one size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPool {
    /// The bytes of a slot.
    pub slot_bytes: u64,
    /// All slots.
    pub slots: u64,
    /// Slots with an object.
    pub live: u64,
    /// How much of its pages is resident.
    pub rss_bytes: u64,
}

/// What malloc says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryMalloc {
    /// Which one it is.
    pub allocator: String,
    /// How many heaps the arenas of glibc have, beside the one of `brk`.
    #[serde(default)]
    pub heaps: u64,
    /// Bytes that it has handed out, without the VM's stacks of threads.
    pub handed_out_bytes: u64,
    /// The part of these that isn't resident.
    pub untouched_bytes: u64,
    /// How long it took to ask it.
    #[serde(default)]
    pub elapsed_ns: u64,
}

/// What a walk of the objects has found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryObjects {
    /// How many there are.
    pub count: u64,
    /// Bytes that they have from malloc.
    pub malloc_bytes: u64,
    /// For how long the GVL was held for the walk.
    pub held_ns: u64,
}

/// A file that is mapped.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedFile {
    /// Its path.
    pub path: String,
    /// How much of it is resident.
    pub rss_bytes: u64,
    /// The part of that which the process has written to.
    pub written_bytes: u64,
}

/// Why something isn't known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The program has no port.
    Port,
    /// The program has one, and doesn't say this: why not.
    Answer(String),
    /// The kernel doesn't say which pages are resident.
    Pages,
    /// The collector has no pages that are known here.
    HeapPages,
    /// Malloc has no counts that are known here.
    Malloc,
    /// The VM can't walk its objects.
    Objects,
    /// A reason of a later version.
    #[serde(untagged)]
    Other(serde_json::Value),
}

/// Why a file isn't one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoMemoryFile {
    /// A file of another kind.
    #[error("it is no file of 'rperf memory -o'")]
    Other,
    /// The rows don't add up to the total: some are wrong, or missing.
    #[error("it is damaged: its rows don't add up")]
    Damaged,
}

impl MemoryFile {
    /// The file of this memory.
    pub fn of(facts: MemoryFacts, memory: &Memory) -> Self {
        MemoryFile {
            version: VERSION,
            kind: KIND.into(),
            facts,
            total: memory.rows.total().into(),
            rows: rows(&memory.rows),
            pools: memory.pools.iter().map(MemoryPool::from).collect(),
            files: memory.files.iter().map(MappedFile::from).collect(),
            ..MemoryFile::default()
        }
    }

    /// The JSON, with a line's end.
    pub fn to_json(&self) -> String {
        // Its keys are texts, so nothing can fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Looks whether this, which was read, is what it should be.
    pub fn check(self) -> Result<Self, NoMemoryFile> {
        if self.kind != KIND {
            return Err(NoMemoryFile::Other);
        }
        let rss = self
            .rows
            .iter()
            .map(|it| u128::from(it.amounts.rss_bytes))
            .sum::<u128>();
        match rss == u128::from(self.total.rss_bytes) {
            true => Ok(self),
            false => Err(NoMemoryFile::Damaged),
        }
    }

    /// The row with this name; nothing if there is none.
    pub fn row(&self, name: &str) -> Amounts {
        let row = self.rows.iter().find(|it| it.name == name);
        row.map_or_else(Amounts::default, |it| it.amounts)
    }

    /// The names of the rows that one of the two has, in their order.
    pub fn names_of_both<'a>(&'a self, other: &'a Self) -> Vec<&'a MemoryRow> {
        let place =
            |row: &MemoryRow| RowKind::from_name(&row.name).map_or(usize::MAX, |it| it as usize);
        let mut rows: Vec<&MemoryRow> = self.rows.iter().collect();
        let known = |it: &&MemoryRow| !self.rows.iter().any(|row| row.name == it.name);
        rows.extend(other.rows.iter().filter(known));
        rows.order_by_key(|it| place(it));
        rows
    }
}

fn rows(rows: &Rows) -> Vec<MemoryRow> {
    let rows = rows.iter().map(|(kind, resident)| MemoryRow {
        name: kind.name().into(),
        amounts: resident.into(),
    });
    rows.collect()
}

impl From<&Pool> for MemoryPool {
    fn from(pool: &Pool) -> Self {
        MemoryPool {
            slot_bytes: pool.slot_bytes,
            slots: pool.slots,
            live: pool.live,
            rss_bytes: pool.resident.rss,
        }
    }
}

impl From<&File> for MappedFile {
    fn from(file: &File) -> Self {
        MappedFile {
            path: file.path.clone(),
            rss_bytes: file.resident.rss,
            written_bytes: file.written,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts(rss_bytes: u64) -> Amounts {
        Amounts {
            rss_bytes,
            ..Amounts::default()
        }
    }

    fn file(rows: &[(&str, u64)]) -> MemoryFile {
        let rows = rows.iter().map(|&(name, rss)| MemoryRow {
            name: name.into(),
            amounts: amounts(rss),
        });
        let rows: Vec<_> = rows.collect();
        MemoryFile {
            version: VERSION,
            kind: KIND.into(),
            total: amounts(rows.iter().map(|it| it.amounts.rss_bytes).sum()),
            rows,
            lacks: vec![Lack::Port, Lack::Answer("why".into())],
            ..MemoryFile::default()
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let file = file(&[("heap_live", 5), ("other", 7)]);
        let json = file.to_json();
        let lacks = r#""lacks":["port",{"answer":"why"}]"#;
        assert!(json.contains(lacks) && json.contains(r#"{"name":"heap_live","rss_bytes":5,"#));
        let read: MemoryFile = serde_json::from_str(&json).expect("JSON");
        assert_eq!(read.check(), Ok(file));
        let later = json.replace(r#""port""#, r#"{"moon":1}"#);
        let read: MemoryFile = serde_json::from_str(&later).expect("JSON");
        assert!(matches!(read.lacks[0], Lack::Other(_)));
    }

    #[test]
    fn another_file_is_none_and_a_damaged_one_is_told() {
        let good = file(&[("heap_live", 5)]);
        let other = MemoryFile {
            kind: "x".into(),
            ..good.clone()
        };
        assert_eq!(other.check(), Err(NoMemoryFile::Other));
        let damaged = MemoryFile {
            total: amounts(6),
            ..good
        };
        assert_eq!(damaged.check(), Err(NoMemoryFile::Damaged));
    }

    #[test]
    fn rows_of_two_files_come_in_their_order() {
        let (one, other) = (
            file(&[("heap_live", 1), ("other", 2)]),
            file(&[("x", 3), ("malloc_free", 4), ("other", 5)]),
        );
        let names: Vec<_> = one
            .names_of_both(&other)
            .iter()
            .map(|it| &*it.name)
            .collect();
        assert_eq!(names, ["heap_live", "malloc_free", "other", "x"]);
        assert_eq!(other.row("malloc_free").rss_bytes, 4);
        assert_eq!(other.row("heap_live"), Amounts::default());
    }
}
