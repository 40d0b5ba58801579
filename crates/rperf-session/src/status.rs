//! What has become of the processes of a session: the sum of the events that they have told.
//! Read by the command while it waits, and by whoever merges the profiles. Any thread.

use crate::directory;
use crate::event::{Change, Event, MemberId};
use crate::process_id::ProcessId;
use crate::process_stats::ProcessStats;
use rperf_model::Order;
use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of the file that are read. Each member may write to it: it takes a million of them to fill that.
const LARGEST: u64 = 64 << 20;

/// A Ruby that has begun to profile itself. A process that becomes another program
/// by exec can be one several times.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// The process.
    pub process: ProcessId,
    /// When it began, on the monotonic clock: also what tells members of the same
    /// process apart.
    pub begun_ns: u64,
    /// What has become of it.
    pub outcome: Outcome,
    /// Whether the member is about to write its profile.
    pub ending: bool,
}

/// What has become of a member.
#[expect(
    clippy::large_enum_variant,
    reason = "there are only as many as processes"
)]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The member has said nothing more.
    Silent,
    /// Its profile is there.
    Delivered(ProcessStats),
    /// The member has said to the user why there is no profile.
    Failed,
}

impl Member {
    /// How events name it.
    pub fn id(&self) -> MemberId {
        MemberId {
            pid: self.process.pid,
            begun_ns: self.begun_ns,
        }
    }

    /// Where its profile is, in the session's directory.
    pub fn profile_path(&self, directory: &Path) -> PathBuf {
        directory::profile_path(directory, self.process.pid, self.begun_ns)
    }
}

/// All events of a session, summed up.
#[derive(Debug, Default, PartialEq)]
pub struct Status {
    /// In the order in which they began.
    pub members: Vec<Member>,
    /// A Ruby has said why it can't be profiled.
    pub refused: bool,
    /// Forked processes that have not said yet that they have begun.
    pub unborn: Vec<ProcessId>,
    /// Processes that were to become daemons which have not said yet that they have begun.
    pub awaited_daemons: usize,
    /// The first one has become a program by exec that is no Ruby, nor has it started one since.
    pub replaced: bool,
    /// Rubies after the first one, where only the first is to be profiled.
    pub others: usize,
}

impl Status {
    /// What is in the directory's file. No file means that there was no Ruby.
    pub fn read(directory: &Path) -> Self {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW);
        let mut bytes = Vec::new();
        if let Ok(file) = options.open(directory.join(directory::STATUS)) {
            // What was read before an error counts.
            let _ = file.take(LARGEST).read_to_end(&mut bytes);
        }
        // A name in it can be no UTF-8.
        let mut status = Self::parse(&String::from_utf8_lossy(&bytes));
        status.note_signs(directory);
        status
    }

    /// Members that couldn't write to the file may have left signs. One whose begin isn't there either is a Ruby that
    /// has said why it isn't profiled.
    fn note_signs(&mut self, directory: &Path) {
        let is_silent = |member: &Member| member.outcome == Outcome::Silent;
        if !self.members.is_empty() && !self.members.iter().any(is_silent) {
            return;
        }
        for id in MemberId::of_failures(directory) {
            let mut members = self.members.iter_mut();
            match members.find(|member| member.id() == id && is_silent(member)) {
                Some(member) => {
                    member.outcome = Outcome::Failed;
                    member.ending = false;
                }
                None => self.refused |= self.members.is_empty(),
            }
        }
    }

    fn parse(text: &str) -> Self {
        let mut status = Status::default();
        let mut processes = Processes::default();
        for event in text.lines().filter_map(Event::parse) {
            processes.note(&event);
            status.note(event);
        }
        status.members.order_by_key(|member| member.begun_ns);
        status.awaited_daemons = processes.awaited_daemons();
        let first = status.members.first().map(|first| first.process.pid);
        status.replaced = first.is_some_and(|pid| processes.replaced.contains(&pid));
        status.unborn = processes.unborn().collect();
        status
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Started { process, begun_ns } => self.members.push(Member {
                process,
                begun_ns,
                outcome: Outcome::Silent,
                ending: false,
            }),
            Event::Of(id, change) => self.note_change(id, change),
            Event::Refused(_) => self.refused = true,
            Event::Another => self.others += 1,
            Event::Forked(_) | Event::Declined(_) => {}
        }
    }

    fn note_change(&mut self, id: MemberId, change: Change) {
        let Some(row) = self.members.iter().position(|member| member.id() == id) else {
            return;
        };
        self.note_what_follows(row, change);
        // A `rperf` command within the command: it has a session of its own.
        if change == Change::Withdrawn {
            self.members.remove(row);
            return;
        }
        let member = &mut self.members[row];
        member.ending = change == Change::Ending;
        match change {
            Change::Delivered(stats) => member.outcome = Outcome::Delivered(stats),
            Change::Failed => member.outcome = Outcome::Failed,
            _ => {}
        }
    }

    /// After a failed exec the process runs on and owes a second profile: a second, silent
    /// member stands for it.
    fn note_what_follows(&mut self, row: usize, change: Change) {
        let member = self.members[row].clone();
        let is_same = |it: &Member| it.process == member.process && it.begun_ns == member.begun_ns;
        let last = self.members.iter().rposition(is_same).unwrap_or(row);
        match change {
            Change::Delivered(_) | Change::Failed if last != row => _ = self.members.remove(last),
            Change::ExecFailed if last == row && member.outcome != Outcome::Silent => {
                let outcome = Outcome::Silent;
                self.members.push(Member { outcome, ..member });
            }
            _ => {}
        }
    }

    /// How many processes have left nothing and run still, and how many have left nothing and are
    /// gone.
    pub fn silent(&self) -> (usize, usize) {
        let members = self.members.iter();
        let silent = members
            .filter(|member| member.outcome == Outcome::Silent)
            .map(|member| member.process)
            .chain(self.unborn.iter().copied());
        let running = silent.clone().filter(|process| process.is_alive()).count();
        (running + self.awaited_daemons, silent.count() - running)
    }

    /// Whether somebody is about to write a profile.
    pub fn is_one_ending(&self) -> bool {
        let mut members = self.members.iter();
        members.any(|member| member.ending && member.process.is_alive())
    }
}

/// The processes of a session by their numbers, as its events tell of them.
#[derive(Default)]
struct Processes {
    forked: HashSet<i32>,
    /// Have begun, or said that they won't.
    known: HashSet<i32>,
    /// Are about to go on as daemons.
    daemons: HashSet<i32>,
    /// Have begun since the first of these.
    begun_since: Vec<i32>,
    /// Have become other programs by exec.
    replaced: HashSet<i32>,
}

impl Processes {
    fn note(&mut self, event: &Event) {
        match event {
            Event::Started { process, .. } => {
                self.replaced.clear();
                if self.known.insert(process.pid) && !self.daemons.is_empty() {
                    self.begun_since.push(process.pid);
                }
            }
            Event::Forked(pid) => _ = self.forked.insert(*pid),
            Event::Declined(pid) => _ = self.known.insert(*pid),
            Event::Of(MemberId { pid, .. }, change) => match change {
                Change::Daemon => _ = self.daemons.insert(*pid),
                Change::DaemonFailed => _ = self.daemons.remove(pid),
                Change::Exec => _ = self.replaced.insert(*pid),
                Change::ExecFailed => _ = self.replaced.remove(pid),
                _ => {}
            },
            Event::Refused(_) | Event::Another => {}
        }
    }

    fn awaited_daemons(&self) -> usize {
        let begun = self.begun_since.iter();
        // A daemon comes by a fork that nobody tells of.
        let begun = begun.filter(|pid| !self.forked.contains(pid)).count();
        self.daemons.len().saturating_sub(begun)
    }

    /// Forked processes that have said nothing yet.
    fn unborn(&self) -> impl Iterator<Item = ProcessId> {
        let unborn = self.forked.difference(&self.known);
        unborn.map(|&pid| ProcessId { pid, start: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_an_exec_that_failed_is_missed_until_it_is_delivered() {
        let own = ProcessId::own();
        let (pid, start) = (own.pid, own.start);
        let failed = format!("delivered {pid} 1 gc_count=1\nexec {pid} 1\nexec-failed {pid} 1\n");
        let text = format!("started {pid} {start} 1\n{failed}{failed}");
        let status = Status::parse(&text);
        assert_eq!((status.silent(), status.members.len()), ((1, 0), 2));
        assert!(matches!(status.members[0].outcome, Outcome::Delivered(_)));
        let status = Status::parse(&format!("{text}delivered {pid} 1 gc_count=2\n"));
        assert_eq!((status.silent(), status.members.len()), ((0, 0), 1));
    }

    #[test]
    fn lines_are_summed_up() {
        let status = Status::parse(
            "started 7 100 5000\nanother\nrefused no such mode\nanother\nstarted 8 101 4000\n\
             delivered 7 5000 gc_count=3 user_ns=4\nfailed 8 4000\nfailed 8 5000\nx\nstarted 9\n\
             started 10 102 3000\nwithdrawn 10 3000\n",
        );
        assert_eq!((status.refused, status.others), (true, 2));
        let [first, second] = &status.members[..] else {
            panic!("two members");
        };
        assert_eq!((first.process.pid, first.outcome), (8, Outcome::Failed));
        let path = second.profile_path(Path::new("/a"));
        assert_eq!(path, Path::new("/a/7-5000.pb.gz"));
        let Outcome::Delivered(figures) = second.outcome else {
            panic!("delivered");
        };
        assert_eq!((figures.ruby.gc_count, figures.os.user_ns), (3, 4));
        assert_eq!(
            Status::read(Path::new("/no/such/directory")),
            Status::default()
        );
    }

    #[test]
    fn what_the_file_does_not_say_signs_do() {
        let directory = tempfile::tempdir().expect("a directory");
        let sign = |pid, begun_ns| {
            MemberId { pid, begun_ns }.sign_failure(directory.path());
        };
        sign(7, 5);
        let status = Status::read(directory.path());
        assert!(status.refused && status.members.is_empty());
        let path = directory.path().join(directory::STATUS);
        let text = "started 7 1 5\nending 7 5\nstarted 8 1 5\nstarted 9 1 5\ndelivered 9 5\n";
        std::fs::write(path, text).expect("a file");
        sign(9, 5);
        let status = Status::read(directory.path());
        let outcomes: Vec<_> = status.members.iter().map(|it| &it.outcome).collect();
        assert!(matches!(
            outcomes[..],
            [Outcome::Failed, Outcome::Silent, Outcome::Delivered(_)]
        ));
        assert!(!status.refused && !status.members[0].ending);
        assert_eq!(status.silent(), (0, 1));
    }

    #[test]
    fn a_program_after_exec_is_missed_if_it_is_not_profiled() {
        let began = "started 7 100 1\nexec 7 1\n";
        for (more, replaced) in [
            ("", true),
            ("exec-failed 7 1\n", false),
            ("started 7 100 2\n", false),
            ("started 7 100 2\nexec 7 2\n", true),
            // A shell that the program has become has started it.
            ("started 8 101 2\n", false),
            ("delivered 8 2\nexec 8 2\n", true),
        ] {
            let status = Status::parse(&format!("{began}{more}"));
            assert_eq!(status.replaced, replaced, "{more:?}");
        }
        assert!(!Status::parse("started 8 1 1\nstarted 9 1 2\nexec 9 2\n").replaced);
    }

    #[test]
    fn daemons_are_awaited_until_they_begin() {
        let began = "started 7 1 1\nstarted 8 1 2\ndaemon 7 1\n";
        for (more, awaited) in [
            ("", 1),
            ("daemon-failed 7 1\n", 0),
            ("daemon-failed 8 2\n", 1),
            ("started 9 1 3\n", 0),
            ("started 9 1 3\nforked 9\n", 1),
            ("forked 9\nstarted 9 1 3\nstarted 10 1 4\n", 0),
            ("started 8 1 3\n", 1),
            ("daemon 8 2\n", 2),
            ("daemon 8 2\nstarted 9 1 3\n", 1),
        ] {
            let status = Status::parse(&format!("{began}{more}"));
            assert_eq!(status.awaited_daemons, awaited, "{more:?}");
        }
    }

    #[test]
    fn one_that_is_ending_is_told_from_the_silent_and_from_those_that_are_gone() {
        let ProcessId { pid, start } = ProcessId::own();
        let began = format!("started {pid} {start} 1\nstarted {} 5 2\n", i32::MAX);
        for (more, ending, silent) in [
            ("".to_string(), false, (1, 1)),
            (format!("ending {pid} 1\n"), true, (1, 1)),
            (format!("ending {} 2\n", i32::MAX), false, (1, 1)),
            (
                format!("ending {pid} 1\ndelivered {pid} 1\n"),
                false,
                (0, 1),
            ),
        ] {
            let status = Status::parse(&format!("{began}{more}"));
            assert_eq!(
                (status.is_one_ending(), status.silent()),
                (ending, silent),
                "{more:?}"
            );
        }
    }

    #[test]
    fn the_silent_ones_run_or_are_gone() {
        let own = ProcessId::own();
        let (pid, start) = (own.pid, own.start);
        let text = format!(
            "started {pid} {start} 1\nstarted {} 5 2\nstarted 1 1 3\ndelivered 1 3\n",
            i32::MAX
        );
        assert_eq!(Status::parse(&text).silent(), (1, 1));
        let gone = i32::MAX - 1;
        let more = format!("{text}forked {pid}\nforked {gone}\nforked 1\ndeclined 1\n");
        assert_eq!(Status::parse(&more).silent(), (1, 2));
        let daemon = format!("{text}daemon 1 3\n");
        assert_eq!(Status::parse(&daemon).silent(), (2, 1));
        let begun = format!("{daemon}started 2 1 4\ndelivered 2 4\n");
        assert_eq!(Status::parse(&begun).silent(), (1, 1));
    }
}
