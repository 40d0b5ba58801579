//! Which of the VM's internal objects stand for frames: a session believes it only if a stack has
//! shown it.

/// The kinds of these objects, as the VM numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameKinds {
    /// A method entry.
    pub method: usize,
    /// An instruction sequence.
    pub code: usize,
}

impl FrameKinds {
    /// Whether an object of this kind is a frame; `None` is the kind of what isn't internal.
    pub fn have(&self, kind: Option<usize>) -> bool {
        [Some(self.method), Some(self.code)].contains(&kind)
    }

    /// Whether frames can be of these kinds, by those of a stack with a method of C on top, leaf
    /// first. That frame alone says which of the two kinds is which.
    pub fn fit(&self, stack: &[Option<usize>]) -> bool {
        stack.first() == Some(&Some(self.method)) && stack.iter().all(|kind| self.have(*kind))
    }

    /// Whether there is an instruction sequence among the stack's objects.
    pub fn show_code(&self, stack: &[Option<usize>]) -> bool {
        stack.contains(&Some(self.code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: FrameKinds = FrameKinds { method: 6, code: 7 };

    #[test]
    fn numbers_that_have_shifted_are_noticed() {
        let methods_only = [6, 6, 6];
        let with_code = [6, 7, 6, 7];
        for stack in [&methods_only[..], &with_code] {
            let shifted = |by: usize| -> Vec<_> { stack.iter().map(|it| Some(it + by)).collect() };
            assert!(KINDS.fit(&shifted(0)));
            let later = FrameKinds { method: 7, code: 8 };
            assert!(!KINDS.fit(&shifted(1)), "{stack:?}");
            assert!(!later.fit(&shifted(0)), "{stack:?}");
        }
        assert!(KINDS.show_code(&[Some(6), Some(7)]));
        assert!(!KINDS.show_code(&[Some(6), Some(8)]));
        assert!(!KINDS.fit(&[Some(6), Some(8)]), "code has another number");
    }

    #[test]
    fn other_objects_are_no_frames() {
        assert!(!KINDS.fit(&[Some(6), None]));
        assert!(!KINDS.fit(&[None, Some(6)]));
        assert!(!KINDS.fit(&[]), "there is nothing to see");
    }
}
