//! `rperf heap`: which objects a program has, and what holds them, now or in a file. Called by `run`, on the
//! main thread.

mod changes;
mod page;
mod sites;
mod steps;

use crate::memory::kept_rows::{self, is_number, refused};
use crate::programs::words::{message, of_failure};
use crate::refusal::{FAILURE, Refusal};
use crate::report::screen::Screen;
use crate::report::view_args::{HTML_FILE, only_one};
use crate::shared_args::checked;
use crate::shared_args::viewer_args::ViewerArgs;
use crate::viewer;
use rperf_format::bytes_text;
use rperf_heap::answer::Asked;
use rperf_heap::file::{HeapFile, NoHeapFile};
use rperf_session::process_id::ProcessId;
use rperf_watch::heap::{HeapError, How, take};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Classes that are kept at most.
const CLASSES: usize = 1000;

/// What the help of the command ends with.
pub const NOTES: &str = "\
Examples:
  rperf heap 4711                       classes, and the biggest holders
  rperf heap 4711 --class Order         on which paths the instances of Order are held
  rperf heap 4711 --web                 opens the viewer: what holds what, as a map and a tree
  rperf heap 4711 -o monday.json        keeps the rows
  rperf heap monday.json                shows them
  rperf heap monday.json --html         writes them into the viewer's page, rperf.html
  rperf heap --base monday.json 4711    what has changed since

Where a session of the program has --measure heap, the page begins with the places in code that
have made what is still there ('rperf help what-stays').

A copy of the program walks its objects, and the program runs on: it stops for the time of a
fork. Nothing of what objects contain is shown or kept: only names of classes, constants,
variables, methods and endpoints.

Exit status: 0; 1 if the program can't be looked at, or the output not be written; 2 for wrong
options and files that can't be read.

Run 'rperf help heap' for more.";

/// Bytes of a file at most.
const MOST: u64 = 64 << 20;

/// Rows of each table unless asked for otherwise.
const ROWS: usize = 20;

/// Options of `rperf heap`.
#[derive(Debug, Default, clap::Args)]
#[command(mut_arg("html", |it| {
    it.help("Write the web viewer with the objects in it as one file [default: rperf.html]")
}))]
pub struct HeapArgs {
    /// The program's process, or a file of 'rperf heap -o'
    #[arg(value_name = "PID|FILE")]
    pub target: OsString,
    /// Show what has changed since this file of 'rperf heap -o' (or a process, by its PID)
    #[arg(long, value_name = "FILE")]
    pub base: Option<OsString>,
    /// Show on which paths the instances of this class are held
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Rows of each table; 0: all [default: 20]
    #[arg(
        short = 'n',
        long = "limit",
        value_name = "ROWS",
        allow_hyphen_values = true
    )]
    pub limit: Option<String>,
    /// The web viewer.
    #[command(flatten)]
    pub viewer: ViewerArgs,
    /// File to write to instead of printing: .html is the viewer's page, all else JSON ('-': stdout)
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<OsString>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Make the copy however little memory is free, and however soon after the last one
    #[arg(long)]
    pub force: bool,
    /// Leave the main thread alone where all threads wait: then there is no answer
    #[arg(long)]
    pub no_wake: bool,
}

/// What the rows become.
#[derive(Debug, PartialEq, Eq)]
enum View {
    Text,
    Json,
    Kept(PathBuf),
    Html(PathBuf),
    Web { opens_browser: bool },
}

impl View {
    /// The one that is asked for. Where it is a file, one can be written there.
    fn of(args: &HeapArgs) -> Result<Self, Refusal> {
        let asked = only_one(&[
            ("--web", args.viewer.web),
            ("--html", args.viewer.html),
            ("--json", args.json),
        ])?;
        let output = args.output.as_deref();
        let is_to_stdout = output.is_some_and(|it| it == "-");
        let file = || output.map(checked::writable).transpose();
        Ok(match asked {
            Some("--web") => Self::web(args),
            None if args.viewer.no_browser && output.is_none() => Self::web(args),
            Some("--html") if is_to_stdout => View::Html("/dev/stdout".into()),
            Some("--html") => View::Html(match file()? {
                Some(path) => path,
                None => checked::writable(HTML_FILE)?,
            }),
            _ if is_to_stdout => View::Json,
            Some(_) => file()?.map_or(View::Json, View::Kept),
            None => {
                let kind = output.map(|it| checked::kind_of_rows("heap", Path::new(it), true));
                let is_page = kind.transpose()?.is_some_and(|it| it == "html");
                match file()? {
                    Some(path) if is_page => View::Html(path),
                    path => path.map_or(View::Text, View::Kept),
                }
            }
        })
    }

    fn web(args: &HeapArgs) -> Self {
        View::Web {
            opens_browser: !args.viewer.no_browser,
        }
    }

    fn is_page(&self) -> bool {
        matches!(self, View::Html(_) | View::Web { .. })
    }
}

/// Prints or writes the rows, or shows them in the viewer. Returns the exit status.
pub fn run(args: &HeapArgs) -> Result<i32, Refusal> {
    let view = View::of(args)?;
    refuse_what_has_no_effect(args, &view)?;
    let rows = rows(args)?;
    let base = args.base.as_ref();
    let base = base.map(|it| taken(it, args, false)).transpose()?;
    let has_tree = view != View::Text && base.is_none();
    let file = taken(&args.target, args, has_tree)?;
    if let Some(class) = &args.class
        && file.paths.as_ref().is_none_or(Vec::is_empty)
    {
        return Err(Refusal {
            message: format!("{}: no object of a class {class:?} is held", file.facts.pid),
            status: FAILURE,
        });
    }
    let screen = Screen::stdout(true);
    let text = match (&view, &base) {
        (View::Kept(path), _) => {
            let what = format!("{} of objects", bytes_text(file.total.bytes));
            return kept_rows::write(path, &file.to_json(), &what);
        }
        (View::Html(path), _) => {
            return viewer::save(&viewer::page_of_heap(&file.to_json())?, path);
        }
        (View::Web { opens_browser }, _) => {
            return viewer::serve(viewer::page_of_heap(&file.to_json())?, *opens_browser);
        }
        (View::Json, None) => file.to_json(),
        (View::Text, None) => page::of(&file, args.class.as_deref(), rows, screen),
        (View::Json, Some(base)) => changes::as_json(base, &file),
        (View::Text, Some(base)) => changes::page(base, &file, rows, screen),
    };
    screen.print(&text).map(|()| 0).map_err(|error| Refusal {
        message: format!("can't write the rows: {error}"),
        status: FAILURE,
    })
}

fn rows(args: &HeapArgs) -> Result<usize, Refusal> {
    args.limit.as_deref().map_or(Ok(ROWS), kept_rows::rows)
}

/// Refuses options that nothing would come of.
fn refuse_what_has_no_effect(args: &HeapArgs, view: &View) -> Result<(), Refusal> {
    let refused = |message: &str| Err(Refusal::usage(message));
    let is_web = matches!(view, View::Web { .. });
    if is_web && args.output.is_some() {
        return refused("--web writes no file: leave -o out, or give --html");
    }
    if args.viewer.no_browser && !is_web {
        return refused("--no-browser goes with --web: leave it out");
    }
    if view.is_page() && args.base.is_some() {
        return refused("the viewer shows one moment, not what has changed: leave --base out");
    }
    if view.is_page() && args.limit.is_some() {
        return refused("the viewer has all rows: leave -n out");
    }
    if args.base.is_some() && args.output.is_some() {
        return refused("-o writes the rows of one moment, not what has changed: leave --base out");
    }
    if args.base.is_some() && args.class.is_some() {
        return refused(
            "--class shows paths of one moment, not what has changed: leave --base out",
        );
    }
    if args.limit.is_some() && (args.json || args.output.is_some()) {
        return refused("JSON always has all rows: leave -n out");
    }
    if args.class.is_some() && !is_number(&args.target) {
        return refused(
            "a file has no paths to the instances of a class: ask the program, by its PID",
        );
    }
    let options = [(args.force, "--force"), (args.no_wake, "--no-wake")];
    kept_rows::refuse_for_files(&args.target, args.base.as_deref(), options)
}

/// The rows of a process, with the tree of dominators if `tree`, or those in a file.
fn taken(target: &OsStr, args: &HeapArgs, tree: bool) -> Result<HeapFile, Refusal> {
    let text = target.to_str().unwrap_or_default();
    if !is_number(target) {
        return of_file(Path::new(target));
    }
    let pid = checked::pid(text).map_err(|error| Refusal::usage(format!("'{text}': {error}")))?;
    let how = How {
        force: args.force,
        may_wake: !args.no_wake,
        asked: Asked {
            class: args.class.as_deref(),
            tree,
        },
        classes: CLASSES,
    };
    take(ProcessId::named(pid), how).map_err(|error| refusal_of(pid, error))
}

/// Why there are no rows of the process.
pub fn refusal_of(pid: i32, error: HeapError) -> Refusal {
    let failed = |message: String| Refusal {
        message,
        status: FAILURE,
    };
    match error {
        HeapError::Failure(rperf_watch::failure::Failure::Stopped) => {
            failed(message(pid, &rperf_watch::failure::Failure::Stopped))
        }
        HeapError::Failure(failure) => of_failure(pid, &failure),
        HeapError::TooOld => failed(format!(
            "{pid}: the rperf of this program is too old to tell"
        )),
        HeapError::Ended => failed(format!(
            "{pid}: the copy of the program was ended before it had sent all objects (too little memory, kill, or more \
             than half a minute)"
        )),
        HeapError::TooLong(most) => failed(format!(
            "{pid}: its objects take more than {} to send, and no more is read",
            bytes_text(most)
        )),
        HeapError::Unreadable(error) => {
            failed(format!("{pid}: its objects can't be read: {error}"))
        }
    }
}

fn of_file(path: &Path) -> Result<HeapFile, Refusal> {
    let bytes = kept_rows::read(path, MOST)?.ok_or_else(|| refused(path, &NoHeapFile::Other))?;
    HeapFile::read(&bytes).map_err(|error| refused(path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_without_effect_are_refused() {
        let with = |target: &str, change: fn(&mut HeapArgs)| {
            let mut args = HeapArgs {
                target: target.into(),
                ..HeapArgs::default()
            };
            change(&mut args);
            let checked = View::of(&args).and_then(|it| refuse_what_has_no_effect(&args, &it));
            checked.err().map(|it| it.message)
        };
        assert_eq!(with("7", |it| it.force = true), None);
        assert_eq!(with("7", |it| it.class = Some("A".into())), None);
        assert_eq!(with("a.json", |it| it.limit = Some("3".into())), None);
        let refused = [
            with("7", |it| {
                (it.base, it.output) = (Some("a".into()), Some("b".into()))
            }),
            with("7", |it| {
                (it.base, it.class) = (Some("a".into()), Some("A".into()))
            }),
            with("7", |it| (it.json, it.limit) = (true, Some("3".into()))),
            with("a.json", |it| it.class = Some("A".into())),
            with("a.json", |it| it.force = true),
            with("a.json", |it| it.no_wake = true),
            with("7", |it| {
                (it.viewer.html, it.limit) = (true, Some("3".into()))
            }),
            with("7", |it| {
                (it.viewer.web, it.base) = (true, Some("a".into()))
            }),
            with("7", |it| {
                (it.output, it.limit) = (Some("a.html".into()), Some("3".into()))
            }),
            with("7", |it| {
                (it.viewer.web, it.output) = (true, Some("a".into()))
            }),
            with("7", |it| {
                (it.viewer.html, it.viewer.no_browser) = (true, true)
            }),
            with("7", |it| (it.viewer.html, it.viewer.web) = (true, true)),
            with("7", |it| (it.viewer.html, it.json) = (true, true)),
        ];
        for message in refused {
            let message = message.expect("a message");
            assert!(message.contains(": "), "{message}");
        }
    }

    #[test]
    fn a_page_is_asked_for_by_its_option_or_a_file_s_name() {
        let view = |change: fn(&mut HeapArgs)| {
            let mut args = HeapArgs::default();
            change(&mut args);
            View::of(&args).expect("a view")
        };
        let name = |view: &View| match view {
            View::Html(path) | View::Kept(path) => path.file_name().map(OsStr::to_owned),
            _ => None,
        };
        let opens_browser = true;
        assert_eq!(view(|_| {}), View::Text);
        assert_eq!(view(|it| it.output = Some("-".into())), View::Json);
        assert_eq!(view(|it| it.viewer.web = true), View::Web { opens_browser });
        assert_eq!(
            view(|it| it.viewer.no_browser = true),
            View::Web {
                opens_browser: false
            }
        );
        let page = view(|it| it.viewer.html = true);
        assert!(matches!(page, View::Html(_)));
        assert_eq!(name(&page), Some("rperf.html".into()));
        let view_of = |path: &str, json, html| {
            let output = Some(path.into());
            let mut args = HeapArgs {
                output,
                json,
                ..HeapArgs::default()
            };
            args.viewer.html = html;
            let view = View::of(&args).expect("a view");
            (name(&view), view.is_page())
        };
        for (path, json, html, is_page) in [
            ("a.HTML", false, false, true),
            ("a.json", false, false, false),
            ("a.html", true, false, false),
            ("a", false, true, true),
        ] {
            assert_eq!(view_of(path, json, html), (Some(path.into()), is_page));
        }
    }

    #[test]
    fn rows_are_a_number() {
        let rows = |text: &str| {
            let limit = Some(text.to_owned());
            super::rows(&HeapArgs {
                target: "7".into(),
                limit,
                ..HeapArgs::default()
            })
            .ok()
        };
        assert_eq!(
            (rows("0"), rows("7"), rows("-1")),
            (Some(usize::MAX), Some(7), None)
        );
    }
}
