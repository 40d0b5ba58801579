//! How long things took, counted in buckets. Any thread.

pub(crate) mod buckets;
pub(crate) mod histogram;
pub(crate) mod quantiles;
