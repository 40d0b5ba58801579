//! The web viewer as one file: its page with data in it. Called by `viewer`, for `--html` and for
//! the format `html`; any thread.

use super::{COMPRESSION, TitledProfile, View, write as write_data};
use crate::FormatError;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::write::GzEncoder;
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

/// The page with the objects of a program in it: the JSON of `rperf heap`.
pub fn page_of_heap(json: &str) -> Result<Vec<u8>, FormatError> {
    let mut encoder = GzEncoder::new(Vec::new(), COMPRESSION);
    encoder.write_all(json.as_bytes())?;
    with(&BASE64_STANDARD.encode(encoder.finish()?))
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
    use flate2::read::GzDecoder;
    use rperf_model::test_support::cpu_schema;
    use std::io::Read;

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
        assert_eq!(data_in(page(&view))[..2], [0x1f, 0x8b], "gzip");
    }

    #[test]
    fn the_page_of_a_heap_has_its_json() {
        let json = "{\"program\":\"</script>@RPERF_DATA@\"}\n";
        let data = data_in(page_of_heap(json));
        let mut found = String::new();
        let read = GzDecoder::new(&data[..]).read_to_string(&mut found);
        read.expect("gzip");
        assert_eq!(found, json);
    }

    /// The data that a page has, decoded.
    fn data_in(page: Result<Vec<u8>, FormatError>) -> Vec<u8> {
        let page = String::from_utf8(page.expect("a page")).expect("text");
        let (before, after) = halves(PAGE).expect("one place");
        let data = page
            .strip_prefix(before)
            .and_then(|rest| rest.strip_suffix(after));
        let data = BASE64_STANDARD.decode(data.expect("the page around it"));
        data.expect("base64")
    }
}
