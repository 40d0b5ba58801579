//! What the worker of a session that is watched has been told. In a callback of the VM's, with the
//! GVL.

/// How much it has been told of the call tree, its frames' names and the label sets.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Told {
    pub(super) nodes: usize,
    pub(super) names: usize,
    pub(super) label_sets: usize,
}

impl Told {
    /// The call tree is another one.
    pub(super) fn forget_tree(&mut self) {
        (self.nodes, self.names) = (0, 0);
    }

    /// The label sets have new numbers.
    pub(super) fn forget_labels(&mut self) {
        self.label_sets = 0;
    }
}

/// The next `most` rows of `all`, of which `told` were told.
pub(super) fn part<T: Clone>(all: &[T], told: &mut usize, most: usize) -> Vec<T> {
    let new = all.get(*told..).unwrap_or_default();
    let new = &new[..new.len().min(most)];
    *told += new.len();
    new.to_vec()
}
