//! Stacks as people see them: with a synthetic leaf frame for every state but
//! running, and a placeholder where nothing else would be left to show.
//!
//! Every format, the totals and the Ruby API take their stacks from here, so
//! that all of them show the same. Any thread, no I/O.

use crate::frames::frame_kind::THREAD;
use crate::{FrameId, Node, Profile, State, WeightKey};

const THREAD_EXITED: &str = "[thread exited]";
const NO_FRAMES: &str = "[no frames]";

/// A frame of a stack as shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DisplayFrame {
    /// A frame of the call tree, at a line (0: not known).
    Real {
        /// The frame.
        frame: FrameId,
        /// The line in execution.
        line: u32,
    },
    /// The leaf that stands for a state.
    Synthetic(State),
    /// Running time of threads that ended before any stack was taken.
    ThreadExited,
    /// Running time without a stack, of any other thread.
    NoFrames,
}

/// The texts of a [`DisplayFrame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameText<'a> {
    /// Qualified name.
    pub name: &'a str,
    /// Path, or a marker such as `<GVL>`.
    pub path: &'a str,
    /// Line of the definition, or 0.
    pub first_line: u32,
    /// Line in execution, or 0.
    pub line: u32,
}

impl DisplayFrame {
    /// Whether a frame with this name and path stands for a stack without frames.
    pub fn is_placeholder(name: &str, path: &str) -> bool {
        path == THREAD && (name == THREAD_EXITED || name == NO_FRAMES)
    }
}

impl From<&Node> for DisplayFrame {
    fn from(node: &Node) -> Self {
        DisplayFrame::Real {
            frame: node.frame,
            line: node.line,
        }
    }
}

impl Profile {
    /// The stack of a weight as shown: leaf first, and never empty.
    pub fn display_stack(&self, key: WeightKey) -> impl Iterator<Item = DisplayFrame> + '_ {
        let frames = self.tree.stack(key.node).map(DisplayFrame::from);
        self.display_leaf(key).into_iter().chain(frames)
    }

    /// The leaf that the stack of a weight is shown with but does not have, if any.
    pub fn display_leaf(&self, key: WeightKey) -> Option<DisplayFrame> {
        match key.state {
            State::Running if self.tree.get(key.node).is_some() => None,
            State::Running if key.thread == 0 => Some(DisplayFrame::ThreadExited),
            State::Running => Some(DisplayFrame::NoFrames),
            state => Some(DisplayFrame::Synthetic(state)),
        }
    }

    /// The texts of `frame`.
    pub fn frame_text(&self, frame: DisplayFrame) -> FrameText<'_> {
        let (name, path) = match frame {
            DisplayFrame::Real { frame, line } => {
                let Some(frame) = self.frames.get(frame) else {
                    return FrameText::without_lines("", "");
                };
                return FrameText {
                    name: self.strings.get(frame.name),
                    path: self.strings.get(frame.path),
                    first_line: frame.first_line,
                    line,
                };
            }
            DisplayFrame::Synthetic(state) => state.synthetic_frame().unwrap_or_default(),
            DisplayFrame::ThreadExited => (THREAD_EXITED, THREAD),
            DisplayFrame::NoFrames => (NO_FRAMES, THREAD),
        };
        FrameText::without_lines(name, path)
    }
}

impl<'a> FrameText<'a> {
    fn without_lines(name: &'a str, path: &'a str) -> Self {
        FrameText {
            name,
            path,
            first_line: 0,
            line: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::test_support::test_profile::TestProfile;
    use crate::{DisplayFrame, State};

    fn shown(test: &TestProfile) -> Vec<String> {
        let profile = &test.profile;
        let weight = profile.weights.get(0).expect("a weight");
        let texts = profile
            .display_stack(weight.key)
            .map(|frame| profile.frame_text(frame).name);
        texts.map(String::from).collect()
    }

    #[test]
    fn a_running_stack_is_shown_leaf_first_as_it_is() {
        let test = TestProfile::wall().with(&["main", "work"], 1, State::Running, 5);
        assert_eq!(shown(&test), ["work", "main"]);
    }

    #[test]
    fn a_state_is_shown_as_a_leaf() {
        let test = TestProfile::wall().with(&["main", "sleep"], 1, State::GvlBlocked, 5);
        assert_eq!(shown(&test), ["[GVL blocked]", "sleep", "main"]);
    }

    #[test]
    fn a_stack_without_frames_gets_a_placeholder_unless_its_state_shows() {
        let exited = TestProfile::cpu().with(&[], 0, State::Running, 5);
        assert_eq!(shown(&exited), ["[thread exited]"]);
        let other = TestProfile::cpu().with(&[], 1, State::Running, 5);
        assert_eq!(shown(&other), ["[no frames]"]);
        let gc = TestProfile::cpu().with(&[], 0, State::GcMarking, 5);
        assert_eq!(shown(&gc), ["[GC marking]"]);
    }

    #[test]
    fn placeholders_are_told_by_name_and_path() {
        let test = TestProfile::cpu();
        let text = test.profile.frame_text(DisplayFrame::NoFrames);
        assert!(DisplayFrame::is_placeholder(text.name, text.path));
        assert!(!DisplayFrame::is_placeholder(text.name, "a.rb"));
    }
}
