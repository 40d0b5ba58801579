//! A program that `top` watches, by the names that its files use.

pub use rperf_watch::condition::Stuck;
pub use rperf_watch::patience::AGAIN;
pub use rperf_watch::pull::{News, Pull as Watched};
