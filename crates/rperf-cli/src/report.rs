//! `rperf report`: looks at profiles in the terminal, and converts them. Called by
//! `run`, on the main thread.

mod counts;
pub mod filter_args;
mod graph_args;
mod graphviz;
pub mod load;
mod options;
mod pages;
pub mod screen;
pub mod view_args;

pub use options::ReportArgs;

use crate::output::shown;
use crate::{Refusal, viewer};
use counts::Counts;
use options::{Options, View};
use pages::Page;
use rperf_format::answers::IdleTime;
use rperf_format::markdown::{markdown, markdown_of};
use rperf_format::viewer::TitledProfile;
use rperf_format::{Format, FormatError, JsonOptions, TextOptions, Whole};
use rperf_model::Profile;
use rperf_report::numbers::grouped;
use rperf_report::one_line::one_line;
use rperf_report::{
    By, Filter, Idle, Listing, NamePattern, Neighbours, Subject, has_ops, tag_keys, types_with_tag,
};
use screen::Screen;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

/// Shows, or writes, what the options ask for, and returns the exit status.
pub fn run(args: ReportArgs) -> Result<i32, Refusal> {
    let options = Options::new(args, io::stdout().is_terminal())?;
    let mut profile = load::merged(&options.files)?;
    load::choose_column(&mut profile, options.value.as_deref())?;
    profile.path_view = options.path_view.clone();
    let kept_idle = match &options.view {
        View::Json { .. } => Idle::of(&profile).value(),
        _ => 0,
    };
    match &options.by {
        By::Label(key) => say_if_missing(key, &profile),
        By::Op if !has_ops(&profile) => crate::say(
            "no sample is in an op: 'rperf record -m wall --measure ops' takes them (rperf help ops)",
        ),
        _ => {}
    }
    let filtered = options.filter.apply(profile);
    check_time_line(&filtered.profile, &options)?;
    check_loading(&filtered.profile, &options.view)?;
    check_exact_sums(&filtered.profile, &options)?;
    if !filtered.unmatched.is_empty() {
        say_unmatched(&filtered.unmatched, filtered.idle != 0, &options)?;
    }
    let screen = match &options.page {
        Some(_) => Screen::default(),
        None => Screen::stdout(options.pager),
    };
    let page = Page {
        profile: &filtered.profile,
        before: filtered.whole,
        whole: match options.relative {
            true => filtered
                .profile
                .sum(filtered.profile.schema.default_column()),
            false => filtered.whole,
        },
        idle: match options.filter.hides_idle {
            true => IdleTime::LeftOut(filtered.idle),
            false => IdleTime::Kept(kept_idle),
        },
        screen,
        limit: options.limit,
        counts: counts(&filtered.profile, &options)?,
    };
    let text = match &options.view {
        View::Web { opens_browser } => {
            return viewer::serve(html(&filtered.profile, &options)?, *opens_browser);
        }
        View::Html(path) => return viewer::save(&html(&filtered.profile, &options)?, path),
        View::Top => pages::top(&page, &options.by, options.sort),
        View::Methods => pages::methods(&page, &options.by, options.sort),
        View::Tree(tree) => pages::tree(&page, *tree),
        View::Boot => pages::boot(&page, options.sort),
        View::Tests => pages::suite(&page, options.sort),
        View::Ops => pages::ops(&page, options.sort),
        View::Gc => pages::gc(&page),
        View::Callers(name) => pages::callers(&page, &callers_found(&page, name)?.1),
        View::Annotate(subject) => annotate(&page, subject)?,
        View::Json {
            output,
            callers,
            parts,
        } => {
            let callers = callers.as_deref().map(|name| callers_found(&page, name));
            let callers = callers.transpose()?.map(|(pattern, _)| pattern);
            let shape = JsonOptions {
                limit: options.limit,
                sort: options.sort,
                callers,
                parts: *parts,
            };
            let text = rperf_format::json(page.question(), &shape);
            return write_text(&text, output.as_deref(), screen);
        }
        View::Markdown { parts, output } => {
            let (question, limit) = (page.question(), options.limit);
            let text = match parts.any() {
                true => markdown_of(question, *parts, options.sort, limit),
                false => markdown(question, limit),
            };
            return write_text(&text, output.as_deref(), screen);
        }
        View::Dot { graph, output } => {
            let text = rperf_format::dot(page.question(), graph);
            return write_text(&text, output.as_deref(), screen);
        }
        View::Svg { graph, output } => {
            return save_svg(&rperf_format::dot(page.question(), graph), output);
        }
        View::Format {
            format: Format::Collapsed,
            output,
        } if output.is_some() || !io::stdout().is_terminal() => {
            return stream(&filtered.profile, output.as_deref());
        }
        View::Format {
            format: Format::Text,
            output: None,
        } => {
            let options = text_options(&page, options.lines);
            rperf_format::for_terminal(page.profile, options, screen.width())
        }
        View::Format { format, output } => {
            let bytes = formatted(&page, *format, options.lines)?;
            return write(&bytes, *format, output.as_deref(), screen);
        }
    };
    write_text(&text, options.page.as_deref(), screen)
}

/// Names the filters that match nothing in the profile, or only what is hidden with idle threads.
fn say_unmatched(unmatched: &[&str], has_hidden: bool, options: &Options) -> Result<(), Refusal> {
    // The profile as it was is read again: to keep it would take as much room as it has.
    let matched_there = match has_hidden && options.files.iter().all(|file| file.is_file()) {
        true => {
            let filter = Filter {
                hides_idle: false,
                ..options.filter.clone()
            };
            let nowhere = filter.apply(load::merged(&options.files)?).unmatched;
            let is_there = |option: &&&str| !nowhere.contains(*option);
            unmatched.iter().filter(is_there).copied().collect()
        }
        false => Vec::new(),
    };
    for option in unmatched {
        let hint = match matched_there.contains(option) {
            true => " but idle threads, which are hidden; --idle shows them",
            false => "",
        };
        crate::say(&format!("{option} matches nothing in the profile{hint}"));
    }
    Ok(())
}

/// Says that no sample has a label with this key, and which keys there are; or that only those of
/// other values have it.
fn say_if_missing(key: &str, profile: &Profile) {
    let keys = tag_keys(profile);
    if keys.contains(key) {
        let types = types_with_tag(profile, key);
        let shown = &*profile.schema.default_type().name;
        if !types.is_empty() && !types.contains(&shown) {
            let types: Vec<_> = types.into_iter().map(one_line).collect();
            crate::say(&format!(
                "no value of {} has a label {}: --value {} does",
                one_line(shown),
                one_line(key),
                types.join(" or ")
            ));
        }
        return;
    }
    let there: Vec<_> = keys.into_iter().map(one_line).collect();
    let there = match there.is_empty() {
        true => String::new(),
        false => format!("; there are: {}", there.join(", ")),
    };
    crate::say(&format!("no sample has a label {}{there}", one_line(key)));
}

/// A file of a time line needs one, and filters leave none of its calls out.
fn check_time_line(profile: &Profile, options: &Options) -> Result<(), Refusal> {
    let View::Format {
        format: Format::Spans,
        ..
    } = options.view
    else {
        return Ok(());
    };
    if profile.time_lines.is_empty() {
        let message = "the profile has no time line: 'rperf trace --spans 1ms' keeps one";
        return Err(Refusal::usage(message));
    }
    if !options.filter.is_empty() {
        let message = "filters have no meaning for a time line, which has all calls";
        return Err(Refusal::usage(message));
    }
    Ok(())
}

/// What the loading of files took is told by samples.
fn check_loading(profile: &Profile, view: &View) -> Result<(), Refusal> {
    match view.parts().boot && profile.schema.is_traced() {
        true => Err(Refusal::usage(
            "--boot needs samples, which 'rperf record' takes, and this is a trace",
        )),
        false => Ok(()),
    }
}

/// Tests, ops and collections have exact sums, of which filters know nothing: nothing is left of those of collections
/// after a filter.
fn check_exact_sums(profile: &Profile, options: &Options) -> Result<(), Refusal> {
    let parts = options.view.parts();
    let sums = [
        (
            parts.tests,
            profile.suite.is_empty(),
            "the profile has no tests: 'rperf record' takes them where the program requires \
             rperf/rspec or rperf/minitest (rperf help tests)",
            "filters have no meaning for --tests, which has the exact times of whole tests",
        ),
        (
            parts.ops,
            profile.ops.is_empty(),
            "the profile has no ops: the program called none, or they weren't measured \
             ('rperf record --measure ops' measures them; rperf help ops)",
            "filters have no meaning for --ops, which has the exact times of whole calls; in samples, \
             ops are frames, which --focus finds, and rows of --top --by op",
        ),
        (
            parts.gc,
            profile.collections.is_empty(),
            "the profile has no collections: none ran, or the profile doesn't tell, as those of an \
             earlier version and of another collector don't (rperf help gc)",
            "filters have no meaning for --gc, which has the exact times of all collections; in samples \
             --tagfocus '%gc=...' finds those of a cause",
        ),
    ];
    for (is_asked, is_empty, missing, filtered) in sums {
        match is_asked {
            true if !options.filter.is_empty() => return Err(Refusal::usage(filtered)),
            true if is_empty => return Err(Refusal::usage(missing)),
            _ => {}
        }
    }
    Ok(())
}

/// The calls of the trace that the options name, for the rows of `profile`.
fn counts(profile: &Profile, options: &Options) -> Result<Option<Counts>, Refusal> {
    let path = options.counts.as_deref();
    path.map(|path| Counts::of(path, profile, &options.by, &options.filter))
        .transpose()
}

/// The web viewer with `profile` in it.
fn html(profile: &Profile, options: &Options) -> Result<Vec<u8>, Refusal> {
    let title = viewer::title(&options.files);
    let sources = options.source.then(|| viewer::sources(profile));
    viewer::page(&rperf_format::viewer::View {
        profiles: vec![TitledProfile {
            title: &title,
            profile,
        }],
        sources: sources.unwrap_or_default(),
        shows_idle: options.shows_idle,
        ..rperf_format::viewer::View::default()
    })
}

fn print(screen: Screen, text: &str) -> Result<i32, Refusal> {
    match screen.print(text) {
        Ok(()) => Ok(0),
        Err(error) => Err(failure(&format!("can't write to stdout: {error}"))),
    }
}

fn failure(message: &str) -> Refusal {
    Refusal {
        message: message.to_string(),
        status: crate::FAILURE,
    }
}

/// The methods of this name, and their callers and callees; there is one at least.
fn callers_found(page: &Page<'_>, name: &str) -> Result<(NamePattern, Vec<Neighbours>), Refusal> {
    let pattern = pattern("--callers", name, page.profile)?;
    let column = page.profile.schema.default_column();
    let found = Neighbours::of(page.profile, column, &pattern);
    match found.is_empty() {
        true => Err(nothing_matches(page, "method", name)),
        false => Ok((pattern, found)),
    }
}

fn annotate(page: &Page<'_>, subject: &str) -> Result<String, Refusal> {
    let column = page.profile.schema.default_column();
    let file = Subject::File(subject.to_string());
    let mut found = Listing::of(page.profile, column, &file);
    if found.is_empty() {
        let pattern = pattern("--annotate", subject, page.profile)?;
        found = Listing::of(page.profile, column, &Subject::Functions(pattern));
    }
    if found.is_empty() {
        return Err(nothing_matches(page, "file or method", subject));
    }
    Ok(pages::annotate(page, &found))
}

fn pattern(option: &str, name: &str, profile: &Profile) -> Result<NamePattern, Refusal> {
    let pattern = NamePattern::new(name, profile);
    pattern.map_err(|error| Refusal::usage(format!("{option}: {error}")))
}

fn nothing_matches(page: &Page<'_>, what: &str, name: &str) -> Refusal {
    let place = match page.is_filtered() {
        true => "what the filters leave",
        false => "the profile",
    };
    Refusal::usage(format!("no {what} in {place} matches '{name}'"))
}

fn formatted(page: &Page<'_>, format: Format, lines: bool) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let options = text_options(page, lines);
    let written = rperf_format::write(page.profile, format, options, &mut bytes);
    written.map_err(|error| failure(&error.to_string()))?;
    Ok(bytes)
}

fn text_options(page: &Page<'_>, lines: bool) -> TextOptions {
    TextOptions {
        lines,
        whole: Some(Whole {
            value: page.whole,
            idle: page.idle.left_out(),
        }),
    }
}

fn write(
    bytes: &[u8],
    format: Format,
    output: Option<&Path>,
    screen: Screen,
) -> Result<i32, Refusal> {
    if let Some(path) = output {
        return write_file(path, bytes);
    }
    if format == Format::Pprof {
        if io::stdout().is_terminal() {
            let message = "pprof files are not for terminals: give -o a file to write";
            return Err(Refusal::usage(message));
        }
        let written = io::Write::write_all(&mut io::stdout().lock(), bytes);
        return match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(failure(&format!("can't write to stdout: {error}")))
            }
            _ => Ok(0),
        };
    }
    print(screen, &String::from_utf8_lossy(bytes))
}

/// Draws the graph as the picture at `path`. Without Graphviz the graph itself is written, as a
/// file beside that one.
fn save_svg(dot: &str, path: &Path) -> Result<i32, Refusal> {
    let failed = match graphviz::svg(dot) {
        Ok(svg) => {
            return write_file(path, &svg);
        }
        Err(failed) => failed,
    };
    let remedy = failed.remedy();
    if !crate::output::is_file(path) {
        return Err(failure(&format!("{failed}: {remedy}")));
    }
    // Not `graph.dot` for `graph.svg`: that can be another graph, which nobody asked to replace.
    let mut graph = path.as_os_str().to_owned();
    graph.push(".dot");
    let graph = PathBuf::from(graph);
    let written = crate::output::write_whole(&graph, dot.as_bytes());
    written.map_err(|error| cannot_write(&graph, &error))?;
    let message = format!("{failed}: {remedy}. Wrote {} instead", graph.display());
    Err(failure(&message))
}

/// Text for a file or, without one, for stdout. Used by `rperf diff` too.
pub fn write_text(text: &str, output: Option<&Path>, screen: Screen) -> Result<i32, Refusal> {
    match output {
        Some(path) => write_file(path, text.as_bytes()),
        None => print(screen, text),
    }
}

/// Writes collapsed stacks as they are made: they can be ten times as large as the profile.
fn stream(profile: &Profile, output: Option<&Path>) -> Result<i32, Refusal> {
    let produce = |output: &mut dyn io::Write| {
        rperf_format::write(profile, Format::Collapsed, TextOptions::default(), output)
    };
    let (name, written) = match output {
        Some(path) => (
            path.display().to_string(),
            crate::output::write_whole_streaming(path, produce),
        ),
        None => (
            "stdout".to_string(),
            rperf_session::output::buffered(io::stdout().lock(), produce),
        ),
    };
    match written {
        Ok(()) => {
            if let Some(path) = output {
                #[expect(clippy::disallowed_methods, reason = "its size is shown")]
                let written = path.metadata();
                say_written(path, written.map(|it| it.len()).ok());
            }
            Ok(0)
        }
        Err(FormatError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
        Err(FormatError::Io(error)) => Err(failure(&format!("can't write to {name}: {error}"))),
        Err(error) => Err(Refusal::usage(error.to_string())),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<i32, Refusal> {
    let written = crate::output::write_whole(path, bytes);
    written.map_err(|error| cannot_write(path, &error))?;
    say_written(path, Some(bytes.len() as u64));
    Ok(0)
}

fn cannot_write(path: &Path, error: &io::Error) -> Refusal {
    failure(&format!("can't write to {}: {error}", path.display()))
}

/// A word about a file of so many bytes. What is written to a stream appears by itself.
fn say_written(path: &Path, bytes: Option<u64>) {
    let Some(bytes) = bytes.filter(|_| crate::output::is_file(path)) else {
        return;
    };
    let (path, size) = (shown(path), grouped(bytes.div_ceil(1000)));
    crate::say(&format!("wrote {} ({size} KB)", path.display()));
}
