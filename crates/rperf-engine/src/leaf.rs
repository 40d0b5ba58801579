//! The stack at the tick. Compiled code runs most C methods without a safepoint, so
//! at the next one they are gone. Here the thread that holds the GVL is interrupted
//! at the tick and its stack taken on the spot ([`signal`]); at the safepoint that
//! follows it is compared with the stack found there ([`leaf_line_if_confirmed`]).

use crate::call_tree::{FrameWord, equal_from_the_end};
use crate::session::Stack;

#[cfg_attr(
    not(all(
        target_os = "linux",
        any(target_arch = "x86_64", target_arch = "aarch64")
    )),
    path = "leaf/no_signal.rs"
)]
pub mod signal;

/// Frames that may have ended between the tick and the safepoint: a Ruby method
/// reaches a safepoint before it returns, so this is the C method that ran.
const ENDED_FRAMES: usize = 1;

/// Whether the stack taken `at_tick` is borne out by the one found `at_safepoint`;
/// if so, the line of its leaf. Else the latter is the one to record. The stack at the
/// tick must have lines.
///
/// It was read while its thread was in the middle of something. All its frames but the
/// leaf must be found again at the safepoint, in the same place; the frame of a method
/// that called others since is there still. What an exception has unwound meanwhile
/// can't be told from a stack that was read wrongly. A leaf that has ended must be one
/// that `is_c_method`.
///
/// Compiled code doesn't keep the line of its topmost frame; the safepoint's line
/// stands in for it if that frame is the same. And it may not have told yet where in
/// the method it is at all: such a frame the VM leaves out, and the stack seems to end
/// with its caller, at the line of the call.
pub fn leaf_line_if_confirmed(
    at_tick: Stack<'_>,
    at_safepoint: Stack<'_>,
    is_c_method: impl FnOnce(FrameWord) -> bool,
) -> Option<u32> {
    let depth = at_tick.frames.len();
    let leaf = *at_tick.frames.first()?;
    let line = *at_tick.lines.first()?;
    let shared = equal_from_the_end(at_tick.frames, at_safepoint.frames);
    if shared < depth {
        return (depth - shared == ENDED_FRAMES && is_c_method(leaf)).then_some(line);
    }
    let called_since = at_safepoint.frames.len() - depth;
    let found_line = at_safepoint.lines.get(called_since).copied().unwrap_or(0);
    if line == 0 {
        return Some(found_line);
    }
    let may_lack_its_leaf = called_since > 0 && (found_line == line || found_line == 0);
    (!may_lack_its_leaf).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const C_METHOD: usize = 9;
    const AT_TICK: (&[usize], &[u32]) = (&[C_METHOD, 2, 1], &[0, 21, 11]);

    fn confirmed(tick: (&[usize], &[u32]), safepoint: (&[usize], &[u32])) -> Option<u32> {
        let [tick, safepoint] = [tick, safepoint].map(|(frames, lines)| Stack {
            frames,
            lines,
            cut: false,
        });
        leaf_line_if_confirmed(tick, safepoint, |frame| frame == C_METHOD)
    }

    #[test]
    fn a_c_method_may_have_returned_and_others_may_have_been_called() {
        assert_eq!(confirmed(AT_TICK, (&[9, 2, 1], &[0, 21, 11])), Some(0));
        assert_eq!(confirmed(AT_TICK, (&[2, 1], &[25, 11])), Some(0));
        assert_eq!(
            confirmed(AT_TICK, (&[5, 4, 2, 1], &[5, 4, 28, 11])),
            Some(0)
        );
    }

    #[test]
    fn what_the_safepoint_does_not_bear_out_is_not_recorded() {
        let safepoint: (&[usize], &[u32]) = (&[3, 1], &[31, 11]);
        assert_eq!(confirmed(AT_TICK, safepoint), None);
        assert_eq!(confirmed((&[], &[]), safepoint), None);
        assert_eq!(confirmed((&[9, 3, 7], &[0, 0, 0]), safepoint), None);
    }

    #[test]
    fn a_compiled_leaf_takes_its_line_from_the_safepoint() {
        let tick: (&[usize], &[u32]) = (&[2, 1], &[0, 11]);
        assert_eq!(confirmed(tick, (&[2, 1], &[25, 11])), Some(25));
        assert_eq!(confirmed(tick, (&[6, 2, 1], &[60, 26, 11])), Some(26));
        assert_eq!(
            confirmed(tick, (&[1], &[12])),
            None,
            "it can't have returned"
        );
        let known: (&[usize], &[u32]) = (&[2, 1], &[24, 11]);
        assert_eq!(confirmed(known, (&[2, 1], &[25, 11])), Some(24));
        assert_eq!(confirmed(tick, (&[2, 1], &[])), Some(0));
    }

    #[test]
    fn a_stack_whose_leaf_may_have_been_hidden_is_not_recorded() {
        let tick: (&[usize], &[u32]) = (&[2, 1], &[24, 11]);
        assert_eq!(confirmed(tick, (&[6, 2, 1], &[60, 24, 11])), None);
        assert_eq!(confirmed(tick, (&[6, 2, 1], &[])), None, "no lines");
        assert_eq!(confirmed(tick, (&[6, 2, 1], &[60, 25, 11])), Some(24));
    }
}
