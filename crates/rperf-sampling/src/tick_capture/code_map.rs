//! Where the process has code that belongs to no file, as a just-in-time compiler makes
//! it. Read from /proc/self/maps (proc(5)) by the thread that empties the log; asked by
//! the signal handler.

use std::fs;
use std::ops::Range;

/// Mappings in a row that a compiler may yet fill are taken as one of at most this length.
const LONGEST: usize = 1 << 30;

/// What is known of the process's code.
#[derive(Debug, Default)]
pub struct CodeMap {
    compiled: Vec<Range<usize>>,
    of_files: Vec<Range<usize>>,
}

impl CodeMap {
    /// The map as it is now; empty if the system doesn't tell.
    #[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
    pub fn read() -> Self {
        Self::parse(&fs::read_to_string("/proc/self/maps").unwrap_or_default())
    }

    /// A map of this compiled code alone.
    #[cfg(test)]
    pub(super) fn of_compiled(code: Range<usize>) -> Self {
        Self {
            compiled: vec![code],
            of_files: Vec::new(),
        }
    }

    fn parse(maps: &str) -> Self {
        let mut map = Self::default();
        // The last one begins with code of no file, and what follows may become code.
        let mut grows = false;
        for line in maps.lines() {
            let Some(Mapping {
                start,
                end,
                is_code,
                is_of_file,
            }) = Mapping::parse(line)
            else {
                continue;
            };
            let last = map.compiled.last_mut().filter(|_| grows && !is_of_file);
            match last.filter(|last| last.end == start && end - last.start <= LONGEST) {
                Some(last) => last.end = end,
                None => {
                    grows = is_code && !is_of_file;
                    if is_code {
                        let list = if is_of_file {
                            &mut map.of_files
                        } else {
                            &mut map.compiled
                        };
                        list.push(start..end);
                    }
                }
            }
        }
        map
    }

    /// The compiled code around `address`, if that is any. Async-signal-safe.
    pub fn compiled_around(&self, address: usize) -> Option<Range<usize>> {
        let range = self
            .compiled
            .iter()
            .find(|range| range.contains(&address))?;
        Some(range.clone())
    }

    /// Whether nothing is known of code at `address`. Async-signal-safe.
    pub fn lacks(&self, address: usize) -> bool {
        let mut ranges = self.compiled.iter().chain(&self.of_files);
        !ranges.any(|range| range.contains(&address))
    }
}

/// A line of the map.
struct Mapping {
    start: usize,
    end: usize,
    is_code: bool,
    is_of_file: bool,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        // Offset, device, inode, and then perhaps a name: of a file, of the kernel's
        // ("[vdso]"), or one that the process has given to memory ("[anon:...]").
        let name = fields.nth(3).unwrap_or_default();
        Some(Self {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            is_code: permissions.contains('x'),
            is_of_file: !name.is_empty() && !name.starts_with("[anon:"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
        1000-2000 r-xp 00001000 fe:00 10 /usr/bin/ruby\n\
        2000-3000 rw-p 00000000 00:00 0 [heap]\n\
        5000-6000 r-xp 00000000 00:00 0 \n\
        6000-7000 rw-p 00000000 00:00 0\n\
        7000-9000 ---p 00000000 00:00 0 [anon:Ruby:code]\n\
        9000-a000 rw-p 00000000 fe:00 11 /usr/lib/libc.so.6\n\
        a000-b000 r-xp 00001000 fe:00 11 /usr/lib/libc.so.6 (deleted)\n\
        c000-d000 rw-p 00000000 00:00 0\n\
        e000-f000 r-xp 00000000 00:00 0 [vdso]\n\
        nonsense\n";

    #[test]
    fn code_of_no_file_is_compiled_with_the_room_that_follows_it() {
        let map = CodeMap::parse(MAPS);
        for compiled in [0x5000, 0x8fff] {
            assert_eq!(map.compiled_around(compiled), Some(0x5000..0x9000));
        }
        for other in [0x1000, 0x4fff, 0x9000] {
            assert_eq!(map.compiled_around(other), None);
        }
    }

    #[test]
    fn code_of_files_and_of_the_kernel_is_known() {
        let map = CodeMap::parse(MAPS);
        for known in [0x1000, 0x5000, 0xafff, 0xe000] {
            assert!(!map.lacks(known));
        }
        for unknown in [0x2000, 0xc000, 0xffff] {
            assert!(map.lacks(unknown));
        }
    }

    #[test]
    fn ones_own_functions_are_code_of_a_file() {
        let map = CodeMap::read();
        let own = CodeMap::read as fn() -> CodeMap as usize;
        assert_eq!(map.lacks(own), !cfg!(target_os = "linux"));
        assert_eq!(map.compiled_around(own), None);
    }
}
