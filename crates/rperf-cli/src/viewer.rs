//! The web viewer: its page with profiles in it, to be written as a file or served on a
//! loopback port. Called by `report` and `diff`, on Ruby's main thread.

mod browser;
mod server;

use crate::{FAILURE, Refusal, say};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rperf_format::viewer::{self, View};
use rperf_model::Profile;
use rperf_report::numbers::grouped;
use server::{Server, Signals};
use std::fs;
use std::path::Path;

/// The page without data. It is built from `viewer/`, and needs no network.
const PAGE: &str = include_str!("../../../lib/rperf/viewer/viewer.html");
/// Facts about the page, one in each line.
const FACTS: &str = include_str!("../../../lib/rperf/viewer/viewer.lock");
/// Bytes of a source file at most: larger ones were made by programs.
const MAX_SOURCE: u64 = 1 << 20;
/// Where the page has its data, once.
const DATA: &str = "@RPERF_DATA@";

/// The page with `view` in it: one file that needs nothing else.
pub fn page(view: &View<'_>) -> Result<Vec<u8>, Refusal> {
    let mut data = Vec::new();
    viewer::write(view, &mut data).map_err(|error| failure(error.to_string()))?;
    let (before, after) = halves(PAGE).ok_or_else(|| failure("the viewer's page is damaged"))?;
    let data = BASE64_STANDARD.encode(data);
    Ok([before, &data, after].concat().into_bytes())
}

/// Writes `page` as the file at `path`, and says so.
pub fn save(page: &[u8], path: &Path) -> Result<i32, Refusal> {
    let shown = path.display();
    crate::output::write(path, page)
        .map_err(|error| failure(format!("can't write to {shown}: {error}")))?;
    say(&format!(
        "wrote {shown} ({} KB)",
        grouped(page.len() as u64 / 1000)
    ));
    Ok(0)
}

/// The files that frames of `profile` are in, as far as they are here: path and text.
pub fn sources(profile: &Profile) -> Vec<(String, String)> {
    let frames = profile.frames.iter();
    let mut paths: Vec<_> = frames
        .map(|(_, frame)| profile.strings.get(frame.path))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let is_small =
        |path: &str| fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= MAX_SOURCE);
    let here = paths.into_iter().filter(|path| is_small(path));
    here.filter_map(|path| Some((path.to_string(), fs::read_to_string(path).ok()?)))
        .collect()
}

/// Serves `page` until a signal ends it, and opens it in a browser if there is one.
pub fn serve(page: Vec<u8>, opens_browser: bool) -> Result<i32, Refusal> {
    let signals = Signals::take();
    let server = Server::start(page, policy())
        .map_err(|error| failure(format!("no port can be opened for the viewer: {error}")))?;
    let url = server.url();
    say(&format!("the viewer is at {url} (Ctrl-C ends it)"));
    match browser::Browser::of_environment() {
        browser::Browser::Command(command) if opens_browser => browser::open(&command, &url),
        browser::Browser::OverSsh => {
            let port = server.port();
            say(&format!(
                "to see it from where you are: ssh -L {port}:127.0.0.1:{port} and this host, then open the address"
            ));
        }
        _ => {}
    }
    server
        .run(&signals)
        .map_err(|error| failure(error.to_string()))?;
    Ok(0)
}

/// The page in front of its data, and behind it.
fn halves(page: &str) -> Option<(&str, &str)> {
    let (before, after) = page.split_once(DATA)?;
    (!after.contains(DATA)).then_some((before, after))
}

/// The page's content security policy, for a header.
fn policy() -> &'static str {
    let line = FACTS.lines().find_map(|line| line.strip_prefix("csp "));
    line.unwrap_or("default-src 'none'")
}

fn failure(message: impl Into<String>) -> Refusal {
    Refusal {
        message: message.into(),
        status: FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_format::viewer::TitledProfile;
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

    #[test]
    fn the_policy_is_the_page_s_own() {
        let scripts = policy()
            .split("; ")
            .find(|it| it.starts_with("script-src '"));
        assert!(PAGE.contains(scripts.expect("scripts are named by hash")));
        assert!(policy().contains("frame-ancestors 'none'"));
    }
}
