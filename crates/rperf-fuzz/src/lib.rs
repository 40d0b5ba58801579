//! Feeds what reads bytes from elsewhere with damaged ones: files that others give, answers of programs that
//! are watched, requests of other users. Each [`Target`] reads them, and does with what it read all that
//! users can do. `cargo test` has each for two seconds; `bin/fuzz` for as long as it is told. Inputs are
//! made from whole ones by chance, without knowledge of the code: that finds less than a fuzzer that
//! follows the branches, and needs no other compiler. Runs nowhere but there.

pub mod apart;
mod inputs;
mod mutate;
pub mod targets;

pub use inputs::{PATIENCE, run, try_input};
pub use mutate::Mutator;
pub use targets::{TARGETS, Target};
