//! The list of formats, and how one is chosen: by name or by a file's extension. Called by the
//! command and by the extension as a profile is written. Any thread.

use crate::{
    FormatError, TextOptions, callgrind, collapsed, dot, json, markdown, pprof, spans, text, viewer,
};
use rperf_model::Profile;
use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

/// Extensions of kinds of files that rperf never writes.
pub const NOT_WRITTEN: [&str; 6] = ["csv", "gif", "jpeg", "jpg", "pdf", "png"];

/// The extension of pictures, which the command alone has drawn.
const PICTURE: &str = "svg";

/// A format that a profile can be written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Format {
    /// Gzip'd protocol buffers for pprof and everything that reads it.
    #[default]
    Pprof,
    /// A line for each stack, for flame graphs.
    Collapsed,
    /// Tables for people.
    Text,
    /// A report to paste.
    Markdown,
    /// Answers for programs.
    Json,
    /// The web viewer as one file.
    Html,
    /// The call graph, for Graphviz.
    Dot,
    /// Costs and calls, for KCachegrind.
    Callgrind,
    /// The time line of long calls, for Perfetto.
    Spans,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 9] = [
        Format::Pprof,
        Format::Collapsed,
        Format::Text,
        Format::Markdown,
        Format::Json,
        Format::Html,
        Format::Dot,
        Format::Callgrind,
        Format::Spans,
    ];

    /// The name by which users ask for it.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Pprof => "pprof",
            Format::Collapsed => "collapsed",
            Format::Text => "text",
            Format::Markdown => "markdown",
            Format::Json => "json",
            Format::Html => "html",
            Format::Dot => "dot",
            Format::Callgrind => "callgrind",
            Format::Spans => "spans",
        }
    }

    /// All names in a sentence: `pprof, collapsed or text`.
    pub fn names() -> String {
        let [first @ .., last] = Format::ALL.map(Format::name);
        format!("{} or {last}", first.join(", "))
    }

    /// The format with this name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// The format in which a new profile is kept in a file of this name: by its extension,
    /// else pprof.
    pub fn from_path(path: &Path) -> Format {
        match extension(path).as_deref() {
            Some("collapsed") => Format::Collapsed,
            Some("txt") => Format::Text,
            Some("callgrind") => Format::Callgrind,
            Some("json") if has_spans_extension(path) => Format::Spans,
            _ if is_callgrinds_own(path) => Format::Callgrind,
            _ => Format::Pprof,
        }
    }

    /// The format in which a file of this name shows a profile that there is already.
    pub fn of_report(path: &Path) -> Format {
        match extension(path).as_deref() {
            Some("md") => Format::Markdown,
            Some("json") if !has_spans_extension(path) => Format::Json,
            Some("html") => Format::Html,
            Some("dot" | "gv") => Format::Dot,
            _ => Format::from_path(path),
        }
    }

    /// The extension, in small letters, of a file whose name says that it isn't a profile, but a report or what
    /// rperf never writes. With it the format of the report, if it has one.
    pub fn named_as_other(path: &Path) -> Option<(String, Option<Format>)> {
        let kind = extension(path)?;
        if NOT_WRITTEN.contains(&&*kind) || kind == PICTURE {
            return Some((kind, None));
        }
        let report = Format::of_report(path);
        (report != Format::from_path(path)).then_some((kind, Some(report)))
    }
}

/// Whether a file is named as time lines are: `app.spans.json`.
fn has_spans_extension(path: &Path) -> bool {
    let stem = path.file_stem().map(Path::new);
    stem.and_then(extension).as_deref() == Some("spans")
}

/// Whether a file is named as callgrind itself does it: `callgrind.out.PID`.
fn is_callgrinds_own(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| name == "callgrind.out" || name.starts_with("callgrind.out."))
}

/// The extension, in small letters.
fn extension(path: &Path) -> Option<String> {
    let extension = path.extension().and_then(OsStr::to_str);
    extension.map(str::to_ascii_lowercase)
}

/// Writes `profile` to `output` in this format, as text with `options`. The output is
/// equal for equal profiles. Give it a buffered `output`.
pub fn write(
    profile: &Profile,
    format: Format,
    options: TextOptions,
    output: &mut dyn Write,
) -> Result<(), FormatError> {
    match format {
        Format::Pprof => pprof::write(profile, output),
        Format::Collapsed => collapsed::write(profile, output),
        Format::Text => text::write(profile, options, output),
        Format::Markdown => markdown::write(profile, output),
        Format::Json => json::write(profile, output),
        Format::Html => viewer::write_page(profile, output),
        Format::Dot => dot::write(profile, output),
        Format::Callgrind => callgrind::write(profile, output),
        Format::Spans => spans::write(profile, output),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_tells_the_format() {
        for (path, format) in [
            ("profile.collapsed", Format::Collapsed),
            ("a/b.txt", Format::Text),
            ("profile.pb.gz", Format::Pprof),
            ("rperf.data", Format::Pprof),
            ("txt", Format::Pprof),
            ("profile.txt.gz", Format::Pprof),
            ("a.callgrind", Format::Callgrind),
            ("a.spans.json", Format::Spans),
            ("b/callgrind.out.123", Format::Callgrind),
            ("callgrind.out", Format::Callgrind),
            ("my-callgrind.out.1", Format::Pprof),
        ] {
            assert_eq!(Format::from_path(Path::new(path)), format, "{path}");
            assert_eq!(Format::of_report(Path::new(path)), format, "{path}");
        }
    }

    #[test]
    fn what_can_not_be_read_again_is_for_reports() {
        for (path, format) in [
            ("a.md", Format::Markdown),
            ("b/a.json", Format::Json),
            ("a.html", Format::Html),
            ("a.dot", Format::Dot),
            ("a.gv", Format::Dot),
            ("spans.json", Format::Json),
        ] {
            assert_eq!(Format::of_report(Path::new(path)), format);
            assert_eq!(Format::from_path(Path::new(path)), Format::Pprof);
        }
    }

    #[test]
    fn names_of_reports_and_of_what_is_never_written_are_told() {
        let told = |path: &str| Format::named_as_other(Path::new(path));
        for (path, kind, format) in [
            ("a.MD", "md", Some(Format::Markdown)),
            ("b/a.json", "json", Some(Format::Json)),
            ("a.svg", "svg", None),
            ("a.Png", "png", None),
        ] {
            assert_eq!(told(path), Some((kind.into(), format)), "{path}");
        }
        for path in ["a", "md", "a.pb.gz", "a.txt", "a.spans.json", "/dev/fd/3"] {
            assert_eq!(told(path), None, "{path}");
        }
    }

    #[test]
    fn names_lead_back_to_formats() {
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
        assert_eq!(Format::from_name("svg"), None);
    }
}
