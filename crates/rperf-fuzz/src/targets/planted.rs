//! Readers that do harm at some inputs: what the fuzzer has to find before its silence counts.

use super::Target;
use std::hint::black_box;

/// The readers, one for each kind of harm.
pub const PLANTED: [Target; 5] = [
    planted("planted-panic", |input| {
        assert!(!is_harmful(input), "planted");
    }),
    planted("planted-abort", |input| {
        if is_harmful(input) {
            std::process::abort();
        }
    }),
    planted("planted-depth", |input| {
        if is_harmful(input) {
            black_box(deep(1));
        }
    }),
    planted("planted-memory", |input| {
        if is_harmful(input) {
            // Of zeros, which nobody writes: that many pages would take seconds.
            let blocks = (0..4_000).map(|_| vec![0_u8; 1 << 20]);
            black_box(blocks.collect::<Vec<_>>());
        }
    }),
    planted(
        "planted-endless",
        |input| {
            while black_box(is_harmful(input)) {}
        },
    ),
];

const fn planted(name: &'static str, read: fn(&[u8])) -> Target {
    Target {
        name,
        fed_by: "the fuzzer's own tests",
        read,
        seeds: || vec![b"abc".to_vec()],
    }
}

/// Whether it does harm.
pub fn is_harmful(input: &[u8]) -> bool {
    input.ends_with(b"\xff")
}

fn deep(depth: u64) -> u64 {
    let rest = if black_box(true) { deep(depth + 1) } else { 0 };
    black_box([depth; 32])[7] + rest
}
