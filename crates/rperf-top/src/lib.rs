//! The screens of `rperf top`: methods, call tree, threads and labels of programs that are watched,
//! on a terminal. What is known of the programs is in [`Sums`](rperf_watch::sums::Sums), which
//! another thread fills; [`run`] shows it until the user has seen enough. Nothing here asks ports,
//! or knows Ruby.

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![forbid(unsafe_code)]

pub mod app;
pub mod draw;
mod keys;
pub mod line;
pub mod lines;
pub mod look;
pub mod run;
pub mod saved;
pub mod terminal;
pub mod text;

#[cfg(test)]
mod screens_tests;
