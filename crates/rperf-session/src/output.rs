//! Files that users name: whether they can be written, and how profiles get there so that none is
//! lost. Used by the command and the extension; any thread.

mod deliver;
mod descriptor;
mod file;
mod foreign;
mod hurry;
mod stream;
mod writable;
mod write_signals;

pub use deliver::{Misplaced, WriteError, deliver, system_words, write_profile};
pub use descriptor::Descriptor;
pub use file::{buffered, write, write_streaming};
pub use foreign::descriptor_of;
pub use hurry::{hurry, hurrying_by};
pub use writable::{Unwritable, normalized, writable};
pub use write_signals::without_write_signals;
