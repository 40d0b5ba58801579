//! What the tests of a suite and its factories took, beside the samples: exact sums, also of tests
//! that no sample has met. Made by the bridge as tests end, read by formats and reports. Any thread,
//! no I/O.

use std::collections::BTreeMap;

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SuiteKind {
    /// An example of RSpec, or a test of Minitest.
    Example,
    /// What runs beside the examples of a file, such as `before(:all)`.
    Hooks,
    /// A factory, such as those of FactoryBot.
    Factory,
}

impl SuiteKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Example, Self::Hooks, Self::Factory];
}

/// What tells an entry from others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SuiteKey {
    /// What it is about.
    pub kind: SuiteKind,
    /// The file; empty for a factory.
    pub group: String,
    /// The example's id, or the factory's name. Empty for examples of the file that found no room as
    /// entries of their own, and for hooks.
    pub name: String,
}

/// What an entry took. Times are in ns.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SuiteSums {
    /// What people call it.
    pub title: String,
    /// How often it ran.
    pub count: u64,
    /// From begin to end. Of a factory that is at work already, this run counts in the outer one.
    pub wall_ns: u64,
    /// Its thread had the GVL, and collected no garbage.
    pub running_ns: u64,
    /// Its thread waited for the GVL.
    pub gvl_wait_ns: u64,
    /// Its thread was off the GVL, and not ready to run.
    pub blocked_ns: u64,
    /// Its thread collected garbage.
    pub gc_ns: u64,
    /// Other fibers of its thread had control.
    pub suspended_ns: u64,
    /// The objects that it made; `None` if that isn't known of all runs.
    pub objects: Option<u64>,
    /// Without the factories that this one called; of an example the same as `wall_ns`.
    pub own_ns: u64,
    /// How often no other factory had called it.
    pub top_level: u64,
}

impl SuiteSums {
    /// Adds `other`, saturating.
    pub fn add(&mut self, other: &SuiteSums) {
        if self.title.is_empty() {
            self.title.clone_from(&other.title);
        }
        self.objects = match (self.objects, other.objects) {
            // Nothing has run yet.
            (_, theirs) if self.count == 0 => theirs,
            (Some(ours), Some(theirs)) => Some(ours.saturating_add(theirs)),
            _ => None,
        };
        for (ours, theirs) in [
            (&mut self.count, other.count),
            (&mut self.wall_ns, other.wall_ns),
            (&mut self.running_ns, other.running_ns),
            (&mut self.gvl_wait_ns, other.gvl_wait_ns),
            (&mut self.blocked_ns, other.blocked_ns),
            (&mut self.gc_ns, other.gc_ns),
            (&mut self.suspended_ns, other.suspended_ns),
            (&mut self.own_ns, other.own_ns),
            (&mut self.top_level, other.top_level),
        ] {
            *ours = ours.saturating_add(theirs);
        }
    }
}

/// The entries of a suite.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Suite {
    entries: BTreeMap<SuiteKey, SuiteSums>,
    /// Bytes of all their texts.
    text: usize,
}

/// What a suite has at most.
struct Limits {
    entries: usize,
    /// Bytes; files whose examples share an entry may have as much again.
    text: usize,
}

impl Suite {
    /// The label `example` of what runs beside the examples of a file.
    pub const HOOKS: &str = "[hooks]";

    /// Entries at most. Beyond, the examples of a file share one, and so do all factories.
    pub const MOST: usize = 1 << 17;

    const LIMITS: Limits = Limits {
        entries: Self::MOST,
        text: 20 << 20,
    };

    /// Files whose examples may still share one beyond that.
    const SPARE: usize = 1 << 12;

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// All, by kind, file and name.
    pub fn iter(&self) -> impl Iterator<Item = (&SuiteKey, &SuiteSums)> {
        self.entries.iter()
    }

    /// Adds what `key` took.
    pub fn add(&mut self, key: SuiteKey, sums: &SuiteSums) {
        self.add_within(&Self::LIMITS, key, sums);
    }

    fn add_within(&mut self, most: &Limits, mut key: SuiteKey, sums: &SuiteSums) {
        let text = |key: &SuiteKey| key.group.len() + key.name.len();
        let is_known = |suite: &Self, key: &SuiteKey| suite.entries.contains_key(key);
        if !is_known(self, &key) {
            if self.len() >= most.entries || self.text + text(&key) > most.text {
                key.name.clear();
            }
            let has_spare =
                self.len() < most.entries + Self::SPARE && self.text + text(&key) <= 2 * most.text;
            if !has_spare && !is_known(self, &key) {
                key.group.clear();
            }
        }
        if !is_known(self, &key) {
            self.text += text(&key);
        }
        let is_shared = key.name.is_empty();
        let known = self.entries.entry(key).or_default();
        let title = known.title.len();
        known.add(sums);
        if is_shared || (title == 0 && self.text + known.title.len() > most.text) {
            known.title.clear();
        }
        self.text = self.text - title + known.title.len();
    }

    /// Adds all entries of `other`.
    pub fn merge(&mut self, other: &Suite) {
        for (key, sums) in other.iter() {
            self.add(key.clone(), sums);
        }
    }

    /// Bytes held, or nearly so.
    pub(crate) fn memory(&self) -> usize {
        self.len() * (size_of::<SuiteKey>() + size_of::<SuiteSums>()) + self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(group: &str, name: &str) -> SuiteKey {
        SuiteKey {
            kind: SuiteKind::Example,
            group: group.into(),
            name: name.into(),
        }
    }

    fn took(wall_ns: u64, objects: Option<u64>) -> SuiteSums {
        SuiteSums {
            title: "adds".into(),
            count: 1,
            wall_ns,
            objects,
            ..SuiteSums::default()
        }
    }

    fn rows(suite: &Suite) -> Vec<(&str, &str, u64, u64)> {
        let rows = suite.iter();
        rows.map(|(key, sums)| (&*key.group, &*key.name, sums.count, sums.wall_ns))
            .collect()
    }

    #[test]
    fn what_ran_twice_is_added_and_objects_are_known_if_they_are_of_all_runs() {
        let mut suite = Suite::default();
        suite.add(example("a", "a[1]"), &took(5, Some(7)));
        suite.add(example("a", "a[1]"), &took(6, Some(1)));
        let mut other = Suite::default();
        other.add(example("a", "a[1]"), &took(1, None));
        other.add(example("b", "b[1]"), &took(2, Some(0)));
        let objects = |suite: &Suite| suite.iter().map(|it| it.1.objects).collect::<Vec<_>>();
        assert_eq!(objects(&suite), [Some(8)]);
        suite.merge(&other);
        assert_eq!(rows(&suite), [("a", "a[1]", 3, 12), ("b", "b[1]", 1, 2)]);
        assert_eq!(objects(&suite), [None, Some(0)]);
    }

    #[test]
    fn further_examples_of_a_file_share_an_entry_and_in_the_end_those_of_all_files() {
        let mut suite = Suite::default();
        let most = Limits {
            entries: 2,
            text: 1 << 20,
        };
        for name in ["1", "2", "3", "1", "4"] {
            suite.add_within(&most, example("a", name), &took(1, None));
        }
        let expected = [("a", "", 2, 2), ("a", "1", 2, 2), ("a", "2", 1, 1)];
        assert_eq!(rows(&suite), expected);
        assert_eq!(suite.iter().next().map(|it| &*it.1.title), Some(""));
        for file in 0..Suite::SPARE + 9 {
            suite.add_within(&most, example(&format!("f{file}"), "1"), &took(1, None));
        }
        assert_eq!(suite.len(), Suite::SPARE + 3);
        let all: u64 = suite.iter().map(|(_, sums)| sums.count).sum();
        assert_eq!(all as usize, Suite::SPARE + 9 + 5);
    }

    #[test]
    fn long_texts_have_no_room_of_their_own_either() {
        let mut suite = Suite::default();
        let most = Limits {
            entries: 9,
            text: 11,
        };
        // The title of "2", the name of "3", and in the end the file have no room.
        for (group, name) in [("a", "1"), ("a", "2"), ("a", "3333"), ("bbbbbbbbb", "1")] {
            suite.add_within(&most, example(group, name), &took(1, None));
        }
        suite.add_within(&most, example("cccccccccc", "1"), &took(1, None));
        suite.add_within(&most, example("dddd", "1"), &took(1, None));
        let expected = [
            ("", "", 1, 1),
            ("a", "", 1, 1),
            ("a", "1", 1, 1),
            ("a", "2", 1, 1),
            ("bbbbbbbbb", "", 1, 1),
            ("dddd", "", 1, 1),
        ];
        assert_eq!(rows(&suite), expected);
        let titled = suite.iter().filter(|(_, sums)| !sums.title.is_empty());
        assert_eq!(titled.count(), 1);
        let text = suite
            .iter()
            .map(|(key, sums)| key.group.len() + key.name.len() + sums.title.len());
        assert_eq!(suite.text, text.sum::<usize>());
    }
}
