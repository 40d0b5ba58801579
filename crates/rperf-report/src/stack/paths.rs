//! The stacks with the largest values, whatever their lines. Called by Markdown reports; any
//! thread.

use crate::stack::groups::{FrameKey, Function, GroupId, Groups};
use rperf_model::{Column, Node, NodeId, Order, Profile, State};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// A stack of functions, with the line in each of them that most of its values have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The functions, the root first. The state, if it isn't running, is the last.
    pub steps: Vec<Step>,
    /// Value of the stacks that are this one.
    pub value: i64,
}

/// A function in a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The function.
    pub function: Function,
    /// The line in it; 0 where none is known.
    pub line: u32,
    /// Whether it calls itself here. A function that does is one step.
    pub is_recursive: bool,
}

impl Path {
    /// Up to `limit` stacks of `profile` with the most in `column`, the largest first.
    pub fn hottest(profile: &Profile, column: Column, limit: usize) -> Vec<Path> {
        let groups = Groups::new(profile, FrameKey::Function);
        let sums = PathSums::new(profile, column, &groups);
        let mut ends: Vec<(End, i64)> = sums.ends.iter().map(|(end, sum)| (*end, *sum)).collect();
        ends.retain(|(_, value)| *value != 0);
        // Path nodes are in the order of the profile: equal profiles give equal answers.
        ends.order_by_key(|(end, value)| (Reverse(value.unsigned_abs()), *end));
        ends.truncate(limit);
        ends.into_iter()
            .map(|(end, value)| Path {
                steps: sums.steps(end),
                value,
            })
            .collect()
    }
}

/// Index of a path node.
type PathId = usize;

/// Where stacks end: at a path node, in a state.
type End = (PathId, State);

#[derive(Clone, Copy)]
struct PathNode {
    caller: PathId,
    function: GroupId,
    is_recursive: bool,
}

/// The path node of the empty stack.
const ROOT: PathId = 0;

struct PathSums<'a> {
    profile: &'a Profile,
    column: Column,
    groups: &'a Groups<'a>,
    path_nodes: Vec<PathNode>,
    /// The path node of each node of the call tree.
    of_node: Vec<PathId>,
    ends: FxHashMap<End, i64>,
}

impl<'a> PathSums<'a> {
    fn new(profile: &'a Profile, column: Column, groups: &'a Groups<'a>) -> Self {
        let root = PathNode {
            caller: ROOT,
            function: groups.len(),
            is_recursive: false,
        };
        let mut path_nodes = vec![root];
        let mut known: FxHashMap<(PathId, GroupId), PathId> = FxHashMap::default();
        let mut of_node = vec![ROOT];
        for (_, node) in profile.tree.iter() {
            let caller = of_node[node.parent.0 as usize];
            let function = groups.of_frame(node.frame);
            let path_id = if path_nodes[caller].function == function {
                path_nodes[caller].is_recursive = true;
                caller
            } else {
                *known.entry((caller, function)).or_insert_with(|| {
                    path_nodes.push(PathNode {
                        caller,
                        function,
                        is_recursive: false,
                    });
                    path_nodes.len() - 1
                })
            };
            of_node.push(path_id);
        }
        let mut ends: FxHashMap<End, i64> = FxHashMap::default();
        for row in profile.weights.iter() {
            let path_id = of_node[row.key.node.0 as usize];
            let sum = ends.entry((path_id, row.key.state)).or_default();
            *sum = sum.saturating_add(row.value(column));
        }
        Self {
            profile,
            column,
            groups,
            path_nodes,
            of_node,
            ends,
        }
    }

    fn steps(&self, end: End) -> Vec<Step> {
        let lines = self.lines(end);
        let mut steps = Vec::new();
        if let Some(leaf) = self.leaf(end) {
            steps.push(Step {
                function: self.groups.function(leaf),
                line: 0,
                is_recursive: false,
            });
        }
        let mut path_id = end.0;
        while path_id != ROOT {
            steps.push(Step {
                function: self.groups.function(self.path_nodes[path_id].function),
                line: lines.get(&path_id).copied().unwrap_or(0),
                is_recursive: self.path_nodes[path_id].is_recursive,
            });
            path_id = self.path_nodes[path_id].caller;
        }
        steps.reverse();
        steps
    }

    /// The frame for the state at the end of these stacks, if the state has one.
    fn leaf(&self, end: End) -> Option<GroupId> {
        let mut rows = self.profile.weights.iter();
        let row = rows.find(|row| self.end(row.key.node, row.key.state) == end)?;
        let leaf = self.profile.display_leaf(row.key)?;
        Some(self.groups.of(leaf))
    }

    fn end(&self, node: NodeId, state: State) -> End {
        (self.of_node[node.0 as usize], state)
    }

    /// For each path node on the way to `end` the line with the most.
    fn lines(&self, end: End) -> FxHashMap<PathId, u32> {
        let mut sums: FxHashMap<(PathId, u32), i64> = FxHashMap::default();
        for row in self.profile.weights.iter() {
            let mut id = row.key.node;
            if self.end(id, row.key.state) != end {
                continue;
            }
            let value = row.value(self.column);
            let mut below = None;
            while let Some(&Node { parent, line, .. }) = self.profile.tree.get(id) {
                let path_id = self.of_node[id.0 as usize];
                // Of a function that calls itself the innermost line counts.
                if below != Some(path_id) && line > 0 {
                    let sum = sums.entry((path_id, line)).or_default();
                    *sum = sum.saturating_add(value);
                }
                below = Some(path_id);
                id = parent;
            }
        }
        let mut best: FxHashMap<PathId, (u64, Reverse<u32>)> = FxHashMap::default();
        for ((path_id, line), sum) in sums {
            let rank = (sum.unsigned_abs(), Reverse(line));
            let known = best.entry(path_id).or_insert(rank);
            *known = rank.max(*known);
        }
        best.into_iter()
            .map(|(path_id, (_, Reverse(line)))| (path_id, line))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Totals, Wait};
    use proptest::collection::vec;
    use proptest::prelude::*;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::test_support::{TestFrame, node};
    use rperf_model::{LabelSetId, WeightKey};

    fn add(test: &mut TestProfile, frames: &[TestFrame<'_>], state: State, value: i64) {
        let key = WeightKey {
            node: node(&mut test.profile, frames),
            thread: 0,
            labels: LabelSetId(0),
            state,
        };
        test.profile.weights.push(key, &[1, value, 0]);
    }

    fn shown(path: &Path) -> (String, i64) {
        let step = |step: &Step| {
            let mark = if step.is_recursive { "*" } else { "" };
            format!("{}{mark}:{}", step.function.name, step.line)
        };
        let steps: Vec<_> = path.steps.iter().map(step).collect();
        (steps.join(" "), path.value)
    }

    #[test]
    fn stacks_that_differ_in_lines_are_one_with_its_heaviest_lines() {
        let mut test = TestProfile::wall();
        let main = |line| ("main", "a.rb", 1, line);
        let work = |line| ("work", "a.rb", 5, line);
        add(&mut test, &[main(2), work(6)], State::Running, 30);
        add(&mut test, &[main(3), work(7)], State::Running, 20);
        add(&mut test, &[main(3), work(8)], State::Running, 25);
        add(&mut test, &[main(2)], State::GvlBlocked, 40);
        add(&mut test, &[main(0)], State::Running, 5);
        let hottest = |limit| {
            let paths = Path::hottest(&test.profile, Column(1), limit);
            paths.iter().map(shown).collect::<Vec<_>>()
        };
        let expected = [
            ("main:3 work:6".to_string(), 75),
            ("main:2 [GVL blocked]:0".to_string(), 40),
            ("main:0".to_string(), 5),
        ];
        assert_eq!(hottest(9), expected);
        assert_eq!(hottest(1), expected[..1]);
    }

    #[test]
    fn a_function_that_calls_itself_is_one_step() {
        let mut test = TestProfile::wall();
        let main = ("main", "a.rb", 1, 2);
        let fib = |line| ("fib", "a.rb", 5, line);
        add(&mut test, &[main, fib(7)], State::Running, 10);
        add(&mut test, &[main, fib(8), fib(7)], State::Running, 10);
        add(
            &mut test,
            &[main, fib(8), fib(8), fib(6)],
            State::Running,
            5,
        );
        let paths = Path::hottest(&test.profile, Column(1), 9);
        let paths: Vec<_> = paths.iter().map(shown).collect();
        assert_eq!(paths, [("main:2 fib*:7".to_string(), 25)]);
    }

    proptest! {
        #[test]
        fn paths_add_up_to_all_and_waits_to_what_does_not_run(
            stacks in vec((vec((0..4_u32, 0..3_u32), 0..6), 0..5_usize, 0..1000_i64), 0..30),
        ) {
            let mut test = TestProfile::wall();
            for (frames, state, value) in stacks {
                let names = ["a", "b", "c", "d"];
                let frame = |(name, line)| (names[name as usize], "a.rb", 1, line);
                let frames: Vec<_> = frames.into_iter().map(frame).collect();
                add(&mut test, &frames, State::ALL[state], value);
            }
            let paths = Path::hottest(&test.profile, Column(1), usize::MAX);
            let values: i64 = paths.iter().map(|path| path.value).sum();
            prop_assert_eq!(values, test.profile.sum(Column(1)));
            for path in &paths {
                let functions = path.steps.iter().map(|step| &step.function);
                prop_assert!(functions.clone().zip(functions.skip(1)).all(|(a, b)| a != b));
            }
            let waits = Wait::of(&test.profile, Column(1));
            let totals = Totals::of(&test.profile, Column(1));
            for state in State::ALL.into_iter().filter(|state| *state != State::Running) {
                let wait = waits.iter().find(|wait| wait.state == state);
                let sites = wait.map_or(0, |it| it.sites.iter().map(|site| site.value).sum());
                prop_assert_eq!(wait.map_or(0, |it| it.value), totals.state(state));
                prop_assert_eq!(sites, totals.state(state));
            }
        }
    }

    #[test]
    fn stacks_without_frames_have_a_name_and_no_stacks_no_path() {
        let mut test = TestProfile::wall();
        assert_eq!(Path::hottest(&test.profile, Column(1), 9), []);
        add(&mut test, &[], State::Running, 3);
        let paths = Path::hottest(&test.profile, Column(1), 9);
        assert_eq!(shown(&paths[0]), ("[thread exited]:0".to_string(), 3));
    }
}
