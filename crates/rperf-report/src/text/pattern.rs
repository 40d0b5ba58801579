//! Names and regular expressions by which a user chooses functions. Called by filters, callers and
//! listings, and by the command for its options. Any thread.

use regex::{Regex, RegexBuilder};
use rperf_model::Profile;

/// Bytes that a compiled expression may take: enough for any that a person types.
const SIZE_LIMIT: usize = 4 << 20;

/// Why a regular expression can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is no valid regular expression: {reason}")]
pub struct PatternError {
    /// The expression.
    pub text: String,
    /// The mistake in it, in one line.
    pub reason: String,
}

/// The expression that `text` is.
pub fn regex(text: &str) -> Result<Regex, PatternError> {
    let built = RegexBuilder::new(text).size_limit(SIZE_LIMIT).build();
    built.map_err(|error| PatternError {
        text: text.to_string(),
        reason: last_line(&error.to_string()),
    })
}

/// The library's messages draw the place of the mistake over several lines; the last one
/// says what it is.
fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_string()
}

/// Chooses functions by name.
#[derive(Debug, Clone)]
pub enum NamePattern {
    /// The functions of exactly this name.
    Exact(String),
    /// The functions whose names match anywhere.
    Regex(Regex),
}

impl NamePattern {
    /// What `text` means for `profile`: the name of a function if there is one of that
    /// name, as many of Ruby's (`Array#[]`) are no valid expressions or mean something
    /// else as one, and an expression otherwise.
    pub fn new(text: &str, profile: &Profile) -> Result<Self, PatternError> {
        let names_function = profile.strings.find(text).is_some_and(|name| {
            let mut frames = profile.frames.iter();
            frames.any(|(_, frame)| frame.name == name)
        });
        let is_state = rperf_model::State::ALL
            .iter()
            .filter_map(|state| state.synthetic_frame())
            .any(|(name, _)| name == text);
        if names_function || is_state {
            return Ok(Self::Exact(text.to_string()));
        }
        regex(text).map(Self::Regex)
    }

    /// Whether a function of this name is chosen.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::Exact(text) => text == name,
            Self::Regex(regex) => regex.is_match(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support;

    #[test]
    fn names_of_functions_are_taken_as_they_are() {
        let mut profile = Profile::new(test_support::cpu_schema());
        test_support::node(&mut profile, &[("Array#[]", "<C method>", 0, 0)]);
        let pattern = |text| NamePattern::new(text, &profile);
        let exact = pattern("Array#[]").expect("a name");
        assert!(exact.matches("Array#[]") && !exact.matches("MyArray#[]"));
        let state = pattern("[GVL wait]").expect("a name");
        assert!(state.matches("[GVL wait]") && !state.matches("G"));
        let regex = pattern("^Arr").expect("an expression");
        assert!(regex.matches("Array#each") && !regex.matches("MyArray#each"));
        let error = pattern("Hash#[]").expect_err("unclosed");
        assert_eq!(
            error.to_string(),
            "'Hash#[]' is no valid regular expression: unclosed character class"
        );
    }

    #[test]
    fn expressions_that_would_fill_the_memory_are_refused() {
        let error = regex("(a{1000}){1000}{1000}").expect_err("too large");
        assert!(!error.reason.contains('\n'));
    }
}
