//! A program's way into the sums, which others look into meanwhile. On the thread that pulls.

use super::{Purpose, RowKey, Sums};
use rperf_model::Mode;
use rperf_protocol::delta::{BadDelta, Delta};
use rperf_protocol::hello::Hello;
use rperf_report::Idle;
use rperf_report::terminal_text::shown;
use rustc_hash::FxHashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The sums, which several threads use.
pub type LockedSums = Arc<Mutex<Sums>>;

/// Sums without any program.
pub fn locked(purpose: Purpose) -> LockedSums {
    Arc::new(Mutex::new(Sums::of(purpose)))
}

/// Locks them.
pub fn lock(sums: &Mutex<Sums>) -> MutexGuard<'_, Sums> {
    sums.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The way of a program. Behind it the program counts as one that has ended.
#[derive(Debug)]
pub struct Feed {
    sums: LockedSums,
    /// The program's place there.
    pub process: u32,
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.lock().end_process(self.process);
    }
}

impl Feed {
    /// The way of a program that comes in.
    pub fn new(sums: &LockedSums, pid: i32, hello: &Hello) -> Self {
        let process = {
            let mut sums = lock(sums);
            sums.add_directories(&hello.roots, &hello.rperf_directories);
            sums.add_process(pid, &shown(&hello.program))
        };
        Feed {
            sums: Arc::clone(sums),
            process,
        }
    }

    /// The sums.
    pub fn lock(&self) -> MutexGuard<'_, Sums> {
        lock(&self.sums)
    }

    /// Takes a page in. Behind the last one of a pull, what is hidden of it is known, too.
    pub fn take(&self, delta: Delta) -> Result<(), BadDelta> {
        let more = delta.changes.more;
        let hides_idle = {
            let mut sums = self.lock();
            sums.take(self.process, delta)?;
            let place = self.process as usize;
            let has_new = sums.intake.readings[place].has_new_waits;
            has_new && !sums.purpose.shows_idle && sums.processes[place].counts
        };
        if hides_idle && !more {
            self.note_idle();
        }
        Ok(())
    }

    /// Notes which rows are those of idle threads, by the rule of reports.
    pub fn note_idle(&self) {
        let session = {
            let mut sums = self.lock();
            sums.intake.readings[self.process as usize].has_new_waits = false;
            let facts = &sums.processes[self.process as usize].facts;
            match facts.mode {
                Mode::Wall => sums.session_of(self.process).map(|(profile, rows)| {
                    let keys: Vec<RowKey> = rows.iter().map(|row| row.key).collect();
                    (profile, keys)
                }),
                Mode::Cpu => None,
            }
        };
        let Some((profile, keys)) = session else {
            return;
        };
        // Without the lock: that takes longest.
        let idle = Idle::of(&profile);
        let rows = keys.into_iter().zip(idle.rows());
        let idle: FxHashSet<RowKey> = rows.filter(|it| *it.1).map(|it| it.0).collect();
        let is_idle = |key: &RowKey| idle.contains(key);
        self.lock().set_idle(self.process, is_idle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::hello;
    use crate::sums::Scope;
    use rperf_model::shared_sums::{Cursor, SharedSums, SumsValues};
    use rperf_model::{LabelSetId, Mode, Node, NodeId, State, WeightKey};
    use rperf_protocol::delta::Freshness;

    /// A program with a row of time in which it is watched, and one of time before.
    fn feed(sums: &LockedSums) -> Feed {
        let hello = hello(None, |_| {}).and_then(Result::ok).expect("a reply");
        let hello = rperf_protocol::json::read(&hello).expect("a program");
        let feed = Feed::new(sums, 7, &hello);
        let mut locked = feed.lock();
        for (name, wall_ns) in [("work", 5), ("before", 0)] {
            let frame = locked.frame(name, "a.rb", 1).expect("room");
            let key = RowKey {
                stack: locked.stack(0, frame, 0).expect("room"),
                thread: locked.thread(feed.process, 1),
                labels: 0,
                state: State::Running,
            };
            let values = SumsValues {
                count: 1,
                wall_ns: 9,
                cpu_ns: 0,
                blame_ns: 0,
            };
            let number = locked.row(key);
            locked.rows[number as usize].seen = values;
            if wall_ns > 0 {
                locked.grow(number, SumsValues { wall_ns, ..values });
            }
        }
        drop(locked);
        feed
    }

    #[test]
    fn which_threads_are_idle_is_told_anew_when_something_has_waited() {
        let sums = LockedSums::default();
        let feed = feed(&sums);
        feed.lock().begin(feed.process);
        let mut table = SharedSums::default();
        table.facts.mode = Mode::Wall;
        let (mut cursor, mut idle) = (Cursor::default(), Vec::new());
        for (thread, state) in [
            (1, State::GvlBlocked),
            (1, State::Running),
            (1, State::GvlBlocked),
        ] {
            let frame = table.frame("work", "a.rb", 1);
            let node = Node {
                parent: NodeId::ROOT,
                frame,
                line: 0,
            };
            let key = WeightKey {
                node: table.node(node).expect("room"),
                thread,
                labels: LabelSetId::default(),
                state,
            };
            assert!(table.add(
                key,
                SumsValues {
                    count: 1,
                    wall_ns: 5,
                    cpu_ns: 0,
                    blame_ns: 0,
                }
            ));
            feed.lock().set_idle(feed.process, |_| true);
            let changes = table.changes(cursor);
            cursor = changes.cursor;
            let freshness = Freshness {
                is_fresh: true,
                clock_ns: 0,
            };
            feed.take(Delta { changes, freshness }).expect("taken");
            idle.push(feed.lock().rows[0].is_idle);
        }
        // As long as nothing has waited, that is as it was.
        assert_eq!(idle, [false, true, false]);
    }

    #[test]
    fn of_programs_that_have_ended_only_what_is_shown_is_kept() {
        for (forgets_ended, kept) in [(false, 1), (true, 0)] {
            let sums = locked(Purpose {
                forgets_ended,
                ..Purpose::default()
            });
            let there = feed(&sums);
            for ended in 1..=3 {
                drop(feed(&sums));
                let sums = lock(&sums);
                assert!(sums.processes[ended].has_ended);
                assert_eq!(sums.rows.len(), 2 + ended * kept);
                let its = sums.node_times(Scope::Total, None, Some(ended as u32));
                assert_eq!(its.all().run, 5 * kept as u64);
                assert_eq!(
                    sums.rows_in(None).filter(|it| it.has_been_seen()).count(),
                    2
                );
            }
            let times = lock(&sums).node_times(Scope::Total, None, Some(there.process));
            assert_eq!(times.all().run, 5);
        }
    }
}
