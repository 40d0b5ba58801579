//! The web viewer: its page with profiles, or the objects of a program, in it, to be written as a file or served on a
//! loopback port. Called by `report`, `diff` and `heap`, on the main thread.

mod browser;
mod entrance;
mod server;
pub(crate) mod source_file;

use crate::output::shown;
use crate::{FAILURE, Refusal, say};
use rperf_format::viewer::{self, View};
use rperf_model::Profile;
use rperf_report::numbers::grouped;
pub use server::{Answer, Site};
use server::{Server, Signals};
use std::path::Path;
use std::sync::Arc;

/// Facts about the page, one in each line.
const FACTS: &str = include_str!("../../../lib/rperf/viewer/viewer.lock");
/// Bytes of a source file at most: larger ones were made by programs.
const MAX_SOURCE: u64 = 1 << 20;
/// Bytes of all of them together.
const MAX_SOURCES: u64 = 16 << 20;

/// The page with `view` in it: one file that needs nothing else.
pub fn page(view: &View<'_>) -> Result<Vec<u8>, Refusal> {
    viewer::page(view).map_err(|error| failure(error.to_string()))
}

/// The page with the objects of a program in it, given as the JSON of `rperf heap`.
pub fn page_of_heap(json: &str) -> Result<Vec<u8>, Refusal> {
    viewer::page_of_heap(json).map_err(|error| failure(error.to_string()))
}

/// What files are called on the page together.
pub fn title<P: AsRef<Path>>(files: &[P]) -> String {
    const NAMED: usize = 3;
    let names = files.iter().map(|file| file.as_ref().to_string_lossy());
    let named = if files.len() > NAMED { 1 } else { NAMED };
    let named: Vec<_> = names.take(named).collect();
    match files.len() - named.len() {
        0 => named.join(" + "),
        more => format!("{} and {more} more", named.join(" + ")),
    }
}

/// Writes `page` as the file at `path`, and says so.
pub fn save(page: &[u8], path: &Path) -> Result<i32, Refusal> {
    let written = crate::output::write_whole(path, page);
    written.map_err(|error| failure(format!("can't write to {}: {error}", path.display())))?;
    say(&format!(
        "wrote {} ({} KB)",
        shown(path).display(),
        grouped((page.len() as u64).div_ceil(1000))
    ));
    Ok(0)
}

/// The Ruby files that frames of `profile` are in, as far as they are here: path and text. A
/// profile may come from anybody: it can't make us read other files.
pub fn sources(profile: &Profile) -> Vec<(String, String)> {
    let frames = profile.frames.iter();
    let mut paths: Vec<_> = frames
        .map(|(_, frame)| profile.strings.get(frame.path))
        .collect();
    paths.sort_unstable();
    paths.dedup();
    let mut left = MAX_SOURCES;
    let mut sources = Vec::new();
    for path in paths
        .into_iter()
        .filter(|path| source_file::is_ruby(Path::new(path)))
    {
        let Some(text) = source(path, left.min(MAX_SOURCE)) else {
            continue;
        };
        left -= text.len() as u64;
        sources.push((path.to_string(), text));
    }
    sources
}

/// The text of a file of up to `max` bytes. A link leads to a Ruby file, too, or it isn't read: the page
/// may be passed on.
fn source(path: &str, max: u64) -> Option<String> {
    let path = source_file::resolved(path).filter(|path| source_file::is_ruby(path))?;
    source_file::read(&path, max)
}

/// Serves `page` until a signal ends it, and opens it in a browser if there is one.
pub fn serve(page: Vec<u8>, opens_browser: bool) -> Result<i32, Refusal> {
    serve_with(page, None, opens_browser)
}

/// Serves the page of a `site` that has snapshots in the same way.
pub fn serve_site(site: Arc<dyn Site>, opens_browser: bool) -> Result<i32, Refusal> {
    let page = viewer::page_of_server().map_err(|error| failure(error.to_string()))?;
    serve_with(page, Some(site), opens_browser)
}

fn serve_with(
    page: Vec<u8>,
    site: Option<Arc<dyn Site>>,
    opens_browser: bool,
) -> Result<i32, Refusal> {
    let signals = Signals::take();
    let server = Server::start(page, policy(), site)
        .map_err(|error| failure(format!("no port can be opened for the viewer: {error}")))?;
    let url = server.url();
    say(&format!("the viewer is at {url} (Ctrl-C ends it)"));
    match browser::Browser::of_environment() {
        browser::Browser::Command(command) if opens_browser => {
            // Other users see command lines, and the address lets in whoever knows it.
            if let Ok(entrance) = server.entrance() {
                browser::open(&command, &entrance);
            }
        }
        browser::Browser::OverSsh => {
            let port = server.port();
            say(&format!(
                "to see it from where you are: ssh -L {port}:127.0.0.1:{port} and this host, then open the address"
            ));
        }
        _ => {}
    }
    server.run(&signals);
    Ok(0)
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
    fn of_many_files_one_is_named() {
        assert_eq!(title(&["a"]), "a");
        assert_eq!(title(&["a", "b", "c"]), "a + b + c");
        assert_eq!(title(&["a", "b", "c", "d"]), "a and 3 more");
    }

    #[test]
    fn the_policy_is_the_page_s_own() {
        let profile = Profile::new(cpu_schema());
        let profiles = vec![TitledProfile {
            title: "x",
            profile: &profile,
        }];
        let view = View {
            profiles,
            ..View::default()
        };
        let page = page(&view).expect("a page");
        let page = String::from_utf8(page).expect("text");
        let scripts = policy()
            .split("; ")
            .find(|it| it.starts_with("script-src '"));
        assert!(page.contains(scripts.expect("scripts are named by hash")));
        assert!(policy().contains("frame-ancestors 'none'"));
    }
}
