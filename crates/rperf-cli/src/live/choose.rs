//! Which running programs a command is about: those that the user names by PID, or those whose
//! program, as `rperf ps` shows it, matches an expression. Used by `ps`, `top` and `attach`, on
//! Ruby's main thread and on those of `top`.

use super::process::{command_line, is_stopped};
use crate::checked::pid;
use crate::{FAILURE, Refusal};
use rperf_protocol::hello::Hello;
use rperf_report::regex;
use rperf_watch::client::Client;
use rperf_watch::find;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Programs that are asked at a time.
const ASKED_AT_A_TIME: usize = 16;

/// How long a program may take to say what it is: a port answers without the VM.
const PATIENCE: Duration = Duration::from_millis(500);

/// The options that name programs.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Choice {
    /// The programs' processes
    #[arg(
        value_name = "PID",
        required_unless_present = "matching",
        conflicts_with = "matching",
        value_parser = pid
    )]
    pub pids: Vec<i32>,
    /// All programs that match this regular expression in the last column of 'rperf ps'
    #[arg(long = "match", id = "matching", value_name = "REGEX")]
    pub matching: Option<String>,
}

impl Choice {
    /// The expression, if there is one.
    pub fn pattern(&self) -> Result<Option<Pattern>, Refusal> {
        self.matching.as_deref().map(Pattern::new).transpose()
    }

    /// The processes that are there now, each once. It is an error if there is none.
    pub fn processes(&self) -> Result<Vec<i32>, Refusal> {
        let mut pids = match self.pattern()? {
            Some(pattern) => pattern.expect_processes()?,
            None => self.pids.clone(),
        };
        pids.sort_unstable();
        pids.dedup();
        Ok(pids)
    }
}

/// An expression for programs.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: String,
    regex: regex::Regex,
}

impl Pattern {
    /// The expression that the user has given.
    pub fn new(text: &str) -> Result<Self, Refusal> {
        let regex = regex(text).map_err(|error| Refusal::usage(format!("--match: {error}")))?;
        Ok(Pattern {
            text: text.into(),
            regex,
        })
    }

    /// Whether a program is meant that calls itself so.
    pub fn matches(&self, program: &str) -> bool {
        self.regex.is_match(program)
    }

    /// The processes with ports that match now and are none of `known`; those that don't answer
    /// now, but for stopped ones, and our own, are left out.
    pub fn processes(&self, known: &[i32]) -> Vec<i32> {
        self.matching(known, |it| it.hello.is_some() || it.is_stopped)
    }

    /// The processes that match and for which `is_meant` is true. One that doesn't answer is
    /// matched by its command line.
    fn matching(&self, known: &[i32], is_meant: impl Fn(&Asked) -> bool) -> Vec<i32> {
        let own = std::process::id() as i32;
        let is_new = |it: &Found| it.pid != own && !known.contains(&it.pid);
        let mut found: Vec<_> = all().into_iter().filter(is_new).map(Asked::new).collect();
        side_by_side(&mut found, Asked::ask);
        found.retain(|it| is_meant(it) && self.matches(&it.program()));
        found.iter().map(|it| it.found.pid).collect()
    }

    /// Also those that don't answer: whoever asks them says why. It is an error if there is none.
    pub fn expect_processes(&self) -> Result<Vec<i32>, Refusal> {
        let found = self.matching(&[], |_| true);
        if !found.is_empty() {
            return Ok(found);
        }
        let text = rperf_report::terminal_text::shown(&self.text);
        Err(Refusal {
            message: format!(
                "no program with a port matches '{text}'; 'rperf ps' lists those that have one"
            ),
            status: FAILURE,
        })
    }
}

/// A program with a port, which nobody has asked anything yet.
pub struct Found {
    /// Its process.
    pub pid: i32,
    /// Where its port is.
    pub path: PathBuf,
    /// A connection to it.
    pub client: Client,
}

/// The processes with ports that are `first`, or were started by it or its children, and are none of
/// `known`.
pub fn family(first: i32, known: &[i32]) -> Vec<i32> {
    let there = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let there = there.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<i32> = there.filter(|pid| is_of_family(*pid, first)).collect();
    // Where there is no /proc.
    pids.push(first);
    pids.sort_unstable();
    pids.dedup();
    // Only these are connected to: others have nothing to do with it.
    let has_port = |pid: i32| {
        let mut paths = find::of(pid).into_iter().filter_map(connect);
        paths.any(|found| found.pid == pid)
    };
    pids.retain(|pid| !known.contains(pid) && has_port(*pid));
    pids
}

/// More generations than anybody has.
const GENERATIONS: usize = 64;

fn is_of_family(pid: i32, first: i32) -> bool {
    let parent = |pid: &i32| parent(*pid);
    let mut line = std::iter::successors(Some(pid), parent).take(GENERATIONS);
    line.any(|it| it == first)
}

/// The process that has started this one, where the system tells.
fn parent(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok().filter(|it| *it > 0)
}

/// All programs with ports, in the order of their processes.
pub fn all() -> Vec<Found> {
    let mut found: Vec<_> = find::all().into_iter().filter_map(connect).collect();
    found.sort_by_key(|it| it.pid);
    found.dedup_by_key(|it| it.pid);
    found
}

/// Whoever listens must be the process that the port's name tells.
fn connect(path: PathBuf) -> Option<Found> {
    let client = Client::connect(&path).ok()?;
    let pid = client.pid();
    find::is_owner(&path, pid).then_some(Found { pid, path, client })
}

/// Asks several at a time: each may take long to answer.
pub fn side_by_side<T: Send>(programs: &mut [T], ask: impl Fn(&mut T) + Sync) {
    let ask = &ask;
    for some in programs.chunks_mut(ASKED_AT_A_TIME) {
        thread::scope(|scope| {
            for program in some {
                // Where there is no thread, the program counts as one that doesn't answer.
                let _ = thread::Builder::new().spawn_scoped(scope, move || ask(program));
            }
        });
    }
}

struct Asked {
    found: Found,
    is_stopped: bool,
    hello: Option<Hello>,
}

impl Asked {
    fn new(found: Found) -> Self {
        Asked {
            found,
            is_stopped: false,
            hello: None,
        }
    }

    fn ask(&mut self) {
        self.is_stopped = is_stopped(self.found.pid);
        if !self.is_stopped {
            self.hello = self.found.client.hello_within(PATIENCE).ok();
        }
    }

    fn program(&self) -> String {
        match &self.hello {
            Some(hello) => hello.program.clone(),
            None => command_line(self.found.pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn choice(words: &[&str]) -> Option<Choice> {
        let command = Choice::augment_args(clap::Command::new("x"));
        let words = std::iter::once(&"x").chain(words);
        let matches = command.try_get_matches_from(words).ok()?;
        Choice::from_arg_matches(&matches).ok()
    }

    #[test]
    fn programs_have_numbers_or_an_expression() {
        let pids = |words: &[&str]| choice(words)?.processes().ok();
        assert_eq!(pids(&["7", "5", "7"]), Some(vec![5, 7]));
        assert!(choice(&["--match", "puma"]).is_some());
        for words in [&[][..], &["0"], &["puma"], &["7", "--match", "puma"]] {
            assert!(choice(words).is_none(), "{words:?}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn children_are_of_the_family() {
        let own = std::process::id() as i32;
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a child");
        let pid = child.id() as i32;
        assert!(is_of_family(pid, own) && is_of_family(own, own));
        assert!(!is_of_family(own, pid));
        child.kill().expect("killed");
        child.wait().expect("waited for");
    }

    #[test]
    fn an_expression_is_looked_for_anywhere_in_the_program() {
        let pattern = Pattern::new("cluster worker").expect("an expression");
        assert!(pattern.matches("puma: cluster worker 0: 4690 [shop]"));
        assert!(!pattern.matches("puma 7.1.0 [shop]"));
        let refusal = Pattern::new("(").expect_err("refused");
        assert_eq!(refusal.status, 2);
        assert!(refusal.message.starts_with("--match: '(' is no valid"));
        let none = Pattern::new("^no such program $").expect("an expression");
        let refusal = none.expect_processes().expect_err("none");
        assert_eq!(refusal.status, 1);
    }
}
