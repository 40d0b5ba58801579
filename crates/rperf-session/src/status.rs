//! What the Rubies of a session tell, through a file in its folder, about their
//! profiles. lib/rperf/launch.rb and lib/rperf/shared_session.rb write the lines.

use crate::figures::ProcessFigures;
use crate::process_id::ProcessId;
use std::collections::HashSet;
use std::path::Path;

/// Name of the file.
const FILE: &str = "status";

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
    /// It is about to write its profile.
    pub ending: bool,
}

/// What has become of a member.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// It has said nothing more.
    Silent,
    /// Its profile is there.
    Delivered(ProcessFigures),
    /// It has said to the user why there is no profile.
    Failed,
}

impl Member {
    /// Name of its profile in the folder.
    pub fn file_name(&self) -> String {
        format!("{}-{}.pb.gz", self.process.pid, self.begun_ns)
    }
}

/// The lines of the status file, summed up.
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
    /// What is in the folder's file. No file means that there was no Ruby.
    pub fn read(folder: &Path) -> Self {
        // A name in it can be no UTF-8.
        let bytes = std::fs::read(folder.join(FILE)).unwrap_or_default();
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(text: &str) -> Self {
        let mut status = Status::default();
        let (mut forked, mut known) = (HashSet::new(), HashSet::new());
        let (mut daemons, mut begun_since) = (HashSet::new(), Vec::new());
        let mut replaced = HashSet::new();
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let pid = rest.split(' ').next().and_then(|pid| pid.parse().ok());
            match (word, pid) {
                ("started", Some(pid)) => {
                    status.members.extend(started(rest));
                    replaced.clear();
                    if known.insert(pid) && !daemons.is_empty() {
                        begun_since.push(pid);
                    }
                    continue;
                }
                ("forked", Some(pid)) => _ = forked.insert(pid),
                ("declined", Some(pid)) => _ = known.insert(pid),
                ("daemon", Some(pid)) => _ = daemons.insert(pid),
                ("daemon-failed", Some(pid)) => _ = daemons.remove(&pid),
                ("exec", Some(pid)) => _ = replaced.insert(pid),
                ("exec-failed", Some(pid)) => _ = replaced.remove(&pid),
                ("refused", _) => status.refused = true,
                ("another", _) => status.others += 1,
                _ => {}
            }
            status.note(word, rest);
        }
        status.members.sort_by_key(|member| member.begun_ns);
        // A daemon comes by a fork that nobody tells of.
        begun_since.retain(|pid| !forked.contains(pid));
        status.awaited_daemons = daemons.len().saturating_sub(begun_since.len());
        let first = status.members.first().map(|first| first.process.pid);
        status.replaced = first.is_some_and(|pid| replaced.contains(&pid));
        status.unborn = forked
            .difference(&known)
            .map(|&pid| ProcessId { pid, start: 0 })
            .collect();
        status
    }

    /// `WORD PID BEGUN ...` of a member that has started.
    fn note(&mut self, word: &str, rest: &str) {
        let mut fields = rest.splitn(3, ' ');
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (Some(pid), Some(begun_ns)) = (number(), number()) else {
            return;
        };
        let place = self.members.iter().position(|member| {
            member.begun_ns == begun_ns && i64::from(member.process.pid) == pid as i64
        });
        let Some(place) = place else {
            return;
        };
        self.note_what_follows(place, word);
        // A `rperf` command within the command: it has a session of its own.
        if word == "withdrawn" {
            self.members.remove(place);
            return;
        }
        let member = &mut self.members[place];
        member.ending = word == "ending";
        match word {
            "delivered" => {
                let figures = ProcessFigures::parse(fields.next().unwrap_or_default());
                member.outcome = Outcome::Delivered(figures);
            }
            "failed" => member.outcome = Outcome::Failed,
            _ => {}
        }
    }

    /// Those that have left nothing and run still, and those that are gone.
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

/// `PID START BEGUN`.
fn started(rest: &str) -> Option<Member> {
    let mut fields = rest.split(' ');
    Some(Member {
        process: ProcessId {
            pid: fields.next()?.parse().ok()?,
            start: fields.next()?.parse().ok()?,
        },
        begun_ns: fields.next()?.parse().ok()?,
        outcome: Outcome::Silent,
        ending: false,
    })
}

impl Status {
    /// After an exec that failed, a second member stands for what the one at `place` is
    /// still to deliver: what is there counts, and so does what is missing.
    fn note_what_follows(&mut self, place: usize, word: &str) {
        let member = self.members[place].clone();
        let is_same = |it: &Member| it.process == member.process && it.begun_ns == member.begun_ns;
        let last = self.members.iter().rposition(is_same).unwrap_or(place);
        match word {
            "delivered" | "failed" if last != place => _ = self.members.remove(last),
            "exec-failed" if last == place && member.outcome != Outcome::Silent => {
                let outcome = Outcome::Silent;
                self.members.push(Member { outcome, ..member });
            }
            _ => {}
        }
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
        assert_eq!(second.file_name(), "7-5000.pb.gz");
        let Outcome::Delivered(figures) = second.outcome else {
            panic!("delivered");
        };
        assert_eq!((figures.ruby.gc_count, figures.os.user_ns), (3, 4));
        assert_eq!(
            Status::read(Path::new("/no/such/folder")),
            Status::default()
        );
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
