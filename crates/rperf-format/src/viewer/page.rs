//! The web viewer as one file: its page with data in it. Called by `viewer`, for `--html` and for
//! the format `html`; any thread.

use super::{TitledProfile, View, write as write_data};
use crate::FormatError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rperf_model::Profile;
use std::io::{self, Write};

/// The page without data. It is built from `viewer/`, and needs no network.
const PAGE: &str = include_str!("../../../../lib/rperf/viewer/viewer.html");
/// Where the page has its data, once.
const DATA: &str = "@RPERF_DATA@";

/// The page with `view` in it: one file that needs nothing else.
pub fn page(view: &View<'_>) -> Result<Vec<u8>, FormatError> {
    let mut data = Vec::new();
    write_data(view, &mut data)?;
    with(&BASE64_STANDARD.encode(data))
}

/// The page of a server that has snapshots: it asks for them beside itself.
pub fn page_of_server() -> Result<Vec<u8>, FormatError> {
    with("server:./")
}

fn with(data: &str) -> Result<Vec<u8>, FormatError> {
    let damaged = || io::Error::other("the viewer's page is damaged");
    let (before, after) = halves(PAGE).ok_or_else(damaged)?;
    Ok([before, data, after].concat().into_bytes())
}

/// Writes the page with `profile` in it.
pub(crate) fn write_page(profile: &Profile, output: &mut dyn Write) -> Result<(), FormatError> {
    let title = match profile.meta.program.as_str() {
        "" => "profile",
        program => program,
    };
    let profiles = vec![TitledProfile { title, profile }];
    let bytes = page(&View {
        profiles,
        ..View::default()
    })?;
    output.write_all(&bytes)?;
    Ok(())
}

/// The page in front of its data, and behind it.
fn halves(page: &str) -> Option<(&str, &str)> {
    let (before, after) = page.split_once(DATA)?;
    (!after.contains(DATA)).then_some((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_model::test_support::cpu_schema;

    #[test]
    fn data_comes_where_the_page_has_its_place_once() {
        assert!(halves(PAGE).is_some());
        assert_eq!(halves("a"), None);
        assert_eq!(halves(&format!("a{DATA}b{DATA}")), None);
    }

    #[test]
    fn the_page_has_data_that_html_can_not_misread() {
        let mut profile = Profile::new(cpu_schema());
        profile.meta.program = "</script><script>x</script>".into();
        let titled = TitledProfile {
            title: "@RPERF_DATA@",
            profile: &profile,
        };
        let view = View {
            profiles: vec![titled],
            ..View::default()
        };
        let page = String::from_utf8(page(&view).expect("a page")).expect("text");
        let (before, after) = halves(PAGE).expect("one place");
        let data = page
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        let data = BASE64_STANDARD.decode(data.expect("the page around it"));
        assert_eq!(data.expect("base64")[..2], [0x1f, 0x8b], "gzip");
    }
}
