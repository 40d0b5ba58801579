//! The programs of this machine that have a port. Used by the command, on several threads at a time.

use crate::client::Client;
use crate::connection::Connection;
use crate::failure::{AskError, Failure};
use crate::find;
use crate::patience::LISTED;
use crate::process::{State, command_line};
use crate::program::Program;
use crate::users::Users;
use nix::unistd::Uid;
use rperf_model::Order;
use rperf_session::process_id::{ProcessId, parent};
use std::collections::HashMap;
use std::path::PathBuf;
use std::thread;

/// Programs that are asked at a time.
const ASKED_AT_A_TIME: usize = 16;

/// Programs of another user that are asked what they are: so that nobody makes the command wait for
/// long.
const MOST_OF_OTHERS: usize = 64;

/// More generations than anybody has.
const GENERATIONS: usize = 64;

/// A program with a port.
pub struct Found {
    /// Its process.
    pub process: ProcessId,
    /// The user of its process.
    pub uid: u32,
    /// Where its port is.
    pub path: PathBuf,
    /// The program, if it says what it is.
    pub program: Result<Program, Failure>,
}

impl Found {
    /// The name that it gives itself, or else its command line, as the system knows it.
    pub fn name(&self) -> String {
        match &self.program {
            Ok(program) => program.hello.program.clone(),
            Err(_) => command_line(self.process.pid),
        }
    }
}

/// The programs that have ports.
pub struct Listing {
    /// Programs that are meant, in the order of their processes.
    pub programs: Vec<Found>,
    /// How many belong to users that aren't meant. They weren't asked anything.
    pub of_others: usize,
}

/// All programs with ports of these users that `is_meant` wants, after each was asked what it is.
pub fn all(users: &Users, is_meant: impl Fn(i32) -> bool) -> Listing {
    let mut clients: Vec<_> = find::all().into_iter().filter_map(connect).collect();
    clients.order_by_key(|(_, client)| client.pid());
    clients.dedup_by_key(|(_, client)| client.pid());
    clients.retain(|(_, client)| is_meant(client.pid()));
    let there = clients.len();
    clients.retain(|(_, client)| users.has(client.uid()));
    let of_others = there - clients.len();
    let own = Uid::effective().as_raw();
    let mut counts: HashMap<u32, usize> = HashMap::new();
    let asked = clients.into_iter().map(|(path, client)| {
        let (process, uid) = (client.process(), client.uid());
        let count = counts.entry(uid).or_default();
        *count += 1;
        let is_asked = uid == own || *count <= MOST_OF_OTHERS;
        let found = Found {
            process,
            uid,
            path,
            program: Err(match is_asked {
                true => AskError::Silent.into(),
                false => Failure::TooMany(MOST_OF_OTHERS),
            }),
        };
        (found, is_asked.then_some(client))
    });
    let mut asked: Vec<_> = asked.collect();
    side_by_side(&mut asked, |it| {
        if let Some(client) = it.1.take() {
            it.0.program = match client.state() {
                State::Stopped => Err(Failure::Stopped),
                _ => Program::greet(Box::new(client), LISTED),
            };
        }
    });
    Listing {
        programs: asked.into_iter().map(|(found, _)| found).collect(),
        of_others,
    }
}

/// How many programs have their port in the user's directory, but no number here: they are in other
/// PID namespaces, as those of other containers are.
pub fn without_number() -> usize {
    let there = find::in_users_directory().into_iter();
    let asked = there.filter_map(|path| Client::connect(&path).ok());
    asked.filter(|client| client.pid() == 0).count()
}

/// Whoever listens must be the process that the port's name tells.
fn connect(path: PathBuf) -> Option<(PathBuf, Client)> {
    let client = Client::connect(&path).ok()?;
    find::is_owner(&path, client.pid()).then_some((path, client))
}

/// The processes with ports that are `first`, or were started by it or its children, and are none of
/// `known`.
pub fn family(first: i32, known: &[i32]) -> Vec<ProcessId> {
    let there = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let there = there.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut pids: Vec<i32> = there.filter(|pid| is_of_family(*pid, first)).collect();
    // Where there is no /proc.
    pids.push(first);
    pids.sort_unstable();
    pids.dedup();
    // Only these are connected to: others have nothing to do with it.
    let has_port = |pid: i32| {
        let mut found = find::of(pid).into_iter().filter_map(connect);
        found.any(|(_, client)| client.pid() == pid)
    };
    pids.retain(|pid| !known.contains(pid) && has_port(*pid));
    pids.into_iter().map(ProcessId::named).collect()
}

fn is_of_family(pid: i32, first: i32) -> bool {
    let parent = |pid: &i32| parent(*pid);
    let mut line = std::iter::successors(Some(pid), parent).take(GENERATIONS);
    line.any(|it| it == first)
}

/// The first program of each user, then the second of each, and so on: no user's keep out those of
/// another.
pub fn in_turn<T>(programs: Vec<T>, uid: impl Fn(&T) -> u32) -> Vec<T> {
    let mut counts: HashMap<u32, usize> = HashMap::new();
    let turns = programs.into_iter().map(|program| {
        let count = counts.entry(uid(&program)).or_default();
        *count += 1;
        (*count, program)
    });
    let mut turns: Vec<_> = turns.collect();
    turns.order_by_key(|(turn, _)| *turn);
    turns.into_iter().map(|(_, program)| program).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
