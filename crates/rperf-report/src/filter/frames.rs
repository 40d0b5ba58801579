//! Filters by frames: which stacks stay, and which of their frames. Called by `filter`; any thread.

use crate::rows::keys::change_keys;
use crate::text::code_paths::CodePaths;
use regex::Regex;
use rperf_model::OwnColumn;
use rperf_model::frame_kind::OP;
use rperf_model::{
    CallTree, Column, DisplayFrame, FrameId, FrameText, Node, NodeId, Profile, State, WeightKey,
    Weights,
};

/// The filters by frames, as [`Filter`](super::Filter) has them.
#[derive(Clone, Copy)]
pub(super) struct FrameFilters<'a> {
    pub(super) focus: Option<&'a Regex>,
    pub(super) ignore: Option<&'a Regex>,
    pub(super) hide: Option<&'a Regex>,
    pub(super) hides_ops: bool,
    pub(super) show: Option<&'a Regex>,
    pub(super) show_from: Option<&'a Regex>,
}

/// The verdicts of the filters about frames.
pub(super) struct Frames {
    /// Whether they say anything.
    pub(super) is_needed: bool,
    by_frame: Vec<Marks>,
    by_state: [Marks; State::ALL.len()],
    thread_exited: Marks,
    no_frames: Marks,
    has_show_from: bool,
    unmatched: Vec<&'static str>,
}

/// The verdicts of the filters about one frame.
#[derive(Clone, Copy, Default)]
struct Marks {
    is_focus: bool,
    is_ignored: bool,
    is_hidden: bool,
    is_from: bool,
}

/// The verdicts of the filters about a stack, from the root to a node.
#[derive(Clone, Copy)]
struct Stack {
    /// The node of what is shown of it.
    shown: NodeId,
    is_focus: bool,
    is_ignored: bool,
    /// Whether the frame from which on it is shown has come.
    is_from: bool,
}

/// The outcome: the options that matched nothing.
pub(super) struct Rewritten {
    pub(super) unmatched: Vec<&'static str>,
}

impl Frames {
    pub(super) fn new(filter: FrameFilters<'_>, profile: &Profile) -> Self {
        let mut matched = Matched::default();
        let paths = CodePaths::of(profile);
        let mut marks = |frame| matched.marks(filter, profile.frame_text(frame), &paths);
        let frames = profile.frames.iter();
        let by_frame = frames
            .map(|(frame, _)| marks(DisplayFrame::Real { frame, line: 0 }))
            .collect();
        let by_state = State::ALL.map(|state| marks(DisplayFrame::Synthetic(state)));
        let thread_exited = marks(DisplayFrame::ThreadExited);
        let no_frames = marks(DisplayFrame::NoFrames);
        let options = [
            ("--focus", filter.focus.is_some(), matched.focus),
            ("--ignore", filter.ignore.is_some(), matched.ignore),
            ("--hide", filter.hide.is_some(), matched.hide),
            ("--hide-ops", filter.hides_ops, matched.op),
            ("--show", filter.show.is_some(), matched.show),
            ("--show-from", filter.show_from.is_some(), matched.show_from),
        ];
        Self {
            is_needed: options.iter().any(|(_, is_given, _)| *is_given),
            by_frame,
            by_state,
            thread_exited,
            no_frames,
            has_show_from: filter.show_from.is_some(),
            unmatched: options
                .iter()
                .filter(|(_, is_given, is_matched)| *is_given && !is_matched)
                .map(|(name, _, _)| *name)
                .collect(),
        }
    }

    /// Removes from `profile` the stacks and frames that are not to be shown.
    pub(super) fn rewrite(self, profile: &mut Profile) -> Rewritten {
        let mut tree = CallTree::default();
        let mut stacks = vec![Stack {
            shown: NodeId::ROOT,
            is_focus: false,
            is_ignored: false,
            is_from: !self.has_show_from,
        }];
        let mut is_shown = vec![true];
        for (_, node) in profile.tree.iter() {
            let marks = self.by_frame[node.frame.0 as usize];
            let caller = stacks[node.parent.0 as usize];
            let is_from = caller.is_from || marks.is_from;
            is_shown.push(!marks.is_hidden && is_from);
            let shown = if marks.is_hidden || !is_from {
                caller.shown
            } else {
                tree.intern(Node {
                    parent: caller.shown,
                    ..*node
                })
            };
            stacks.push(Stack {
                shown,
                is_focus: caller.is_focus || marks.is_focus,
                is_ignored: caller.is_ignored || marks.is_ignored,
                is_from,
            });
        }
        drop_calls(profile, &is_shown);
        let leaves = Leaves::of(profile);
        change_keys(profile, |key| {
            let leaf = leaves.of_key(key).map(|leaf| self.marks(leaf));
            shown_key(key, stacks[key.node.0 as usize], leaf)
        });
        profile.tree = tree;
        Rewritten {
            unmatched: self.unmatched,
        }
    }

    fn marks(&self, frame: DisplayFrame) -> Marks {
        match frame {
            DisplayFrame::Real {
                frame: FrameId(row),
                ..
            } => self.by_frame[row as usize],
            DisplayFrame::Synthetic(state) => self.by_state[state as usize],
            DisplayFrame::ThreadExited => self.thread_exited,
            DisplayFrame::NoFrames => self.no_frames,
        }
    }
}

/// A frame that isn't shown leaves its time to its caller, but not its calls: these are none of the
/// caller's. `is_shown` is by node.
fn drop_calls(profile: &mut Profile, is_shown: &[bool]) {
    let schema = &profile.schema;
    let columns = [schema.calls(), schema.find_own(OwnColumn::BlockCalls)];
    let columns: Vec<Column> = columns.into_iter().flatten().collect();
    if columns.is_empty() || schema.calls().is_none() {
        return;
    }
    let mut weights = Weights::new(schema.len());
    let mut values = Vec::new();
    for weight in profile.weights.iter() {
        values.clear();
        values.extend_from_slice(weight.values);
        if !is_shown[weight.key.node.0 as usize] {
            for column in &columns {
                values[column.0] = 0;
            }
        }
        weights.push(weight.key, &values);
    }
    profile.weights = weights;
}

/// The key of a row of which `stack` is told, and the leaf that its stack is shown with
/// and doesn't have; `None` if it is not to be shown.
fn shown_key(key: WeightKey, stack: Stack, leaf: Option<Marks>) -> Option<WeightKey> {
    let leaf_marks = leaf.unwrap_or_default();
    let is_focus = stack.is_focus || leaf_marks.is_focus;
    if !is_focus || stack.is_ignored || leaf_marks.is_ignored {
        return None;
    }
    let is_from = stack.is_from || leaf_marks.is_from;
    let has_leaf = leaf.is_some() && !leaf_marks.is_hidden && is_from;
    if !is_from || (stack.shown == NodeId::ROOT && !has_leaf) {
        return None;
    }
    Some(WeightKey {
        node: stack.shown,
        state: if has_leaf { key.state } else { State::Running },
        ..key
    })
}

/// The leaves that stacks are shown with and don't have, by what they depend on.
struct Leaves {
    has_frames: Vec<bool>,
}

impl Leaves {
    fn of(profile: &Profile) -> Self {
        let nodes = 0..=profile.tree.len() as u32;
        Self {
            has_frames: nodes
                .map(|id| profile.tree.get(NodeId(id)).is_some())
                .collect(),
        }
    }

    fn of_key(&self, key: WeightKey) -> Option<DisplayFrame> {
        match key.state {
            State::Running if self.has_frames[key.node.0 as usize] => None,
            State::Running if key.thread == 0 => Some(DisplayFrame::ThreadExited),
            State::Running => Some(DisplayFrame::NoFrames),
            state => Some(DisplayFrame::Synthetic(state)),
        }
    }
}

/// Which options have matched any frame.
#[derive(Default)]
struct Matched {
    focus: bool,
    ignore: bool,
    hide: bool,
    op: bool,
    show: bool,
    show_from: bool,
}

impl Matched {
    fn marks(&mut self, filter: FrameFilters<'_>, text: FrameText<'_>, paths: &CodePaths) -> Marks {
        let short_path = paths.short(text.path);
        let texts = [text.name, &short_path, text.path];
        let matches = |regex: Option<&Regex>| {
            regex.map(|regex| texts.iter().any(|text| regex.is_match(text)))
        };
        let focus = matches(filter.focus);
        let is_ignored = matches(filter.ignore) == Some(true);
        let is_hidden = matches(filter.hide) == Some(true);
        let is_op = text.path == OP;
        let show = matches(filter.show);
        let is_from = matches(filter.show_from) == Some(true);
        self.focus |= focus == Some(true);
        self.ignore |= is_ignored;
        self.hide |= is_hidden;
        self.op |= is_op;
        self.show |= show == Some(true);
        self.show_from |= is_from;
        Marks {
            is_focus: focus != Some(false),
            is_ignored,
            is_hidden: is_hidden || show == Some(false) || (filter.hides_ops && is_op),
            is_from,
        }
    }
}
