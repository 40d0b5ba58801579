//! The threads of all programs, what is known of each beside its times, and where each is.

use super::reading::CAP;
use rperf_model::State;
use rperf_protocol::stacks::SystemCall;
use rustc_hash::FxHashMap;
use std::ops::Deref;
use std::sync::Arc;

/// A thread of a process. 0 stands for those that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The place of its process.
    pub process: u32,
    /// Its number in the program.
    pub seq: u32,
}

/// What is known of a thread beside its times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadFacts {
    /// What the program calls it; empty if it has no name.
    pub name: Arc<str>,
    /// The number of its native thread; 0 if it has none.
    pub tid: u32,
    /// The [`SystemCall`] in which it waits; empty if it doesn't.
    pub waits_in: Arc<str>,
    /// How long ago that was.
    pub age_ns: u64,
}

impl ThreadFacts {
    /// The call in which a thread at `position` waits, if that hasn't changed since it was looked at: times
    /// of threads are known less exactly than those of intervals.
    pub fn waits_at(&self, position: &Position) -> Option<SystemCall<'_>> {
        let is_known = position.ns >= self.age_ns - self.age_ns / 20 && !self.waits_in.is_empty();
        is_known.then(|| SystemCall::read(&self.waits_in))
    }
}

/// Where a thread is, and since when: as long as all of its time has gone into one node, in one
/// state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The node.
    pub node: u32,
    /// What the thread did there.
    pub state: State,
    /// For how long at least.
    pub ns: u64,
}

/// Where the threads of a process have been in an interval.
#[derive(Debug, Default)]
pub(super) struct Positions {
    /// The first place of each thread with the time there, and whether it has been elsewhere, too.
    found: FxHashMap<u32, (Position, bool)>,
}

impl Positions {
    /// A thread has been there for so long.
    pub fn add(&mut self, thread: u32, there: Position) {
        let Position { node, state, ns } = there;
        let fresh = Position { ns: 0, ..there };
        let (position, has_moved) = self.found.entry(thread).or_insert((fresh, false));
        match (position.node, position.state) == (node, state) {
            true => position.ns = position.ns.saturating_add(ns),
            false => *has_moved = true,
        }
    }
}

/// The numbers of threads.
pub(super) type ThreadNumbers = FxHashMap<Thread, u32>;

/// All threads by their numbers. Some have facts and a position, too: facts those that were asked
/// for, a position those that had time in the last interval of their process.
#[derive(Debug, Clone, Default)]
pub struct Threads {
    all: Vec<Thread>,
    facts: FxHashMap<u32, ThreadFacts>,
    positions: FxHashMap<u32, Position>,
}

impl Deref for Threads {
    type Target = [Thread];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl Threads {
    /// What is known of a thread beside its times.
    pub fn facts(&self, thread: u32) -> Option<&ThreadFacts> {
        self.facts.get(&thread)
    }

    /// Where a thread is.
    pub fn position(&self, thread: u32) -> Option<&Position> {
        self.positions.get(&thread)
    }

    /// The process of a thread.
    pub(super) fn process_of(&self, thread: u32) -> u32 {
        self.all[thread as usize].process
    }

    /// The number of a thread in its program.
    pub(super) fn seq_of(&self, thread: u32) -> u32 {
        self.all[thread as usize].seq
    }

    /// The number of a thread; that of thread 0 of its process if there is no room for it.
    pub(super) fn number(&mut self, mut thread: Thread, known: &mut ThreadNumbers) -> u32 {
        if self.all.len() >= CAP && !known.contains_key(&thread) {
            thread.seq = 0;
        }
        *known.entry(thread).or_insert_with(|| {
            self.all.push(thread);
            self.all.len() as u32 - 1
        })
    }

    /// What is known of the threads of the process from now on.
    pub(super) fn set_facts(
        &mut self,
        process: u32,
        facts: impl Iterator<Item = (u32, ThreadFacts)>,
    ) {
        let all = &self.all;
        self.facts
            .retain(|&thread, _| all[thread as usize].process != process);
        self.facts.extend(facts);
    }

    /// What native threads of the process wait for, where no more is known.
    pub(super) fn set_waits(&mut self, process: u32, threads: impl Iterator<Item = ThreadFacts>) {
        let waits: FxHashMap<_, _> = threads.map(|it| (it.tid, it.waits_in)).collect();
        for facts in self.facts_in(process) {
            facts.waits_in = waits.get(&facts.tid).cloned().unwrap_or_default();
            facts.age_ns = 0;
        }
    }

    /// An interval of the process took `elapsed_ns`, and its threads have been there.
    pub(super) fn end_interval(&mut self, process: u32, elapsed_ns: u64, there: Positions) {
        for facts in self.facts_in(process) {
            facts.age_ns = facts.age_ns.saturating_add(elapsed_ns);
        }
        self.put(process, there);
    }

    fn facts_in(&mut self, process: u32) -> impl Iterator<Item = &mut ThreadFacts> {
        let all = &self.all;
        let known = self.facts.iter_mut();
        let its = known.filter(move |(thread, _)| all[**thread as usize].process == process);
        its.map(|(_, facts)| facts)
    }

    /// Threads that stay where they were are there for longer; those without time are nowhere.
    fn put(&mut self, process: u32, there: Positions) {
        for (&thread, &(mut position, has_moved)) in &there.found {
            let before = self.positions.get(&thread);
            let stays = before.filter(|it| (it.node, it.state) == (position.node, position.state));
            position.ns = match has_moved {
                true => 0,
                false => position.ns.saturating_add(stays.map_or(0, |it| it.ns)),
            };
            self.positions.insert(thread, position);
        }
        let all = &self.all;
        self.positions.retain(|thread, _| {
            all[*thread as usize].process != process || there.found.contains_key(thread)
        });
    }
}
