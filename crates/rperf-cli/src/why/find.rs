//! Finds the endpoint that a user names, and names those that may be meant. Called by `why`, on the main
//! thread.

use crate::Refusal;
use rperf_model::{Order, Profile, Requests};
use rperf_report::one_line::endpoint_name;
use rperf_report::{NoSuchRequests, find_requests};

/// Names that a refusal has.
const NAMED: usize = 3;

/// How alike names are that are worth telling, from 0 to 1.
const ALIKE: f64 = 0.7;

/// The only requests that `wanted` names.
pub fn requests<'a>(profile: &'a Profile, wanted: &str) -> Result<&'a Requests, Refusal> {
    find_requests(profile, wanted).map_err(|error| {
        Refusal::usage(match error {
            NoSuchRequests::Unknown { .. } => format!(
                "{error}{} ('rperf why FILE' lists all)",
                hint(profile, wanted)
            ),
            NoSuchRequests::Several { .. } => error.to_string(),
        })
    })
}

/// The names that are like this one.
fn hint(profile: &Profile, wanted: &str) -> String {
    let alike = |it: &Requests| {
        let names = [it.name.clone(), format!("{}={}", it.key, it.name)];
        let names = names.map(|name| strsim::jaro_winkler(wanted, &name));
        names[0].max(names[1])
    };
    let mut near: Vec<(f64, &Requests)> =
        profile.requests.iter().map(|it| (alike(it), it)).collect();
    near.retain(|(alike, _)| *alike >= ALIKE);
    near.order_by(|a, b| b.0.total_cmp(&a.0));
    let quoted = |it: &Requests| format!("'{}'", endpoint_name(&it.key, &it.name));
    let names: Vec<String> = near.iter().take(NAMED).map(|(_, it)| quoted(it)).collect();
    match &names[..] {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support;

    fn shop() -> Profile {
        test_support::with_requests(&[
            ("endpoint", "GET /orders"),
            ("endpoint", "POST /orders"),
            ("job", "ExportJob"),
        ])
    }

    fn message(profile: &Profile, wanted: &str) -> String {
        let refusal = requests(profile, wanted).expect_err("refused");
        assert_eq!(refusal.status, crate::USAGE);
        refusal.message
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
        let several = message(&shop(), "orders");
        assert!(
            several.ends_with("'GET /orders', 'POST /orders'"),
            "{several}"
        );
        assert_eq!(
            message(&shop(), "Hash#["),
            "no request is of 'Hash#[', and it is no valid regular expression: unclosed character class \
             ('rperf why FILE' lists all)"
        );
        let hostile = test_support::with_requests(&[("endpoint", "GET /a\nb\u{1b}[2J")]);
        let told = message(&hostile, "GET /a\nc\u{1b}[2J");
        assert!(
            told.contains("did you mean") && !told.contains(['\n', '\u{1b}']),
            "{told:?}"
        );
    }
}
