//! The state of a thread, or of several that have one, as `rperf stacks` shows it. Called by
//! `stacks`.

use rperf_top::text::time;
use serde_json::Value;
use std::cmp::Reverse;

/// What a thread does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadState {
    /// The name of the state, as the port gives it.
    pub name: String,
    /// What it waits for; empty if that isn't known.
    pub waits_in: String,
    /// How long it has waited, if that is known.
    pub waiting: Option<Waiting>,
}

/// How long it has, in ns; and whether that is only as far as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    ns: u64,
    or_longer: bool,
}

impl Waiting {
    /// That of the port's answer for a thread.
    pub fn of(thread: &Value) -> Option<Self> {
        let or_longer = thread.get("state_or_longer").and_then(Value::as_bool);
        Some(Waiting {
            ns: thread.get("state_ns")?.as_u64()?,
            or_longer: or_longer.unwrap_or(false),
        })
    }
}

/// The state in words, of threads that differ in how long they have been in it.
pub fn in_words(states: &[&ThreadState]) -> String {
    let Some(state) = states.first() else {
        return String::new();
    };
    let mut waiting: Vec<_> = states.iter().filter_map(|it| it.waiting).collect();
    waiting.sort_by_key(|it| (Reverse(it.ns), Reverse(it.or_longer)));
    let how_long = waiting.first().map(|longest| {
        let most = match (longest.or_longer, waiting.len()) {
            (true, _) => "over ",
            (false, 1) => "",
            (false, _) => "up to ",
        };
        format!(" {most}{}", time(longest.ns))
    });
    let how_long = how_long.unwrap_or_default();
    match (&*state.name, &*state.waits_in) {
        ("waits for the GVL", _) => format!("waits{how_long} for the GVL"),
        (name, "") => format!("{name}{how_long}"),
        (name, waits_in) => format!("{name}{how_long}: {waits_in}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: &str, waits_in: &str, waiting: Option<(u64, bool)>) -> ThreadState {
        ThreadState {
            name: name.into(),
            waits_in: waits_in.into(),
            waiting: waiting.map(|(ns, or_longer)| Waiting { ns, or_longer }),
        }
    }

    #[test]
    fn a_state_says_how_long_it_has_lasted() {
        let words = |waiting: &[Option<(u64, bool)>]| {
            let states: Vec<_> = waiting
                .iter()
                .map(|&it| state("blocked", "poll: db:1", it))
                .collect();
            in_words(&states.iter().collect::<Vec<_>>())
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
        let ready = state("waits for the GVL", "", Some((3_200_000, false)));
        assert_eq!(in_words(&[&ready]), "waits 3.2 ms for the GVL");
        assert_eq!(in_words(&[&state("running", "", None)]), "running");
    }
}
