//! The accounts of tests and factories as they end, for the profile of the running session. Under the
//! GVL.

use crate::Figures;
use crate::table::cut;
use rperf_model::{Suite, SuiteKey, SuiteKind, SuiteSums};

/// Examples of a session that have a label and an entry of their own: label sets of other kinds have
/// room beside theirs.
const MOST_EXAMPLES: usize = 64_000;

/// Bytes of a text at most.
const LONGEST: usize = 512;

/// What has ended in a session.
#[derive(Debug, Default)]
pub struct SuiteAccounts {
    suite: Suite,
    /// Examples that have begun.
    examples: usize,
    /// What examples took since hooks were added last: these have it in theirs.
    in_group: Figures,
}

/// A run of a factory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FactoryRun {
    /// What the factories took that it called itself.
    pub nested_ns: u64,
    /// No factory has called it.
    pub is_top_level: bool,
    /// A run of the same factory is at work further out.
    pub is_within_itself: bool,
}

impl SuiteAccounts {
    /// An example begins. Returns whether it has a label and an entry of its own.
    pub fn begin_example(&mut self) -> bool {
        self.examples = self.examples.saturating_add(1);
        self.examples <= MOST_EXAMPLES
    }

    /// Adds an example that has ended; with an empty name to those of its file that have no entry.
    pub fn add_example(&mut self, group: &str, name: &str, title: &str, figures: &Figures) {
        self.in_group = plus(&self.in_group, figures);
        let title = if name.is_empty() { "" } else { title };
        self.add(SuiteKind::Example, group, name, &sums(title, figures));
    }

    /// Adds what a group took beside its examples, which have been added. No other group has ended
    /// meanwhile.
    pub fn add_hooks(&mut self, group: &str, figures: &Figures) {
        let examples = std::mem::take(&mut self.in_group);
        let rest = minus(figures, &examples);
        self.add(SuiteKind::Hooks, group, "", &sums("", &rest));
    }

    /// A group begins.
    pub fn begin_group(&mut self) {
        self.in_group = Figures::default();
    }

    /// Adds a run of a factory.
    pub fn add_factory(&mut self, name: &str, run: FactoryRun, figures: &Figures) {
        let mut all = SuiteSums {
            own_ns: figures.wall_ns.saturating_sub(run.nested_ns),
            top_level: u64::from(run.is_top_level),
            ..sums("", figures)
        };
        if run.is_within_itself {
            // The outer run has all else.
            all = SuiteSums {
                count: all.count,
                own_ns: all.own_ns,
                objects: all.objects.map(|_| 0),
                ..SuiteSums::default()
            };
        }
        self.add(SuiteKind::Factory, "", name, &all);
    }

    /// What has ended so far.
    pub fn suite(&self) -> &Suite {
        &self.suite
    }

    /// Takes what has ended so far; the session goes on.
    pub fn take(&mut self) -> Suite {
        std::mem::take(&mut self.suite)
    }

    fn add(&mut self, kind: SuiteKind, group: &str, name: &str, sums: &SuiteSums) {
        let key = SuiteKey {
            kind,
            group: cut(group, LONGEST).into(),
            name: cut(name, LONGEST).into(),
        };
        self.suite.add(key, sums);
    }
}

fn sums(title: &str, figures: &Figures) -> SuiteSums {
    let sums = &figures.sums;
    SuiteSums {
        title: cut(title, LONGEST).into(),
        count: 1,
        wall_ns: figures.wall_ns,
        running_ns: sums.running_ns,
        gvl_wait_ns: sums.gvl_wait_ns,
        blocked_ns: sums.blocked_ns,
        gc_ns: sums.gc_ns,
        suspended_ns: figures.suspended_ns,
        objects: figures.is_alone.then_some(sums.allocated_objects),
        own_ns: figures.wall_ns,
        top_level: 0,
    }
}

fn plus(one: &Figures, other: &Figures) -> Figures {
    Figures {
        wall_ns: one.wall_ns.saturating_add(other.wall_ns),
        suspended_ns: one.suspended_ns.saturating_add(other.suspended_ns),
        sums: one.sums.plus(&other.sums),
        ..Figures::default()
    }
}

/// `whole` without `part`. If that was of another fiber or thread, `whole` was suspended or blocked
/// meanwhile: what a state lacks is taken from these, then from the others, so that the states of
/// the rest add up to its wall time, as those of both do.
fn minus(whole: &Figures, part: &Figures) -> Figures {
    let mut rest = Figures {
        wall_ns: whole.wall_ns.saturating_sub(part.wall_ns),
        suspended_ns: whole.suspended_ns.saturating_sub(part.suspended_ns),
        sums: whole.sums.since(&part.sums),
        ..*whole
    };
    let (mut whole, mut part) = (*whole, *part);
    let lacks = |(part, whole): (&mut u64, &mut u64)| part.saturating_sub(*whole);
    let lacking = states(&mut part).into_iter().zip(states(&mut whole));
    let mut lacking = lacking.map(lacks).fold(0, u64::saturating_add);
    for state in states(&mut rest) {
        let taken = lacking.min(*state);
        *state -= taken;
        lacking -= taken;
    }
    rest
}

/// The states, in the order in which they stand in for others.
fn states(of: &mut Figures) -> [&mut u64; 5] {
    let sums = &mut of.sums;
    [
        &mut of.suspended_ns,
        &mut sums.blocked_ns,
        &mut sums.gvl_wait_ns,
        &mut sums.running_ns,
        &mut sums.gc_ns,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sums;

    fn took(running_ns: u64, blocked_ns: u64, allocated_objects: u64) -> Figures {
        Figures {
            wall_ns: running_ns + blocked_ns,
            sums: Sums {
                running_ns,
                blocked_ns,
                allocated_objects,
                ..Sums::default()
            },
            is_alone: true,
            ..Figures::default()
        }
    }

    fn entry<'a>(of: &'a SuiteAccounts, kind: SuiteKind, name: &str) -> &'a SuiteSums {
        let mut found = of.suite().iter();
        let found = found.find(|(key, _)| key.kind == kind && key.name == name);
        found.expect("an entry").1
    }

    #[test]
    fn hooks_are_what_a_group_took_beside_its_examples() {
        let mut suite = SuiteAccounts::default();
        suite.begin_group();
        suite.add_example("a", "a[1]", "adds", &took(5, 1, 7));
        suite.add_example("a", "a[2]", "adds more", &took(1, 0, 1));
        suite.add_hooks("a", &took(10, 4, 9));
        let hooks = entry(&suite, SuiteKind::Hooks, "");
        let expected = (7, 4, 3, Some(1));
        assert_eq!(
            (
                hooks.wall_ns,
                hooks.running_ns,
                hooks.blocked_ns,
                hooks.objects
            ),
            expected
        );
        suite.add_hooks("a", &took(1, 0, 0));
        assert_eq!(entry(&suite, SuiteKind::Hooks, "").wall_ns, 8);
        let all: u64 = suite.take().iter().map(|(_, it)| it.wall_ns).sum();
        assert_eq!(all, 15);
        assert!(suite.suite().is_empty());
    }

    #[test]
    fn states_of_hooks_add_up_whichever_fibers_or_threads_ran_the_examples() {
        let all = |[suspended_ns, blocked_ns, gvl_wait_ns, running_ns, gc_ns]: [u64; 5]| Figures {
            wall_ns: suspended_ns + blocked_ns + gvl_wait_ns + running_ns + gc_ns,
            suspended_ns,
            sums: Sums {
                running_ns,
                gvl_wait_ns,
                blocked_ns,
                gc_ns,
                ..Sums::default()
            },
            ..Figures::default()
        };
        for (whole, part, expected) in [
            // Another fiber's; another thread's; both; and threads' at once.
            ([9, 1, 0, 2, 0], [0, 3, 0, 5, 0], [4, 0, 0, 0, 0]),
            ([0, 8, 0, 2, 0], [0, 0, 1, 4, 1], [0, 4, 0, 0, 0]),
            ([2, 2, 1, 3, 1], [0, 0, 0, 0, 8], [0, 0, 0, 1, 0]),
            ([0, 8, 0, 2, 0], [0, 0, 0, 20, 0], [0; 5]),
            ([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [0, 1, 2, 3, 4]),
        ] {
            let mut rest = minus(&all(whole), &all(part));
            let wall_ns = rest.wall_ns;
            let found = states(&mut rest).map(|it| *it);
            assert_eq!(
                (found, wall_ns),
                (expected, expected.iter().sum()),
                "{whole:?}"
            );
        }
    }

    #[test]
    fn a_factory_within_itself_counts_once_and_own_times_add_up() {
        let mut suite = SuiteAccounts::default();
        let run = FactoryRun {
            nested_ns: 0,
            is_top_level: false,
            is_within_itself: true,
        };
        suite.add_factory("user (create)", run, &took(4, 0, 2));
        let outer = FactoryRun {
            nested_ns: 4,
            is_top_level: true,
            is_within_itself: false,
        };
        suite.add_factory("user (create)", outer, &took(10, 0, 6));
        let found = entry(&suite, SuiteKind::Factory, "user (create)");
        let expected = (2, 1, 10, 10, Some(6));
        let found = (
            found.count,
            found.top_level,
            found.own_ns,
            found.wall_ns,
            found.objects,
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn further_examples_have_no_room_of_their_own_and_long_texts_are_cut() {
        let mut suite = SuiteAccounts::default();
        let rooms = (0..MOST_EXAMPLES + 2).filter(|_| suite.begin_example());
        assert_eq!(rooms.count(), MOST_EXAMPLES);
        suite.add_example("a", "", "one of them", &took(1, 0, 0));
        assert_eq!(entry(&suite, SuiteKind::Example, "").title, "");
        suite.add_example("a", &"é".repeat(1_000), &"é".repeat(1_000), &took(1, 0, 0));
        let (key, sums) = suite.suite().iter().last().expect("an entry");
        assert_eq!((key.name.len(), sums.title.len()), (LONGEST, LONGEST));
    }
}
