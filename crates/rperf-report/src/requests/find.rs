//! Finds the endpoint that a user names. Asked by `rperf why` and by the Ruby API; any thread.

use crate::text::one_line::{endpoint_name, one_line};
use crate::text::pattern::regex;
use rperf_model::{Order, Profile, Requests};
use std::cmp::Reverse;
use std::fmt;

/// Names that an error has.
const NAMED: usize = 3;

/// How alike names are that may be meant, from 0 to 1.
const ALIKE: f64 = 0.7;

/// Why a text names no single endpoint. Its text is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoSuchRequests {
    /// No request has this in its name.
    Unknown {
        /// The text.
        wanted: String,
        /// What is wrong with it as an expression, if it is none, in one line.
        mistake: Option<String>,
        /// Names that are there instead.
        others: Others,
    },
    /// Several endpoints have it.
    Several {
        /// The text.
        wanted: String,
        /// What the text is to their names, in words.
        how: &'static str,
        /// How many there are.
        count: usize,
        /// The shortest of their names.
        names: Vec<String>,
    },
}

/// Names of endpoints, as pages have them, in quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Others {
    /// Names that may be meant.
    Alike(Vec<String>),
    /// The names with the most requests, and how many more there are; none may be meant.
    There(Vec<String>, usize),
}

impl Others {
    /// The names that are like `wanted`, or else those with the most requests.
    fn of(profile: &Profile, wanted: &str) -> Self {
        let quoted = |it: &Requests| format!("'{}'", endpoint_name(&it.key, &it.name));
        let alike = |it: &Requests| {
            let names = [it.name.clone(), full_name(it)];
            let [name, full] = names.map(|name| strsim::jaro_winkler(wanted, &name));
            name.max(full)
        };
        let mut near: Vec<(f64, &Requests)> =
            profile.requests.iter().map(|it| (alike(it), it)).collect();
        near.retain(|(alike, _)| *alike >= ALIKE);
        near.order_by(|a, b| b.0.total_cmp(&a.0));
        if !near.is_empty() {
            let near = near.iter().take(NAMED);
            return Others::Alike(near.map(|(_, it)| quoted(it)).collect());
        }
        let mut all: Vec<_> = profile.requests.iter().collect();
        all.order_by_key(|it| (Reverse(it.count()), full_name(it)));
        let most = all.iter().take(NAMED);
        Others::There(
            most.map(|it| quoted(it)).collect(),
            all.len().saturating_sub(NAMED),
        )
    }
}

impl fmt::Display for Others {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Others::Alike(names) => write!(f, "; did you mean {}?", listed(names, "or")),
            Others::There(names, _) if names.is_empty() => Ok(()),
            Others::There(names, 0) => {
                let verb = if names.len() == 1 { "is" } else { "are" };
                write!(f, "; there {verb} {}", listed(names, "and"))
            }
            Others::There(names, more) => {
                write!(f, "; there are {} and {more} more", names.join(", "))
            }
        }
    }
}

/// The names in a sentence.
fn listed(names: &[String], word: &str) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} {word} {last}", first.join(", ")),
        names => names.concat(),
    }
}

impl fmt::Display for NoSuchRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown {
                wanted,
                mistake,
                others,
            } => {
                write!(f, "no request is of '{}'", one_line(wanted))?;
                if let Some(mistake) = mistake {
                    write!(f, ", and it is no valid regular expression: {mistake}")?;
                }
                write!(f, "{others}")
            }
            Self::Several {
                wanted,
                how,
                count,
                names,
            } => {
                let wanted = one_line(wanted);
                let quoted: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
                let names = quoted.join(", ");
                write!(f, "'{wanted}' {how} {count} names: {names}")?;
                match count - quoted.len() {
                    0 => Ok(()),
                    more => write!(f, " and {more} more"),
                }
            }
        }
    }
}

impl std::error::Error for NoSuchRequests {}

impl NoSuchRequests {
    /// The error for what the user has written, if that was another text.
    #[must_use]
    pub fn as_written(mut self, text: Option<String>) -> Self {
        let (Self::Unknown { wanted, .. } | Self::Several { wanted, .. }) = &mut self;
        if let Some(text) = text {
            *wanted = text;
        }
        self
    }
}

/// The requests of this name, with or without the key in front; or else the only ones that have this part
/// in their name; or else the only ones that it matches as an expression.
pub fn find_requests<'a>(
    profile: &'a Profile,
    wanted: &str,
) -> Result<&'a Requests, NoSuchRequests> {
    let unknown = |mistake| NoSuchRequests::Unknown {
        wanted: wanted.into(),
        mistake,
        others: Others::of(profile, wanted),
    };
    if wanted.is_empty() {
        return Err(unknown(None));
    }
    // A name with its key is one endpoint's.
    let exact = [
        among(profile, |it| full_name(it) == wanted),
        among(profile, |it| it.name == wanted),
    ];
    if let Some(exact) = exact.into_iter().find(|it| !it.is_empty()) {
        return only(exact, wanted, "is the name of");
    }
    let has_key = wanted.contains('=');
    let is_part =
        |it: &Requests| it.name.contains(wanted) || (has_key && full_name(it).contains(wanted));
    let parts = among(profile, is_part);
    if !parts.is_empty() {
        return only(parts, wanted, "is a part of");
    }
    // It may be an expression with a mistake, or a name that isn't there, as of a route with a bracket.
    let regex = regex(wanted).map_err(|error| unknown(Some(error.reason)))?;
    let matching = among(profile, |it| {
        regex.is_match(&it.name) || regex.is_match(&full_name(it))
    });
    match matching.is_empty() {
        true => Err(unknown(None)),
        false => only(matching, wanted, "matches"),
    }
}

fn among(profile: &Profile, is_it: impl Fn(&Requests) -> bool) -> Vec<&Requests> {
    profile.requests.iter().filter(|it| is_it(it)).collect()
}

/// The only one of these, or else an error that has the shortest names: these are most like a part of them.
fn only<'a>(
    mut found: Vec<&'a Requests>,
    wanted: &str,
    how: &'static str,
) -> Result<&'a Requests, NoSuchRequests> {
    if let [one] = found[..] {
        return Ok(one);
    }
    found.order_by_key(|it| (it.name.chars().count(), full_name(it)));
    let names = found.iter().take(NAMED);
    let names = names.map(|it| endpoint_name(&it.key, &it.name)).collect();
    Err(NoSuchRequests::Several {
        wanted: wanted.into(),
        how,
        count: found.len(),
        names,
    })
}

/// The name of requests with the key in front, as tables have it.
fn full_name(requests: &Requests) -> String {
    format!("{}={}", requests.key, requests.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support;

    fn shop() -> Profile {
        test_support::with_requests(&[
            ("endpoint", "GET /orders"),
            ("endpoint", "GET /orders/:id"),
            ("endpoint", "POST /orders"),
            ("endpoint", "GET /cart[items]"),
            ("job", "ExportJob"),
            ("job", "ImportJob"),
        ])
    }

    fn message(profile: &Profile, wanted: &str) -> String {
        find_requests(profile, wanted)
            .expect_err("no single one")
            .to_string()
    }

    #[test]
    fn a_name_comes_before_its_parts_and_these_before_an_expression() {
        let shop = shop();
        for (wanted, name) in [
            ("GET /orders", "endpoint=GET /orders"),
            ("endpoint=GET /orders", "endpoint=GET /orders"),
            ("GET /cart[items]", "endpoint=GET /cart[items]"),
            ("cart[", "endpoint=GET /cart[items]"),
            (":id", "endpoint=GET /orders/:id"),
            ("job=Ex", "job=ExportJob"),
            ("^POST", "endpoint=POST /orders"),
            ("^GET /orders/.*$", "endpoint=GET /orders/:id"),
            ("^job=Imp", "job=ImportJob"),
            ("(?i)exportjob", "job=ExportJob"),
        ] {
            let found = find_requests(&shop, wanted).map(full_name);
            assert_eq!(found.as_deref(), Ok(name), "{wanted}");
        }
    }

    #[test]
    fn what_several_have_is_told_with_their_names_in_one_line() {
        assert_eq!(
            message(&shop(), "orders"),
            "'orders' is a part of 3 names: 'GET /orders', 'POST /orders', 'GET /orders/:id'"
        );
        assert_eq!(
            message(&shop(), "^(GET|job)"),
            "'^(GET|job)' matches 5 names: 'job=ExportJob', 'job=ImportJob', 'GET /orders' and 2 more"
        );
    }

    #[test]
    fn what_no_name_has_is_told_in_one_line() {
        let unclosed = ", and it is no valid regular expression: unclosed character class";
        let there = "; there are 'GET /cart[items]', 'GET /orders', 'GET /orders/:id' and 3 more";
        for (wanted, shown, mistake) in [
            ("", "", ""),
            ("nope", "nope", ""),
            ("Hash#[", "Hash#[", unclosed),
            ("a\nb\u{1b}[2J", "a b [2J", unclosed),
        ] {
            let told = format!("no request is of '{shown}'{mistake}{there}");
            assert_eq!(message(&shop(), wanted), told);
        }
    }

    #[test]
    fn what_the_user_has_written_is_told() {
        let error = find_requests(&shop(), "(?:[x]zzz)").expect_err("there is none");
        let told = error.as_written(Some("/[x]zzz/".into())).to_string();
        assert!(told.starts_with("no request is of '/[x]zzz/'; "), "{told}");
        let error = find_requests(&shop(), "nope").expect_err("there is none");
        assert_eq!(error.clone().as_written(None), error);
    }

    #[test]
    fn names_that_may_be_meant_are_told_before_others() {
        let told = message(&shop(), "GET /oders");
        let start = "no request is of 'GET /oders'; did you mean 'GET /orders', ";
        assert!(told.starts_with(start) && told.ends_with('?'), "{told}");
        let told = message(&shop(), "job=ExpotJob");
        assert!(told.contains("; did you mean 'job=ExportJob'"), "{told}");
        let one = test_support::with_requests(&[("endpoint", "GET /a\nb\u{1b}[2J")]);
        assert_eq!(
            message(&one, "xyz"),
            "no request is of 'xyz'; there is 'GET /a b [2J'"
        );
        let told = message(&one, "GET /a\nc\u{1b}[2J");
        assert!(
            told.contains("did you mean") && !told.contains(['\n', '\u{1b}']),
            "{told:?}"
        );
        let two = test_support::with_requests(&[("job", "A"), ("job", "B")]);
        assert!(message(&two, "xyz").ends_with("; there are 'job=A' and 'job=B'"));
    }
}
