//! Profile files: pprof (written and read), collapsed stacks, and reports for people and programs:
//! text, Markdown, JSON, the web viewer's page, the call graph in DOT, callgrind's files and time lines;
//! and profiles as the collectors of Pyroscope and OpenTelemetry take them.
//!
//! Each format is one module that goes from a [`Profile`] to any
//! [`Write`](std::io::Write) (pprof also back from any [`Read`](std::io::Read));
//! the formats don't know each other. All show the stacks that
//! [`Profile::display_stack`] gives. Readers take their input for hostile: it may be
//! refused, but it can't cause a panic, unbounded memory or unbounded time. Only
//! [`pprof::read_own`] takes profiles of any size.
//!
//! Called by the extension when a session ends and by the command line tool, on
//! their threads; nothing here starts one.
//!
//! ```
//! use rperf_format::{Format, TextOptions, write};
//! use rperf_model::{Column, Profile, Schema, ValueType};
//! use std::path::Path;
//!
//! let types = vec![ValueType::new("cpu", "nanoseconds")];
//! let schema = Schema::new(types, Column(0)).expect("a schema has a column");
//! let format = Format::from_path(Path::new("profile.txt"));
//! let mut report = Vec::new();
//! write(&Profile::new(schema), format, TextOptions::default(), &mut report)?;
//! assert!(report.starts_with(b"Total: 0.0ms (cpu)\n"));
//! # Ok::<(), rperf_format::FormatError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

pub mod answers;
mod callgrind;
mod collapsed;
mod dot;
mod error;
mod file_kind;
mod format;
mod gc_table;
mod heads;
mod json;
mod last_stack;
mod leak;
pub mod markdown;
mod memory;
mod memory_known;
mod memory_table;
pub mod otlp;
mod parts;
pub mod pprof;
pub mod shorten;
mod spans;
pub mod table;
mod text;
pub mod viewer;

pub use dot::{GraphOptions, dot};
pub use error::{FormatError, ReadError};
pub use file_kind::FileKind;
pub use format::{Format, NOT_WRITTEN, write};
pub use gc_table::{gc_head, gc_table};
pub use heads::{
    Spelling, Times, boot_head, ops_head, part_detail, part_name, repeats_head, tests_head,
};
pub use json::{JsonOptions, json};
pub use leak::{
    Amount as GrowthAmount, ClassGrowth, Grown, GrowthTable, GrowthVerdict, LeakFile, Look,
    LookRow, NoLeakFile, SiteGrowth, SitesGrowth,
};
pub use memory::{
    Amounts, Lack, MappedFile, MemoryFacts, MemoryFile, MemoryMalloc, MemoryObjects, MemoryPool,
    MemoryRow, NoMemoryFile,
};
pub use memory_known::{Comparable, Known};
pub use memory_table::{
    bytes_text, memory_changes, memory_lacks, memory_notes, memory_table, slots_table,
};
pub use parts::Parts;
pub use text::{TextOptions, Whole, for_terminal};

#[cfg(doc)]
use rperf_model::Profile;
