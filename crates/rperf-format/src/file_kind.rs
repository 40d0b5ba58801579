//! What a file is that is no profile, as far as its first bytes tell: a report, stacks of another
//! format, a program. Used by the reader once it has refused a file, and by whoever names the file to
//! the user; any thread.

use std::fmt;
use std::path::Path;

/// The bytes that are looked at.
const HEAD: usize = 4096;

/// The beginning of a page, in whatever case.
const PAGES: [&str; 2] = ["<!doctype html", "<html"];

/// The characters of a time line's file before its events.
const EVENTS: &str = "\"traceEvents\"";

/// A kind of file that is no profile. Its text is what the file is, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// A file of no bytes.
    Empty,
    /// A page for browsers.
    Html,
    /// A picture.
    Svg,
    /// An answer for programs.
    Json,
    /// The events of a time line.
    Spans,
    /// A line for each stack.
    Collapsed,
    /// Costs and calls.
    Callgrind,
    /// A call graph.
    Dot,
    /// A Ruby program.
    Ruby,
    /// What Linux' own perf records.
    LinuxPerf,
    /// Objects of Ruby, as other profilers keep them.
    Marshal,
    /// Any other text.
    Text,
}

impl FileKind {
    /// The kind of a file with this content; `None` if it isn't known.
    pub fn of(content: &[u8]) -> Option<Self> {
        let head = &content[..content.len().min(HEAD)];
        if head.is_empty() {
            return Some(FileKind::Empty);
        }
        if head.starts_with(b"PERFILE2") {
            return Some(FileKind::LinuxPerf);
        }
        if head.starts_with(&[4, 8]) {
            return Some(FileKind::Marshal);
        }
        text(head).map(Self::of_text)
    }

    /// The kind of a file with this path: a program in Ruby can look like any text.
    pub fn at(self, path: &Path) -> Self {
        let name = path.file_name().and_then(|it| it.to_str()).unwrap_or("");
        let extension = path.extension().and_then(|it| it.to_str());
        let is_ruby = matches!(extension, Some("rb" | "ru" | "rake" | "gemspec"))
            || matches!(name, "Gemfile" | "Rakefile");
        match self {
            FileKind::Text | FileKind::Json | FileKind::Collapsed if is_ruby => FileKind::Ruby,
            kind => kind,
        }
    }

    fn of_text(text: &str) -> Self {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        let begins = |word: &str| {
            let start = text.get(..word.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(word))
        };
        if PAGES.into_iter().any(begins) {
            return FileKind::Html;
        }
        if begins("<svg") || begins("<?xml") && text.contains("<svg") {
            return FileKind::Svg;
        }
        if begins("# callgrind format") || begins("version: 1\ncreator:") {
            return FileKind::Callgrind;
        }
        if begins("digraph") || begins("strict digraph") {
            return FileKind::Dot;
        }
        if is_ruby(text) {
            return FileKind::Ruby;
        }
        match text.chars().next() {
            Some('{' | '[') if text.contains(EVENTS) => FileKind::Spans,
            Some('{' | '[') => FileKind::Json,
            _ if is_collapsed(text) => FileKind::Collapsed,
            _ => FileKind::Text,
        }
    }
}

/// The text that begins a file: without the character that the end of the head may have cut.
fn text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&head[..error.valid_up_to()]).ok()?
        }
        Err(_) => return None,
    };
    let is_odd = |it: char| it.is_control() && !it.is_ascii_whitespace() && it != '\x1b';
    (!text.contains(is_odd)).then_some(text)
}

/// Whether a text says in its first line that it is Ruby.
fn is_ruby(text: &str) -> bool {
    let first = text.lines().next().unwrap_or("");
    first.starts_with("#!") && first.contains("ruby")
        || first.starts_with("# frozen_string_literal:")
}

/// Whether the lines of a text are frames and a number. The last one may be cut.
fn is_collapsed(text: &str) -> bool {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.len() > 1 && !text.ends_with('\n') {
        lines.pop();
    }
    lines.iter().all(|line| {
        let number = line.rsplit_once(' ').map_or("", |(_, number)| number);
        number.trim_start_matches('-').parse::<u64>().is_ok()
    })
}

impl fmt::Display for FileKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (it, advice) = match self {
            FileKind::Empty => {
                return write!(formatter, "the file is empty; record the profile again");
            }
            FileKind::Html => ("an HTML page", "open it in a browser"),
            FileKind::Svg => ("a picture", "open it in a browser"),
            FileKind::Json => ("JSON", FROM_PPROF),
            FileKind::Spans => ("a time line", "open it in ui.perfetto.dev"),
            FileKind::Collapsed => ("collapsed stacks", FROM_PPROF),
            FileKind::Callgrind => ("a callgrind file", "open it in KCachegrind"),
            FileKind::Dot => ("a graph in DOT", "draw it with Graphviz' dot"),
            FileKind::Ruby => (
                "a Ruby program",
                "'rperf record ruby FILE' records a profile of it",
            ),
            FileKind::LinuxPerf => ("data of Linux perf", "'perf report' reads it"),
            FileKind::Marshal => ("a Marshal dump, as of stackprof", FROM_PPROF),
            FileKind::Text => ("text", FROM_PPROF),
        };
        write!(formatter, "not a pprof profile, but {it}; {advice}")
    }
}

/// What to do with a file of which there is no way back.
const FROM_PPROF: &str = "rperf reads pprof files, as 'rperf record' writes them";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_tells_what_a_file_is() {
        for (content, kind) in [
            ("", FileKind::Empty),
            ("<!DOCTYPE html>\n<html>", FileKind::Html),
            ("\n<html lang=en>", FileKind::Html),
            ("<?xml version=\"1.0\"?>\n<svg width=\"1\">", FileKind::Svg),
            ("{\"version\":1,\"type\":{}}", FileKind::Json),
            ("[1]", FileKind::Json),
            (
                "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[",
                FileKind::Spans,
            ),
            ("main;Object#a b;c 12\nmain 3\n", FileKind::Collapsed),
            ("main;c -12\nmain;cu", FileKind::Collapsed),
            ("# callgrind format\nversion: 1", FileKind::Callgrind),
            ("digraph \"x\" {", FileKind::Dot),
            ("#!/usr/bin/env ruby\nputs 1", FileKind::Ruby),
            ("# frozen_string_literal: true\n", FileKind::Ruby),
            ("#!/bin/sh\n", FileKind::Text),
            ("puts 12\nputs x\n", FileKind::Text),
            ("Total: 5.0ms (wall)\n", FileKind::Text),
            ("PERFILE2\u{1}\u{2}", FileKind::LinuxPerf),
            ("\u{4}\u{8}{:", FileKind::Marshal),
        ] {
            assert_eq!(FileKind::of(content.as_bytes()), Some(kind), "{content:?}");
        }
        for binary in [&[0x0a, 4, 8, 1, 16, 2][..], b"\x7fELF\x02", &[0xff, 0xfe]] {
            assert_eq!(FileKind::of(binary), None, "{binary:?}");
        }
    }

    #[test]
    fn a_text_may_be_cut_in_a_character() {
        let text = "é".repeat(HEAD);
        assert_eq!(FileKind::of(&text.as_bytes()[1..]), None);
        assert_eq!(
            FileKind::of(format!("x{text}").as_bytes()),
            Some(FileKind::Text)
        );
    }

    #[test]
    fn the_path_tells_programs_from_other_texts() {
        for (path, kind) in [
            ("a/app.rb", FileKind::Ruby),
            ("config.ru", FileKind::Ruby),
            ("Gemfile", FileKind::Ruby),
            ("rb", FileKind::Text),
            ("app.txt", FileKind::Text),
        ] {
            assert_eq!(FileKind::Text.at(Path::new(path)), kind, "{path}");
        }
        assert_eq!(FileKind::Html.at(Path::new("a.rb")), FileKind::Html);
    }

    #[test]
    fn the_text_says_what_to_do() {
        let text = FileKind::Html.to_string();
        assert_eq!(
            text,
            "not a pprof profile, but an HTML page; open it in a browser"
        );
        assert!(
            FileKind::Empty
                .to_string()
                .starts_with("the file is empty;")
        );
    }
}
