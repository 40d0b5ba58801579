//! The flags of settings, made from the table of settings; clap's derived types take them in. Used
//! by `args`; on the main thread.

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use rperf_session::settings::{ALL, ATTACH, Defaults, PUSH, Setting, Source, Takes, Tracing};
use std::ffi::{OsStr, OsString};
use std::marker::PhantomData;

/// The flags of `rperf record`.
pub type RecordFlags = SettingFlags<Record>;
/// The flags of `rperf stat` and `rperf exec`, which print a page.
pub type PageFlags = SettingFlags<Page>;
/// The flags of `rperf trace`.
pub type TraceFlags = SettingFlags<Trace>;
/// The flags of `rperf attach`.
pub type AttachFlags = SettingFlags<Attach>;
/// The flags of `rperf push`.
pub type PushFlags = SettingFlags<Push>;

/// The settings that a command has flags of.
pub trait Rows {
    /// Whether it prints a page.
    const PAGE: bool = false;
    /// Whether it traces.
    const TRACED: bool = false;
    /// The rows of a command that has its own, with their defaults.
    const OWN: &'static [&'static Setting] = &[];
}

/// The settings of `rperf record`.
#[derive(Debug)]
pub struct Record;
impl Rows for Record {}

/// The settings of `rperf stat` and `rperf exec`.
#[derive(Debug)]
pub struct Page;
impl Rows for Page {
    const PAGE: bool = true;
}

/// The settings of `rperf trace`.
#[derive(Debug)]
pub struct Trace;
impl Rows for Trace {
    const TRACED: bool = true;
}

/// The settings of `rperf attach`.
#[derive(Debug)]
pub struct Attach;
impl Rows for Attach {
    const OWN: &'static [&'static Setting] = &ATTACH;
}

/// The settings of `rperf push`.
#[derive(Debug)]
pub struct Push;
impl Rows for Push {
    const OWN: &'static [&'static Setting] = &PUSH;
}

/// What was given by flags: each setting with a value as text, which nobody has checked yet.
#[derive(Debug)]
pub struct SettingFlags<R> {
    /// For a flag without a value, `1` stands for on and `0` for off. A command's own rows are here
    /// with their defaults.
    pub given: Vec<(&'static Setting, OsString)>,
    rows: PhantomData<R>,
}

impl<R: Rows> clap::Args for SettingFlags<R> {
    fn augment_args(command: Command) -> Command {
        let flagged = flagged::<R>().into_iter();
        command.args(flagged.flat_map(|(setting, takes)| flags(setting, takes, R::PAGE)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<R: Rows> FromArgMatches for SettingFlags<R> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let default = |setting: &Setting| {
            let text = setting.default.record.filter(|_| !R::OWN.is_empty());
            text.map(OsString::from)
        };
        let read = |(setting, takes)| {
            let given = given(matches, setting, takes);
            Some((setting, given.or_else(|| default(setting))?))
        };
        Ok(Self {
            given: flagged::<R>().into_iter().filter_map(read).collect(),
            rows: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The settings that have flags.
fn flagged<R: Rows>() -> Vec<(&'static Setting, &'static Takes)> {
    let other = if R::TRACED {
        Tracing::No
    } else {
        Tracing::Only
    };
    let rows = if R::OWN.is_empty() { &ALL } else { R::OWN };
    let ours = rows.iter().filter(|it| it.tracing != other);
    let flagged = ours.filter_map(|&setting| {
        let flags = setting.flags.as_ref()?;
        (!R::PAGE || !flags.record_only).then_some((setting, &flags.takes))
    });
    flagged.collect()
}

fn flags(setting: &'static Setting, takes: &'static Takes, page: bool) -> Vec<Arg> {
    match takes {
        Takes::Value(name, help) => {
            let arg = Arg::new(on_id(setting))
                .long(on_id(setting))
                .value_name(*name)
                .value_parser(clap::value_parser!(OsString))
                // A wrong value with a dash in front is for us to refuse, in one line. But where any
                // text will do, it is the next flag.
                .allow_hyphen_values(setting.refuses_dashes())
                .help(help_text(setting, help, page));
            vec![short(setting, arg)]
        }
        Takes::Values(name, help) => vec![
            Arg::new(on_id(setting))
                .long(on_id(setting))
                .value_name(*name)
                .value_parser(clap::value_parser!(OsString))
                .allow_hyphen_values(setting.refuses_dashes())
                .action(ArgAction::Append)
                .help(help_text(setting, help, page)),
        ],
        Takes::On(help) => vec![short(setting, switch(on_id(setting), help))],
        Takes::Off(help) => vec![switch(off_id(setting), help)],
        Takes::OnOrOff(on_help, off_help) => {
            // The last one counts.
            let ids = [on_id(setting), off_id(setting)];
            let helps = [on_help, off_help];
            let both = ids.clone().into_iter().zip(helps);
            both.map(|(id, help)| switch(id, help).overrides_with_all(&ids))
                .collect()
        }
    }
}

fn switch(id: String, help: &'static str) -> Arg {
    Arg::new(id.clone())
        .long(id)
        .action(ArgAction::SetTrue)
        .help(help)
}

fn short(setting: &Setting, arg: Arg) -> Arg {
    match setting.flags.as_ref().and_then(|flags| flags.short) {
        Some(letter) => arg.short(letter),
        None => arg,
    }
}

fn on_id(setting: &Setting) -> String {
    setting.long()
}

fn off_id(setting: &Setting) -> String {
    format!("no-{}", setting.long())
}

/// With the values, and what holds without the flag.
fn help_text(setting: &Setting, help: &str, page: bool) -> String {
    let trace = match page {
        true => "",
        false => "; trace: every call, as 'rperf trace'",
    };
    let help = help.replace("{values}", &setting.values(Source::Flag));
    let help = help.replace("{; trace}", trace);
    let Defaults {
        record,
        page: on_page,
        ..
    } = setting.default;
    match if page { on_page } else { record }.or(setting.unset) {
        Some(default) => format!("{help} [default: {default}]"),
        None => help,
    }
}

fn given(matches: &ArgMatches, setting: &'static Setting, takes: &Takes) -> Option<OsString> {
    let is_set = |id: String| matches.get_flag(&id);
    match takes {
        Takes::Value(..) => matches.get_one::<OsString>(&on_id(setting)).cloned(),
        Takes::Values(..) => {
            let values = matches.get_many::<OsString>(&on_id(setting))?;
            let values: Vec<_> = values.map(OsString::as_os_str).collect();
            Some(values.join(OsStr::new(",")))
        }
        Takes::On(_) => is_set(on_id(setting)).then(|| "1".into()),
        Takes::Off(_) => is_set(off_id(setting)).then(|| "0".into()),
        Takes::OnOrOff(..) if is_set(on_id(setting)) => Some("1".into()),
        Takes::OnOrOff(..) => is_set(off_id(setting)).then(|| "0".into()),
    }
}
