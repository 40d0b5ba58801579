//! Questions asked of a profile: where the time goes, by whatever is asked for, who calls
//! whom, what each line costs, what is left after filters, what has changed. The answers
//! are data; others write them down.
//!
//! This crate does no I/O, starts no thread and holds no unsafe code; any thread may
//! call it. Every question is about one column of a profile's values.
//!
//! - [`Top`], [`Totals`] and [`Lines`] are sums;
//! - [`Tree`] is the call tree, [`Neighbours`] are callers and callees, [`Listing`] has
//!   the lines of a method or file, [`Path`]s the stacks with the most, [`Wait`]s what
//!   threads did instead of running;
//! - [`Filter`] makes a smaller profile of a profile, [`choose_values()`] says which of
//!   its values it is about;
//! - [`Diff`] tells what has changed between runs, and what may be noise;
//! - [`losses()`] tells what a profile lacks;
//! - [`Scale`] and [`numbers`] write values as people read them.

#![forbid(unsafe_code)]

mod choose;
mod diff;
mod filter;
mod groups;
mod lines;
mod listing;
mod losses;
mod neighbours;
pub mod numbers;
pub mod one_line;
mod paths;
mod pattern;
mod top;
mod totals;
mod tree;
mod units;
mod waits;
mod walk;

pub use choose::{NoSuchValues, choose_values};
pub use diff::{Change, Diff, DiffError, DiffRow, Normalize, Run};
pub use filter::{Filter, Filtered, TagFilter, ThreadFilter};
pub use groups::Function;
pub use lines::{LineTotals, Lines};
pub use listing::{LineValues, Listing, Subject};
pub use losses::{Loss, losses, losses_line};
pub use neighbours::{Neighbour, Neighbours};
pub use paths::{Path, Step};
pub use pattern::{NamePattern, PatternError, regex};
pub use top::{By, Sort, Top, TopRow, state_name};
pub use totals::Totals;
pub use tree::{Branch, Direction, Tree, TreeLimits};
pub use units::{Scale, nanoseconds_per};
pub use waits::{Wait, WaitSite};
