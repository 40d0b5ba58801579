//! What the port says of the running session. On the port's thread, too, which can't look at the
//! session itself: that may end meanwhile.

use rperf_model::SessionMode;
use rperf_port::Running;
use rperf_protocol::hello::{AnyMode, Beginner, Session};
use rperf_session::settings::Settings;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The facts: the frequency in the lower half, above it the place of the mode in the list, and two
/// bits; 0 without a session.
static FACTS: AtomicU64 = AtomicU64::new(0);

const RUNS: u64 = 1 << 63;
const OF_CLIENTS: u64 = 1 << 62;

/// Notes that a session with these settings runs.
pub fn note(settings: &Settings, beginner: Beginner) {
    let mode = SessionMode::ALL
        .iter()
        .position(|&mode| mode == settings.mode());
    let frequency = match settings.is_traced() {
        true => 0,
        false => settings.frequency(),
    };
    let of_clients = match beginner {
        Beginner::Program => 0,
        Beginner::Clients => OF_CLIENTS,
    };
    let mode = (mode.unwrap_or(0) as u64) << 32;
    FACTS.store(RUNS | of_clients | mode | u64::from(frequency), SeqCst);
}

/// Notes that no session runs. Async-signal-safe.
pub fn forget() {
    FACTS.store(0, SeqCst);
}

/// The facts about the running session, if one runs.
pub fn facts() -> Option<Running> {
    let facts = FACTS.load(SeqCst);
    (facts != 0).then(|| Running {
        session: Session {
            frequency: facts as u32,
            mode: AnyMode::Known(SessionMode::ALL[(facts >> 32) as usize & 0xff]),
        },
        beginner: (facts & OF_CLIENTS != 0).into(),
    })
}

/// Whether a session runs.
pub fn is_running() -> bool {
    FACTS.load(SeqCst) != 0
}

/// Whether a session runs that clients of the port have begun. The program takes no notice of it.
pub fn is_of_clients() -> bool {
    FACTS.load(SeqCst) & OF_CLIENTS != 0
}
