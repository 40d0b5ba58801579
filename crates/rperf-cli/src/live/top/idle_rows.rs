//! Which rows of a program that is watched are those of idle threads: by the rule of reports.

use rperf_model::shared_sums::SumsValues;
use rperf_model::{State, WeightKey};
use rperf_report::Idle;
use rperf_watch::mirror::Mirror;
use std::collections::HashSet;

/// The rows of idle threads, of all so far. Empty if the session is in cpu mode.
pub fn of(mirror: &Mirror) -> HashSet<WeightKey> {
    // The profile has a row for each of the mirror's.
    let Some(profile) = mirror.profile() else {
        return HashSet::new();
    };
    let idle = Idle::of(&profile);
    let rows = mirror.rows().zip(idle.rows());
    rows.filter_map(|((key, _), is_idle)| is_idle.then_some(key))
        .collect()
}

/// The wall time of idle threads in these rows.
pub fn time(mirror: &Mirror, rows: impl Iterator<Item = (WeightKey, SumsValues)>) -> u64 {
    let mut blocked = rows
        .filter(|(key, _)| key.state == State::GvlBlocked)
        .peekable();
    if blocked.peek().is_none() {
        return 0;
    }
    let idle = of(mirror);
    let times = blocked.filter(|(key, _)| idle.contains(key));
    times.fold(0, |sum, (_, values)| sum.saturating_add(values.wall_ns))
}
