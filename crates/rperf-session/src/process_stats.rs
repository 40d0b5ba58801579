//! What Ruby and the system have counted in a process, as a line of text that a
//! process leaves for the one which sums them up. Any thread.

use crate::os::{DiskStats, OsStats};
use rperf_report::memory::Memory;
use rperf_report::memory::rows::RowKind;
use std::fmt::Write;

/// In front of the names of what memory is of.
const MEMORY: &str = "memory_";

/// What Ruby has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RubyStats {
    /// Garbage collections.
    pub gc_count: u64,
    /// Minor ones among them.
    pub gc_minor: u64,
    /// Major ones among them.
    pub gc_major: u64,
    /// Time in them.
    pub gc_time_ms: u64,
    /// Objects made.
    pub allocated_objects: u64,
    /// Objects freed.
    pub freed_objects: u64,
    /// Methods and blocks that YJIT has compiled, if it is on.
    pub yjit_methods: Option<u64>,
    /// Share of instructions that ran in compiled code, if YJIT counts them.
    pub yjit_ratio: Option<f64>,
}

/// All statistics of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessStats {
    /// Ruby's.
    pub ruby: RubyStats,
    /// The system's.
    pub os: OsStats,
    /// What its memory was of at its end, if it has looked.
    pub memory: Option<MemoryStats>,
    /// For how long it was profiled, where several processes are summed up: the
    /// profile tells how long that took on the clock.
    pub profiled_ns: u64,
}

/// What the resident memory of a process was made of, in bytes: all but the first add up to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// The RSS.
    pub rss: u64,
    /// Live objects in Ruby's heap.
    pub heap: u64,
    /// The rest of that heap.
    pub heap_free: u64,
    /// What malloc has handed out.
    pub malloc: u64,
    /// What it keeps.
    pub malloc_free: u64,
    /// Code that compilers have made.
    pub code: u64,
    /// Stacks of threads and fibers.
    pub stacks: u64,
    /// Files.
    pub files: u64,
    /// All else.
    pub other: u64,
}

impl MemoryStats {
    /// The sums of these rows.
    pub fn of(memory: &Memory) -> Self {
        let mut sums = MemoryStats::default();
        for (kind, resident) in memory.rows.iter() {
            let sum = match kind {
                RowKind::HeapLive => &mut sums.heap,
                RowKind::HeapFree | RowKind::HeapEmpty => &mut sums.heap_free,
                RowKind::MallocObjects
                | RowKind::MallocCode
                | RowKind::MallocInUse
                | RowKind::MallocUnknown
                | RowKind::JitData => &mut sums.malloc,
                RowKind::MallocFree => &mut sums.malloc_free,
                RowKind::JitCode => &mut sums.code,
                RowKind::VmStacks | RowKind::ThreadStacks | RowKind::FiberStacks => {
                    &mut sums.stacks
                }
                RowKind::FilesRuby
                | RowKind::FilesLibraries
                | RowKind::FilesOther
                | RowKind::FilesWritten => &mut sums.files,
                RowKind::HeapAndOther | RowKind::Shared | RowKind::Other | RowKind::Together => {
                    &mut sums.other
                }
            };
            *sum += resident.rss;
            sums.rss += resident.rss;
        }
        sums
    }

    fn named(&mut self) -> [(&'static str, &mut u64); 9] {
        [
            ("rss", &mut self.rss),
            ("heap", &mut self.heap),
            ("heap_free", &mut self.heap_free),
            ("malloc", &mut self.malloc),
            ("malloc_free", &mut self.malloc_free),
            ("code", &mut self.code),
            ("stacks", &mut self.stacks),
            ("files", &mut self.files),
            ("other", &mut self.other),
        ]
    }
}

impl RubyStats {
    /// Adds those of another process, or of another program in the same one. A ratio
    /// of two processes is none of both.
    pub fn add(&mut self, mut other: Self) {
        for ((_, ours), (_, theirs)) in self.named().into_iter().zip(other.named()) {
            *ours = ours.saturating_add(*theirs);
        }
        self.yjit_methods = sum(self.yjit_methods, other.yjit_methods, u64::saturating_add);
        self.yjit_ratio = None;
    }

    /// What has been counted since it was `before`. A ratio is that of the whole process.
    pub fn since(mut self, mut before: Self) -> Self {
        for ((_, now), (_, then)) in self.named().into_iter().zip(before.named()) {
            *now = now.saturating_sub(*then);
        }
        self.yjit_methods = self
            .yjit_methods
            .map(|now| now.saturating_sub(before.yjit_methods.unwrap_or(0)));
        self
    }

    fn named(&mut self) -> [(&'static str, &mut u64); 6] {
        [
            ("gc_count", &mut self.gc_count),
            ("gc_minor", &mut self.gc_minor),
            ("gc_major", &mut self.gc_major),
            ("gc_time_ms", &mut self.gc_time_ms),
            ("allocated_objects", &mut self.allocated_objects),
            ("freed_objects", &mut self.freed_objects),
        ]
    }
}

impl OsStats {
    /// Adds those of another process; of memory the most is kept.
    pub fn add(&mut self, mut other: Self) {
        let most = self.max_rss_bytes.max(other.max_rss_bytes);
        for ((_, ours), (_, theirs)) in self.named().into_iter().zip(other.named()) {
            *ours = ours.saturating_add(*theirs);
        }
        self.max_rss_bytes = most;
        self.disk = sum(self.disk, other.disk, |ours, theirs| DiskStats {
            read_bytes: ours.read_bytes.saturating_add(theirs.read_bytes),
            write_bytes: ours.write_bytes.saturating_add(theirs.write_bytes),
        });
    }

    fn named(&mut self) -> [(&'static str, &mut u64); 5] {
        [
            ("user_ns", &mut self.user_ns),
            ("sys_ns", &mut self.sys_ns),
            ("max_rss_bytes", &mut self.max_rss_bytes),
            ("voluntary_switches", &mut self.voluntary_switches),
            ("involuntary_switches", &mut self.involuntary_switches),
        ]
    }
}

fn sum<T>(ours: Option<T>, theirs: Option<T>, add: impl FnOnce(T, T) -> T) -> Option<T> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(add(ours, theirs)),
        (ours, theirs) => ours.or(theirs),
    }
}

impl ProcessStats {
    /// The memory has been as large as it was seen at its end: the kernel counts pages of a process from
    /// time to time, and to look at the memory needs some.
    pub fn with_peak(mut self) -> Self {
        let seen = self.memory.map_or(0, |it| it.rss);
        self.os.max_rss_bytes = self.os.max_rss_bytes.max(seen);
        self
    }

    /// Adds those of another process; of memory that of the one with the most is kept.
    pub fn add(&mut self, other: Self) {
        self.ruby.add(other.ruby);
        self.os.add(other.os);
        self.keep_more_memory(other.memory);
        self.profiled_ns = self.profiled_ns.saturating_add(other.profiled_ns);
    }

    /// Keeps this memory instead of what is there, if there is more of it.
    pub fn keep_more_memory(&mut self, other: Option<MemoryStats>) {
        let both = [self.memory, other].into_iter().flatten();
        self.memory = both.max_by_key(|it| it.rss);
    }

    /// `name=value` with blanks between them.
    pub fn to_line(mut self) -> String {
        let mut line = String::new();
        let mut add = |name: &str, value: &dyn std::fmt::Display| {
            let gap = if line.is_empty() { "" } else { " " };
            // Writing to a String doesn't fail.
            let _ = write!(line, "{gap}{name}={value}");
        };
        let (yjit_methods, yjit_ratio) = (self.ruby.yjit_methods, self.ruby.yjit_ratio);
        let disk = self.os.disk;
        let mut memory = self.memory;
        for (name, value) in self.named() {
            add(name, value);
        }
        if let Some(methods) = yjit_methods {
            add("yjit_methods", &methods);
        }
        if let Some(ratio) = yjit_ratio {
            add("yjit_ratio", &ratio);
        }
        if let Some(disk) = disk {
            add("read_bytes", &disk.read_bytes);
            add("write_bytes", &disk.write_bytes);
        }
        for (name, value) in memory.iter_mut().flat_map(MemoryStats::named) {
            add(&format!("{MEMORY}{name}"), value);
        }
        line
    }

    /// The statistics in a line; what isn't there is 0.
    pub fn parse(line: &str) -> Self {
        let mut stats = Self::default();
        for (name, value) in line.split(' ').filter_map(|field| field.split_once('=')) {
            if name == "yjit_ratio" {
                stats.ruby.yjit_ratio = value.parse().ok();
            }
            let Ok(number) = value.parse() else {
                continue;
            };
            match name {
                "yjit_methods" => stats.ruby.yjit_methods = Some(number),
                "read_bytes" => stats.os.disk.get_or_insert_default().read_bytes = number,
                "write_bytes" => stats.os.disk.get_or_insert_default().write_bytes = number,
                name if name.starts_with(MEMORY) => {
                    let memory = stats.memory.get_or_insert_default();
                    for (known, place) in memory.named() {
                        if name.strip_prefix(MEMORY) == Some(known) {
                            *place = number;
                        }
                    }
                }
                _ => {
                    for (known, place) in stats.named() {
                        if known == name {
                            *place = number;
                        }
                    }
                }
            }
        }
        stats
    }

    /// All that every process has, by name.
    pub(crate) fn named(&mut self) -> impl Iterator<Item = (&'static str, &mut u64)> {
        let own = [("profiled_ns", &mut self.profiled_ns)];
        let counted = self.ruby.named().into_iter().chain(self.os.named());
        counted.chain(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> ProcessStats {
        let mut stats = ProcessStats::default();
        for (number, (_, value)) in stats.named().enumerate() {
            *value = number as u64 + 1;
        }
        stats.ruby.yjit_methods = Some(50);
        stats.ruby.yjit_ratio = Some(97.5);
        let mut memory = MemoryStats::default();
        for (number, (_, value)) in memory.named().into_iter().enumerate() {
            *value = 80 + number as u64;
        }
        stats.memory = Some(memory);
        stats.os.disk = Some(DiskStats {
            read_bytes: 60,
            write_bytes: 70,
        });
        stats
    }

    #[test]
    fn a_line_says_all_of_them() {
        assert_eq!(ProcessStats::parse(&stats().to_line()), stats());
        let none = ProcessStats::default();
        assert_eq!(ProcessStats::parse(&none.to_line()), none);
        assert_eq!(ProcessStats::parse("x= =y gc_count=-1 z=3"), none);
    }

    #[test]
    fn what_was_counted_before_is_taken_off() {
        let mut now = stats().ruby;
        now.gc_count = 11;
        now.yjit_methods = Some(53);
        let since = now.since(stats().ruby);
        assert_eq!((since.gc_count, since.gc_minor), (10, 0));
        assert_eq!(
            (since.yjit_methods, since.yjit_ratio),
            (Some(3), Some(97.5))
        );
        assert_eq!(now.since(RubyStats::default()), now);
    }

    #[test]
    fn they_add_up_but_for_memory() {
        let mut sum = stats();
        sum.ruby.add(stats().ruby);
        sum.os.add(stats().os);
        assert_eq!((sum.ruby.gc_count, sum.ruby.freed_objects), (2, 12));
        assert_eq!(
            (sum.ruby.yjit_methods, sum.ruby.yjit_ratio),
            (Some(100), None)
        );
        assert_eq!((sum.os.user_ns, sum.os.max_rss_bytes), (14, 9));
        assert_eq!(sum.os.disk.map(|disk| disk.write_bytes), Some(140));
        let largest = |one: Option<u64>, other: Option<u64>| {
            let of = |rss: Option<u64>| ProcessStats {
                memory: rss.map(|rss| MemoryStats {
                    rss,
                    ..MemoryStats::default()
                }),
                ..ProcessStats::default()
            };
            let mut sum = of(one);
            sum.add(of(other));
            sum.memory.map(|it| it.rss)
        };
        assert_eq!(largest(Some(5), Some(7)), Some(7));
        assert_eq!(
            (largest(Some(5), None), largest(None, Some(2))),
            (Some(5), Some(2))
        );
        let mut none = ProcessStats::default();
        none.os.add(stats().os);
        assert_eq!(none.os, stats().os);
    }
}
