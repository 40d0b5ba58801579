//! The screens of `rperf top`: methods, call tree, threads and labels of programs that are watched,
//! on a terminal. What is known of the programs is in a [`store::Store`], which another thread
//! fills; [`run`] shows it until the user has seen enough. Nothing here knows ports or Ruby.

#![forbid(unsafe_code)]

pub mod app;
pub mod draw;
mod keys;
pub mod line;
pub mod lines;
pub mod look;
mod profile;
pub mod run;
pub mod saved;
pub mod store;
pub mod terminal;
pub mod text;

#[cfg(test)]
mod screens_tests;
