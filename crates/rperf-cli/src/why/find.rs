//! Finds the endpoint that a user names. Called by `why`, on the main thread.

use crate::Refusal;
use crate::places::endpoint_name;
use rperf_model::{Profile, Requests};
use rperf_report::regex;
use rperf_report::terminal_text::shown;

/// Names that a refusal has.
const NAMED: usize = 3;

/// The requests of this name, with or without the key in front; or else the only ones that have this part
/// in their name; or else the only ones that it matches as an expression.
pub fn requests<'a>(profile: &'a Profile, wanted: &str) -> Result<&'a Requests, Refusal> {
    let full = full_name;
    if wanted.is_empty() {
        return Err(unknown(profile, wanted));
    }
    // A name with its key is one endpoint's.
    let exact = [
        among(profile, |it| full(it) == wanted),
        among(profile, |it| it.name == wanted),
    ];
    if let Some(exact) = exact.into_iter().find(|it| !it.is_empty()) {
        return only(exact, wanted, "is the name of");
    }
    let has_key = wanted.contains('=');
    let is_part =
        |it: &Requests| it.name.contains(wanted) || (has_key && full(it).contains(wanted));
    let parts = among(profile, is_part);
    if !parts.is_empty() {
        return only(parts, wanted, "is a part of");
    }
    // A name that isn't there can be no expression, as of a route with a bracket.
    let matching = regex(wanted).map_or_else(
        |_| Vec::new(),
        |regex| {
            among(profile, |it| {
                regex.is_match(&it.name) || regex.is_match(&full(it))
            })
        },
    );
    match matching.is_empty() {
        true => Err(unknown(profile, wanted)),
        false => only(matching, wanted, "matches"),
    }
}

fn among(profile: &Profile, is_it: impl Fn(&Requests) -> bool) -> Vec<&Requests> {
    profile.requests.iter().filter(|it| is_it(it)).collect()
}

/// The only one of these, or else a refusal that has the shortest names: these are most like a part of them.
fn only<'a>(
    mut found: Vec<&'a Requests>,
    wanted: &str,
    how: &str,
) -> Result<&'a Requests, Refusal> {
    if let [one] = found[..] {
        return Ok(one);
    }
    found.sort_by_key(|it| (it.name.chars().count(), full_name(it)));
    let names: Vec<String> = found.iter().take(NAMED).map(|it| quoted(it)).collect();
    let more = match found.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(Refusal::usage(format!(
        "'{}' {how} {} names: {}{more}",
        shown(wanted),
        found.len(),
        names.join(", ")
    )))
}

/// How alike names are that are worth telling, from 0 to 1.
const ALIKE: f64 = 0.7;

fn unknown(profile: &Profile, wanted: &str) -> Refusal {
    let alike = |it: &Requests| {
        let names = [it.name.clone(), full_name(it)];
        let names = names.map(|name| strsim::jaro_winkler(wanted, &name));
        names[0].max(names[1])
    };
    let mut near: Vec<(f64, &Requests)> =
        profile.requests.iter().map(|it| (alike(it), it)).collect();
    near.retain(|(alike, _)| *alike >= ALIKE);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    let names: Vec<String> = near.iter().take(NAMED).map(|(_, it)| quoted(it)).collect();
    let hint = match &names[..] {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    };
    Refusal::usage(format!(
        "no request is of '{}'{hint} ('rperf why FILE' lists all)",
        shown(wanted)
    ))
}

fn quoted(requests: &Requests) -> String {
    let name = endpoint_name(&requests.key, &requests.name);
    format!("'{}'", shown(&name))
}

/// The name of requests with the key in front, as tables have it.
fn full_name(requests: &Requests) -> String {
    format!("{}={}", requests.key, requests.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_profile::TestProfile;

    fn profile(names: &[(&str, &str)]) -> Profile {
        let mut profile = TestProfile::wall().profile;
        let names = names.iter();
        profile.requests = names.map(|(key, name)| Requests::new(key, name)).collect();
        profile
    }

    fn shop() -> Profile {
        profile(&[
            ("endpoint", "GET /orders"),
            ("endpoint", "GET /orders/:id"),
            ("endpoint", "POST /orders"),
            ("endpoint", "GET /cart[items]"),
            ("job", "ExportJob"),
            ("job", "ImportJob"),
        ])
    }

    fn found(wanted: &str) -> String {
        full_name(requests(&shop(), wanted).expect("one"))
    }

    fn message(profile: &Profile, wanted: &str) -> String {
        let refusal = requests(profile, wanted).expect_err("refused");
        assert_eq!(refusal.status, crate::USAGE);
        refusal.message
    }

    #[test]
    fn a_name_comes_before_its_parts_and_these_before_an_expression() {
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
            assert_eq!(found(wanted), name, "{wanted}");
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
    fn an_unknown_name_is_told_with_those_that_are_like_it() {
        let told = message(&shop(), "GET /oders");
        assert!(
            told.starts_with("no request is of 'GET /oders'; did you mean 'GET /orders'"),
            "{told}"
        );
        assert!(told.ends_with("? ('rperf why FILE' lists all)"), "{told}");
        let told = message(&shop(), "job=ExpotJob");
        assert!(told.contains("; did you mean 'job=ExportJob'"), "{told}");
        assert_eq!(
            message(&shop(), "Hash#["),
            "no request is of 'Hash#[' ('rperf why FILE' lists all)"
        );
        let hostile = profile(&[("endpoint", "GET /a\nb\u{1b}[2J")]);
        let told = message(&hostile, "GET /a\nc\u{1b}[2J");
        assert!(
            told.contains("did you mean") && !told.contains(['\n', '\u{1b}']),
            "{told:?}"
        );
    }
}
