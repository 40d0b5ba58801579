//! Values that several commands take, checked. Used by the options of all commands, on the
//! command's only thread.

use crate::refusal::Refusal;
use rperf_format::{Format, NOT_WRITTEN};
use rperf_session::settings::{FORMAT, Given, OUTPUT, Source, Value, check, quoted};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The format with this name.
pub fn parse_format(text: &str) -> Result<Format, Refusal> {
    let given = Given::Text(text.as_ref());
    let value = check(&FORMAT, &given, Source::Flag, || quoted(text.as_ref()))?;
    match value {
        Some(Value::Word(name)) => Ok(Format::from_name(name).unwrap_or_default()),
        _ => Ok(Format::default()),
    }
}

/// The absolute path of `output`, if a file can be written there.
pub fn writable(output: impl AsRef<Path>) -> Result<PathBuf, Refusal> {
    let text = output.as_ref().as_os_str();
    let value = check(&OUTPUT, &Given::Text(text), Source::Flag, || quoted(text))?;
    match value {
        Some(Value::Path(path)) => Ok(path),
        _ => Ok(text.into()),
    }
}

/// The extension of a file that is to be written, in small letters, if rperf writes such files.
pub fn kind_of_file(path: &Path) -> Result<String, Refusal> {
    let kind = extension(path);
    match NOT_WRITTEN.contains(&&*kind) {
        true => Err(Refusal::usage(format!(
            "-o {}: rperf writes no .{kind}: .svg is a picture, .html the viewer's page, .json and \
             .txt are text",
            path.display()
        ))),
        false => Ok(kind),
    }
}

/// The extension of a file for the rows of `command`, in small letters. They are JSON, or the viewer's page if the
/// command `has_page`: what is named as another kind of file is refused.
pub fn kind_of_rows(command: &str, path: &Path, has_page: bool) -> Result<String, Refusal> {
    let kind = extension(path);
    let is_other = match Format::of_report(&Path::new("rows").with_extension(&kind)) {
        Format::Json => false,
        Format::Html => !has_page,
        Format::Pprof => NOT_WRITTEN.contains(&&*kind) || matches!(&*kind, "gz" | "pb" | "svg"),
        _ => true,
    };
    let written = match has_page {
        true => ".json has all rows, .html is the viewer's page",
        false => ".json has all rows",
    };
    match is_other {
        true => Err(Refusal::usage(format!(
            "-o {}: rperf {command} writes no .{kind}: {written}",
            path.display()
        ))),
        false => Ok(kind),
    }
}

fn extension(path: &Path) -> String {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or("");
    extension.to_ascii_lowercase()
}

/// Refuses a file for a new profile that is named as one that only reports are written to: it would
/// be no such file, and nobody would know the profile.
pub fn refuse_reports_file(path: &Path) -> Result<(), Refusal> {
    kind_of_file(path)?;
    let Some((kind, _)) = Format::named_as_other(path) else {
        return Ok(());
    };
    let report = path.with_extension(&kind);
    let profile = path.with_extension("pb.gz");
    let profile = profile.display();
    Err(Refusal::usage(format!(
        "-o {}: a profile is no .{kind}: record into {profile}, then 'rperf report {profile} -o {}'",
        path.display(),
        report.display()
    )))
}

/// Seconds of a time at most: ten years.
const LONGEST: f64 = 3.2e8;

/// A time with its unit: `500ms`, `30s`, `1.5m`, `2h`, `1d`.
pub fn time(option: &str, text: &str) -> Result<Duration, Refusal> {
    const UNITS: [(&str, f64); 5] = [
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let units = UNITS.iter();
    let found =
        units.filter_map(|(unit, of)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * of));
    let mut valid = found.filter(|it| *it > 0.0 && *it <= LONGEST);
    let seconds = valid.next();
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        let text = quoted(text.as_ref());
        Refusal::usage(format!(
            "{option} must be a time with its unit, such as 30s, 10m or 2h, not {text}"
        ))
    })
}

/// An amount of bytes: a number of them, or one with K, M, G or T, each of which is 1024 of the one before.
pub fn size(option: &str, text: &str) -> Result<u64, Refusal> {
    let upper = text.to_ascii_uppercase();
    let number = upper.strip_suffix('B').unwrap_or(&upper);
    // The I of KiB: it stands for nothing without a unit.
    let binary = number.strip_suffix('I');
    let number = binary
        .filter(|it| it.ends_with(['K', 'M', 'G', 'T']))
        .unwrap_or(number);
    let powers = ["K", "M", "G", "T"].into_iter().zip([10, 20, 30, 40]);
    let mut given = powers.filter_map(|(unit, power)| Some((number.strip_suffix(unit)?, power)));
    let (number, power) = given.next().unwrap_or((number, 0));
    let bytes = number
        .parse::<f64>()
        .ok()
        .map(|it| it * (1u64 << power) as f64);
    let bytes = bytes.filter(|it| (1.0..=1e18).contains(it));
    bytes.map(|it| it.round() as u64).ok_or_else(|| {
        let text = quoted(text.as_ref());
        Refusal::usage(format!(
            "{option} must be a size, such as 500M or 2G, not {text}"
        ))
    })
}

/// What is said of a text that is the number of no process.
pub const NO_PID: &str = "processes have numbers from 1 on, which 'rperf ps' lists";

/// The number of a process, as the user has given it.
pub fn pid(text: &str) -> Result<i32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| NO_PID.into())
}

/// How many of something are to be made, as the user has given it.
pub fn count(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "it must be a whole number from 1 on".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_json_or_a_page() {
        let kind = |path: &str, has_page| {
            let kind = kind_of_rows("heap", Path::new(path), has_page);
            kind.map_err(|it| it.message)
        };
        for (path, expected) in [
            ("a.JSON", "json"),
            ("a.spans.json", "json"),
            ("a", ""),
            ("csv", ""),
            ("b.csv/a", ""),
            ("monday.1", "1"),
            ("callgrind.out.7", "7"),
        ] {
            assert_eq!(kind(path, true).as_deref(), Ok(expected), "{path}");
            assert_eq!(kind(path, false).as_deref(), Ok(expected), "{path}");
        }
        assert_eq!(kind("a.Html", true).as_deref(), Ok("html"));
        let others = NOT_WRITTEN.iter().chain(&[
            "callgrind",
            "collapsed",
            "dot",
            "gv",
            "json.gz",
            "md",
            "pb",
            "pb.gz",
            "svg",
            "txt",
        ]);
        for other in others {
            for has_page in [true, false] {
                let message = kind(&format!("a.{other}"), has_page).expect_err(other);
                let last = other.rsplit('.').next().expect("an extension");
                let start = format!("-o a.{other}: rperf heap writes no .{last}: .json ");
                assert!(message.starts_with(&start), "{message}");
            }
        }
        assert_eq!(
            kind("a.html", false),
            Err("-o a.html: rperf heap writes no .html: .json has all rows".into())
        );
    }

    #[test]
    fn times_have_units() {
        let seconds = |text: &str| time("--every", text).ok().map(|it| it.as_secs_f64());
        assert_eq!((seconds("30s"), seconds("1.5m")), (Some(30.0), Some(90.0)));
        assert_eq!(
            (seconds("2h"), seconds("1d")),
            (Some(7200.0), Some(86_400.0))
        );
        assert_eq!((seconds("300ms"), seconds("1ms")), (Some(0.3), Some(1e-3)));
        for odd in [
            "", "s", "5", "0s", "-1m", "nanh", "infs", "1e30d", "ms", "1us", "µs",
        ] {
            assert_eq!(seconds(odd), None, "{odd}");
        }
    }

    #[test]
    fn sizes_may_have_units() {
        let bytes = |text: &str| size("--limit", text).ok();
        assert_eq!((bytes("1000"), bytes("2k")), (Some(1000), Some(2048)));
        assert_eq!(
            (bytes("500M"), bytes("1.5GiB")),
            (Some(500 << 20), Some(3 << 29))
        );
        assert_eq!((bytes("7B"), bytes("1TB")), (Some(7), Some(1 << 40)));
        for odd in [
            "", "M", "0", "-1", "1X", "nan", "inf", "1e40", "0.1", "5I", "5IB", "5MII",
        ] {
            assert_eq!(bytes(odd), None, "{odd}");
        }
    }
}
