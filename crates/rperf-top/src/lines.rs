//! The lines of each screen, in order. Made when the picture is renewed, without text; only what is
//! seen is made text of. On the command's thread.

mod flat;
mod memory;
mod tree;

pub use flat::{labels, methods, threads};
pub use memory::memory;
pub use tree::{Opening, Tree, tree};
