//! What a user can set about a session: one table of it, from which the command's flags,
//! `Rperf.start`'s keywords, the RPERF_* variables, the settings of child processes and the help
//! come. Used by the command and the extension; any thread.

mod check;
mod checked;
mod excluded;
mod form;
mod label_texts;
mod map;
mod measure;
mod method_names;
mod path_pattern;
mod setting;
mod table;
mod values;
mod words;

pub use check::{InvalidSetting, check, quoted};
pub use excluded::Excluded;
pub use form::{Given, Source, Value, loopback};
pub use map::Settings;
pub use measure::BLAME;
pub use setting::{Defaults, Flag, Flags, PREFIX, Setting, Takes, Tracing};
pub use table::*;
pub use values::{Capture, Clock, Inherit, Signal};

#[cfg(test)]
mod tests;
