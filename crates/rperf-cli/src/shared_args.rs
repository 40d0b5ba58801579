//! Arguments that several commands take. On the command's only thread.

pub(crate) mod checked;
pub(crate) mod path_args;
pub(crate) mod viewer_args;
