//! Errors of reading and writing profile files. Used by all formats; any thread.

use crate::FileKind;
use rperf_model::numbers::grouped;
use std::io;

/// Why a profile can't be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The output failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// There would be no end of it.
    #[error("the profile is too large for this format: more than {} {unit}", grouped(*limit))]
    TooLarge {
        /// How many are allowed.
        limit: u64,
        /// The unit of the limit.
        unit: &'static str,
    },
}

/// Why a file can't be read as a profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The input failed, or its compression is broken.
    #[error("the profile can't be read: {0}")]
    Io(#[from] io::Error),
    /// The profile is larger than any that we know how to make.
    #[error("the profile is too large: more than {} {unit}", grouped(*limit))]
    TooLarge {
        /// How many are allowed.
        limit: u64,
        /// The unit of the limit.
        unit: &'static str,
    },
    /// The content is not in the format that it should have.
    #[error("not a pprof profile: {0}")]
    Decode(#[from] prost::DecodeError),
    /// The content is no protocol buffer.
    #[error("not a pprof profile: {0}")]
    Malformed(String),
    /// The file is of another kind.
    #[error("{0}")]
    OtherKind(FileKind),
    /// Its parts don't fit together.
    #[error("the profile is damaged: {0}")]
    Damaged(String),
}

impl ReadError {
    /// The profile's parts don't fit together, as `what` tells.
    pub(crate) fn damaged(what: impl Into<String>) -> Self {
        ReadError::Damaged(what.into())
    }
}
