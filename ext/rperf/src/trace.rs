//! Tracing: sessions that count and time calls. On the same floors as sampling (`vm.rs`): `hooks`,
//! `api`.

pub mod api;
pub mod hooks;
