//! Finds the endpoint that a user names. Called by `why`, on the main thread.

use crate::Refusal;
use rperf_model::{Profile, Requests};
use rperf_report::{NoSuchRequests, find_requests};
use std::path::Path;

/// The only requests that `wanted` names.
pub fn requests<'a>(profile: &'a Profile, wanted: &str) -> Result<&'a Requests, Refusal> {
    find_requests(profile, wanted).map_err(|error| {
        Refusal::usage(match error {
            NoSuchRequests::Unknown { .. } if is_like_a_file(wanted) => {
                format!("{error}; nor is there a file of this name")
            }
            NoSuchRequests::Unknown { .. } => format!("{error} ('rperf why FILE' lists all)"),
            NoSuchRequests::Several { .. } => error.to_string(),
        })
    })
}

/// Whether the text may be meant as the name of a profile: it ends as these do.
fn is_like_a_file(text: &str) -> bool {
    let extension = Path::new(text).extension();
    extension.is_some_and(|it| {
        ["gz", "pb", "pprof", "data"]
            .iter()
            .any(|known| it == *known)
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
        let refusal = requests(&shop, "b.pb.gz").expect_err("refused");
        assert_eq!(
            refusal.message,
            "no request is of 'b.pb.gz'; there are 'GET /orders' and 'job=Export'; nor is there a file of \
             this name"
        );
        let several = requests(&shop, "r").expect_err("refused");
        assert!(
            several.message.ends_with("'GET /orders'"),
            "{}",
            several.message
        );
    }
}
