//! How large requests and answers may be. Clients refuse larger answers, as the program may be
//! hostile.

use rperf_model::ASKED_FREQUENCIES;
use std::ops::RangeInclusive;

/// Bytes of a request's head at most.
pub const MAX_REQUEST: usize = 8 << 10;

/// Bytes of a reply's head at most.
pub const MAX_REPLY_HEAD: usize = 16 << 10;

/// Bytes of the answer to `/v1/hello` at most. It has less; later versions may have more.
pub const MAX_HELLO: usize = 256 << 10;

/// Bytes of the answer with the stacks at most.
pub const MAX_STACKS: usize = 32 << 20;

/// Bytes of the answer with the memory at most: it lists the pages of objects.
pub const MAX_MEMORY: usize = 32 << 20;

/// Bytes of a page of changes at most: names can be long.
pub const MAX_DELTA: usize = 64 << 20;

/// Bytes of a profile's file at most.
pub const MAX_PROFILE: usize = 256 << 20;

/// Samples per second of a session that clients begin, at most.
pub const MAX_FREQUENCY: u32 = *ASKED_FREQUENCIES.end();

/// Seconds that a profile may take.
pub const SECONDS: RangeInclusive<f64> = 0.001..=86_400.0;

/// How long a client waits for news if it doesn't say, and how long it can say, in ms.
pub const WAIT_MS: u64 = 20;
/// See [`WAIT_MS`].
pub const MAX_WAIT_MS: u64 = 1000;
