//! How long programs are waited for, and how often they are looked at: one table for all that asks
//! them.

use std::time::Duration;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// For an answer that a port knows without the VM.
pub const HELLO: Duration = ms(2000);

/// For such an answer of each of many programs.
pub const LISTED: Duration = ms(1000);

/// For such an answer while another one is waited for.
pub const ASIDE: Duration = ms(500);

/// For stacks, a page of changes, or what a session has so far: the port itself gives up earlier.
pub const ANSWER: Duration = ms(5000);

/// For what memory is of: a walk of many objects takes its time.
pub const MEMORY: Duration = ms(30_000);

/// For each piece of a graph of objects: the port itself gives up earlier.
pub const HEAP: Duration = ms(15_000);

/// For all of it.
pub const WHOLE_HEAP: Duration = ms(60_000);

/// For a snapshot that the user waits for: the port itself gives up earlier.
pub const SNAPSHOT: Duration = ms(30_000);

/// For an answer beyond the time when it should come, before something is said.
pub const LATE: Duration = ms(1500);

/// Beyond the time of a profile, for a program that runs no Ruby code, once others have sent theirs.
pub const IDLE: Duration = ms(3000);

/// For a profile once the user has had enough.
pub const LAST: Duration = ms(5000);

/// For a process to end that has lost its connections.
pub const END: Duration = ms(1000);

/// For a session to begin, before it is waited for by and by.
pub const BEGIN: Duration = ms(1000);

/// From the end of a session to the begin of the next one.
pub const BETWEEN_SESSIONS: Duration = ms(2000);

/// A VM that has been silent for so long is kept from answering.
pub const STUCK: Duration = ms(900);

/// How often it is asked whether, and why, the VM is silent.
pub const LOOK: Duration = ms(500);

/// How often other things are looked at while an answer is waited for.
pub const STEP: Duration = ms(50);

/// After what the program couldn't do it is asked again so soon.
pub const AGAIN: Duration = ms(50);

/// How often a session is asked for that the program can't begin.
pub const TRIES: u32 = 4;

/// For how long nothing is asked at most: the port lets go of clients that are silent.
pub const REST: Duration = ms(20_000);
