//! Tells the files that a user names from the endpoint. Called by `why`, on the main thread.

use crate::Refusal;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The files, and the endpoint behind them, if one is named.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked<'a> {
    /// The files, at least one.
    pub files: Vec<PathBuf>,
    /// The name of an endpoint or a job, a part of it, or a regex.
    pub endpoint: Option<&'a str>,
}

impl<'a> Asked<'a> {
    /// The last of several arguments is an endpoint if there is no file of this name. A directory is none:
    /// `app` can be a part of an endpoint's name.
    pub fn of(arguments: &'a [OsString]) -> Result<Self, Refusal> {
        let (files, endpoint) = match arguments {
            [files @ .., last] if !files.is_empty() && !is_there(Path::new(last)) => {
                let endpoint = last.to_str().ok_or_else(|| no_text(Path::new(last)))?;
                (files, Some(endpoint))
            }
            files => (files, None),
        };
        Ok(Self {
            files: files.iter().map(PathBuf::from).collect(),
            endpoint,
        })
    }
}

/// Whether there is something to be read at the path, or nobody may know.
#[expect(
    clippy::disallowed_methods,
    reason = "decides on the meaning of the argument only: what is read is opened"
)]
fn is_there(path: &Path) -> bool {
    path == Path::new(crate::report::load::STDIN)
        || std::fs::metadata(path).is_ok_and(|it| !it.is_dir())
}

fn no_text(path: &Path) -> Refusal {
    Refusal::usage(format!(
        "there is no file {}, and an endpoint must be UTF-8",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    fn asked(arguments: &[&str]) -> (Vec<String>, Option<String>) {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        let asked = Asked::of(&arguments).expect("fine");
        let files = asked.files.iter().map(|it| it.display().to_string());
        (files.collect(), asked.endpoint.map(String::from))
    }

    #[test]
    fn the_last_argument_is_an_endpoint_unless_there_is_such_a_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name).display().to_string();
        for name in ["a.pb.gz", "b.pb.gz"] {
            std::fs::write(path(name), "").expect("written");
        }
        let [a, b, none, directory] = ["a.pb.gz", "b.pb.gz", "c.pb.gz", ""].map(path);
        for (arguments, files, endpoint) in [
            (vec![&*a], vec![&*a], None),
            (vec![&*none], vec![&*none], None),
            (vec!["GET /"], vec!["GET /"], None),
            (vec![&*a, &*b], vec![&*a, &*b], None),
            (vec![&*a, "-"], vec![&*a, "-"], None),
            (vec![&*a, "GET /orders"], vec![&*a], Some("GET /orders")),
            (vec![&*a, &*b, "-x"], vec![&*a, &*b], Some("-x")),
            (vec![&*a, &*none], vec![&*a], Some(&*none)),
            (vec![&*a, &*directory], vec![&*a], Some(&*directory)),
            (
                vec![&*a, "orders", "cart"],
                vec![&*a, "orders"],
                Some("cart"),
            ),
            (vec![&*a, ""], vec![&*a], Some("")),
        ] {
            let files = files.iter().map(ToString::to_string).collect::<Vec<_>>();
            let endpoint = endpoint.map(String::from);
            assert_eq!(asked(&arguments), (files, endpoint), "{arguments:?}");
        }
    }

    #[test]
    fn a_name_that_is_no_text_is_refused() {
        let arguments = [b"a.pb.gz".to_vec(), b"\xff".to_vec()].map(OsString::from_vec);
        let refusal = Asked::of(&arguments).expect_err("refused");
        assert_eq!(refusal.status, crate::USAGE);
        assert!(refusal.message.starts_with("there is no file "));
    }
}
