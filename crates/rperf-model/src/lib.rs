//! The profile as data: strings, frames, the call tree, threads, label sets and
//! the weights that hang on them.
//!
//! Every way of collecting fills a [`Profile`] and every output reads one. This
//! crate does no I/O, starts no thread and holds no unsafe code; any thread may
//! call it.
//!
//! The profile's [`Schema`] has the types and units of the values.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod blame;
mod call_tree;
mod check;
mod collections;
mod display;
pub mod fold;
mod frames;
mod labels;
mod memory;
mod merge;
mod notes;
pub mod numbers;
mod order;
mod profile;
mod requests;
mod schema;
pub mod shared_sums;
mod state;
mod strings;
mod suite;
mod time_line;
mod times;
mod weights;

pub use call_tree::{CallTree, Node, NodeId, shown_line};
pub use check::{ASKED_FREQUENCIES, FREQUENCIES, Row, Violation};
pub use collections::gc_cause::GcCause;
pub use collections::{CollectionSums, Collections};
pub use display::{DisplayFrame, FrameText};
pub use frames::code_path::CodePath;
pub use frames::frame_kind;
pub use frames::frame_kind::FrameKind;
pub use frames::{Frame, FrameId, Frames};
pub use labels::label_keys;
pub use labels::{LabelSet, LabelSetId, LabelSets};
pub use merge::{MergeError, NotEarlier};
pub use notes::trace_level::TraceLevel;
pub use notes::{Chosen, Note, SampledBytes, Traced};
pub use order::Order;
pub use profile::origin::{Category, Origin};
pub use profile::{Meta, PathView, Period, Profile, RawSamples, SamplingStats, Thread};
pub use requests::latency_class::LatencyClass;
pub use requests::ops::{OpCalls, OpKey, OpSums, Ops};
pub use requests::{AmongSlowest, RequestId, RequestSums, RequestValues, Requests, Slowest};
pub use schema::columns::OwnColumn;
pub use schema::mode::{Mode, SessionMode};
pub use schema::{Column, Schema, ValueType};
pub use state::State;
pub use strings::{StringId, Strings};
pub use suite::{Suite, SuiteKey, SuiteKind, SuiteSums};
pub use time_line::{Span, TimeLine};
pub use times::histogram::{Histogram, Latencies};
pub use times::quantiles::Quantiles;
pub use weights::{Weight, WeightKey, WeightTable, Weights};

#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
#[cfg(any(test, feature = "test-support"))]
pub use test_support::test_profile;
