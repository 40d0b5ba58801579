//! What a user can set about a session: one table of it, from which the command's flags,
//! `Rperf.start`'s keywords, the RPERF_* variables, the settings of child processes and the help
//! come. Used by the command and the extension; any thread.

mod checked;
mod form;
mod table;

pub use checked::{Capture, Inherit, InvalidSetting, Settings, Signal, check, quoted};
pub use form::{Given, Source, Value};
pub use table::*;

#[cfg(test)]
mod tests;
