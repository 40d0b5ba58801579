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
mod buckets;
mod call_tree;
mod check;
mod code_path;
mod collections;
mod display;
pub mod fold;
pub mod frame_kind;
mod frames;
mod gc_cause;
mod histogram;
pub mod label_keys;
mod labels;
mod latency_class;
mod memory;
mod merge;
mod meta;
mod notes;
pub mod numbers;
mod ops;
mod origin;
mod profile;
mod quantiles;
mod requests;
mod schema;
pub mod shared_sums;
mod state;
mod strings;
mod suite;
mod time_line;
mod weights;

pub use call_tree::{CallTree, Node, NodeId, shown_line};
pub use check::{ASKED_FREQUENCIES, FREQUENCIES, Row, Violation};
pub use code_path::CodePath;
pub use collections::{CollectionSums, Collections};
pub use display::{DisplayFrame, FrameText};
pub use frame_kind::FrameKind;
pub use frames::{Frame, FrameId, Frames};
pub use gc_cause::GcCause;
pub use histogram::{Histogram, Latencies};
pub use labels::{LabelSet, LabelSetId, LabelSets};
pub use latency_class::LatencyClass;
pub use merge::{MergeError, NotEarlier};
pub use notes::trace_level::TraceLevel;
pub use notes::{Chosen, Note, SampledBytes, Traced};
pub use ops::{OpCalls, OpKey, OpSums, Ops};
pub use origin::{Category, Origin};
pub use profile::{Meta, PathView, Period, Profile, RawSamples, SamplingStats, Thread};
pub use quantiles::Quantiles;
pub use requests::{AmongSlowest, RequestId, RequestSums, RequestValues, Requests, Slowest};
pub use schema::columns::OwnColumn;
pub use schema::mode::{Mode, TRACE};
pub use schema::{Column, Schema, ValueType};
pub use state::State;
pub use strings::{StringId, Strings};
pub use suite::{Suite, SuiteKey, SuiteKind, SuiteSums};
pub use time_line::{Span, TimeLine};
pub use weights::{Weight, WeightKey, WeightTable, Weights};

#[cfg(any(test, feature = "test-support"))]
pub mod test_support;
#[cfg(any(test, feature = "test-support"))]
pub use test_support::test_profile;
