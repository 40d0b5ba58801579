//! Accounts of requests and jobs, without Ruby: in which states their threads spent their time, to
//! the nanosecond, and the quantiles of that for all requests of one name; and those of tests.
//!
//! The bridge hands the VM's events in; no sample is taken, and no timer runs. What belongs to a
//! thread is protected by the GVL.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod account_ops;
#[cfg(test)]
mod draw;
mod endpoint;
mod figures;
mod judged;
mod ops;
mod queue;
mod suite;
mod sums;
mod table;
mod thread;

pub use account_ops::{AccountOp, AccountOps, OpTime};
pub use endpoint::endpoint_path;
pub use figures::{Figures, Value};
pub use judged::{JudgedRequests, RequestName};
pub use ops::{OpCall, OpFrame, SessionOps};
pub use queue::queue_ns;
pub use suite::{FactoryRun, SuiteAccounts};
pub use sums::Sums;
pub use table::{AccountTable, OTHER, Quantile, Summary};
pub use thread::{Moment, Opened, ThreadAccounts};
