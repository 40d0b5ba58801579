//! Finds the endpoint that a user names. Called by `why`, on the main thread.

use crate::Refusal;
use rperf_model::{Profile, Requests};
use rperf_report::{NoSuchRequests, find_requests};

/// The only requests that `wanted` names.
pub fn requests<'a>(profile: &'a Profile, wanted: &str) -> Result<&'a Requests, Refusal> {
    find_requests(profile, wanted).map_err(|error| {
        Refusal::usage(match error {
            NoSuchRequests::Unknown { .. } => format!("{error} ('rperf why FILE' lists all)"),
            NoSuchRequests::Several { .. } => error.to_string(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support;

    #[test]
    fn an_unknown_name_is_told_with_how_to_list_all() {
        let shop = test_support::with_requests(&[("endpoint", "GET /orders"), ("job", "Export")]);
        let refusal = requests(&shop, "nope").expect_err("refused");
        assert_eq!(refusal.status, crate::USAGE);
        assert_eq!(
            refusal.message,
            "no request is of 'nope'; there are 'GET /orders' and 'job=Export' ('rperf why FILE' lists all)"
        );
        let several = requests(&shop, "r").expect_err("refused");
        assert!(
            several.message.ends_with("'GET /orders'"),
            "{}",
            several.message
        );
    }
}
