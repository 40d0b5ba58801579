//! The state of a thread, or of several that have one, as `rperf stacks` shows it. Called by
//! `stacks`.

use rperf_model::Order;
use rperf_protocol::stacks::{Thread, ThreadState};
use rperf_top::text::time;
use std::cmp::Reverse;

/// What a blocked thread waits for; empty if that isn't known.
pub fn waits_in<'a>(thread: &'a Thread<'_>) -> &'a str {
    match thread.state {
        ThreadState::Blocked => thread.waits_in.as_deref().unwrap_or_default(),
        _ => "",
    }
}

/// The state in words, of threads that differ in how long they have been in it.
pub fn in_words(threads: &[&Thread<'_>]) -> String {
    let Some(thread) = threads.first() else {
        return String::new();
    };
    let mut waiting: Vec<_> = threads.iter().filter(|it| it.state_ns.is_some()).collect();
    waiting.order_by_key(|it| (Reverse(it.state_ns), Reverse(it.state_or_longer)));
    let how_long = waiting.first().map_or_else(String::new, |longest| {
        let most = match (longest.state_or_longer, waiting.len()) {
            (true, _) => "over ",
            (false, 1) => "",
            (false, _) => "up to ",
        };
        format!(" {most}{}", time(longest.state_ns.unwrap_or_default()))
    });
    match (&thread.state, waits_in(thread)) {
        (ThreadState::WaitsForGvl, _) => format!("waits{how_long} for the GVL"),
        (state, "") => format!("{state}{how_long}"),
        (state, waits_in) => format!("{state}{how_long}: {waits_in}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(state: ThreadState, waiting: Option<(u64, bool)>) -> Thread<'static> {
        Thread {
            number: None,
            name: "".into(),
            tid: None,
            state,
            state_ns: waiting.map(|it| it.0),
            state_or_longer: waiting.is_some_and(|it| it.1),
            waits_in: Some("poll: db:1".into()),
            profile_thread: None,
            labels: Default::default(),
            frames: Default::default(),
        }
    }

    #[test]
    fn a_state_says_how_long_it_has_lasted() {
        let words = |waiting: &[Option<(u64, bool)>]| {
            let threads = waiting.iter();
            let threads: Vec<_> = threads
                .map(|&it| thread(ThreadState::Blocked, it))
                .collect();
            in_words(&threads.iter().collect::<Vec<_>>())
        };
        let (second, minute) = (1_000_000_000, 60_000_000_000);
        assert_eq!(words(&[None]), "blocked: poll: db:1");
        assert_eq!(
            words(&[Some((12 * second, false))]),
            "blocked 12.0 s: poll: db:1"
        );
        assert_eq!(
            words(&[Some((minute, true)), Some((second, false))]),
            "blocked over 60.0 s: poll: db:1"
        );
        assert_eq!(
            words(&[None, Some((5, false)), Some((second / 2, false))]),
            "blocked up to 500 ms: poll: db:1"
        );
        let ready = thread(ThreadState::WaitsForGvl, Some((3_200_000, false)));
        assert_eq!(in_words(&[&ready]), "waits 3.2 ms for the GVL");
        let running = thread(ThreadState::Running, None);
        assert_eq!(in_words(&[&running]), "running");
    }
}
