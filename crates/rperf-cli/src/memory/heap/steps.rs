//! Words that the tables of `rperf heap` have in common. Called by those.

use rperf_report::terminal_text::shown;

/// Steps of a path that are shown; of a longer one the first and the last ones.
const STEPS: usize = 12;

/// A class, with the variable that refers to its objects in front.
pub fn class_by(class: &str, name: &str) -> String {
    match name {
        "" => shown(class).into(),
        name => format!("{} {}", shown(name), shown(class)),
    }
}

/// The steps of a path.
pub fn joined(mut steps: Vec<String>) -> String {
    if steps.len() > STEPS {
        let more = steps.len() - STEPS;
        let middle = STEPS / 2;
        steps.splice(middle..middle + more, [format!("({more} more)")]);
    }
    steps.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_paths_lose_their_middle() {
        let steps = |count: usize| joined((1..=count).map(|it| it.to_string()).collect());
        assert_eq!(steps(3), "1 → 2 → 3");
        assert_eq!(
            steps(14),
            "1 → 2 → 3 → 4 → 5 → 6 → (2 more) → 9 → 10 → 11 → 12 → 13 → 14"
        );
    }
}
