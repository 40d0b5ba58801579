//! The stack at the tick. Compiled code runs most C methods without a safepoint, so
//! at the next one they are gone. Here the thread that holds the GVL is interrupted
//! at the tick and its stack taken on the spot ([`signal`]); at the safepoint that
//! follows it is compared with the stack found there ([`leaf_line_if_confirmed`]).

use crate::call_tree::equal_from_the_end;
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
/// if so, the line of its leaf. Else the latter is the one to record.
///
/// The stack at the tick was read while its thread was in the middle of something.
/// All its frames but the leaf must be found again at the safepoint, in the same
/// place; the frame of a method that called others since is there still. What an
/// exception has unwound meanwhile can't be told from a stack that was read wrongly.
///
/// Compiled code doesn't keep the line of its topmost frame; the safepoint's line
/// stands in for it if that frame is the same.
pub fn leaf_line_if_confirmed(at_tick: Stack<'_>, at_safepoint: Stack<'_>) -> Option<u32> {
    let depth = at_tick.frames.len();
    let shared = equal_from_the_end(at_tick.frames, at_safepoint.frames);
    if depth == 0 || depth - shared > ENDED_FRAMES {
        return None;
    }
    let line = at_tick.lines.first().copied().unwrap_or(0);
    let same = at_safepoint.frames.len() - shared;
    if line == 0 && shared == depth {
        return Some(at_safepoint.lines.get(same).copied().unwrap_or(0));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_TICK: (&[usize], &[u32]) = (&[9, 2, 1], &[0, 21, 11]);

    fn confirmed(tick: (&[usize], &[u32]), safepoint: (&[usize], &[u32])) -> Option<u32> {
        let [tick, safepoint] = [tick, safepoint].map(|(frames, lines)| Stack {
            frames,
            lines,
            cut: false,
        });
        leaf_line_if_confirmed(tick, safepoint)
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
        assert_eq!(confirmed(tick, (&[1], &[12])), Some(0), "it has returned");
        let known: (&[usize], &[u32]) = (&[2, 1], &[24, 11]);
        assert_eq!(confirmed(known, (&[2, 1], &[25, 11])), Some(24));
        assert_eq!(confirmed((&[2, 1], &[]), (&[2, 1], &[])), Some(0));
    }
}
