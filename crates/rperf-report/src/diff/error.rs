//! Why runs can't be compared. Used by `diff`; any thread.

/// Why runs can't be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// The profiles measure different things.
    #[error(
        "the profiles can't be compared: one has {base}, another {target} (--value chooses one that both have)"
    )]
    Types {
        /// The type of the first profile of the base.
        base: String,
        /// The type of another profile.
        target: String,
    },
    /// There is nothing to scale a run by.
    #[error("the profiles can't be normalised: one has no {0}")]
    NothingToNormalize(&'static str),
    /// A side has no runs.
    #[error("there is nothing to compare")]
    NoRuns,
}
