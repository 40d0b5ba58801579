//! The time in which threads didn't run, and where: waiting, and collecting garbage. Called by
//! Markdown reports; any thread.

use crate::stack::groups::{FrameKey, Function, GroupId, Groups, is_file};
use rperf_model::{Column, NodeId, Order, Profile, State};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// The sum of one state other than running.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// The state.
    pub state: State,
    /// All of it.
    pub value: i64,
    /// Where it was, the largest value first.
    pub sites: Vec<WaitSite>,
}

/// A location in the program at which a thread was in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitSite {
    /// The innermost function, as `Kernel#sleep`; `None` if there was no stack.
    pub function: Option<Function>,
    /// The innermost function in a file, and the line in it (0: not known); `None` if
    /// nothing in the stack is in a file.
    pub caller: Option<(Function, u32)>,
    /// Value at this location.
    pub value: i64,
}

/// The innermost function, and the innermost one in a file with its line.
type SiteKey = (Option<GroupId>, Option<(GroupId, u32)>);

impl Wait {
    /// The states but running that `profile` has values of in `column`, in the order of
    /// [`State::ALL`].
    pub fn of(profile: &Profile, column: Column) -> Vec<Wait> {
        let groups = Groups::new(profile, FrameKey::Function);
        let mut sites: FxHashMap<NodeId, SiteKey> = FxHashMap::default();
        let mut sums: FxHashMap<(State, SiteKey), i64> = FxHashMap::default();
        let waiting = profile.weights.iter();
        for row in waiting.filter(|row| row.key.state != State::Running) {
            let node = row.key.node;
            let site = *sites
                .entry(node)
                .or_insert_with(|| site(profile, &groups, node));
            let sum = sums.entry((row.key.state, site)).or_default();
            *sum = sum.saturating_add(row.value(column));
        }
        let mut waits: Vec<Wait> = State::ALL
            .into_iter()
            .map(|state| Wait {
                state,
                value: 0,
                sites: Vec::new(),
            })
            .collect();
        for ((state, (function, caller)), value) in sums {
            let wait = &mut waits[state as usize];
            wait.value = wait.value.saturating_add(value);
            wait.sites.push(WaitSite {
                function: function.map(|group| groups.function(group)),
                caller: caller.map(|(group, line)| (groups.function(group), line)),
                value,
            });
        }
        for wait in &mut waits {
            wait.sites.retain(|site| site.value != 0);
            wait.sites.order_by(|a, b| a.rank().cmp(&b.rank()));
        }
        waits.retain(|wait| wait.value != 0);
        waits
    }
}

impl WaitSite {
    fn rank(&self) -> impl Ord + '_ {
        let value = Reverse(self.value.unsigned_abs());
        (value, &self.function, &self.caller)
    }
}

fn site(profile: &Profile, groups: &Groups<'_>, node: NodeId) -> SiteKey {
    let function = profile.tree.get(node);
    let function = function.map(|node| groups.of_frame(node.frame));
    let mut stack = profile.tree.stack(node);
    let caller = stack.find_map(|node| {
        let group = groups.of_frame(node.frame);
        is_file(groups.texts[group].path).then_some((group, node.line))
    });
    (function, caller)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_profile::TestProfile;
    use rperf_model::test_support::{TestFrame, node};
    use rperf_model::{LabelSetId, WeightKey};

    #[test]
    fn waiting_is_told_by_what_waits_and_by_the_line_that_leads_there() {
        let mut test = TestProfile::wall();
        let main = ("main", "a.rb", 1, 2);
        let sleep = ("Kernel#sleep", "<C method>", 0, 0);
        let stacks: [(&[TestFrame<'_>], State, i64); 6] = [
            (&[main, sleep], State::GvlBlocked, 40),
            (&[("main", "a.rb", 1, 3), sleep], State::GvlBlocked, 50),
            (&[main, sleep], State::GvlWait, 7),
            (&[sleep], State::GvlBlocked, 5),
            (&[], State::GvlBlocked, 4),
            (&[main], State::Running, 100),
        ];
        for (frames, state, value) in stacks {
            let key = WeightKey {
                node: node(&mut test.profile, frames),
                thread: 1,
                labels: LabelSetId(0),
                state,
            };
            test.profile.weights.push(key, &[1, value, 0]);
        }
        let waits = Wait::of(&test.profile, Column(1));
        let text = |function: &Function| function.name.clone();
        let shown: Vec<_> = waits
            .iter()
            .map(|wait| {
                let sites = wait.sites.iter().map(|site| {
                    let caller = site.caller.as_ref().map(|(at, line)| (text(at), *line));
                    (site.function.as_ref().map(text), caller, site.value)
                });
                (wait.state, wait.value, sites.collect::<Vec<_>>())
            })
            .collect();
        let sleep = Some("Kernel#sleep".to_string());
        let main = |line| Some(("main".to_string(), line));
        let blocked = vec![
            (sleep.clone(), main(3), 50),
            (sleep.clone(), main(2), 40),
            (sleep.clone(), None, 5),
            (None, None, 4),
        ];
        let expected = [
            (State::GvlBlocked, 99, blocked),
            (State::GvlWait, 7, vec![(sleep, main(2), 7)]),
        ];
        assert_eq!(shown, expected);
    }
}
