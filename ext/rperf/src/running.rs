//! The running session, and the way to it: sampling, traced, or with chosen methods; the roots of its
//! frames, and label sets as the VM has them.

pub mod chosen;
pub mod label_set;
pub mod roots;
pub mod sampling;
pub mod trace_roots;
pub mod tracing;

use magnus::{Error, RModule, Ruby};

/// Makes what is made once per process. On the main thread.
pub fn init(ruby: &Ruby, native: RModule) -> Result<(), Error> {
    roots::init();
    trace_roots::init();
    tracing::make_key();
    label_set::init(ruby, native)
}
