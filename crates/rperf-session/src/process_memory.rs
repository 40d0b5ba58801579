//! What the kernel says of the memory of a process, this one or another one of the same user: its
//! mappings, which of its pages are resident, and where its threads have their stacks. Nothing of the
//! memory itself is read. Used by the command, and by the extension at a program's end; any thread.

#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::disallowed_methods,
        reason = "the kernel's files, which nobody can exchange"
    )
)]

use rperf_report::memory::mappings::{Mapping, mappings};
use rperf_report::memory::parts::Pages;
use rperf_report::memory::told::Told;
use rperf_report::memory::{Memory, Reading};
use std::io;

/// Why the memory of a process can't be looked at.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The system has no such files: only Linux does.
    #[error("only Linux tells what is resident")]
    System,
    /// The kernel doesn't let this user do it.
    #[error("the kernel refuses it: its user or root may, unless the program has forbidden it")]
    Refused,
    /// The kernel doesn't even let root do it.
    #[error("the kernel refuses it, even to root: this container or system forbids it")]
    RefusedToRoot,
    /// The process is a thread of the kernel.
    #[error("it is a thread of the kernel, which has no memory of its own")]
    Kernel,
    /// The process has ended.
    #[error("the process has ended")]
    Gone,
    /// Emulators of a system, or of another CPU, list mappings, but no page of them.
    #[error("this system tells of no page that is resident")]
    Untold,
    /// Something else is wrong.
    #[error(transparent)]
    Io(io::Error),
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => match nix::unistd::geteuid().is_root() {
                true => Unreadable::RefusedToRoot,
                false => Unreadable::Refused,
            },
            Some(libc::ENOENT | libc::ESRCH) => Unreadable::Gone,
            _ => Unreadable::Io(error),
        }
    }
}

/// What the kernel said at one moment.
pub struct Taken {
    mappings: Vec<Mapping>,
    threads: Vec<u64>,
    page: u64,
}

impl Taken {
    /// What it says of the process now.
    pub fn of(pid: i32) -> Result<Self, Unreadable> {
        let text = system::mappings(pid)?;
        let mappings = mappings(&text);
        if mappings.is_empty() {
            // Or one that has ended, and that nobody has waited for.
            return Err(match system::is_kernels(pid) {
                true => Unreadable::Kernel,
                false => Unreadable::Gone,
            });
        }
        if !tells_pages(&mappings) {
            return Err(Unreadable::Untold);
        }
        Ok(Taken {
            mappings,
            threads: system::thread_blocks(pid),
            page: system::page(),
        })
    }

    /// The rows, with what the program has told. The process is still `pid`.
    pub fn rows(&self, pid: i32, told: &Told) -> Memory {
        let mut pagemap = system::Pagemap::of(pid);
        let reading = Reading {
            mappings: &self.mappings,
            threads: &self.threads,
            page: self.page,
        };
        Memory::of(reading, told, |start, end, most| {
            pagemap.count(start, end, most)
        })
    }
}

/// Whether any page is told of: no process runs without one.
fn tells_pages(mappings: &[Mapping]) -> bool {
    let mut resident = mappings.iter().map(|it| it.resident);
    resident.any(|it| it.rss > 0 || it.swap > 0)
}

#[cfg(target_os = "linux")]
mod system {
    use super::{Pages, Unreadable};
    use crate::kernel_text::name_and_fields;
    use std::ffi::c_void;
    use std::fs::{self, File};
    use std::io;
    use std::os::unix::fs::FileExt;
    use std::ptr;

    /// Bytes that the kernel has for each page.
    const ENTRY: u64 = 8;
    /// Entries that are read at once.
    const AT_ONCE: u64 = 16 << 10;
    /// The bits of an entry.
    const RESIDENT: u64 = 1 << 63;
    const SWAPPED: u64 = 1 << 62;
    const EXCLUSIVE: u64 = 1 << 56;
    /// The flag of a process that is one of the kernel's threads.
    const KERNEL: u64 = 0x20_0000;

    pub fn mappings(pid: i32) -> Result<String, Unreadable> {
        let bytes = fs::read(format!("/proc/{pid}/smaps"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Whether it is a thread of the kernel, by the flags of the process.
    pub fn is_kernels(pid: i32) -> bool {
        let text = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        flags(&String::from_utf8_lossy(&text)).is_some_and(|it| it & KERNEL != 0)
    }

    /// The seventh field behind the name.
    pub fn flags(stat: &str) -> Option<u64> {
        let (_, fields) = name_and_fields(stat)?;
        fields.split_ascii_whitespace().nth(6)?.parse().ok()
    }

    pub fn page() -> u64 {
        let size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
        let size = size.ok().flatten();
        size.and_then(|it| u64::try_from(it).ok()).unwrap_or(4096)
    }

    /// An address in the block that the C library keeps of each thread but the first, at the upper end of
    /// its stack. The C library has told the kernel for its robust mutexes. A thread that has none is left
    /// out.
    pub fn thread_blocks(pid: i32) -> Vec<u64> {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        let tasks = tasks.into_iter().flatten().flatten();
        let tids = tasks.filter_map(|it| it.file_name().to_str()?.parse().ok());
        tids.filter(|&tid: &i32| tid != pid)
            .filter_map(thread_block)
            .collect()
    }

    fn thread_block(tid: i32) -> Option<u64> {
        let mut head: *mut c_void = ptr::null_mut();
        let mut length: usize = 0;
        // SAFETY: the kernel writes two words, for which there is room. What it has of the thread is an
        // address in that thread's process, which isn't used as one here.
        let result = unsafe {
            libc::syscall(
                libc::SYS_get_robust_list,
                tid,
                &raw mut head,
                &raw mut length,
            )
        };
        Some(head.addr() as u64).filter(|&it| result == 0 && it != 0)
    }

    /// The pages of a process, as the kernel lists them.
    pub struct Pagemap {
        file: Option<File>,
        page: u64,
        bytes: Vec<u8>,
    }

    impl Pagemap {
        pub fn of(pid: i32) -> Self {
            Pagemap {
                file: File::open(format!("/proc/{pid}/pagemap")).ok(),
                page: page(),
                bytes: Vec::new(),
            }
        }

        /// The pages that begin from one address to another, in bytes, until so many are found that are
        /// resident or swapped out; `None` if they can't be read.
        pub fn count(&mut self, start: u64, end: u64, most: u64) -> Option<Pages> {
            let mut pages = Pages::default();
            let (mut next, last) = (start.div_ceil(self.page), end.div_ceil(self.page));
            while next < last && pages.resident + pages.swapped < most {
                let count = (last - next).min(AT_ONCE);
                self.read(next, count).ok()?;
                let (entries, _) = self.bytes.as_chunks();
                for entry in entries.iter().map(|it| u64::from_ne_bytes(*it)) {
                    let size = |is_so: bool| if is_so { self.page } else { 0 };
                    let is_resident = entry & RESIDENT != 0;
                    pages.resident += size(is_resident);
                    pages.exclusive += size(is_resident && entry & EXCLUSIVE != 0);
                    pages.swapped += size(entry & SWAPPED != 0);
                }
                next += count;
            }
            Some(pages)
        }

        fn read(&mut self, first: u64, count: u64) -> io::Result<()> {
            let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
            self.bytes.resize((count * ENTRY) as usize, 0);
            file.read_exact_at(&mut self.bytes, first * ENTRY)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Pages, Unreadable};

    pub fn mappings(_: i32) -> Result<String, Unreadable> {
        Err(Unreadable::System)
    }

    pub fn is_kernels(_: i32) -> bool {
        false
    }

    pub fn page() -> u64 {
        4096
    }

    pub fn thread_blocks(_: i32) -> Vec<u64> {
        Vec::new()
    }

    pub struct Pagemap;

    impl Pagemap {
        pub fn of(_: i32) -> Self {
            Pagemap
        }

        pub fn count(&mut self, _: u64, _: u64, _: u64) -> Option<Pages> {
            None
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rperf_report::memory::rows::RowKind;
    use std::process::Command;
    use std::sync::mpsc::channel;
    use std::thread;

    fn own() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn a_threads_stack_is_found_and_grows() {
        const USED: usize = 1 << 20;
        let stacks = || {
            let taken = Taken::of(own()).expect("this process");
            let memory = taken.rows(own(), &Told::default());
            memory.rows.of(RowKind::ThreadStacks).rss
        };
        let (ready, is_ready) = channel();
        let (over, is_over) = channel::<()>();
        let before = stacks();
        let thread = thread::Builder::new().stack_size(8 << 20);
        let thread = thread.spawn(move || {
            let used = [1_u8; USED];
            ready.send(std::hint::black_box(&used)[7]).expect("sent");
            let _ = is_over.recv();
            std::hint::black_box(&used)[9]
        });
        is_ready.recv().expect("ready");
        let grown = stacks() - before;
        drop(over);
        thread.expect("a thread").join().expect("ended");
        // Other tests have threads, too.
        assert!((USED as u64..4 * USED as u64).contains(&grown), "{grown}");
    }

    #[test]
    fn pages_are_resident_once_they_are_touched() {
        // More than malloc takes from what was touched before.
        const PAGES: usize = 20_000;
        let page = system::page();
        let mut block = vec![0_u8; (PAGES + 2) * page as usize];
        for place in 0..PAGES / 2 {
            block[(place + 1) * page as usize] = 1;
        }
        let start = (block.as_ptr().addr() as u64).next_multiple_of(page);
        let mut pagemap = system::Pagemap::of(own());
        let end = start + PAGES as u64 * page;
        let pages = pagemap.count(start, end, u64::MAX);
        // No more is read than there is to find.
        let least = pagemap.count(start, u64::MAX / 2, page).expect("pages");
        assert!((page..20_000 * page).contains(&least.resident));
        let resident = pages.expect("pages").resident / page;
        std::hint::black_box(&block);
        assert!((9_900..=19_000).contains(&resident), "{resident}");
    }

    #[test]
    fn threads_of_the_kernel_are_known_by_a_flag() {
        let kthreadd = "2 (k) thread (d) S 0 0 0 0 -1 2129984 0 0";
        assert_eq!(system::flags(kthreadd), Some(2_129_984));
        assert_eq!(2_129_984 & 0x20_0000, 0x20_0000);
        assert!(!system::is_kernels(own()));
        assert_eq!(system::flags("2"), None);
    }

    #[test]
    fn mappings_without_a_page_tell_nothing() {
        let told = |rss: u64, swap: u64| {
            let of_one =
                |rss, swap| format!("1000-3000 rw-p 0 00:00 0\nRss: {rss} kB\nSwap: {swap} kB\n");
            tells_pages(&mappings(&[of_one(0, 0), of_one(rss, swap)].concat()))
        };
        assert_eq!([told(0, 0), told(4, 0), told(0, 4)], [false, true, true]);
    }

    #[test]
    fn the_reason_why_nothing_is_known_is_told() {
        assert!(matches!(Taken::of(i32::MAX), Err(Unreadable::Gone)));
        let mut child = Command::new("true").spawn().expect("a child");
        let pid = child.id() as i32;
        while !matches!(Taken::of(pid), Err(Unreadable::Gone)) {
            thread::yield_now();
        }
        child.wait().expect("waited for");
    }
}
