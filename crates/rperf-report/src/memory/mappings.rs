//! The mappings of a process, as `/proc/PID/smaps` of Linux lists them.

use std::ops::AddAssign;

/// How much of something is resident, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resident {
    /// Resident: what adds up to the RSS.
    pub rss: u64,
    /// Resident, where each page counts for as many parts as processes share it.
    pub pss: u64,
    /// The part of `rss` that other processes map, too.
    pub shared: u64,
    /// Swapped out, so not resident.
    pub swap: u64,
}

impl AddAssign for Resident {
    fn add_assign(&mut self, other: Self) {
        self.rss += other.rss;
        self.pss += other.pss;
        self.shared += other.shared;
        self.swap += other.swap;
    }
}

/// What is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file; or memory that the kernel has for a process and its children.
    File,
    /// The heap that grows by `brk`.
    Break,
    /// The stack of the first thread.
    MainStack,
    /// Memory without a name, or with one that the process has given it.
    Anonymous,
    /// The kernel's own, such as `[vdso]`.
    Kernel,
}

/// A mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// Its first address.
    pub start: u64,
    /// The one behind its last.
    pub end: u64,
    /// Whether anything may be done with it but keeping its addresses.
    pub is_accessible: bool,
    /// Whether it may be written to.
    pub is_writable: bool,
    /// Whether it may be executed.
    pub is_executable: bool,
    /// Whether what is written to it is seen by all that map it.
    pub is_shared: bool,
    /// Whether the kernel reserves no memory for what may be written to it; `None` if it doesn't say.
    pub is_unreserved: Option<bool>,
    /// What it is of.
    pub kind: Kind,
    /// The path of its file, or its name.
    pub name: String,
    /// How much of it is resident.
    pub resident: Resident,
    /// The part of that which was written to and belongs to this process alone.
    pub written: u64,
}

impl Mapping {
    /// Its length in bytes.
    pub fn size(&self) -> u64 {
        self.end - self.start
    }

    /// Whether it is memory that the process has asked for, rather than a file's.
    pub fn is_anonymous(&self) -> bool {
        matches!(self.kind, Kind::Anonymous | Kind::Break | Kind::MainStack)
    }
}

/// What the line of a mapping's flags begins with, and the flag of one without reserved memory.
const FLAGS: &str = "VmFlags:";
const UNRESERVED: &str = "nr";

/// The mappings in the kernel's text, in the order of their addresses. A line that isn't understood is
/// skipped.
pub fn mappings(text: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in text.lines() {
        match (field(line), found.last_mut()) {
            (None, Some(mapping)) if line.starts_with(FLAGS) => {
                let mut flags = line[FLAGS.len()..].split_ascii_whitespace();
                mapping.is_unreserved = Some(flags.any(|it| it == UNRESERVED));
            }
            (Some((name, bytes)), Some(mapping)) => note(mapping, name, bytes),
            _ => found.extend(head(line)),
        }
    }
    found
}

/// `Rss:    12 kB`: its name, and the bytes.
fn field(line: &str) -> Option<(&str, u64)> {
    let (name, rest) = line.split_once(':')?;
    Some((name, bytes_of_kb(rest)?))
}

/// The bytes in `12 kB`.
pub fn bytes_of_kb(value: &str) -> Option<u64> {
    let number: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    number.checked_mul(1024)
}

fn note(mapping: &mut Mapping, name: &str, bytes: u64) {
    let resident = &mut mapping.resident;
    match name {
        "Rss" => resident.rss = bytes,
        "Pss" => resident.pss = bytes,
        "Shared_Clean" | "Shared_Dirty" => resident.shared += bytes,
        "Private_Dirty" => mapping.written = bytes,
        "Swap" => resident.swap = bytes,
        _ => {}
    }
}

/// `7f00-7f10 rw-p 00000000 00:00 0    name`.
fn head(line: &str) -> Option<Mapping> {
    let mut rest = line;
    let mut word = || {
        let text = rest.trim_start();
        let (word, after) = text.split_once(' ').unwrap_or((text, ""));
        rest = after;
        word
    };
    let (start, end) = word().split_once('-')?;
    let (start, end) = (number(start)?, number(end)?);
    let rights = word().as_bytes();
    if start >= end || rights.len() < 4 {
        return None;
    }
    let _offset = word();
    let _device = word();
    let _inode = word();
    let name = rest.trim();
    Some(Mapping {
        start,
        end,
        is_accessible: rights[..3] != *b"---",
        is_writable: rights[1] == b'w',
        is_executable: rights[2] == b'x',
        is_shared: rights[3] == b's',
        is_unreserved: None,
        kind: kind(name),
        name: name.into(),
        resident: Resident::default(),
        written: 0,
    })
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

fn kind(name: &str) -> Kind {
    match name {
        "" => Kind::Anonymous,
        "[heap]" => Kind::Break,
        "[stack]" => Kind::MainStack,
        _ if name.starts_with("[anon") => Kind::Anonymous,
        _ if name.starts_with('[') => Kind::Kernel,
        _ => Kind::File,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_have_what_the_kernel_says() {
        let text = "\
55d0a000-55d0c000 r-xp 00001000 fe:01 1234                       /usr/bin/a b (deleted)
Size:                  8 kB
Rss:                   8 kB
Pss:                   3 kB
Shared_Clean:          8 kB
Private_Dirty:         0 kB
VmFlags: rd ex mr mw me
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
Rss:                1024 kB
Pss:                1024 kB
Shared_Dirty:          4 kB
Private_Dirty:      1020 kB
Swap:                 12 kB
VmFlags: rd wr mr mw me nr 
7f0000200000-7f0000201000 ---p 00000000 00:00 0 
nonsense
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                  [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0          [vsyscall]
7fff00000000-7fff00001000 rw-p 00000000 00:00 0                  [anon:Ruby:x]
";
        let found = mappings(text);
        let kinds: Vec<_> = found.iter().map(|it| it.kind).collect();
        use Kind::{Anonymous, File, Kernel, MainStack};
        assert_eq!(
            kinds,
            [File, Anonymous, Anonymous, MainStack, Kernel, Anonymous]
        );
        assert_eq!(found[0].name, "/usr/bin/a b (deleted)");
        assert!(found[0].is_executable && !found[0].is_writable);
        let resident = Resident {
            rss: 1 << 20,
            pss: 1 << 20,
            shared: 4096,
            swap: 12 << 10,
        };
        assert_eq!(
            (found[1].resident, found[1].written),
            (resident, 1020 << 10)
        );
        assert_eq!(found[1].size(), 2 << 20);
        let unreserved = [0, 1, 2].map(|place| found[place].is_unreserved);
        assert_eq!(unreserved, [Some(false), Some(true), None]);
        assert!(found[1].is_accessible && !found[2].is_accessible);
        assert_eq!(mappings("").len(), 0);
    }
}
