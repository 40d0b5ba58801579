//! The place that most of some stacks' time leads to: not that of a small helper that more time is at than at
//! any other single place, but of the innermost function that stands for half of the time or more.

use super::{Place, Places};
use crate::stack::groups::GroupId;
use rperf_model::{Category, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;

/// A stack: its functions with their lines, the innermost first, and its time, which is more than 0.
type Timed = (Vec<(GroupId, u32)>, i64);

impl Places<'_> {
    /// The innermost function of the application, or else in a file, that at least half of the time of
    /// these stacks is in, with the line that most of it is at, and below it the innermost function of
    /// all of which that is true. If there is none, the place that most of the time is at.
    pub(crate) fn of_most(&self, stacks: impl Iterator<Item = (NodeId, i64)>) -> Place {
        let stacks: Vec<(NodeId, i64)> = stacks.filter(|(_, time)| *time > 0).collect();
        let timed = stacks.iter().map(|(node, time)| (self.own(*node), *time));
        let timed: Vec<Timed> = timed.collect();
        let all = stacks.iter().map(|(_, time)| *time);
        let all = all.fold(0, i64::saturating_add);
        let Some(most) = self.innermost(&timed, all) else {
            return self.single(&stacks);
        };
        let mut lines: FxHashMap<u32, i64> = FxHashMap::default();
        let mut below = Vec::new();
        for ((node, time), (own, _)) in stacks.iter().zip(&timed) {
            let Some((_, line)) = own.iter().find(|(group, _)| *group == most) else {
                continue;
            };
            let sum = lines.entry(*line).or_default();
            *sum = sum.saturating_add(*time);
            let mut stack: Vec<_> = self.stack(*node).collect();
            let place = stack.iter().position(|(group, _)| *group == most);
            stack.truncate(place.map_or(0, |place| place + 1));
            below.push((stack, *time));
        }
        let line = lines
            .into_iter()
            .max_by_key(|(line, time)| (*time, Reverse(*line)));
        let method = self.innermost(&below, all).unwrap_or(most);
        (Some(method), Some((most, line.map_or(0, |it| it.0))))
    }

    /// The application's functions of a stack, or else those in files.
    fn own(&self, node: NodeId) -> Vec<(GroupId, u32)> {
        let in_files: Vec<_> = self
            .stack(node)
            .filter(|(group, _)| self.is_in_file(*group))
            .collect();
        let is_app = |(group, _): &&(GroupId, u32)| self.categories[*group] == Category::App;
        let own: Vec<_> = in_files.iter().filter(is_app).copied().collect();
        match own.is_empty() {
            true => in_files,
            false => own,
        }
    }

    /// The innermost function of most of these stacks, among those that at least half of `all` is in.
    fn innermost(&self, stacks: &[Timed], all: i64) -> Option<GroupId> {
        let mut totals: FxHashMap<GroupId, i64> = FxHashMap::default();
        for (functions, time) in stacks {
            let once: FxHashSet<GroupId> = functions.iter().map(|it| it.0).collect();
            for group in once {
                let total = totals.entry(group).or_default();
                *total = total.saturating_add(*time);
            }
        }
        totals.retain(|_, total| *total >= all - *total);
        let mut sums: FxHashMap<GroupId, i64> = FxHashMap::default();
        for (functions, time) in stacks {
            let is_large = |it: &&(GroupId, u32)| totals.contains_key(&it.0);
            if let Some((group, _)) = functions.iter().find(is_large) {
                let sum = sums.entry(*group).or_default();
                *sum = sum.saturating_add(*time);
            }
        }
        let rank = |group: GroupId| (Reverse(totals[&group]), Reverse(&self.groups.texts[group]));
        let most = sums.into_iter();
        most.max_by(|a, b| (a.1, rank(a.0)).cmp(&(b.1, rank(b.0))))
            .map(|it| it.0)
    }

    /// The single place with the most time.
    fn single(&self, stacks: &[(NodeId, i64)]) -> Place {
        let mut places: FxHashMap<Place, i64> = FxHashMap::default();
        for (node, time) in stacks {
            let sum = places.entry(self.of_node(*node)).or_default();
            *sum = sum.saturating_add(*time);
        }
        let most = places
            .into_iter()
            .max_by_key(|(place, time)| (*time, Reverse(*place)));
        most.map(|it| it.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::Profile;
    use rperf_model::test_support::{TestFrame, cpu_schema, node};

    const MAIN: TestFrame<'_> = ("<main>", "/app/job.rb", 1, 40);
    const CLOCK: TestFrame<'_> = ("Process.clock_gettime", "<C method>", 0, 0);
    const GEM: TestFrame<'_> = ("Pool#work", "/g/gems/pool-1.0.0/lib/pool.rb", 1, 6);
    const RPERF: TestFrame<'_> = (
        "Rperf::RackMiddleware#call",
        "/g/gems/rperf-1.0.0/lib/rperf/rack/middleware.rb",
        1,
        8,
    );
    const NATIVE: TestFrame<'_> = ("Rperf::Native.enter_at_once", "<C method>", 0, 0);

    fn rows(line: u32) -> TestFrame<'static> {
        ("Job#rows", "/app/job.rb", 9, line)
    }

    fn helper(name: &'static str) -> TestFrame<'static> {
        (name, "/app/helper.rb", 2, 3)
    }

    /// The place of these stacks, root first: the method, and the application's own with its line.
    fn place(stacks: &[(&[TestFrame<'_>], i64)]) -> (Option<String>, Option<(String, u32)>) {
        let mut profile = Profile::new(cpu_schema());
        let nodes: Vec<_> = stacks
            .iter()
            .map(|(frames, time)| (node(&mut profile, frames), *time))
            .collect();
        let places = Places::of(&profile);
        let (method, app) = places.of_most(nodes.into_iter());
        let name = |group| places.function(group).name;
        (
            method.map(name),
            app.map(|(group, line)| (name(group), line)),
        )
    }

    fn expected(method: &str, app: &str, line: u32) -> (Option<String>, Option<(String, u32)>) {
        (Some(method.into()), Some((app.into(), line)))
    }

    #[test]
    fn a_helper_of_the_smaller_half_doesnt_stand_for_its_caller() {
        let now = helper("Job#now");
        let small: &[(&[TestFrame<'_>], i64)] = &[
            (&[MAIN, rows(12), now], 45),
            (&[MAIN, rows(11)], 30),
            (&[MAIN, rows(11), helper("Job#log")], 25),
        ];
        assert_eq!(place(small), expected("Job#rows", "Job#rows", 11));
        let large: &[(&[TestFrame<'_>], i64)] =
            &[(&[MAIN, rows(12), now], 55), (&[MAIN, rows(11)], 45)];
        assert_eq!(place(large), expected("Job#now", "Job#now", 3));
        let half: &[(&[TestFrame<'_>], i64)] =
            &[(&[MAIN, rows(12), now], 50), (&[MAIN, rows(11)], 50)];
        assert_eq!(place(half), expected("Job#now", "Job#now", 3));
    }

    #[test]
    fn the_method_below_it_has_half_of_the_time_too() {
        let clock: &[(&[TestFrame<'_>], i64)] =
            &[(&[MAIN, rows(12), CLOCK], 59), (&[MAIN, rows(12)], 41)];
        assert_eq!(
            place(clock),
            expected("Process.clock_gettime", "Job#rows", 12)
        );
        let little: &[(&[TestFrame<'_>], i64)] =
            &[(&[MAIN, rows(12), CLOCK], 41), (&[MAIN, rows(12)], 59)];
        assert_eq!(place(little), expected("Job#rows", "Job#rows", 12));
    }

    #[test]
    fn of_many_ways_to_one_method_it_is_that_and_of_none_the_largest() {
        let ways: &[(&[TestFrame<'_>], i64)] = &[
            (&[helper("A#a"), rows(12)], 30),
            (&[helper("B#b"), rows(12), rows(12)], 30),
            (&[helper("C#c")], 40),
        ];
        assert_eq!(place(ways), expected("Job#rows", "Job#rows", 12));
        let none: &[(&[TestFrame<'_>], i64)] = &[
            (&[helper("A#a"), CLOCK], 30),
            (&[helper("B#b")], 30),
            (&[helper("C#c")], 40),
        ];
        assert_eq!(place(none), expected("C#c", "C#c", 3));
        assert_eq!(place(&[]), (None, None));
        assert_eq!(place(&[(&[MAIN], -5), (&[MAIN], 0)]), (None, None));
        let huge: &[(&[TestFrame<'_>], i64)] = &[(&[MAIN], i64::MAX), (&[rows(1)], i64::MAX)];
        assert!(place(huge).1.is_some());
    }

    #[test]
    fn methods_of_rperf_are_never_one() {
        let in_app: &[(&[TestFrame<'_>], i64)] = &[
            (&[MAIN, RPERF, rows(12)], 20),
            (&[MAIN, RPERF], 40),
            (&[MAIN, RPERF, NATIVE], 40),
        ];
        assert_eq!(place(in_app), expected("<main>", "<main>", 40));
        assert_eq!(
            place(&[(&[GEM, RPERF, NATIVE], 5)]),
            expected("Pool#work", "Pool#work", 6)
        );
        assert_eq!(place(&[(&[RPERF, NATIVE], 5)]), (None, None));
    }
}
