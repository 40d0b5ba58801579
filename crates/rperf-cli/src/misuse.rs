//! What the command says of a command line that it can't read: one line, as of everything else. Called
//! once, at the start.

use crate::refusal::{Refusal, USAGE};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;

/// Why the command line can't be read, if it isn't that help is asked for. `line` begins with the
/// command's own name.
pub fn refusal(error: &clap::Error, line: &[OsString]) -> Option<Refusal> {
    let is_for_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if is_for_help || !error.use_stderr() {
        return None;
    }
    let subcommand = line.get(1).and_then(|word| word.to_str());
    let subcommand = subcommand.filter(|_| error.kind() != ErrorKind::InvalidSubcommand);
    let help = match subcommand.filter(|word| !word.starts_with('-')) {
        Some(word) => format!("rperf {word} --help"),
        None => "rperf --help".into(),
    };
    let hint = match suggestion(error) {
        Some(words) => format!("did you mean {words}? '{help}' has all"),
        None => format!("see '{help}'"),
    };
    Some(Refusal {
        message: format!("{}; {hint}", what_is_wrong(error)),
        status: USAGE,
    })
}

fn what_is_wrong(error: &clap::Error) -> String {
    let text = |kind| error.get(kind).map(words);
    let argument = text(ContextKind::InvalidArg);
    let value = text(ContextKind::InvalidValue).filter(|value| value != "''");
    let known = match (error.kind(), argument, value) {
        (ErrorKind::InvalidSubcommand, _, _) => {
            text(ContextKind::InvalidSubcommand).map(|word| format!("there is no command {word}"))
        }
        (ErrorKind::UnknownArgument, Some(argument), _) => match argument.starts_with("'-") {
            true => Some(format!("there is no option {argument}")),
            false => Some(format!("{argument} is one argument too many")),
        },
        (ErrorKind::MissingRequiredArgument, Some(argument), _) => {
            Some(format!("{argument} is missing"))
        }
        (ErrorKind::ValueValidation, Some(argument), Some(value)) => {
            let reason = std::error::Error::source(error);
            Some(match reason {
                Some(reason) => format!("{argument} can't be {value}: {reason}"),
                None => format!("{argument} can't be {value}"),
            })
        }
        (ErrorKind::TooManyValues, Some(argument), Some(value)) => {
            Some(format!("{argument} has no value, so not {value}"))
        }
        (ErrorKind::InvalidValue | ErrorKind::NoEquals, Some(argument), _) => {
            Some(format!("{argument} needs a value"))
        }
        (ErrorKind::ArgumentConflict, Some(argument), _) => {
            let prior = text(ContextKind::PriorArg).filter(|prior| *prior != argument);
            Some(match prior {
                Some(prior) => format!("{argument} can't be combined with {prior}"),
                None => format!("{argument} is there twice"),
            })
        }
        _ => None,
    };
    // clap's own sentence, for what isn't listed here.
    known.unwrap_or_else(|| error.kind().to_string())
}

fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand];
    kinds
        .into_iter()
        .find_map(|kind| error.get(kind))
        .map(words)
}

/// The names or values of a context, in quotes.
fn words(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(all) => {
            let quoted: Vec<String> = all.iter().map(|word| quoted(word)).collect();
            quoted.join(" or ")
        }
        ContextValue::String(word) => quoted(word),
        other => quoted(&other.to_string()),
    }
}

/// An argument is named in the same way whether it may be left out and repeated or not.
fn quoted(word: &str) -> String {
    let name = word.strip_suffix("...").unwrap_or(word);
    let name = name.strip_prefix(['<', '[']).unwrap_or(name);
    match name.strip_suffix(['>', ']']) {
        Some(name) if !name.contains(['<', '[']) => format!("'{name}'"),
        _ => format!("'{word}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;

    fn said(line: &str) -> Option<String> {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Args::of(line.clone()).expect_err("it can't be read");
        refusal(&error, &line).map(|it| it.message)
    }

    #[test]
    fn one_line_says_what_is_wrong_and_where_help_is() {
        for (line, message) in [
            (
                "rperf report --callgraph",
                "there is no option '--callgraph'; did you mean '--callers'? 'rperf report --help' has all",
            ),
            (
                "rperf recrd",
                "there is no command 'recrd'; did you mean 'report' or 'record'? 'rperf --help' has all",
            ),
            (
                "rperf --nothing",
                "there is no option '--nothing'; see 'rperf --help'",
            ),
            (
                "rperf record --frequency",
                "'--frequency <HZ>' needs a value; see 'rperf record --help'",
            ),
            (
                "rperf attach",
                "'PID' is missing; see 'rperf attach --help'",
            ),
            ("rperf why", "'FILE' is missing; see 'rperf why --help'"),
            (
                "rperf why a.pb.gz --jsn",
                "there is no option '--jsn'; did you mean '--json'? 'rperf why --help' has all",
            ),
            (
                "rperf push --to http://h -n 0",
                "'-n <N>' can't be '0': it must be a whole number from 1 on; see 'rperf push --help'",
            ),
            (
                "rperf top -n x 1",
                "'-n <N>' can't be 'x': it must be a whole number from 1 on; see 'rperf top --help'",
            ),
            (
                "rperf stacks 1x",
                "'PID' can't be '1x': processes have numbers from 1 on, which 'rperf ps' lists; see 'rperf stacks --help'",
            ),
            (
                "rperf push",
                "'--to <URL>' or '--otlp <URL>' is missing; see 'rperf push --help'",
            ),
            (
                "rperf top --idle=3",
                "'--idle' has no value, so not '3'; see 'rperf top --help'",
            ),
            (
                "rperf stacks 1 y",
                "'y' is one argument too many; see 'rperf stacks --help'",
            ),
        ] {
            assert_eq!(said(line).as_deref(), Some(message));
        }
    }

    #[test]
    fn help_and_the_version_are_no_refusals() {
        for line in [
            "rperf --help",
            "rperf report -h",
            "rperf --version",
            "rperf",
        ] {
            assert_eq!(said(line), None, "{line}");
        }
    }
}
