//! What the processes of a session tell about their profiles: an event is a line of the session's
//! status file. The extension writes most of them; lib/rperf/processes/launch.rb writes two itself, as it
//! must work in Rubies that can't load the extension. `status` reads them. Any thread.

use crate::directory;
use crate::output::without_write_signals;
use crate::process_id::ProcessId;
use crate::process_stats::ProcessStats;
use nix::unistd::Uid;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, symlink};
use std::path::Path;

/// A stretch of profiling in one process. A process that becomes another program by exec can have
/// several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MemberId {
    /// The process's number.
    pub pid: i32,
    /// When profiling began, on the monotonic clock.
    pub begun_ns: u64,
}

/// Something that happened to a profile.
#[expect(
    clippy::large_enum_variant,
    reason = "there are only as many as processes"
)]
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A process has begun to profile itself.
    Started {
        /// The process.
        process: ProcessId,
        /// When that was, on the monotonic clock.
        begun_ns: u64,
    },
    /// A process with this number was forked, and is going to start or decline.
    Forked(i32),
    /// A forked process has said to the user why it can't be profiled.
    Declined(i32),
    /// A Ruby has said to the user why it can't be profiled: for this reason.
    Refused(String),
    /// A Ruby came after the first one, where only the first is to be profiled.
    Another,
    /// Something that happened to a member.
    Of(MemberId, Change),
}

/// What can happen to a member.
#[expect(
    clippy::large_enum_variant,
    reason = "there are only as many as processes"
)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The member is about to write its profile.
    Ending,
    /// Its profile is there; this is what its process has counted.
    Delivered(ProcessStats),
    /// The member has said to the user why there is no profile.
    Failed,
    /// The member is an `rperf` command, which is no part of the session.
    Withdrawn,
    /// Its process is about to become another program.
    Exec,
    /// The exec has failed.
    ExecFailed,
    /// Its process is about to go on as a daemon, in a child.
    Daemon,
    /// The change into a daemon has failed.
    DaemonFailed,
}

const STARTED: &str = "started";
const FORKED: &str = "forked";
const DECLINED: &str = "declined";
/// Written by lib/rperf/processes/launch.rb, too.
pub const REFUSED: &str = "refused";
/// Written by lib/rperf/processes/launch.rb, too.
pub const ANOTHER: &str = "another";
const DELIVERED: &str = "delivered";

/// The changes that say nothing more.
const PLAIN_CHANGES: [(&str, Change); 7] = [
    ("ending", Change::Ending),
    ("failed", Change::Failed),
    ("withdrawn", Change::Withdrawn),
    ("exec", Change::Exec),
    ("exec-failed", Change::ExecFailed),
    ("daemon", Change::Daemon),
    ("daemon-failed", Change::DaemonFailed),
];

impl Change {
    fn plain(word: &str) -> Option<Self> {
        let mut changes = PLAIN_CHANGES.into_iter();
        changes.find_map(|(known, change)| (known == word).then_some(change))
    }

    fn word(self) -> &'static str {
        let known = |(_, change): &&(&str, Change)| *change == self;
        PLAIN_CHANGES
            .iter()
            .find(known)
            .map_or(DELIVERED, |(word, _)| word)
    }
}

impl Event {
    /// The line, without its end.
    pub fn to_line(&self) -> String {
        match self {
            Event::Started { process, begun_ns } => {
                format!("{STARTED} {} {} {begun_ns}", process.pid, process.start)
            }
            Event::Forked(pid) => format!("{FORKED} {pid}"),
            Event::Declined(pid) => format!("{DECLINED} {pid}"),
            Event::Refused(reason) => format!("{REFUSED} {}", reason.replace('\n', " ")),
            Event::Another => ANOTHER.to_string(),
            Event::Of(member, change) => {
                let mut line = format!("{} {} {}", change.word(), member.pid, member.begun_ns);
                if let Change::Delivered(stats) = change {
                    line.push(' ');
                    line.push_str(&stats.to_line());
                }
                line
            }
        }
    }

    /// The event that a line tells; `None` for a line that tells none.
    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let mut fields = rest.splitn(3, ' ');
        let mut field = || fields.next();
        Some(match word {
            STARTED => Event::Started {
                process: ProcessId {
                    pid: field()?.parse().ok()?,
                    start: field()?.parse().ok()?,
                },
                begun_ns: field()?.parse().ok()?,
            },
            FORKED => Event::Forked(field()?.parse().ok()?),
            DECLINED => Event::Declined(field()?.parse().ok()?),
            REFUSED => Event::Refused(rest.to_string()),
            ANOTHER => Event::Another,
            _ => {
                let member = MemberId {
                    pid: field()?.parse().ok()?,
                    begun_ns: field()?.parse().ok()?,
                };
                let change = match word {
                    DELIVERED => Change::Delivered(ProcessStats::parse(field().unwrap_or(""))),
                    _ => Change::plain(word)?,
                };
                Event::Of(member, change)
            }
        })
    }

    /// Adds the line to the status file of the session in `directory`, at once: several processes
    /// write there. What others have put in its place is left as it is.
    pub fn tell(&self, directory: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(directory.join(directory::STATUS))?;
        let found = file.metadata()?;
        if !found.is_file() || found.nlink() != 1 || found.uid() != Uid::effective().as_raw() {
            return Err(io::Error::other("its status is another file"));
        }
        let line = format!("{}\n", self.to_line());
        without_write_signals(|| file.write_all(line.as_bytes()))
    }
}

impl MemberId {
    /// Leaves a sign that this member has said why there is no profile of it, where the status file can't say so. It is
    /// a link that leads nowhere: it takes no descriptor, and no room on a disk that is full.
    pub fn sign_failure(self, directory: &Path) {
        let path = directory::failure_path(directory, self.pid, self.begun_ns);
        let _ = symlink("-", path);
    }

    /// The members that have left such signs.
    pub fn of_failures(directory: &Path) -> Vec<Self> {
        let parsed = |name: &String| {
            let (pid, begun_ns) = name.split_once('-')?;
            Some(Self {
                pid: pid.parse().ok()?,
                begun_ns: begun_ns.parse().ok()?,
            })
        };
        let names = directory::failures(directory);
        names.iter().filter_map(parsed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stats() -> impl Strategy<Value = ProcessStats> {
        (
            any::<[u64; 12]>(),
            any::<Option<u32>>(),
            any::<Option<[u64; 2]>>(),
        )
            .prop_map(|(numbers, ratio, disk)| {
                let mut stats = ProcessStats::parse("");
                let mut numbers = numbers.into_iter();
                for (_, place) in stats.named() {
                    *place = numbers.next().expect("there are as many");
                }
                stats.ruby.yjit_methods = ratio.map(u64::from);
                stats.ruby.yjit_ratio = ratio.map(|ratio| f64::from(ratio) / 7.0);
                stats.os.disk = disk.map(|[read_bytes, write_bytes]| crate::os::DiskStats {
                    read_bytes,
                    write_bytes,
                });
                stats
            })
    }

    fn changes() -> impl Strategy<Value = Change> {
        let plain = (0..PLAIN_CHANGES.len()).prop_map(|number| PLAIN_CHANGES[number].1);
        prop_oneof![plain, stats().prop_map(Change::Delivered)]
    }

    fn events() -> impl Strategy<Value = Event> {
        prop_oneof![
            any::<(i32, u64, u64)>().prop_map(|(pid, start, begun_ns)| Event::Started {
                process: ProcessId { pid, start },
                begun_ns,
            }),
            any::<i32>().prop_map(Event::Forked),
            any::<i32>().prop_map(Event::Declined),
            "[^\n\r]*".prop_map(Event::Refused),
            Just(Event::Another),
            (any::<(i32, u64)>(), changes())
                .prop_map(|((pid, begun_ns), it)| Event::Of(MemberId { pid, begun_ns }, it)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_told_is_read(event in events()) {
            let line = event.to_line();
            prop_assert!(!line.contains('\n'));
            prop_assert_eq!(Event::parse(&line), Some(event));
        }

        #[test]
        fn no_line_is_too_odd(line in any::<String>()) {
            let _ = Event::parse(&line);
        }
    }

    #[test]
    fn each_line_has_its_words() {
        let member = MemberId {
            pid: 7,
            begun_ns: 50,
        };
        let delivered = Change::Delivered(ProcessStats::parse("gc_count=3"));
        let line = Event::Of(member, delivered).to_line();
        assert!(line.starts_with("delivered 7 50 gc_count=3 "), "{line}");
        assert_eq!(
            Event::Of(member, Change::ExecFailed).to_line(),
            "exec-failed 7 50"
        );
        for line in [
            "",
            "x",
            "x 7 50",
            "started 9",
            "forked",
            "forked x",
            "exec 7",
            "exec 7 -1",
        ] {
            assert_eq!(Event::parse(line), None, "{line}");
        }
    }

    #[test]
    fn lines_are_added_one_after_the_other() {
        let directory = tempfile::tempdir().expect("a directory");
        for event in [Event::Forked(7), Event::Another] {
            event.tell(directory.path()).expect("told");
        }
        let text =
            std::fs::read_to_string(directory.path().join(directory::STATUS)).expect("a file");
        assert_eq!(text, "forked 7\nanother\n");
        assert!(
            Event::Another
                .tell(Path::new("/no/such/directory"))
                .is_err()
        );
    }
}
