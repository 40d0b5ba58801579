//! Tracing: sessions that count and time calls. On the same floors as sampling (`vm.rs`): `state`,
//! `hooks`, `api`.

pub mod api;
pub mod hooks;
pub mod state;

/// Makes what is made once per process. On the main thread.
pub fn init() {
    state::session::make_key();
    state::roots::init();
}
