//! What is told of a graph, as JSON: printed, and kept in the files of `rperf heap -o`.

use serde::{Deserialize, Serialize};

/// What says which file it is.
const KIND: &str = "rperf heap";
const VERSION: u32 = 1;

/// A step from a holder down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathStep {
    /// What the class of its objects is called.
    pub class: String,
    /// The variable or field by which they are referred to; empty if it is none.
    pub name: String,
    /// How many there are.
    pub objects: u64,
    /// The bytes that would go with them.
    pub retained_bytes: u64,
}

/// A holder, or several of one name and class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The names by which it is held.
    pub name: String,
    /// What its class is called.
    pub class: String,
    /// How many objects are held by this name; 0 where it isn't told, as in files of older versions.
    #[serde(default)]
    pub held: u64,
    /// How many objects would go with these, and themselves.
    pub objects: u64,
    /// The bytes that would go with them.
    pub retained_bytes: u64,
    /// What it has.
    pub path: Vec<PathStep>,
    /// The name of the holder of which it is a part, whose bytes count it, too; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub within: String,
}

/// Objects of the tree of dominators: a holder, or those of one class that a row above refers to by one name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeRow {
    /// The number of the row above; none above holders.
    pub parent: Option<u32>,
    /// A holder's names; else the variable or field, or nothing.
    pub name: String,
    /// What the class is called; empty for rows that have objects of many.
    pub class: String,
    /// How many objects it has, with those below them that only the VM sees.
    pub objects: u64,
    /// The bytes of these.
    pub bytes: u64,
    /// How many objects the row and all rows below it have.
    pub retained_objects: u64,
    /// The bytes of these.
    pub retained_bytes: u64,
    /// Whether it is all that is cut from the row above: then it has no name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rest: bool,
}

/// The objects of a class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassRow {
    /// What it is called.
    pub name: String,
    /// How many there are.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that would go with all of them.
    pub retained_bytes: u64,
    /// Instances that nothing refers to.
    #[serde(default)]
    pub unreferenced: Sum,
}

/// A path on which instances of a class are held.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathRow {
    /// What holds them.
    pub holder: String,
    /// The classes of the objects from there to the instances, and the variables or fields that refer to them.
    pub steps: Vec<(String, String)>,
    /// How many instances there are.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The bytes that would go with each of them, together.
    pub retained_bytes: u64,
}

/// A place in code.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CodePlace {
    /// The method.
    pub method: String,
    /// Its file.
    pub path: String,
    /// The line; 0 if it isn't known.
    pub line: u32,
}

/// How some of a site's objects are held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SitePath {
    /// What holds them.
    pub holder: String,
    /// The classes of the objects from there, and the variables or fields that refer to them.
    pub steps: Vec<(String, String)>,
    /// Which part of the site's bytes, from 0 to 1.
    pub part: f64,
}

/// What a place in code has made of a class that is there still. All amounts are estimated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteRow {
    /// Where it was made; `None` if that isn't known.
    pub made_in: Option<CodePlace>,
    /// Where the application has called that, if it is another place.
    pub called_by: Option<CodePlace>,
    /// The endpoint or job that it was made for; empty for none.
    pub endpoint: String,
    /// What the class is called.
    pub class: String,
    /// How many samples there are.
    pub samples: u64,
    /// How many objects these stand for.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The standard deviation of the bytes.
    pub deviation_bytes: u64,
    /// Half of the objects are older than this, in ns.
    pub median_age_ns: u64,
    /// So many collections have begun since half of them were made, or more.
    pub median_collections: u64,
    /// The age of the oldest sample, in ns.
    pub oldest_ns: u64,
    /// How they are held, the most bytes first.
    pub held_by: Vec<SitePath>,
}

/// What the session in the program knows of where objects were made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sites {
    /// The class whose instances these are, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of_class: Option<String>,
    /// For how long it has run, in ns.
    pub session_ns: u64,
    /// Bytes of slots that a sample stands for at most, in the mean.
    pub bytes_per_sample: u64,
    /// Bytes of slots of objects that couldn't be followed.
    pub lost_bytes: u64,
    /// Samples whose objects something refers to.
    pub samples: u64,
    /// Samples whose objects nothing refers to: no row has them.
    pub unreferenced_samples: u64,
    /// What the samples stand for.
    pub total: Sum,
    /// The standard deviation of these bytes.
    pub deviation_bytes: u64,
    /// The sites, those with most bytes first.
    pub rows: Vec<SiteRow>,
}

/// Some objects, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sum {
    /// How many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The process, and when it was.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeapFacts {
    /// The process.
    pub pid: i32,
    /// Its command line.
    pub program: String,
    /// Its version of Ruby.
    pub ruby: String,
    /// When, in ns since 1970.
    pub time_ns: u64,
    /// How long it took.
    pub elapsed_ns: u64,
    /// When the process started, in the kernel's ticks; 0 in files of older versions.
    #[serde(default)]
    pub started: u64,
}

impl HeapFacts {
    /// Whether both are of one process, as far as they know. A program can change its title all the time, but
    /// in containers those that differ may have the same number.
    pub fn is_of_process_of(&self, other: &Self) -> bool {
        let is_one = match (self.started, other.started) {
            (0, _) | (_, 0) => self.program == other.program,
            (one, other) => one == other,
        };
        is_one && self.pid == other.pid && self.ruby == other.ruby
    }
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeapFile {
    /// The version of its form.
    pub version: u32,
    /// What it is.
    pub kind: String,
    /// The process, and when it was.
    #[serde(flatten)]
    pub facts: HeapFacts,
    /// Whether the names of classes, constants and variables are all there.
    pub whole: bool,
    /// All objects.
    pub total: Sum,
    /// Objects that nothing refers to: the next collection frees them.
    pub unreferenced: Sum,
    /// References.
    pub references: u64,
    /// The classes, those first whose instances have most bytes.
    pub classes: Vec<ClassRow>,
    /// The holders, the biggest first.
    pub holders: Vec<Holder>,
    /// The tree of dominators, if it was asked for: each row behind the one above it, the biggest first, and
    /// the rest last.
    #[serde(default)]
    pub tree: Option<Vec<TreeRow>>,
    /// The paths to the instances of the class that was asked for.
    #[serde(default)]
    pub paths: Option<Vec<PathRow>>,
    /// Where objects were made, if a session follows samples of them.
    #[serde(default)]
    pub sites: Option<Sites>,
}

/// Why something is no such file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoHeapFile {
    /// A file of another kind.
    #[error("it is no file of 'rperf heap -o'")]
    Other,
    /// A file of a later version.
    #[error("it was written by a later version of rperf")]
    Later,
}

impl HeapFile {
    /// A file without rows.
    pub fn of(facts: HeapFacts) -> Self {
        HeapFile {
            version: VERSION,
            kind: KIND.into(),
            facts,
            ..HeapFile::default()
        }
    }

    /// Whether classes with few bytes are left out.
    pub fn lacks_classes(&self) -> bool {
        let objects = self.classes.iter().map(|it| it.objects);
        objects.fold(0, u64::saturating_add) < self.total.objects
    }

    /// The JSON, with a line's end.
    pub fn to_json(&self) -> String {
        // Its keys are texts, so nothing can fail.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Reads one.
    pub fn read(bytes: &[u8]) -> Result<Self, NoHeapFile> {
        let file: HeapFile = serde_json::from_slice(bytes).map_err(|_| NoHeapFile::Other)?;
        match (&*file.kind, file.version) {
            (KIND, VERSION) => Ok(file),
            (KIND, _) => Err(NoHeapFile::Later),
            _ => Err(NoHeapFile::Other),
        }
    }
}
