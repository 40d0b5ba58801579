//! Questions asked of a profile: the rows with the most time, callers and callees, the cost of each
//! line, the part that filters leave, the changes since another profile. The answers are data,
//! which the formats and the command write. Called by them and by the Ruby API.
//!
//! This crate does no I/O, starts no thread and holds no unsafe code; any thread may call it. Every
//! question is about one column of a profile's values.
//!
//! - [`Top`], [`Totals`] and [`Lines`] are sums;
//! - [`Tree`] is the call tree, [`CallGraph`] has each function once, [`Neighbours`] are callers and
//!   callees, [`Listing`] has the lines of a method or file, [`Path`]s the stacks with the most, [`Wait`]s
//!   the time in which threads didn't run;
//! - [`Idle`] is the time of threads that wait for work, [`Boot`] that of loading files, [`Tests`] that of
//!   a suite's tests, [`OpTimes`] that of queries and the like, [`Why`] says what slow requests have that
//!   others don't;
//! - [`Filter`] makes a smaller profile of a profile, [`choose_values()`] says which of
//!   its values it is about;
//! - [`Diff`] has the changes between runs, told from noise;
//! - [`Calls`] are how often methods were called, where that was traced, [`Methods`] all that is
//!   known of each, [`CallDiff`] the changes in calls, and [`CallCosts`] what functions and the
//!   calls between them cost, in all values; [`JoinedCalls`] are the calls of one profile for the
//!   rows of another;
//! - [`CodePaths`] are the paths of files as people see them, and [`Matched`] says how a method was
//!   found in another profile;
//! - [`growth`] says whether an amount grows, and [`in_use`] who has made the objects that stay;
//! - [`memory`] has what the resident memory of a process is made of;
//! - [`losses()`] has what a profile lacks, in words;
//! - [`Scale`] and [`numbers`] write values as people read them.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod boot;
mod calls;
mod chance;
mod choose;
mod diff;
mod filter;
mod graph;
mod idle;
mod lines;
mod losses;
mod matching;
pub mod memory;
mod methods;
mod neighbours;
mod objects;
mod requests;
mod rows;
mod stack;
mod suite;
mod text;
mod top;
mod tree;

pub use boot::{
    Boot, Initializer, LoadBranch, LoadedFile, LoadedGem, Place, PlaceKind, initializer_nodes,
};
pub use calls::call_costs::{CallCost, CallCosts, FunctionCosts, FunctionKind};
pub use calls::call_diff::{CallChange, CallDiff, CallDiffError};
pub use calls::joined_calls::JoinedCalls;
pub use calls::{Calls, call_count, calls_text, has_objects_without_callers, shows_calls};
pub use choose::{NoSuchValues, choose_values};
pub use diff::align::align;
pub use diff::{Change, Diff, DiffError, DiffRow, NoTests, Normalize, PerRequest, Run, TestValue};
pub use filter::{Filter, Filtered, TagFilter, ThreadFilter, without_idle};
pub use graph::{CallGraph, Cut, GraphEdge, GraphLimits, GraphNode, NodeKind};
pub use idle::{Idle, idle_line};
pub use lines::listing::{LineValues, Listing, Subject};
pub use lines::{LineTotals, Lines};
pub use losses::{Loss, losses, losses_line, notes_on};
pub use matching::Matched;
pub use methods::{Latency, Method, Methods};
pub use neighbours::{Neighbour, Neighbours};
pub use objects::gc_times::{CauseTimes, GcTimes};
pub use objects::growth;
pub use objects::in_use;
pub use requests::find::{NoSuchRequests, find_requests};
pub use requests::ops::{EndpointOp, Op, OpTimes, Repeat, ops_by_endpoint};
pub use requests::waits::{Wait, WaitSite};
pub use requests::why::{
    Collections, EndpointTimes, Holder, Means, OpShare, Part, Site, SlowRequest, Why,
};
pub use rows::in_ops::has_ops;
pub use rows::states::StateRow;
pub use rows::tags::{tag_keys, types_with_tag};
pub use rows::threads::thread_name;
pub use rperf_model::numbers;
pub use stack::groups::{CoreMethods, Function, class_of};
pub use stack::paths::{Path, Step};
pub use suite::{FURTHER_TESTS, Factory, Test, TestFile, TestGem, TestOp, Tests};
pub use text::code_paths::CodePaths;
pub use text::one_line;
pub use text::pattern::{NamePattern, PatternError, regex};
pub use text::terminal_text;
pub use text::units::{Scale, nanoseconds_per};
pub use top::totals::Totals;
pub use top::{By, Sort, Top, TopRow};
pub use tree::{Branch, Direction, Tree, TreeLimits};
