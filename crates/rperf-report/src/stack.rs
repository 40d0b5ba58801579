//! The stacks of a profile: the walk through them, their groups, places and paths. Any thread.

pub(crate) mod groups;
pub(crate) mod paths;
pub(crate) mod places;
pub(crate) mod walk;
