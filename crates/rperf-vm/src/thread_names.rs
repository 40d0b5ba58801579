//! Names of threads, by their numbers in the profile. Noted where threads give the GVL up, and where
//! a profile is made: a thread can get its name, or another one, at any time.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Threads that have ended whose names are kept at least, the latest ones. Rows of more of them are
/// added up under thread 0.
const ENDED: usize = 1 << 14;

/// The name of a thread as the VM has it now.
pub trait VmName {
    /// A word that stays the same as long as the name does; 0 if the thread has none.
    fn word(&self) -> usize;

    /// The name's text; `None` if the thread has none.
    fn text(&self) -> Option<Arc<str>>;
}

/// The word of the name that was noted last.
#[derive(Debug, Default)]
pub struct NotedName(Option<usize>);

impl NotedName {
    /// Whether `name` is another one than the one that was noted.
    #[inline]
    pub fn differs(&self, name: &impl VmName) -> bool {
        self.0 != Some(name.word())
    }

    /// Notes it. Returns its text.
    pub fn note(&mut self, name: &impl VmName) -> Option<Arc<str>> {
        self.0 = Some(name.word());
        name.text()
    }
}

/// The names of a session's threads.
#[derive(Debug, Clone, Default)]
pub struct ThreadNames {
    by_seq: FxHashMap<u32, Arc<str>>,
    /// Numbers of threads that have ended, in that order.
    ended: VecDeque<u32>,
}

impl ThreadNames {
    /// The thread with number `seq` has this name from now on, or none.
    pub fn set(&mut self, seq: u32, name: Option<Arc<str>>) {
        match name {
            Some(name) => self.by_seq.insert(seq, name),
            None => self.by_seq.remove(&seq),
        };
    }

    /// The name of a thread, if it has one.
    pub fn get(&self, seq: u32) -> Option<&str> {
        self.by_seq.get(&seq).map(|name| &**name)
    }

    /// The thread has ended. Its name is kept if the thread `has_samples`.
    pub fn ended(&mut self, seq: u32, has_samples: bool) {
        if !has_samples {
            self.by_seq.remove(&seq);
        } else if self.by_seq.contains_key(&seq) {
            self.ended.push_back(seq);
            if self.ended.len() > 2 * ENDED {
                self.forget_ended(ENDED);
            }
        }
    }

    /// Forgets threads that have ended: their samples have been taken.
    pub fn forget_all_ended(&mut self) {
        self.forget_ended(self.ended.len());
    }

    /// Takes the names of `others` in, which have numbers of their own.
    pub fn add(&mut self, others: ThreadNames) {
        self.by_seq.extend(others.by_seq);
        for seq in others.ended {
            self.ended(seq, true);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_seq.is_empty()
    }

    /// Bytes held, roughly: texts are not counted.
    pub fn memory(&self) -> usize {
        self.by_seq.capacity() * (size_of::<(u32, Arc<str>)>() + 1)
            + self.ended.capacity() * size_of::<u32>()
    }

    fn forget_ended(&mut self, count: usize) {
        for seq in self.ended.drain(..count) {
            self.by_seq.remove(&seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(usize, &'static str);

    impl VmName for Named {
        fn word(&self) -> usize {
            self.0
        }

        fn text(&self) -> Option<Arc<str>> {
            (self.0 != 0).then(|| self.1.into())
        }
    }

    #[test]
    fn a_name_is_noted_once_until_there_is_another_one() {
        let mut noted = NotedName::default();
        let none = Named(0, "");
        assert!(noted.differs(&none), "nothing is noted");
        assert_eq!(noted.note(&none), None);
        assert!(!noted.differs(&none));
        let worker = Named(8, "worker");
        assert!(noted.differs(&worker));
        assert_eq!(noted.note(&worker).as_deref(), Some("worker"));
        assert!(!noted.differs(&worker) && noted.differs(&none));
    }

    #[test]
    fn the_last_name_counts_and_threads_that_have_ended_keep_it() {
        let mut names = ThreadNames::default();
        for (seq, name) in [(1, "a"), (2, "b"), (3, "c"), (1, "d")] {
            names.set(seq, Some(name.into()));
        }
        names.ended(1, true);
        names.ended(2, false);
        names.set(3, None);
        assert_eq!([1, 2, 3].map(|seq| names.get(seq)), [Some("d"), None, None]);
        let mut all = ThreadNames::default();
        all.set(9, Some("main".into()));
        all.add(names);
        all.forget_all_ended();
        assert_eq!([1, 9].map(|seq| all.get(seq)), [None, Some("main")]);
    }

    #[test]
    fn of_many_threads_that_have_ended_the_latest_have_names() {
        let mut names = ThreadNames::default();
        names.set(0, Some("lives".into()));
        let last = 10 * ENDED as u32;
        for seq in 1..=last {
            names.set(seq, Some("job".into()));
            names.ended(seq, true);
        }
        assert!(names.by_seq.len() <= 2 * ENDED + 1);
        assert_eq!(names.get(last - ENDED as u32 + 1), Some("job"));
        assert_eq!((names.get(1), names.get(0)), (None, Some("lives")));
    }
}
